//! What a client sees through a proxy is what it sees directly, but for what `docs/conformance.md` says; see
//! [`shoal_tests::conformance`].
#![allow(clippy::unwrap_used, reason = "test code")]

use shoal_tests::{RunDir, conformance};

/// Fewer would mean that discovery was not read.
const PAIRS: usize = 5000;

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_the_direct_one_or_differs_as_documented() {
    let dir = RunDir::for_test("conformance").unwrap();
    let report = Box::pin(conformance::run(dir.path(), None)).await.unwrap();
    report.print();
    assert_eq!(report.failed, 0, "the pairs that differ are above");
    assert!(report.passed >= PAIRS, "{} pairs", report.passed);
}
