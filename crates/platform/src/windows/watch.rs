//! Hearing of changes in a folder.

use std::io;
use std::path::Path;
use std::time::Duration;

use hearback_core::port::disk::{FolderWatch as Folders, Watch};

/// The system tells that a file has grown when its writer closes it, which for a log is too late: so we look.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The system keeps a folder open for each that is watched, and a folder that is open cannot be moved: so we look.
pub(crate) fn watch_folders() -> io::Result<Box<dyn Folders>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Looks at a folder from time to time.
pub(crate) struct FolderWatch;

impl FolderWatch {
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        fs_err::metadata(folder).map(|_| Self)
    }
}

impl Watch for FolderWatch {
    fn wait(&mut self, within: Duration) {
        std::thread::sleep(within.min(LOOK_EVERY));
    }
}
