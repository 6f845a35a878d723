//! Reads API server audit logs and says whether a ring of sharded controllers kept its promises.
//!
//! The judge is the witness that owes the product nothing: it parses the ring's YAML and computes slots by code of
//! its own, and no crate of the product is in its dependency tree.
//!
//! ```text
//! audit log ─▶ event ─▶ object ─▶ ring ─────────▶ judge ─▶ report
//!  (a line)             (its key)  (who may write?)  ▲  ▲
//!                       agent (suffix) ──────────────┘  │
//!                       slot, map (who owned it?), late, asked, replaced
//! audit log of the hub ─▶ history ─┬─▶ map      each version that the log shows
//!                                  └─▶ service  how long slots were served by nobody
//! ```
//!
//! Where the owner of an object depends on its uid, few audit policies show it. A write to such an object whose event does
//! not is held to its claim only: the shard must have owned the slot that it names. A new object has no uid before it is
//! written, so none is asked for. Both are counted apart, as unproved; a policy of level `RequestResponse` leaves only the
//! latter.
//!
//! Where slots move, the log itself says who owned what: a policy of level `RequestResponse` for `shardmaps` and the
//! Leases of the ring's namespace shows each version and each holder.
//!
//! A write of a ring's writer is clean, foreign, late or unasked; the first that applies is its verdict. What makes
//! a log no evidence (a cut line, no line, no ring write) counts against the run like a bad write.

mod agent;
mod asked;
mod event;
mod finding;
mod history;
mod input;
mod judge;
mod late;
mod map;
mod object;
mod replaced;
mod report;
mod ring;
mod service;
mod slot;
mod time;

pub use agent::{Claim, Flaw, Mark, read_mark};
pub use asked::Asked;
pub use event::{CutLine, Event, ObjectRef, ResponseStatus, Stage, User, read_events};
pub use finding::{Finding, Reason, Verdict};
pub use input::InputError;
pub use judge::{Case, Judge};
pub use map::{Owners, Standing};
pub use object::Object;
pub use report::{Figures, MAX_FINDINGS, Report, ShardWrites};
pub use ring::{FenceMode, Key, Ring, Writers};
pub use slot::{SLOTS, slot_of, slot_of_uid};
