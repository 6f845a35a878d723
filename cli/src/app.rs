//! Runs a command and prints its answer.

use std::io::Write;

use serde::Serialize;
use tokio::runtime::Builder;

use crate::{
    args::{Args, Command, Output},
    error::CliError,
    hub::Hub,
    shard,
};

/// What a command has to say.
pub trait Answer: Serialize {
    /// As text for people.
    fn text(&self, wide: bool) -> String;

    /// Whether it is what was hoped for.
    fn is_good(&self) -> bool {
        true
    }
}

/// How a command ended, if it could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is done.
    Good,
    /// The answer is no.
    Bad,
}

// === impl Ending ===

impl From<Ending> for std::process::ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Good => Self::SUCCESS,
            Ending::Bad => Self::from(3),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Ending, CliError> {
    let Command::Shard(args) = &args.command;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { shard::run(&Hub::connect(&args.common).await?, args).await })
}

/// Prints an answer in the form that was asked for.
pub fn print(answer: &impl Answer, output: Option<Output>) -> Result<Ending, CliError> {
    let text = match output {
        Some(Output::Json) => format!("{}\n", serde_json::to_string_pretty(answer)?),
        other => answer.text(other == Some(Output::Wide)),
    };
    // A reader that has gone is no error of ours.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if answer.is_good() { Ending::Good } else { Ending::Bad })
}
