//! `shoal-bench`: what Shoal costs beside a direct connection and the floor; see [`shoal_tests::bench`].

use shoal_tests::{HarnessError, bench};

#[tokio::main]
async fn main() -> Result<(), HarnessError> {
    bench::run().await
}
