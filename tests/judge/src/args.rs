//! The command line of the judge.

use std::{
    fs::{self, File},
    io::BufReader,
};

use clap::{Parser, ValueEnum};
use shoal_judge::{Asked, Case, InputError, Judge, Owners, Report, Ring};

/// Says from API server audit logs whether a ring kept its promises.
///
/// Exit status: 0 clean, 1 something was found, 2 the input cannot be used.
#[derive(Debug, Parser)]
#[command(name = "shoal-judge", version)]
pub(crate) struct Args {
    /// Audit log of a cluster, by the name that the ring gives the cluster; again for each cluster.
    #[arg(long, value_name = "NAME=FILE", required = true, value_parser = parse_log)]
    audit: Vec<Log>,
    /// The ring's `ShardedController` (YAML); `ShardMaps` in the same file are taken too.
    #[arg(long, value_name = "FILE")]
    ring: String,
    /// More versions of the ring's `ShardMap` (YAML).
    #[arg(long, value_name = "FILE")]
    map: Vec<String>,
    /// A user whose writes are the ring's; one ending in `*` stands for all that begin so.
    #[arg(long, value_name = "USER", required = true)]
    writer: Vec<String>,
    /// What the load asked to be deleted (JSON lines); without it deletions are judged by owner alone.
    #[arg(long, value_name = "FILE")]
    asked: Option<String>,
    /// Form of the report.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// Form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For programs.
    Json,
    /// For people; ends with one closing line.
    Text,
}

#[derive(Debug, Clone)]
struct Log {
    cluster: String,
    path: String,
}

// === impl Args ===

impl Args {
    /// Reads all inputs and judges the logs.
    pub(crate) fn judge(self) -> Result<Report, InputError> {
        let (mut logs, case) = (Vec::new(), self.case()?);
        for Log { cluster, path } in self.audit {
            let log = File::open(&path).map_err(|source| InputError::File { path, source })?;
            logs.push((cluster, BufReader::new(log)));
        }
        let mut judge = Judge::new(case);
        for (cluster, log) in logs {
            judge.read(&cluster, log);
        }
        Ok(judge.finish())
    }

    fn case(&self) -> Result<Case, InputError> {
        let text = read(&self.ring)?;
        let ring = Ring::parse(&text)?;
        let mut owners = Owners::default();
        let mut maps = owners.add(&ring, &text)?;
        for path in &self.map {
            maps += owners.add(&ring, &read(path)?)?;
        }
        if maps == 0 {
            return Err(InputError::NoMap);
        }
        let asked = self.asked.as_deref().map(|path| Asked::parse(&read(path)?)).transpose()?;
        Ok(Case { ring, owners, writers: self.writer.clone(), asked })
    }
}

fn read(path: &str) -> Result<String, InputError> {
    fs::read_to_string(path).map_err(|source| InputError::File { path: path.to_owned(), source })
}

fn parse_log(text: &str) -> Result<Log, String> {
    match text.split_once('=') {
        Some((cluster, path)) if !cluster.is_empty() && !path.is_empty() => {
            Ok(Log { cluster: cluster.to_owned(), path: path.to_owned() })
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}
