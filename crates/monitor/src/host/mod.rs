//! The monitor of a store: its loop, its end in good order, and what other processes request of it.

mod agenda;
mod begin;
mod closing;
mod deliveries;
mod drain;
mod drain_plan;
mod hand_overs;
mod health;
mod job_changes;
mod listen;
mod look;
mod monitor;
mod news;
mod notices;
mod open_job;
mod pauses;
mod pruning;
mod requests;
mod run;
mod stop;
mod successor;
#[cfg(test)]
mod testing;
mod updates;
mod work;
mod workers;

pub use agenda::Agenda;
pub use drain_plan::{DrainPlan, plan};
pub use health::host_state;
pub use job_changes::{Changed, JobChanges};
pub use monitor::{Monitor, MonitorEnd, MonitorOptions, MonitorPolicy};
pub use requests::{HostRequests, SeenMonitor, StopResponse};
pub use successor::{Predecessor, await_end_of};
