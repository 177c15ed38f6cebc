//! Hearing of changes in a folder.

use std::io;
use std::path::Path;
use std::time::Duration;

use hearback_core::port::disk::Watch;

/// How often to look where the system reports no changes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Sleeps until something changes in a folder.
pub(crate) struct FolderWatch {
    #[cfg(target_os = "linux")]
    changes: Option<linux::Changes>,
}

impl FolderWatch {
    /// A user has a limited number of watches. Without one we look from time to time, and nothing is missed.
    #[cfg(target_os = "linux")]
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        match linux::Changes::new(folder) {
            Ok(changes) => Ok(Self { changes: Some(changes) }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            Err(_) => Ok(Self { changes: None }),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        fs_err::metadata(folder).map(|_| Self {})
    }
}

impl Watch for FolderWatch {
    fn wait(&mut self, within: Duration) {
        #[cfg(target_os = "linux")]
        if let Some(changes) = &self.changes {
            return changes.wait(within);
        }
        std::thread::sleep(within.min(LOOK_EVERY));
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::time::Duration;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    pub(super) struct Changes(Inotify);

    impl Changes {
        pub(super) fn new(folder: &Path) -> io::Result<Self> {
            let changes = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
            // A holder that dies closes its lock, which is how its death is heard of.
            let what = AddWatchFlags::IN_MODIFY
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_MOVE_SELF
                | AddWatchFlags::IN_DELETE_SELF
                | AddWatchFlags::IN_ONLYDIR;
            changes.add_watch(folder, what)?;
            Ok(Self(changes))
        }

        pub(super) fn wait(&self, within: Duration) {
            let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
            let mut source = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            // Interrupted is early, and early is allowed.
            if poll(&mut source, timeout).is_ok() {
                while self.0.read_events().is_ok_and(|events| !events.is_empty()) {}
            }
        }
    }
}
