//! `shoal-chaos [FLAGS]`: a live ring, and everything that can go wrong; `make chaos` builds what it needs and runs it.
//! See [`shoal_tests::chaos`].

use std::process::ExitCode;

use clap::Parser;
use shoal_tests::chaos::{self, Args};

fn main() -> ExitCode {
    chaos::main(&Args::parse())
}
