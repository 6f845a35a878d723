//! `shoal-bench [quick] [MEASURE]...`: what Shoal costs beside other ways; `shoal-bench handover`: how long slots are
//! on their way. See [`shoal_tests::bench`].

use std::error::Error;

use shoal_tests::bench::{self, Asked};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["handover"] {
        return Ok(bench::hand_over().await?);
    }
    let asked = Asked::parse(words)?;
    Ok(bench::run(&asked).await?)
}
