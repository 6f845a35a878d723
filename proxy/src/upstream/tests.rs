use std::{
    future::pending,
    net::{Ipv4Addr, TcpListener},
};

use rustls::pki_types::ServerName;
use tokio::{task::JoinSet, time::Instant};

use super::*;

/// Accepts connections by its backlog alone, and never says a word.
fn black_hole() -> (TcpListener, Arc<Pool>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let authority = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    let endpoint = Endpoint {
        authority: listener.local_addr().unwrap().to_string().parse().unwrap(),
        base_path: String::new(),
        server_name: ServerName::try_from("a").unwrap(),
        authorities: authority.cert.pem().into_bytes(),
        credential: None,
    };
    let open = Metrics::new().unwrap().upstream_connections.with_label_values(&["hub", "call"]);
    (listener, Pool::new(Arc::new(Target::new(&endpoint).unwrap()), open))
}

async fn failed(pool: Arc<Pool>) -> String {
    pool.stream().await.map(drop).unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_head_is_awaited_for_so_long_and_a_log_for_ever() {
    for traffic in [Traffic::Call, Traffic::Watch] {
        let asked = Instant::now();
        let outcome = in_time(traffic, pending::<Result<(), _>>()).await;
        assert!(matches!(outcome, Err(UpstreamError::Timeout)), "{traffic:?}");
        assert_eq!(asked.elapsed().as_secs(), 65, "{traffic:?}");
    }
    let day = Duration::from_hours(24);
    assert!(timeout(day, in_time(Traffic::Stream, pending::<Result<(), _>>())).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_burst_waits_for_one_dial_that_fails() {
    let (_listener, pool) = black_hole();
    let asked = Instant::now();
    let burst: JoinSet<_> = (0..100).map(|_| failed(pool.clone())).collect();
    for error in burst.join_all().await {
        assert_eq!(error, "no connection within 10 s");
    }
    assert_eq!(asked.elapsed().as_secs(), 10);
    // The next one tries again.
    assert_eq!(failed(pool).await, "no connection within 10 s");
    assert_eq!(asked.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_ends_the_dial_for_nobody_else() {
    let (_listener, pool) = black_hole();
    let asked = Instant::now();
    let gives_up = timeout(Duration::from_secs(6), pool.stream());
    let (impatient, _) = tokio::join!(gives_up, failed(pool.clone()));
    assert!(impatient.is_err());
    assert_eq!(asked.elapsed().as_secs(), 10);
}

#[test]
fn only_a_read_that_has_no_body_is_repeated() {
    let parts = |method: &str| Request::builder().method(method).body(()).unwrap().into_parts().0;
    for (method, repeated) in [("GET", true), ("HEAD", true), ("POST", false), ("DELETE", false)] {
        assert_eq!(may_repeat(&parts(method), &body::empty()), repeated, "{method}");
        assert!(!may_repeat(&parts(method), &body::full("{}")), "{method}");
    }
}
