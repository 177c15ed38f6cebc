//! The processes of this machine at one moment.

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other.rs")]
mod table;

use std::cell::OnceCell;

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
    /// What it was executed as, if the system tells; read when it matters.
    command: OnceCell<Vec<u8>>,
}

impl Seen {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// What it is to one tree.
    pub(crate) fn of<'a>(&'a self, tree: &'a Membership) -> Process<'a> {
        let mark = Carried::of(tree, tree.variables.iter().filter_map(|name| self.value(name)));
        let apart = match tree.boundary {
            Boundary::Detached { variable, command } => match self.value(variable) {
                Some(mark) if mark != tree.value.as_bytes() => Apart::IfDetachedAs(self, command, mark),
                _ => Apart::Known(false),
            },
            Boundary::OtherValue => Apart::Known(mark == Carried::Others),
        };
        Process { stat: self.stat, mark, apart }
    }
}

/// A process, and what its environment says about one tree.
#[derive(Debug, Clone)]
pub(crate) struct Process<'a> {
    pub(crate) stat: Stat,
    /// What it carries of marks.
    pub(crate) mark: Carried,
    pub(crate) apart: Apart<'a>,
}

impl Process<'_> {
    /// Whether it leads another tree, however it is related to this one. Ask last: it may have to be read.
    pub(crate) fn is_apart(&self) -> bool {
        match self.apart {
            Apart::Known(is_so) => is_so,
            // Any process can set a variable; one that we detached was executed as it says, too.
            Apart::IfDetachedAs(seen, command, mark) => {
                let executed = seen.command.get_or_init(|| table::command(seen.stat.pid));
                table::is_detached_as(executed, command, mark)
            }
        }
    }
}

/// Whether a process leads another tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Apart<'a> {
    Known(bool),
    /// If it was executed by this command, or as this mark says.
    IfDetachedAs(&'a Seen, &'a str, &'a [u8]),
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
