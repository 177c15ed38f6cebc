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

/// A process, and what its environment says about one tree.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) stat: Stat,
    /// Whether it carries the mark of the tree.
    pub(crate) is_marked: bool,
    /// Whether it leads another tree, however it is related to this one.
    pub(crate) is_apart: bool,
}
