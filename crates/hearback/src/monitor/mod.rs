//! The monitor of a store: the loop, its end in good order, and what others ask of it.

mod ask;
mod drain;
mod run;

pub use ask::{Predecessor, SeenMonitor, StopResponse};
pub use run::{MonitorEnd, MonitorOptions};
