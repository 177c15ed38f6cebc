//! The monitor of a store: its loop, its end in good order, and what other processes request of it.

mod begin;
mod deliveries;
mod drain;
mod drain_plan;
mod hand_overs;
mod listen;
mod look;
mod monitor;
mod news;
mod notices;
mod open_jobs;
mod pauses;
mod pruning;
mod requests;
mod run;
mod sleepers;
mod stop;
mod successor;
#[cfg(test)]
mod testing;
mod work;
mod workers;

pub use drain_plan::{DrainPlan, plan};
pub use monitor::{Monitor, MonitorEnd, MonitorOptions, MonitorPolicy};
pub use requests::{HostRequests, SeenMonitor, StopResponse};
pub use successor::{Predecessor, await_end_of};
