//! Trying what this machine can do. What was seen is data; whether it is good is decided elsewhere.
//!
//! A folder to try things in belongs to the caller, and so does what is left in it.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::finding::{FileSystem, Home, LauncherEnd, Logout, NamedBy, Room, Tried};

use crate::sys;
use crate::sys::bell::{Bell, ring};

/// Looks at the place of a store, and makes nothing.
pub fn home(path: &Path) -> Home {
    // A link that leads nowhere is there, and is no place to make a store in.
    match fs_err::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Not every system says that a name is below a file, and so can never be.
            return match path.ancestors().skip(1).find(|above| above.exists()) {
                Some(above) if !above.is_dir() => {
                    let why = format!("`{}` is not a directory", above.display());
                    Home::Refused(path.to_owned(), io::Error::new(io::ErrorKind::NotADirectory, why))
                }
                _ => Home::Missing(path.to_owned()),
            };
        }
        _ => {}
    }
    match sys::files::check_home(path) {
        Ok(real) => Home::Ours(real),
        Err(error) => Home::Refused(path.to_owned(), error),
    }
}

/// Says which file system a folder is on.
pub fn file_system(folder: &Path) -> Tried<FileSystem> {
    sys::probe::file_system(folder)
}

/// Says how much more fits where a folder is.
pub fn room(folder: &Path) -> Tried<Room> {
    sys::probe::room(folder)
}

/// Tries how a file is named without replacing.
pub fn naming(folder: &Path) -> Tried<NamedBy> {
    sys::probe::naming(folder)
}

/// Says how many bytes of the disk a file takes.
///
/// # Errors
///
/// When there is no such file, or it cannot be opened.
pub fn allocated(path: &Path) -> io::Result<u64> {
    sys::probe::allocated(&fs_err::File::open(path)?)
}

/// Tries to give the middle of a file back to the disk.
pub fn holes(folder: &Path) -> Tried {
    let path = folder.join("holes");
    let tried = punch(&path);
    let _ = fs_err::remove_file(path); // Otherwise it is removed with the folder.
    tried.into()
}

fn punch(path: &Path) -> io::Result<()> {
    const PIECE: usize = 64 * 1024;
    // No zeroes, which some file systems never store in the first place.
    let piece = [0x5a; PIECE];
    let mut file = fs_err::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    (0..3).try_for_each(|_| file.write_all(&piece))?;
    file.sync_all()?;
    let before = (file.metadata()?.len(), sys::probe::allocated(&file)?);
    sys::files::punch(&file, PIECE as u64..2 * PIECE as u64)?;
    file.sync_all()?;
    let after = (file.metadata()?.len(), sys::probe::allocated(&file)?);
    let mut middle = [1; PIECE];
    file.seek(SeekFrom::Start(PIECE as u64))?;
    file.read_exact(&mut middle)?;
    if after.0 != before.0 || middle != [0; PIECE] {
        return Err(io::Error::other("a hole changed more than what it was made in"));
    }
    if after.1 >= before.1 {
        return Err(io::Error::other("a hole gave no room back"));
    }
    Ok(())
}

/// Tries to wake a sleeper through a file.
pub fn bell(folder: &Path) -> Tried {
    let path = folder.join("bell");
    let tried = Bell::hang(&path).and_then(|_bell| match ring(&path)? {
        true => Ok(()),
        false => Err(io::Error::other("a bell was rung, and the process that listened did not hear it")),
    });
    tried.into()
}

/// Tries whether a process may offer itself to the system when memory runs out. Nothing stays changed.
pub fn oom_score() -> Tried {
    sys::probe::oom_score()
}

/// Says how many descriptors this process may have.
pub fn descriptors() -> Tried<u64> {
    sys::probe::descriptors()
}

/// Says whether pids are the machine's own, or those of a container.
pub fn pids_are_the_machines() -> Tried<bool> {
    sys::probe::pids_are_the_machines()
}

/// Names the units of a service manager around this process, outermost first.
pub fn units() -> Vec<String> {
    sys::unit::around_us()
}

/// Reads what the login manager does at the end of a login.
pub fn logout() -> Tried<Logout> {
    sys::probe::logout()
}

/// How to start a launcher that is going to be ended.
#[derive(Debug)]
pub struct RehearsalRequest {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What will be done to it.
    pub how: LauncherEnd,
}

/// Looks at the terminal of this process, if it has one, as a program that prints in it does.
///
/// A launcher that is going to be ended does so, because under Wine only those end with a window that have ever made
/// use of it.
pub fn look_at_terminal() {
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open(sys::rehearsal::TERMINAL);
    // What is seen does not matter.
    let _ = terminal.is_ok_and(|terminal| terminal.is_terminal());
}

/// A launcher that was started to be ended. It is ended at the latest when this is dropped.
pub struct Rehearsal(sys::rehearsal::Rehearsal);

impl Rehearsal {
    /// Starts the launcher, where this system can end it in that way.
    pub fn begin(request: &RehearsalRequest) -> Tried<Self> {
        match sys::rehearsal::Rehearsal::begin(request) {
            Tried::Worked(begun) => Tried::Worked(Self(begun)),
            Tried::Failed(error) => Tried::Failed(error),
            Tried::Untried(why) => Tried::Untried(why),
        }
    }

    /// Waits for the one line that it writes, but not longer than `within`.
    ///
    /// # Errors
    ///
    /// When it writes nothing in time, or ends without a line.
    pub fn hear(&mut self, within: Duration) -> io::Result<String> {
        self.0.hear(within)
    }

    /// Ends the launcher, and returns when it is gone.
    ///
    /// # Errors
    ///
    /// When the launcher is still there `within` that time.
    pub fn end_launcher(&mut self, within: Duration) -> io::Result<()> {
        self.0.end_launcher(within)
    }
}
