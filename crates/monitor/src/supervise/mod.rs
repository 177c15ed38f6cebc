//! The supervisor: the detached process that owns one running job.
//!
//! [`step()`] only decides. [`Supervisor`] does what it decides, and reports to it what happened.

mod drive;
mod ending;
mod record;
mod start;
mod step;

pub use drive::{Supervised, Supervisor, retire};
pub use ending::{Cause, EndSoFar, Ending, MainExit};
pub use step::{Action, Event, State, step};
