//! The processes above this one: which programs they run, and where.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Native;
use crate::sys;

/// How far up is looked. Shells in shells in terminals in desktops are no more than this.
const DEPTH_MAX: usize = 32;

/// A process above this one, as far as this user may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Its pid, to be shown.
    pub pid: u32,
    /// Its executable file.
    pub executable: Option<PathBuf>,
    /// Its arguments, beginning with the name of the program.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
}

impl Native {
    /// The processes above this one, the nearest first. Empty where the system does not show them.
    pub fn ancestors(&self) -> Vec<Ancestor> {
        let mut found = Vec::new();
        let mut pid = sys::ancestors::parent(std::process::id());
        while let Some(this) = pid.filter(|pid| *pid > 1 && found.len() < DEPTH_MAX) {
            found.push(sys::ancestors::look(this));
            pid = sys::ancestors::parent(this);
        }
        found
    }

    /// What a process runs, and where, as far as this user may see it.
    pub fn running(&self, pid: u32) -> Ancestor {
        sys::ancestors::look(pid)
    }

    /// When a process was started, in clock ticks after boot, where the system counts so.
    pub fn start_ticks(&self, pid: u32) -> Option<u64> {
        sys::ancestors::start_ticks(pid)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_the_first_and_is_shown_with_its_program_and_place() {
        let ancestors = Native::default().ancestors();
        let parent = &ancestors[0];
        assert_eq!(parent.pid, std::os::unix::process::parent_id());
        assert!(parent.executable.as_ref().is_some_and(|path| path.is_absolute()), "{parent:?}");
        assert!(
            !parent.arguments.is_empty() && parent.cwd.as_ref().is_some_and(|cwd| cwd.is_dir()),
            "{parent:?}"
        );
    }
}
