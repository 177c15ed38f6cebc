//! The supervisor: the detached process that owns one running job.
//!
//! [`step()`] decides and does nothing; [`Supervisor`] does what it says and tells it what happened.

mod drive;
mod record;
mod start;
mod step;

pub use drive::Supervisor;
pub use step::{Action, Cause, EndSoFar, Ending, Event, MainExit, State, step};
