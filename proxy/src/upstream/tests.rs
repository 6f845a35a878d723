use std::future::pending;

use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_head_is_awaited_for_so_long_and_a_log_for_ever() {
    for traffic in [Traffic::Call, Traffic::Watch] {
        let asked = Instant::now();
        let outcome = in_time(traffic, pending::<Result<(), _>>()).await;
        assert!(matches!(outcome, Err(UpstreamError::Timeout(HEAD_TIMEOUT))), "{traffic:?}");
        assert_eq!(asked.elapsed().as_secs(), 65, "{traffic:?}");
    }
    let day = Duration::from_hours(24);
    assert!(timeout(day, in_time(Traffic::Stream, pending::<Result<(), _>>())).await.is_err());
}

#[test]
fn only_a_read_that_has_no_body_is_repeated() {
    let parts = |method: &str| Request::builder().method(method).body(()).unwrap().into_parts().0;
    for (method, repeated) in [("GET", true), ("HEAD", true), ("POST", false), ("DELETE", false)] {
        assert_eq!(may_repeat(&parts(method), &body::empty()), repeated, "{method}");
        assert!(!may_repeat(&parts(method), &body::full("{}")), "{method}");
    }
}
