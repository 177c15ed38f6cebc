//! The port for files: what the store needs from a file system. Tests inject faults here.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::LockState;

/// The result of an exclusive publish. The caller that gets [`Publish::New`] has won; all others obey the file that
/// exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a caller that loses an exclusive publish must obey the winner"]
pub enum Publish {
    /// The file is published.
    New,
    /// The file already exists, and nothing was changed.
    Exists,
}

/// Whether something has to survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Content and name are on the disk before the call returns.
    Power,
    /// The system may keep them in memory for a while.
    No,
}

/// Which processes may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Others that also hold it shared.
    Shared,
    /// No other process.
    Exclusive,
}

/// What to do while another process holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Return without it.
    Try,
    /// Sleep in the kernel until it is free.
    Block,
}

/// A lock that is held until this is dropped, or its holder dies in any way.
pub struct Lock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send>);

impl Lock {
    /// Wraps the value that holds the lock.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock")
    }
}

/// A file opened for reading in pieces.
pub trait ReadSeek: io::Read + io::Seek + Send {
    /// The first range of stored bytes at or after `from`; `None` when the rest is a hole. Moves the read position.
    ///
    /// A file system that cannot report holes has none.
    fn stored(&mut self, from: u64) -> io::Result<Option<Range<u64>>> {
        let end = self.seek(io::SeekFrom::End(0))?;
        Ok((from < end).then_some(from..end))
    }
}

impl ReadSeek for io::Cursor<Vec<u8>> {}

/// Sleeps until something happens in a folder.
pub trait Watch {
    /// Returns when a file in it was written, created, moved or closed since the last call, or `within` has passed.
    /// May return early.
    fn wait(&mut self, within: Duration);
}

/// Reports what happens to the files of several folders.
pub trait FolderWatch: Send {
    /// Reports what happens in this folder from now on. To add a folder again changes nothing, and adds the one that
    /// has this name now.
    fn add(&mut self, folder: &Path) -> io::Result<()>;

    /// Reports nothing more of this folder.
    fn remove(&mut self, folder: &Path);

    /// Reports the next write to this file, once, as an event of its folder. By default writes are not reported.
    fn add_next_write(&mut self, _file: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sleeps until something happens, but not longer than `within`, and returns all of it in order. May return early.
    fn wait(&mut self, within: Duration) -> Vec<FolderEvent>;
}

/// What a [`FolderWatch`] reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderEvent {
    /// A file or folder of this name was made, moved here or away, or removed; or a process that could write the file
    /// closed it. A holder of a lock that dies closes its file, and releases the lock a moment later.
    At {
        /// The folder.
        folder: PathBuf,
        /// The name in it.
        name: String,
    },
    /// More happened than could be reported: anything may have changed.
    Missed,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is a link, a pipe, too large or owned by another user: hearback did not write it.
    #[error("{0}")]
    Refused(String),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What the store needs from a file system.
///
/// Only the store's layout builds paths. Nothing here follows a link at the end of a path, and nothing replaces a file.
pub trait Disk: Send + Sync {
    /// Makes sure that `path` is a private directory of this user, creates it if needed, and returns its real path.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] when another user owns it or may write it.
    fn secure_home(&self, path: &Path) -> io::Result<PathBuf>;

    /// Creates one private directory.
    fn make_dir(&self, path: &Path) -> io::Result<Publish>;

    /// The names in a directory, in no order, without names that are not Unicode, which hearback does not write. A
    /// missing directory is empty.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Writes a temporary file beside `path` and gives it that name, unless a file with that name exists.
    ///
    /// A reader sees nothing or everything. A failure leaves nothing, except when the last step failed: then the file
    /// exists, and only its flush is uncertain.
    fn publish_new(&self, path: &Path, bytes: &[u8], flush: Flush) -> io::Result<Publish>;

    /// Like [`Disk::publish_new`], but uses up the space of the file `reserve`, so that it works on a full disk.
    ///
    /// Only one process may use a reserve at a time; callers hold a lock. Without a reserve, or for bytes that it
    /// cannot hold, this is `publish_new`.
    fn publish_reserved(
        &self,
        reserve: &Path,
        path: &Path,
        bytes: &[u8],
        flush: Flush,
    ) -> io::Result<Publish>;

    /// Reads a whole file of at most `max` bytes; `None` when it does not exist.
    fn read(&self, path: &Path, max: u64) -> Result<Option<Vec<u8>>, ReadError>;

    /// The same for a file that names programs to run: refused if other users may write it. By default none may.
    fn read_trusted(&self, path: &Path, max: u64) -> Result<Option<Vec<u8>>, ReadError> {
        self.read(path, max)
    }

    /// Opens a file for reading in pieces; `None` when it does not exist.
    fn open(&self, path: &Path) -> Result<Option<Box<dyn ReadSeek>>, ReadError>;

    /// Watches the files of a folder from now on.
    fn watch(&self, folder: &Path) -> io::Result<Box<dyn Watch>>;

    /// A watch of any number of folders, none at first.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] when this system reports no such events; another error when it has none to give
    /// now.
    fn watch_folders(&self) -> io::Result<Box<dyn FolderWatch>>;

    /// The size of a file; zero when it does not exist.
    fn size(&self, path: &Path) -> io::Result<u64>;

    /// Adds `bytes` to the end of a file, creating it if needed.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Flushes a file, or the names in a directory, to the disk.
    fn flush(&self, path: &Path) -> io::Result<()>;

    /// Takes a lock, creating its file for an exclusive one. `None` when another process holds it and `wait` is
    /// [`Wait::Try`]. A shared lock on a missing file is granted: no process holds it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] when the folder does not exist; for an exclusive lock also if it was removed during
    /// the wait.
    fn lock(&self, path: &Path, mode: LockMode, wait: Wait) -> io::Result<Option<Lock>>;

    /// Tells whether a process holds a lock exclusively, without disturbing its holder and without creating anything.
    fn probe(&self, path: &Path) -> io::Result<LockState>;

    /// The pid of a process that holds a lock, to be shown; none where the system does not tell.
    fn holder(&self, _path: &Path) -> Option<u32> {
        None
    }

    /// Moves a directory, or a file, to a name that does not exist.
    fn move_dir(&self, from: &Path, to: &Path) -> io::Result<Publish>;

    /// Gives a file a second name, which stays where it is when the first one is moved. By default there is none.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] or another error where the file system has no such names.
    fn link(&self, _file: &Path, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file or a whole directory. A missing one is no error.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory if it is empty, and otherwise does nothing.
    fn remove_if_empty(&self, path: &Path) -> io::Result<()>;

    /// Tells whether there is a directory of this name.
    fn is_dir(&self, path: &Path) -> io::Result<bool>;

    /// Random bits for unique names.
    fn nonce(&self) -> u64;
}
