//! The processes of this machine at one moment.

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other.rs")]
mod table;

pub(crate) use table::{Stat, each};

/// A process with the marks in its environment.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) stat: Stat,
    /// The job that it belongs to.
    pub(crate) job: Option<String>,
    /// The job that it supervises, or what else it was detached as.
    pub(crate) supervises: Option<String>,
}
