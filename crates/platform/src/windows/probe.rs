//! Trying what this system can do. Most of it is not tried yet, and says so.

use std::path::Path;

use hearback_core::finding::{FileSystem, Logout, NamedBy, Room, Tried};

fn not_yet<T>() -> Tried<T> {
    Tried::untried("it is not tried on Windows yet")
}

pub(crate) fn file_system(_folder: &Path) -> Tried<FileSystem> {
    not_yet()
}

pub(crate) fn room(_folder: &Path) -> Tried<Room> {
    not_yet()
}

/// There is one way here.
pub(crate) fn naming(_folder: &Path) -> Tried<NamedBy> {
    Tried::Worked(NamedBy::Rename)
}

pub(crate) fn holes(_folder: &Path) -> Tried {
    not_yet()
}

pub(crate) fn bell(_folder: &Path) -> Tried {
    Tried::untried("there is no bell on Windows yet: `kill` needs `--force`")
}

pub(crate) fn oom_score() -> Tried {
    Tried::untried("this system does not let a process offer itself")
}

pub(crate) fn descriptors() -> Tried<u64> {
    Tried::untried("this system has no such limit")
}

pub(crate) fn pids_are_the_machines() -> Tried<bool> {
    Tried::untried("this system has one space of pids")
}

pub(crate) fn logout() -> Tried<Logout> {
    Tried::untried("logging off ends everything on Windows")
}
