//! Sends pairs, many at once, and compares.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::compare::{self, Direct, Mismatch};
use super::difference::Difference;
use super::filtered;
use super::ground::{Ground, View, Way};
use super::pair::{Ask, Guide, Pair, Rule};
use super::report::Report;
use crate::HarnessError;
use crate::raw::Answer;

/// Calls at once.
const CALLS: usize = 8;
/// Watches at once; they wait for their end more than they work.
const WATCHES: usize = 90;
/// How often a pair is sent while the server's own state moves under it.
const MOVES: usize = 20;

/// What one pair came to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) pair: Pair,
    /// For each proxy, its title and the differences that were met.
    pub(super) results: Vec<(&'static str, Result<Vec<Difference>, Mismatch>)>,
    /// The page that follows.
    pub(super) next: Option<Pair>,
}

/// Sends all of them and what follows from them.
pub(super) async fn all(
    ground: &Arc<Ground>,
    pairs: Vec<Pair>,
    report: &mut Report,
) -> Result<(), HarnessError> {
    let (calls, watches) = (Arc::new(Semaphore::new(CALLS)), Arc::new(Semaphore::new(WATCHES)));
    let mut running = JoinSet::new();
    let start = |running: &mut JoinSet<_>, pair: Pair| {
        let (ground, calls, watches) = (ground.clone(), calls.clone(), watches.clone());
        running.spawn(async move {
            let gate = if matches!(pair.rule, Rule::Watch) { watches } else { calls };
            let _permit = gate.acquire_owned().await;
            Box::pin(one(&ground, pair)).await
        });
    };
    for pair in pairs {
        start(&mut running, pair);
    }
    while let Some(done) = running.join_next().await {
        let mut outcome = done.map_err(|error| HarnessError::Answer {
            url: "a pair".to_owned(),
            reason: error.to_string(),
        })??;
        if let Some(next) = outcome.next.take() {
            start(&mut running, next);
        }
        report.add(&outcome);
    }
    Ok(())
}

async fn one(ground: &Ground, pair: Pair) -> Result<Outcome, HarnessError> {
    let (mut tries, mut still) = (1, 0);
    loop {
        let [first, second] = &ground.views;
        let (direct, one, other) = Box::pin(ask(ground, &pair)).await?;
        let results = vec![judged(&pair, first, &direct, &one), judged(&pair, second, &direct, &other)];
        let failed = results.iter().any(|(_, result)| result.is_err());
        // The server may have moved between the questions; then they say nothing about the proxy.
        if failed && tries < MOVES {
            tries += 1;
            still = if has_moved(ground, &pair, &direct).await? { 0 } else { still + 1 };
            if still < needed(&pair) {
                continue;
            }
        }
        let next = next_page(&pair, &direct.answer);
        return Ok(Outcome { pair, results, next });
    }
}

/// How often in a row the answers must differ while the server stands still. Of three that begin at once a proxy's may be
/// the first, before a move that both of the server's own answers show; after the second time it cannot be.
fn needed(pair: &Pair) -> usize {
    if matches!(pair.rule, Rule::Watch) { 2 } else { 1 }
}

/// The API server first: if anything differs it is asked again, and what is equal then was so in between.
///
/// A watch takes a second, by which the ages in a table move on, so all three begin at once.
async fn ask(ground: &Ground, pair: &Pair) -> Result<(Direct, Answer, Answer), HarnessError> {
    let [first, second] = &ground.views;
    if matches!(pair.rule, Rule::Watch) {
        let (first, second) = (first.way.send(&pair.ask, true), second.way.send(&pair.ask, true));
        return tokio::try_join!(straight(&ground.direct, pair, true), first, second);
    }
    let direct = straight(&ground.direct, pair, false).await?;
    let (one, other) = tokio::try_join!(first.way.send(&pair.ask, false), second.way.send(&pair.ask, false))?;
    Ok((direct, one, other))
}

async fn has_moved(ground: &Ground, pair: &Pair, before: &Direct) -> Result<bool, HarnessError> {
    let now = straight(&ground.direct, pair, matches!(pair.rule, Rule::Watch)).await?;
    let same_guide = match (&now.guide, &before.guide) {
        (Some(now), Some(before)) => now.body == before.body,
        _ => true,
    };
    Ok(!same_guide || !compare::is_same(pair, &now.answer, &before.answer))
}

async fn straight(way: &Way, pair: &Pair, is_watch: bool) -> Result<Direct, HarnessError> {
    let guide: Option<&Ask> = match &pair.rule {
        Rule::List(Guide::Plain(ask) | Guide::Rows(ask) | Guide::Json(ask)) => Some(ask),
        _ => None,
    };
    let answer = way.send(&pair.ask, is_watch).await?;
    let guide = match guide {
        Some(ask) => Some(way.send(ask, false).await?),
        None => None,
    };
    Ok(Direct { answer, guide })
}

fn judged(
    pair: &Pair,
    view: &View,
    direct: &Direct,
    seen: &Answer,
) -> (&'static str, Result<Vec<Difference>, Mismatch>) {
    (view.title, compare::check(pair, &view.shard, direct, seen))
}

/// Both sides go on from the server's own token.
fn next_page(pair: &Pair, answer: &Answer) -> Option<Pair> {
    let token = if pair.paged { filtered::next_page(answer) } else { String::new() };
    if token.is_empty() {
        return None;
    }
    let (path, query) = pair.ask.target.split_once('?')?;
    let kept = query
        .split('&')
        .filter(|part| !part.starts_with("continue=") && !part.starts_with("resourceVersion"));
    let query: Vec<&str> = kept.collect();
    let target = format!("{path}?{}&continue={token}", query.join("&"));
    Some(Pair { ask: Ask { target, ..pair.ask.clone() }, ..pair.clone() })
}
