//! The processes of this machine at one moment.

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other.rs")]
mod table;

use table::Life;
pub(crate) use table::each;

use crate::mark::{Boundary, Membership};

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

/// A process as it was seen, and what it says about the tree that it belongs to.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) stat: Stat,
    /// Those of its variables that were asked for, with their values.
    variables: Vec<(String, Vec<u8>)>,
    /// What it was executed as, if the system tells, and if it has one of those variables.
    command: Vec<u8>,
}

impl Seen {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// What it is to one tree.
    pub(crate) fn of(&self, tree: &Membership) -> Process {
        let mark = Carried::of(tree, tree.variables.iter().filter_map(|name| self.value(name)));
        let is_apart = match tree.boundary {
            // Any process can set a variable; one that we detached was executed as it says, too.
            Boundary::Detached { variable, command } => self.value(variable).is_some_and(|mark| {
                mark != tree.value.as_bytes() && table::is_detached_as(&self.command, command, mark)
            }),
            Boundary::OtherValue => mark == Carried::Others,
        };
        Process { stat: self.stat, mark, is_apart }
    }
}

/// A process, and what its environment says about one tree.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) stat: Stat,
    /// What it carries of marks.
    pub(crate) mark: Carried,
    /// Whether it leads another tree, however it is related to this one.
    pub(crate) is_apart: bool,
}

/// Which marks a process carries. A turn that is begun inside a job carries two: its own and that of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carried {
    /// The mark of the tree, perhaps among others.
    Ours,
    /// Only marks of other trees. It belongs to this one only if it descends from a member of it: an orphan of another
    /// tree can become a child of the supervisor, too.
    Others,
    /// None.
    Nothing,
}

impl Carried {
    /// From the values of those variables of the tree that the process has.
    fn of<'a>(tree: &Membership, values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let is_ours = |value| value == tree.value.as_bytes();
        values
            .into_iter()
            .map(is_ours)
            .reduce(|one, other| one || other)
            .map_or(Self::Nothing, |ours| if ours { Self::Ours } else { Self::Others })
    }
}
