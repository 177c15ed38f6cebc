//! The findings of `doctor` about a machine: plain data, which the caller judges.

use std::io;
use std::path::PathBuf;

use crate::{JobId, Outcome, ProcessIdentity};

/// The result of trying something.
#[derive(Debug)]
pub enum Tried<T = ()> {
    /// It works, and this was seen.
    Worked(T),
    /// It does not.
    Failed(io::Error),
    /// It was not tried, for this reason.
    Untried(String),
}

impl<T> Tried<T> {
    /// Not tried, for this reason.
    pub fn untried(why: impl Into<String>) -> Self {
        Self::Untried(why.into())
    }
}

impl<T> From<io::Result<T>> for Tried<T> {
    fn from(result: io::Result<T>) -> Self {
        match result {
            Ok(seen) => Self::Worked(seen),
            Err(error) => Self::Failed(error),
        }
    }
}

/// The place of a store.
#[derive(Debug)]
pub enum Home {
    /// The system names none.
    Unnamed,
    /// It does not exist yet.
    Missing(PathBuf),
    /// It exists and is safe to use; this is its real path.
    Ours(PathBuf),
    /// It must not be used.
    Refused(PathBuf, io::Error),
}

/// What is written for one agent, so that it knows hearback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFindings {
    /// Its name, and for which project it is, if for one.
    pub name: String,
    /// The arguments of `agent setup` that mean it.
    pub arguments: String,
    /// How many parts are as they should be.
    pub current: usize,
    /// How many parts are missing.
    pub absent: usize,
    /// The parts of an older set-up.
    pub outdated: Vec<PathBuf>,
}

/// Where a file system stores its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// On a disk of this machine.
    Local,
    /// In memory: lost when the power fails.
    Memory,
    /// On a disk of another machine.
    Shared,
    /// In a program (FUSE), which decides.
    Program,
}

/// The file system of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name, or its number if the name is unknown.
    pub name: String,
    /// Where it stores its data.
    pub medium: Medium,
}

/// The free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// How many bytes are free.
    pub bytes: u64,
    /// How many more files can be created, if the file system counts them.
    pub files: Option<u64>,
}

/// How a file is published under a name without replacing another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// By a rename that replaces nothing.
    Rename,
    /// By a second link, and removing the first.
    Link,
}

/// How `doctor` ends a launcher, to see whether its job survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherEnd {
    /// Kills it.
    Parent,
    /// Closes its terminal.
    Terminal,
    /// Kills its whole process group.
    ProcessGroup,
}

/// What the login manager does at a logout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logout {
    /// Whether it kills the processes of the login.
    pub ends_processes: bool,
    /// Whether the user's service manager survives the last logout.
    pub lingers: bool,
}

/// The findings about the disk of a store.
#[derive(Debug)]
pub struct DiskFindings {
    /// The file system.
    pub file_system: Tried<FileSystem>,
    /// The free space.
    pub room: Tried<Room>,
    /// Whether a name can be taken only once.
    pub publish: Tried<NamedBy>,
    /// Whether a file and a folder can be flushed.
    pub flush: Tried,
    /// Whether other processes see a lock while its holder lives, and no longer.
    pub locks: Tried,
    /// Whether the file system can free the middle of a file.
    pub holes: Tried,
    /// Whether a bell wakes a sleeping process.
    pub bell: Tried,
    /// Whether a folder can be watched.
    pub watch: Tried,
}

/// The findings about what is in a store. Nothing is changed to find them out.
#[derive(Debug, Default)]
pub struct StoreFindings {
    /// How many jobs are open.
    pub open_jobs: usize,
    /// Jobs and sessions that cannot be read, each with its reason.
    pub unreadable: Vec<(String, String)>,
    /// Entries that hearback did not make, where only its own belong.
    pub strays: Vec<PathBuf>,
    /// Follow-ups and messages that were given up, each with its name and the last error.
    pub dead_letters: Vec<(String, String)>,
    /// Follow-ups that are due, and that no process delivers.
    pub undelivered: Vec<JobId>,
    /// Follow-ups and messages that wait for a host, by name.
    pub for_hosts: Vec<String>,
    /// Jobs that are recorded as lost while processes of theirs may run: where those are, or their pids.
    pub unswept: Vec<(JobId, String)>,
}

/// The findings about the machine.
#[derive(Debug)]
pub struct MachineFindings {
    /// The outcome of a job after each end of its launcher.
    pub launcher_ends: Vec<(LauncherEnd, Tried<Outcome>)>,
    /// The units of a service manager that contain this process, outermost first.
    pub units: Vec<String>,
    /// What a logout does.
    pub logout: Tried<Logout>,
    /// The identity of this process, as a record holds it.
    pub identity: Tried<ProcessIdentity>,
    /// Whether pids are those of the machine, or those of a container.
    pub pids_are_the_machines: Tried<bool>,
    /// Whether a process may raise its own OOM score.
    pub oom_score: Tried,
    /// How many descriptors a process may open.
    pub descriptors: Tried<u64>,
}
