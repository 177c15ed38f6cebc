//! What was found out about a machine by trying: plain data, for somebody else to judge.

use std::io;
use std::path::PathBuf;

use crate::{Outcome, ProcessIdentity};

/// What came of trying something.
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
    /// Nobody has made it yet.
    Missing(PathBuf),
    /// It is ours, by its real name.
    Ours(PathBuf),
    /// It is not to be used.
    Refused(PathBuf, io::Error),
}

/// What a disk keeps what it is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A disk of this machine.
    Local,
    /// Memory: gone with the power.
    Memory,
    /// Another machine's disk.
    Shared,
    /// Whatever some program makes of it.
    Program,
}

/// The file system of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// What the system calls it; its number where it has no name here.
    pub name: String,
    /// Where it keeps its files.
    pub medium: Medium,
}

/// How much more fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that we may still write.
    pub bytes: u64,
    /// Files that we may still make, where the file system counts them.
    pub files: Option<u64>,
}

/// How a file gets a name that must not be taken from anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// By a rename that replaces nothing.
    Rename,
    /// By a second link, and taking the first away.
    Link,
}

/// What is done to a launcher, to see whether its job outlives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// It is killed hard.
    Parent,
    /// Its terminal is closed.
    Terminal,
    /// Its whole process group is killed hard.
    ProcessGroup,
}

/// What the login manager does at the end of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logout {
    /// It ends what is left of the login.
    pub ends_processes: bool,
    /// This user's own service manager outlives the last login.
    pub lingers: bool,
}

/// What a store would stand on: everything that was tried on its disk.
#[derive(Debug)]
pub struct DiskFindings {
    /// What kind of file system it is.
    pub file_system: Tried<FileSystem>,
    /// How much more fits.
    pub room: Tried<Room>,
    /// Whether a name is taken once.
    pub publish: Tried<NamedBy>,
    /// Whether a file and a folder can be flushed.
    pub flush: Tried,
    /// Whether a lock is seen by others while its holder lives, and no longer.
    pub locks: Tried,
    /// Whether the middle of a file can be given back.
    pub holes: Tried,
    /// Whether a sleeper can be woken through a file.
    pub bell: Tried,
}

/// What a job would run on.
#[derive(Debug)]
pub struct MachineFindings {
    /// What became of a job whose launcher was dealt each blow.
    pub blows: Vec<(Blow, Tried<Outcome>)>,
    /// The units of a service manager around us, outermost first.
    pub units: Vec<String>,
    /// What a logout does.
    pub logout: Tried<Logout>,
    /// Who we are, as a record would say it.
    pub identity: Tried<ProcessIdentity>,
    /// Whether pids are the machine's own, or those of a container.
    pub pids_are_the_machines: Tried<bool>,
    /// Whether a process may offer itself to the system when memory runs out.
    pub oom_score: Tried,
    /// How many descriptors a process may have.
    pub descriptors: Tried<u64>,
}
