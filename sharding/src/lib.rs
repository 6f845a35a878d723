//! Who owns what, without IO.
//!
//! ```text
//! object --rules--> mode, key mode --key--> slot --map--> owner at an epoch
//! ```

pub mod key;
pub mod map;
pub mod push_down;
pub mod rules;
pub mod slot;

pub use key::{Object, Part, slot_in};
pub use map::{MapError, SlotMap, Slots};
pub use push_down::shard_selector;
pub use rules::{Rules, Treatment};
pub use slot::{Slot, slot_of};
