//! The processes of this machine at one moment.

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other.rs")]
mod table;

use table::Life;
pub(crate) use table::each;

/// What hearback needs to know of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// The kernel's own start time; on Linux, clock ticks between boot and start.
    pub(crate) started: u64,
    /// What the system tells of its end.
    life: Life,
}

impl Stat {
    /// A process that is ending, or has ended and only waits to be reaped, counts as dead.
    pub(crate) fn is_dead(&self) -> bool {
        self.life.is_dead()
    }
}

/// A process with the marks in its environment.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) stat: Stat,
    /// The job that it belongs to.
    pub(crate) job: Option<String>,
    /// The job that it supervises, or what else it was detached as.
    pub(crate) supervises: Option<String>,
}
