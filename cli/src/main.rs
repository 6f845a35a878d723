//! The command line as a program.

use std::process::ExitCode;

use clap::Parser;
use shoal_cli::{app, args::Args};

fn main() -> ExitCode {
    match app::run(&Args::parse()) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("shoal: {error}");
            ExitCode::FAILURE
        }
    }
}
