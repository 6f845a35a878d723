//! What goes wrong between the proxy and an API server, as a matrix: each fault against each form of request.
//!
//! Every test holds the table of one fault in its source: what the client sees, and how often the upstream was asked. A client
//! sees a Status, a broken transfer, or the whole truth; never a list or a watch that looks whole and is not. A write is
//! delivered once, whatever becomes of it. `make faults` prints the tables.
//!
//! The upstream is played by the test. Deadlines end a test that hangs; none measures anything.
//! No control plane is needed here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod answers;
mod before_the_head;
mod body;
mod doors;
mod form;
mod matrix;
mod silence;
