//! Hearing of changes in a folder.

use std::io;
use std::path::Path;
use std::time::Duration;

use hearback_core::port::disk::{FolderWatch as Folders, Watch};

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

/// One descriptor for all folders.
#[cfg(target_os = "linux")]
pub(crate) fn watch_folders() -> io::Result<Box<dyn Folders>> {
    Ok(Box::new(linux::ManyFolders::new()?))
}

/// A kqueue needs a descriptor for each folder, and tells no names.
#[cfg(not(target_os = "linux"))]
pub(crate) fn watch_folders() -> io::Result<Box<dyn Folders>> {
    Err(io::ErrorKind::Unsupported.into())
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
    use std::collections::HashMap;
    use std::io;
    use std::os::fd::AsFd;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use hearback_core::port::disk::{FolderEvent, FolderWatch};
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

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

    /// However much happens, what was read is reported after so many reads.
    const READS_MAX: usize = 64;

    /// What happens in any number of folders.
    pub(super) struct ManyFolders {
        events: Inotify,
        folders: HashMap<WatchDescriptor, PathBuf>,
        watches: HashMap<PathBuf, WatchDescriptor>,
        /// Files whose next write is reported.
        files: HashMap<WatchDescriptor, PathBuf>,
    }

    impl ManyFolders {
        pub(super) fn new() -> io::Result<Self> {
            let events = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
            Ok(Self { events, folders: HashMap::new(), watches: HashMap::new(), files: HashMap::new() })
        }

        /// The folder and the name of an event; none of a folder that was removed meanwhile.
        fn report(&mut self, event: InotifyEvent) -> Option<FolderEvent> {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                return Some(FolderEvent::Missed);
            }
            // The kernel removes the watch of a file with its first event.
            if let Some(file) = self.files.remove(&event.wd) {
                let (folder, name) = (file.parent()?.to_owned(), file.file_name()?.to_str()?.to_owned());
                return Some(FolderEvent::At { folder, name });
            }
            let folder = self.folders.get(&event.wd)?.clone();
            // Names that are not Unicode are not ours.
            Some(FolderEvent::At { folder, name: event.name?.into_string().ok()? })
        }
    }

    impl FolderWatch for ManyFolders {
        fn add(&mut self, folder: &Path) -> io::Result<()> {
            // Writes are not reported: a job that prints would wake us all the time.
            let what = AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_MOVED_FROM
                | AddWatchFlags::IN_DELETE
                | AddWatchFlags::IN_DONT_FOLLOW
                | AddWatchFlags::IN_ONLYDIR;
            let watch = self.events.add_watch(folder, what)?;
            if self.watches.get(folder) == Some(&watch) {
                return Ok(());
            }
            self.remove(folder);
            // A folder that was moved keeps its watch, under the name that it has now.
            if let Some(before) = self.folders.insert(watch, folder.to_owned()) {
                self.watches.remove(&before);
            }
            self.watches.insert(folder.to_owned(), watch);
            Ok(())
        }

        fn remove(&mut self, folder: &Path) {
            if let Some(watch) = self.watches.remove(folder) {
                self.folders.remove(&watch);
                // The kernel has removed the watch of a folder that is gone.
                let _ = self.events.rm_watch(watch);
            }
        }

        fn add_next_write(&mut self, file: &Path) -> io::Result<()> {
            let what = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_ONESHOT | AddWatchFlags::IN_DONT_FOLLOW;
            let watch = self.events.add_watch(file, what)?;
            self.files.insert(watch, file.to_owned());
            Ok(())
        }

        fn wait(&mut self, within: Duration) -> Vec<FolderEvent> {
            let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
            // Interrupted is early, and early is allowed.
            let _ = poll(&mut [PollFd::new(self.events.as_fd(), PollFlags::POLLIN)], timeout);
            let mut reported = Vec::new();
            for _ in 0..READS_MAX {
                let Ok(events) = self.events.read_events() else { break };
                for event in events {
                    reported.extend(self.report(event));
                }
            }
            reported
        }
    }
}
