//! `shoal shard`.

mod audit;
mod list;
mod of;
mod rebalance;
mod verify;
mod wish;

use crate::{
    app::{Ending, print},
    args::{Action, Shard},
    error::CliError,
    hub::Hub,
};

/// Does what was asked for and prints the answer.
pub async fn run(hub: &Hub, args: &Shard) -> Result<Ending, CliError> {
    let output = args.common.output;
    if let Action::Verify { evict: true, .. } = args.action {
        return print(&verify::evict(), output);
    }
    let ring = hub.ring(args.common.ring.as_ref()).await?;
    match &args.action {
        Action::List => print(&list::list(hub, &ring).await?, output),
        Action::Of { object, cluster } => print(&of::of(hub, &ring, object, cluster).await?, output),
        Action::Move { slots, to, wait } => print(&wish::moved(hub, &ring, slots, to, *wait).await?, output),
        Action::Drain { shard, wait } => print(&wish::drained(hub, &ring, shard, *wait).await?, output),
        Action::Undrain { shard } => print(&wish::undrained(hub, &ring, shard).await?, output),
        Action::Verify { audit, .. } => print(&verify::verify(hub, &ring, audit.as_deref()).await?, output),
        Action::Rebalance { .. } => print(&rebalance::plan(hub, &ring).await?, output),
    }
}
