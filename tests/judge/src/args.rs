//! The command line of the judge.

use std::{
    fs::{self, File},
    io::BufReader,
    time::Duration,
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
    /// Seconds that a slot may be without service; needs a log that shows the map's versions.
    #[arg(long, value_name = "SECONDS")]
    orphan_budget: Option<u64>,
    /// The controller ran without the ring before or after: its writes without a suffix stand while no shard owns a slot.
    #[arg(long)]
    adopted: bool,
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
        let (case, maps) = self.case()?;
        let mut judge = Judge::new(case);
        for log in &self.audit {
            judge.survey(&log.cluster, log.open()?);
        }
        if maps == 0 && !judge.has_map() {
            return Err(InputError::NoMap);
        }
        for log in &self.audit {
            judge.read(&log.cluster, log.open()?);
        }
        Ok(judge.finish())
    }

    /// The case, and how many versions of the map the files hold.
    fn case(&self) -> Result<(Case, usize), InputError> {
        let text = read(&self.ring)?;
        let ring = Ring::parse(&text)?;
        let mut owners = Owners::default();
        let mut maps = owners.add(&ring, &text)?;
        for path in &self.map {
            maps += owners.add(&ring, &read(path)?)?;
        }
        let asked = self.asked.as_deref().map(|path| Asked::parse(&read(path)?)).transpose()?;
        let orphan_budget = self.orphan_budget.map(Duration::from_secs);
        let (writers, adopted) = (self.writer.clone(), self.adopted);
        Ok((Case { ring, owners, writers, asked, orphan_budget, adopted }, maps))
    }
}

// === impl Log ===

impl Log {
    fn open(&self) -> Result<BufReader<File>, InputError> {
        let open = File::open(&self.path);
        open.map(BufReader::new).map_err(|source| InputError::File { path: self.path.clone(), source })
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
