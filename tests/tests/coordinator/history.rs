//! Every version of the map, as the API server told them.

use futures_util::TryStreamExt;
use kube::Api;
use kube::runtime::watcher;
use shoal_api::{ShardMap, ShardMapSpec, SlotState};
use shoal_sharding::{Slot, SlotMap};
use shoal_tests::soon;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The versions from when it began.
pub(crate) struct History {
    maps: watch::Receiver<Vec<ShardMapSpec>>,
    task: AbortHandle,
}

// === impl History ===

impl History {
    pub(crate) async fn start(api: Api<ShardMap>) -> Self {
        let (told, maps) = watch::channel(Vec::new());
        let (begun, ready) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut begun = Some(begun);
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
            while let Ok(Some(event)) = events.try_next().await {
                match event {
                    watcher::Event::Apply(map) | watcher::Event::InitApply(map) => {
                        told.send_modify(|maps: &mut Vec<_>| maps.push(map.spec));
                    }
                    watcher::Event::InitDone => drop(begun.take().map(|begun| begun.send(()))),
                    _ => {}
                }
            }
        });
        soon("the watch of maps", ready).await.unwrap();
        Self { maps, task: task.abort_handle() }
    }

    /// Waits until that version was told, and returns all up to then.
    pub(crate) async fn until(&self, version: i64) -> Vec<SlotMap> {
        let mut maps = self.maps.clone();
        let is_there = |maps: &Vec<ShardMapSpec>| maps.last().is_some_and(|map| map.version >= version);
        let maps = soon("the watch to catch up", maps.wait_for(is_there)).await.unwrap();
        maps.iter().map(|map| SlotMap::try_from(map).unwrap()).collect()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One version after the other; an epoch has one owner, and rises by one with each grant.
pub(crate) fn assert_chain(maps: &[SlotMap]) {
    for pair in maps.windows(2) {
        let [before, after] = pair else { unreachable!() };
        assert_eq!(after.version(), before.version() + 1, "a version was written twice, or left out");
        for slot in (0..=255).map(Slot) {
            let (old, new) = (before.entry(slot), after.entry(slot));
            let granted = new.state == SlotState::Owned && new.epoch != old.epoch;
            assert_eq!(
                new.epoch,
                old.epoch + i64::from(granted),
                "slot {slot} in version {}",
                after.version()
            );
            let taken = new.owner.is_some() && new.owner != old.owner;
            assert!(
                !taken || granted,
                "slot {slot} changed owner without an epoch in version {}",
                after.version()
            );
        }
    }
}
