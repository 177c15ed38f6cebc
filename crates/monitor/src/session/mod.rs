//! Sessions: turns one at a time, messages in order, and a host that can be restarted in the middle of anything.

mod active_turns;
mod admit;
mod turn;

pub use active_turns::{ActiveTurn, ActiveTurns, Recording};
pub use admit::{Admission, Refusal, admit};
pub use turn::{Beginning, HeldTurn, OpenTurn, Turns, interrupt};
