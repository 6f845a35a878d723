//! The control plane as a program.

use std::process::ExitCode;

use clap::Parser;
use shoal_controller::{app, args::Args};

fn main() -> ExitCode {
    match app::run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shoal-controller: {error}");
            ExitCode::FAILURE
        }
    }
}
