//! The judge itself: events in, a report out. It knows no file and no clock.

use std::{io::BufRead, time::Duration};

use crate::{
    agent::{self, Claim, Flaw, Mark},
    asked::Asked,
    event::{Event, Stage, read_events},
    finding::{Finding, Reason},
    history::History,
    late::{Seen, Write},
    map::{Owners, Standing},
    object::Object,
    replaced::Names,
    report::{Figures, Report},
    ring::{Key, Ring, Writers},
    service::{Gap, Service, p99},
    slot::{slot_of, slot_of_uid},
};

/// How a proxy's own User-Agent begins.
const PROXY: &str = "shoal-proxy/";
/// What a proxy without a shard calls itself. Its controller may speak in the lane, where nothing is anybody's: Events of what
/// it did before come late.
const STANDBY: &str = "standby";

/// What is judged, and by what.
#[derive(Debug, Clone)]
pub struct Case {
    /// The ring.
    pub ring: Ring,
    /// Who owned what, as far as it is known beforehand; [`Judge::survey`] adds what a log shows.
    pub owners: Owners,
    /// Users whose writes are the ring's; one that ends in `*` stands for all that begin so.
    pub writers: Vec<String>,
    /// The deletions that were asked for; without it, deletions are judged by owner alone.
    pub asked: Option<Asked>,
    /// How long a slot may be without service; without it that is measured only.
    pub orphan_budget: Option<Duration>,
    /// Whether the controller ran without the ring before or after: its writes without a suffix stand while no shard
    /// owns a slot.
    pub adopted: bool,
}

/// Reads logs and gathers findings.
#[derive(Debug)]
pub struct Judge {
    case: Case,
    seen: Seen,
    names: Names,
    history: History,
    report: Report,
}

/// Why an event does not stand, and the sentence that says so.
type Objection = (Reason, String);

// === impl Judge ===

impl Judge {
    /// A judge that has seen nothing yet.
    pub fn new(mut case: Case) -> Self {
        let seen = Seen::new(case.ring.fence());
        case.writers.extend(case.ring.fenced_writer());
        let (names, history, report) = (Names::default(), History::default(), Report::default());
        Self { case, seen, names, history, report }
    }

    /// Takes the versions of the map and the holders of identities from a log, all of them before a write is judged:
    /// a proxy may act on a map before the log has the line of its writing. Then [`Self::read`] the same logs; only the
    /// hub's has a map.
    pub fn survey(&mut self, cluster: &str, log: impl BufRead) {
        let mut history = History::default();
        for (line, event) in (1..).zip(read_events(log)) {
            // A cut line is found when the log is judged.
            let Ok(event) = event else { continue };
            let found = history.step(&self.case.ring, &mut self.case.owners, line, &event);
            if let Err(objection) = found {
                self.add(cluster, line, &event.audit_id, objection);
            }
        }
        if history.has_map() {
            self.history = history;
            self.weigh_service(cluster);
        }
    }

    /// Whether the surveyed log has a version of the map.
    pub fn has_map(&self) -> bool {
        self.history.has_map()
    }

    fn weigh_service(&mut self, cluster: &str) {
        let budget = self.case.orphan_budget.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let Service { handovers, orphans, unowned } = Service::of(&self.history, budget);
        self.report.figures = Some(Figures {
            moves: handovers.len(),
            handover_ms_p99: p99(&handovers),
            orphaned: orphans.len(),
            orphan_ms_p99: p99(&orphans),
        });
        for Gap { slots, millis, to_the_end, line } in unowned {
            let end = if to_the_end { ", to the end of the log" } else { "" };
            let message = format!("nobody served {} slots for {millis} ms{end}: {slots:?}", slots.len());
            self.add(cluster, line, "", (Reason::Unowned, message));
        }
    }

    /// Reads one cluster's log to its end. Logs of one cluster must be given in their order.
    pub fn read(&mut self, cluster: &str, log: impl BufRead) {
        let mut lines = 0;
        for event in read_events(log) {
            lines += 1;
            match event {
                Ok(event) => self.step(cluster, lines, &event),
                Err(cut) => self.add(cluster, lines, "", (Reason::CutLine, cut.to_string())),
            }
        }
        self.report.lines += lines;
        if lines == 0 {
            let message = "the log has no line: the server did not write it, or to another file";
            self.add(cluster, 0, "", (Reason::EmptyLog, message.to_owned()));
        }
    }

    /// Judges one event.
    pub fn step(&mut self, cluster: &str, line: u64, event: &Event) {
        if !event.is_write() || !event.is_final() {
            return;
        }
        let outcome = if self.case.is_writer(event) {
            self.step_writer(cluster, event)
        } else {
            self.step_stranger(cluster, event)
        };
        if let Err(objection) = outcome {
            self.add(cluster, line, &event.audit_id, objection);
        }
    }

