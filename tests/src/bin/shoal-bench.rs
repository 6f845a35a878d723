//! `shoal-bench [quick] [MEASURE]...`: what Shoal costs beside other ways; see [`shoal_tests::bench`].

use std::error::Error;

use shoal_tests::bench::{self, Asked};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let asked = Asked::parse(std::env::args().skip(1))?;
    Ok(bench::run(&asked).await?)
}
