//! The proxy as a program.

use std::process::ExitCode;

use clap::Parser;
use shoal_proxy::{app, args::Args};

fn main() -> ExitCode {
    match app::run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shoal-proxy: {error}");
            ExitCode::FAILURE
        }
    }
}
