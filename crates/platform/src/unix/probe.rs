//! Trying what this system can do.

use std::io;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use hearback_core::finding::{FileSystem, Logout, NamedBy, Room, Tried};

use super::bell::{Bell, ring};
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

pub(crate) fn holes(folder: &Path) -> Tried {
    let path = folder.join("holes");
    let tried = punch(&path);
    let _ = fs_err::remove_file(path); // Whoever made the folder removes it with all that is in it.
    tried.into()
}

fn punch(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    const PIECE: usize = 64 * 1024;
    // No zeroes, which some file systems never store in the first place.
    let piece = [0x5a; PIECE];
    let mut file = fs_err::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    (0..3).try_for_each(|_| file.write_all(&piece))?;
    file.sync_all()?;
    let before = file.metadata()?;
    files::punch(&file, PIECE as u64..2 * PIECE as u64)?;
    file.sync_all()?;
    let after = file.metadata()?;
    let mut middle = [1; PIECE];
    file.seek(SeekFrom::Start(PIECE as u64))?;
    file.read_exact(&mut middle)?;
    if after.len() != before.len() || middle != [0; PIECE] {
        return Err(io::Error::other("a hole changed more than what it was made in"));
    }
    if after.blocks() >= before.blocks() {
        return Err(io::Error::other("a hole gave no room back"));
    }
    Ok(())
}

pub(crate) fn bell(folder: &Path) -> Tried {
    let path = folder.join("bell");
    let tried = Bell::hang(&path).and_then(|_bell| match ring(&path)? {
        true => Ok(()),
        false => Err(io::Error::other("a pipe was made, and nobody heard what was written to it")),
    });
    tried.into()
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
        // What was not lowered by anybody with more rights than ours may be taken back.
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
    // The first space of pids has this number on every kernel: PROC_PID_INIT_INO in linux/proc_ns.h.
    const FIRST: &str = "pid:[4026531836]";
    fs_err::read_link("/proc/self/ns/pid").map(|name| name.as_os_str() == FIRST).into()
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
