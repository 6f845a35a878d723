//! `shoal-judge`: reads its arguments, judges, prints the report.

mod args;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use args::{Args, Output};
use clap::Parser;
use shoal_judge::Report;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = args.output;
    let verdict = args.judge().map_err(|error| error.to_string());
    match verdict.and_then(|report| print(&report, output).map(|()| report.is_clean())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            let _ = writeln!(io::stderr(), "shoal-judge: {message}");
            ExitCode::from(2)
        }
    }
}

fn print(report: &Report, output: Output) -> Result<(), String> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(report).map_err(|error| error.to_string())?,
        Output::Text => report.to_string(),
    };
    writeln!(io::stdout(), "{text}").map_err(|error| format!("cannot print the report: {error}"))
}
