//! What the judge can hold against a log.

use serde::Serialize;

/// Why a write, or a log, does not stand. The words are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Reason {
    /// The slot claimed is not the slot of the object's key.
    WrongSlot,
    /// The shard did not own the slot at that epoch.
    NotOwner,
    /// The shard owned the slot, but the slot never had that epoch.
    WrongEpoch,
    /// The suffix names a shard that the ring does not have.
    UnknownShard,
    /// A ring's writer went past the proxy.
    NoSuffix,
    /// A suffix that no proxy makes, or a claim where none belongs, or none where one does.
    MalformedSuffix,
    /// The suffix was made, or brought along, by somebody other than the ring's proxy.
    ClientMadeSuffix,
    /// A ring's writer wrote the lock under its original name.
    OriginalLock,
    /// A shard wrote the lock or the identity of another one.
    SisterLock,
    /// A version of the map that breaks the rules of maps, or gives an epoch to a second owner.
    BrokenMap,
    /// A past owner wrote after its successor.
    Late,
    /// A deletion that the load did not ask for.
    Unasked,
    /// An object that was deleted and made again, though the load did not ask for its deletion.
    Replaced,
    /// A slot that nobody served for longer than the budget.
    Unowned,
    /// A version of the map that the log does not show.
    HiddenMap,
    /// A write whose object's key the log does not show.
    Unjudgeable,
    /// A line that is not one whole event.
    CutLine,
    /// A log without a line.
    EmptyLog,
    /// Not one write that a slot could be asked for.
    NoRingWrites,
}

/// What a reason says of the run; one per column of the closing line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Somebody wrote what was not theirs, or past the proxy.
    Foreign,
    /// A past owner wrote after its successor.
    Late,
    /// Something was deleted that nobody asked for.
    Unasked,
    /// Something was left without an owner for too long.
    Unowned,
    /// The log proves nothing.
    Evidence,
}

/// One thing that does not stand, and where to look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What it says of the run.
    pub verdict: Verdict,
    /// The stable word.
    pub reason: Reason,
    /// The log's cluster; empty for what concerns all logs.
    pub cluster: String,
    /// Line of the log, from 1; 0 for what concerns a whole log.
    pub line: u64,
    /// The server's id of the request; empty for what is no event.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// What happened, in a sentence.
    pub message: String,
}

// === impl Reason ===

impl Reason {
    /// Every reason there is.
    pub const ALL: [Self; 19] = [
        Self::WrongSlot,
        Self::NotOwner,
        Self::WrongEpoch,
        Self::UnknownShard,
        Self::NoSuffix,
        Self::MalformedSuffix,
        Self::ClientMadeSuffix,
        Self::OriginalLock,
        Self::SisterLock,
        Self::BrokenMap,
        Self::Late,
        Self::Unasked,
        Self::Replaced,
        Self::Unowned,
        Self::HiddenMap,
        Self::Unjudgeable,
        Self::CutLine,
        Self::EmptyLog,
        Self::NoRingWrites,
    ];

    /// What the reason says of the run.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::WrongSlot
            | Self::NotOwner
            | Self::WrongEpoch
            | Self::UnknownShard
            | Self::NoSuffix
            | Self::MalformedSuffix
            | Self::ClientMadeSuffix
            | Self::OriginalLock
            | Self::SisterLock
            | Self::BrokenMap => Verdict::Foreign,
            Self::Late => Verdict::Late,
            Self::Unasked | Self::Replaced => Verdict::Unasked,
            Self::Unowned => Verdict::Unowned,
            Self::HiddenMap | Self::Unjudgeable | Self::CutLine | Self::EmptyLog | Self::NoRingWrites => {
                Verdict::Evidence
            }
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.reason)?;
        if !self.cluster.is_empty() {
            write!(f, " {}", self.cluster)?;
        }
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.audit_id.is_empty() {
            write!(f, " ({})", self.audit_id)?;
        }
        write!(f, ": {}", self.message)
    }
}
