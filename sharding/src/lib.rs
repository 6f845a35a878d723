//! Who owns what, without IO.
//!
//! ```text
//! object --rules--> mode, key --hash--> slot --map--> owner at an epoch
//! ```

pub mod map;
pub mod rules;
pub mod slot;

pub use map::{MapError, SlotMap, Slots};
pub use rules::Rules;
pub use slot::{Slot, slot_of};