    /// The report over all that was read. A run in which the ring wrote nothing proves nothing.
    pub fn finish(mut self) -> Report {
        if self.report.judged == 0 && self.report.count(Reason::EmptyLog) == 0 {
            let message = "no write of the ring was asked for its slot: check --writer and the audit policy";
            self.add("", 0, "", (Reason::NoRingWrites, message.to_owned()));
        }
        self.report
    }

    fn add(&mut self, cluster: &str, line: u64, audit_id: &str, (reason, message): Objection) {
        let (cluster, audit_id) = (cluster.to_owned(), audit_id.to_owned());
        self.report.add(Finding { verdict: reason.verdict(), reason, cluster, line, audit_id, message });
    }

    fn step_writer(&mut self, cluster: &str, event: &Event) -> Result<(), Objection> {
        if !event.took_effect() {
            self.report.refused += 1;
            return Ok(());
        }
        if event.is_dry_run() {
            self.report.dry_run += 1;
            return Ok(());
        }
        let object = Object::of(event)
            .ok_or_else(|| (Reason::Unjudgeable, format!("{} has no object", event.request_uri)))?;
        let replaced = self.names.note(cluster, event, &object);
        if self.case.ring.is_own(&object) && event.user_agent.starts_with(PROXY) {
            self.report.own += 1;
            return Ok(());
        }
        if self.is_from_without(event) {
            self.report.unmarked += 1;
        } else {
            self.judge(cluster, event, &object)?;
        }
        self.case.check_asked(event, &object)?;
        let owned = matches!(self.case.ring.writers(&object), Writers::Owner(_));
        if replaced && owned { self.case.check_replaced(event, &object) } else { Ok(()) }
    }

    fn step_stranger(&mut self, cluster: &str, event: &Event) -> Result<(), Objection> {
        if let Some(object) = Object::of(event) {
            self.names.note(cluster, event, &object);
        }
        self.case.check_stranger(event)
    }

    /// A replica without a proxy, at a time at which no shard may write.
    fn is_from_without(&self, event: &Event) -> bool {
        let unmarked = self.case.adopted && agent::read_mark(&event.user_agent) == Err(Flaw::Absent);
        let Some((received, at)) = event.received.zip(event.at).filter(|_| unmarked) else { return false };
        !self.history.owned_between(received, at)
    }

    fn judge(&mut self, cluster: &str, event: &Event, object: &Object) -> Result<(), Objection> {
        let writers = self.case.ring.writers(object);
        // A new object belongs to nobody before it has its uid.
        let is_unowned = matches!(writers, Writers::Owner(Key::Uid(_))) && event.is_creation();
        if matches!(writers, Writers::Owner(_)) && !is_unowned {
            self.report.judged += 1;
        }
        let mark = self.case.check_mark(event, object)?;
        match writers {
            Writers::Owner(_) if is_unowned => {
                check_no_claim(object, &mark)?;
                self.report.unproved += 1;
            }
            Writers::Owner(key) => {
                if key == Key::Uid(None) {
                    self.report.unproved += 1;
                }
                let slot = self.case.check_owner(cluster, object, key, &mark)?;
                self.check_late(Write { cluster, event, object, slot: slot.slot, epoch: slot.epoch }, &mark)?;
                self.report.count_write(mark.shard, object.kind());
            }
            Writers::AnyUnsharded => {
                check_no_claim(object, &mark)?;
                self.report.unsharded += 1;
            }
            Writers::AnyLane | Writers::Shard(_) | Writers::Nobody => {
                check_lock(object, writers, &mark)?;
                check_no_claim(object, &mark)?;
                self.report.lane += 1;
            }
        }
        Ok(())
    }

    /// A handler that died may not have written, so it is neither late nor does it make others so.
    fn check_late(&mut self, write: Write<'_>, mark: &Mark<'_>) -> Result<(), Objection> {
        if write.event.stage == Stage::Panic || !self.case.owners.moved(write.slot) {
            return Ok(());
        }
        let (object, slot, epoch) = (write.object, write.slot, write.epoch);
        match self.seen.note(write) {
            None => Ok(()),
            Some(higher) => Err((
                Reason::Late,
                format!(
                    "{} wrote {object} (slot {slot}) at epoch {epoch} after a write at epoch {higher}",
                    mark.shard
                ),
            )),
        }
    }
}

// === impl Case ===

