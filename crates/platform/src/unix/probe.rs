//! Trying what this system can do.

use std::io;
#[cfg(target_os = "linux")]
use std::io::Write;
use std::path::Path;

use hearback_core::finding::{FileSystem, Logout, NamedBy, Room, Tried};

use super::files;

#[cfg(target_os = "linux")]
pub(crate) fn file_system(folder: &Path) -> Tried<FileSystem> {
    use std::os::fd::AsFd;
    fs_err::File::open(folder).and_then(|folder| files::file_system(folder.as_fd())).into()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn file_system(_folder: &Path) -> Tried<FileSystem> {
    Tried::untried("file systems are not told apart on this system yet")
}

pub(crate) fn room(folder: &Path) -> Tried<Room> {
    match rustix::fs::statvfs(folder) {
        Err(error) => Tried::Failed(error.into()),
        Ok(told) if told.f_blocks == 0 => Tried::untried("this file system does not count its room"),
        Ok(told) => Tried::Worked(Room {
            bytes: told.f_bavail.saturating_mul(told.f_frsize),
            // One that makes them as they are needed counts none.
            files: (told.f_files > 0).then_some(told.f_favail),
        }),
    }
}

pub(crate) fn naming(folder: &Path) -> Tried<NamedBy> {
    let renames = files::renames_without_replacing(folder);
    renames.map(|renames| if renames { NamedBy::Rename } else { NamedBy::Link }).into()
}

/// How many bytes of the disk a file takes.
pub(crate) fn allocated(file: &fs_err::File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.blocks() * 512)
}

#[cfg(target_os = "linux")]
pub(crate) fn oom_score() -> Tried {
    const SCORE: &str = "/proc/self/oom_score_adj";
    let try_it = || -> io::Result<()> {
        let before = fs_err::read_to_string(SCORE)?;
        let before: i32 = before.trim().parse().map_err(io::Error::other)?;
        let set = |score: i32| {
            fs_err::OpenOptions::new().write(true).open(SCORE)?.write_all(score.to_string().as_bytes())
        };
        set((before + 1).min(1000))?;
        // A score that was not lowered with more rights than ours may be taken back.
        set(before)
    };
    try_it().into()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn oom_score() -> Tried {
    Tried::untried("this system does not let a process offer itself")
}

pub(crate) fn descriptors() -> Tried<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    Tried::Worked(limit.current.unwrap_or(u64::MAX))
}

#[cfg(target_os = "linux")]
pub(crate) fn pids_are_the_machines() -> Tried<bool> {
    if !super::sight::numbers_are_ours() {
        return Tried::Failed(std::io::Error::other("/proc shows the pids of another namespace"));
    }
    fs_err::read_link("/proc/self/ns/pid").map(|name| name.as_os_str() == super::identity::FIRST_PIDS).into()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pids_are_the_machines() -> Tried<bool> {
    Tried::untried("this system has one space of pids, or does not tell")
}

#[cfg(target_os = "linux")]
pub(crate) fn logout() -> Tried<Logout> {
    super::login::look()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn logout() -> Tried<Logout> {
    Tried::untried("there is no login manager of systemd on this system")
}
