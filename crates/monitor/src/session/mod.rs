//! Sessions: turns one at a time, messages in order, and a host that can be restarted in the middle of anything.

mod admit;
mod drain;
mod inbox;
mod running;
mod turn;

pub use admit::{Admission, Refusal, admit};
pub use drain::{DrainPlan, plan};
pub use inbox::{Inbox, NextMessage, next_message};
pub use running::{ActiveTurn, Recording, Running};
pub use turn::{Beginning, OpenTurn, Turns, interrupt};