impl Case {
    /// Whether the write is the ring's, by either of the names it was made under.
    fn is_writer(&self, event: &Event) -> bool {
        let matches = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        };
        let names =
            || std::iter::once(&event.user).chain(&event.impersonated_user).map(|user| &user.username);
        self.writers.iter().any(|pattern| names().any(|name| matches(pattern, name)))
    }

    /// Somebody who is no writer of the ring must not carry the ring's suffix.
    fn check_stranger(&self, event: &Event) -> Result<(), Objection> {
        let ring = &self.ring.name;
        if !event.took_effect() || event.is_dry_run() || !agent::names_ring(&event.user_agent, ring) {
            return Ok(());
        }
        let user = &event.user.username;
        Err((Reason::ClientMadeSuffix, format!("{user} is no writer of ring {ring}, yet its suffix says so")))
    }

    /// The suffix of a ring's writer, if it can be believed as far as ring and shard go.
    fn check_mark<'a>(&self, event: &'a Event, object: &Object) -> Result<Mark<'a>, Objection> {
        let (user, agent, verb) = (&event.user.username, &event.user_agent, &event.verb);
        let mark = agent::read_mark(agent).map_err(|flaw| match flaw {
            Flaw::Absent => (Reason::NoSuffix, format!("{verb} {object} by {user} did not pass a proxy")),
            Flaw::Malformed => {
                (Reason::MalformedSuffix, format!("{verb} {object}: no proxy writes {agent:?}"))
            }
            Flaw::Repeated => {
                (Reason::ClientMadeSuffix, format!("{verb} {object}: several suffixes in {agent:?}"))
            }
        })?;
        if mark.ring != self.ring.name {
            let message = format!("{verb} {object} by {user}: the suffix is of another ring, {}", mark.ring);
            return Err((Reason::ClientMadeSuffix, message));
        }
        let seated = mark.shard != STANDBY || self.ring.writers(object) != Writers::AnyLane;
        if seated && !self.ring.has_shard(mark.shard) && !self.owners.has_shard(mark.shard) {
            let message = format!("{verb} {object}: the ring has no shard {}", mark.shard);
            return Err((Reason::UnknownShard, message));
        }
        Ok(mark)
    }

    /// A write that a slot is asked for: the claim must be there, of the right slot, and the shard its owner.
    fn check_owner(
        &self,
        cluster: &str,
        object: &Object,
        key: Key<'_>,
        mark: &Mark<'_>,
    ) -> Result<Claim, Objection> {
        let shard = mark.shard;
        let claim = mark.claim.ok_or_else(|| {
            (Reason::MalformedSuffix, format!("{object}: the suffix of {shard} claims no slot"))
        })?;
        let (slot, epoch) = (claim.slot, claim.epoch);
        let (text, real) = match key {
            Key::Text(text) => (text, slot_of(cluster, text)),
            Key::Uid(Some(uid)) => (uid, slot_of_uid(uid)),
            Key::Uid(None) => ("", slot),
            Key::Hidden => {
                return Err((Reason::Unjudgeable, format!("the log does not show the key of {object}")));
            }
        };
        if slot != real {
            let message = format!("{shard} claims slot {slot} for {object}; key {text:?} is in slot {real}");
            return Err((Reason::WrongSlot, message));
        }
        let but = match self.owners.standing(shard, slot, epoch) {
            Standing::Owner => return Ok(claim),
            Standing::OtherEpoch => {
                let message = format!("{shard} claims epoch {epoch} for {object}; slot {slot} never had it");
                return Err((Reason::WrongEpoch, message));
            }
            Standing::OwnedBy(owner) => format!("it was {owner}'s"),
            Standing::Never => "it never was its owner".to_owned(),
        };
        Err((Reason::NotOwner, format!("{shard} wrote {object} in slot {slot} at epoch {epoch}; {but}")))
    }

    fn check_replaced(&self, event: &Event, object: &Object) -> Result<(), Objection> {
        if self.asked.as_ref().is_none_or(|asked| asked.covers(object)) {
            return Ok(());
        }
        let user = &event.user.username;
        let message = format!("{user} made {object} again: it was deleted, which the load did not ask for");
        Err((Reason::Replaced, message))
    }

    fn check_asked(&self, event: &Event, object: &Object) -> Result<(), Objection> {
        if !event.is_deletion() || self.asked.as_ref().is_none_or(|asked| asked.covers(object)) {
            return Ok(());
        }
        let (user, verb) = (&event.user.username, &event.verb);
        Err((Reason::Unasked, format!("{verb} {object} by {user}: the load did not ask for it")))
    }
}

/// A lock is written by its own shard only, and never under its original name.
fn check_lock(object: &Object, writers: Writers<'_>, mark: &Mark<'_>) -> Result<(), Objection> {
    let shard = mark.shard;
    match writers {
        Writers::Nobody => {
            Err((Reason::OriginalLock, format!("{shard} wrote {object}, the lock under its original name")))
        }
        Writers::Shard(of) if of != shard => {
            Err((Reason::SisterLock, format!("{shard} wrote {object}, {of}'s")))
        }
        _ => Ok(()),
    }
}

/// The proxy claims a slot only where one is asked for.
fn check_no_claim(object: &Object, mark: &Mark<'_>) -> Result<(), Objection> {
    match mark.claim {
        None => Ok(()),
        Some(claim) => Err((
            Reason::MalformedSuffix,
            format!(
                "{object}: the suffix of {} claims slot {} where no slot is asked for",
                mark.shard, claim.slot
            ),
        )),
    }
}

#[cfg(test)]
mod tests;
