//! Files, names and locks of this machine.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use hearback_core::LockState;
use hearback_core::port::disk::{
    Disk, Flush, FolderWatch, Lock, LockMode, Publish, ReadError, ReadSeek, Wait, Watch,
};
use tracing::debug;

use crate::native::Native;
use crate::sys::files::Folder;
use crate::{sys, temporary};

/// More than nearly every fact has, and room for the end.
const FACT_BYTES: usize = 8 * 1024;

impl Disk for Native {
    fn secure_home(&self, path: &Path) -> io::Result<PathBuf> {
        sys::files::secure_home(path)
    }

    fn make_dir(&self, path: &Path) -> io::Result<Publish> {
        match sys::files::make_private_dir(path) {
            Ok(()) => Ok(Publish::New),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Publish::Exists),
            Err(error) => Err(error),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match sys::files::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn publish_new(&self, path: &Path, bytes: &[u8], flush: Flush) -> io::Result<Publish> {
        let (folder, name) = split(path)?;
        let folder = Folder::open(folder)?;
        let temporary = temporary::name(self.nonce());
        let file = folder.create_new(&temporary)?;
        let published = fill(file, bytes, flush)
            .and_then(|()| folder.name_without_replacing(&temporary, name, self.naming));
        if !matches!(published, Ok(Publish::New)) {
            // The loser's file, or what became of it, is not to be kept; that it cannot be removed changes nothing.
            if let Err(error) = folder.remove(&temporary) {
                debug!(%error, "temporary file not removed");
            }
            return published;
        }
        if flush == Flush::Power {
            folder.flush()?;
        }
        published
    }

    fn publish_reserved(
        &self,
        reserve: &Path,
        path: &Path,
        bytes: &[u8],
        flush: Flush,
    ) -> io::Result<Publish> {
        let (folder, name) = split(path)?;
        let (_, reserve) = split(reserve)?;
        let folder = Folder::open(folder)?;
        let Ok(file) = folder.open_to_overwrite(reserve) else {
            // Another process took it away, or put something else in its place: then there is no room set aside.
            return self.publish_new(path, bytes, flush);
        };
        let room = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if bytes.len() > room {
            drop(file);
            let published = self.publish_new(path, bytes, flush)?;
            if let Err(error) = folder.remove(reserve) {
                debug!(%error, "reserve not removed");
            }
            return Ok(published);
        }
        let mut padded = bytes.to_vec();
        padded.resize(room, b' ');
        fill(file, &padded, flush)?;
        let published = folder.name_without_replacing(reserve, name, self.naming)?;
        if published == Publish::New && flush == Flush::Power {
            folder.flush()?;
        }
        Ok(published)
    }

    fn read(&self, path: &Path, max: u64) -> Result<Option<Vec<u8>>, ReadError> {
        sys::files::open_checked(path)?.map(|file| read_whole(file, max)).transpose()
    }

    fn read_trusted(&self, path: &Path, max: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(file) = sys::files::open_checked(path)? else { return Ok(None) };
        if let Some(why) = sys::files::trouble(&file)? {
            return Err(ReadError::Refused(format!("it names programs to run, and {why}")));
        }
        read_whole(file, max).map(Some)
    }

    fn open(&self, path: &Path) -> Result<Option<Box<dyn ReadSeek>>, ReadError> {
        Ok(sys::files::open_checked(path)?.map(|file| Box::new(Opened(file)) as Box<dyn ReadSeek>))
    }

    fn watch(&self, folder: &Path) -> io::Result<Box<dyn Watch>> {
        Ok(Box::new(sys::watch::FolderWatch::new(folder)?))
    }

    fn watch_folders(&self) -> io::Result<Box<dyn FolderWatch>> {
        sys::watch::watch_folders()
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        match fs_err::symlink_metadata(path) {
            Ok(found) => Ok(if found.is_file() { found.len() } else { 0 }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        sys::files::open_to_append(path)?.write_all(bytes)
    }

    fn flush(&self, path: &Path) -> io::Result<()> {
        if fs_err::symlink_metadata(path)?.is_dir() {
            sys::files::flush_dir(path)
        } else {
            sys::files::flush_file(path)
        }
    }

    fn lock(&self, path: &Path, mode: LockMode, wait: Wait) -> io::Result<Option<Lock>> {
        let file = match mode {
            LockMode::Exclusive => sys::files::open_lock(path)?,
            LockMode::Shared => match sys::files::open_checked(path) {
                Ok(Some(file)) => file,
                Ok(None) => return Ok(Some(Lock::new(()))),
                Err(error) => return Err(refused_as_io(error, path)),
            },
        };
        if !take(&file, mode, wait)? {
            return Ok(None);
        }
        // While we waited, the folder may have been moved or pruned: a lock on a file that no process finds is none.
        if mode == LockMode::Exclusive && !sys::files::is_same_file(&file, path)? {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("`{}` is gone", path.display())));
        }
        Ok(Some(Lock::new(file)))
    }

    fn probe(&self, path: &Path) -> io::Result<LockState> {
        let Some(file) = sys::files::open_checked(path).map_err(|error| refused_as_io(error, path))? else {
            return Ok(LockState::Free);
        };
        Ok(if take(&file, LockMode::Shared, Wait::Try)? { LockState::Free } else { LockState::Held })
    }

    fn holder(&self, path: &Path) -> Option<u32> {
        sys::files::holder(path)
    }

    fn move_dir(&self, from: &Path, to: &Path) -> io::Result<Publish> {
        sys::files::move_dir(from, to)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        fs_err::hard_link(file, name)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = match fs_err::symlink_metadata(path) {
            Ok(found) if found.is_dir() => sys::files::remove_dir(path),
            Ok(_) => fs_err::remove_file(path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn remove_if_empty(&self, path: &Path) -> io::Result<()> {
        use io::ErrorKind::{DirectoryNotEmpty, NotFound};
        match fs_err::remove_dir(path) {
            Err(error) if matches!(error.kind(), DirectoryNotEmpty | NotFound) => Ok(()),
            other => other,
        }
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        match fs_err::symlink_metadata(path) {
            Ok(found) => Ok(found.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn nonce(&self) -> u64 {
        getrandom::u64().expect("the system has random bits to give")
    }
}

/// A file that tells where its holes are.
struct Opened(fs_err::File);

impl Read for Opened {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.0.read(block)
    }
}

impl Seek for Opened {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl ReadSeek for Opened {
    fn stored(&mut self, from: u64) -> io::Result<Option<Range<u64>>> {
        sys::files::stored(&self.0, from)
    }
}

fn read_whole(mut file: fs_err::File, max: u64) -> Result<Vec<u8>, ReadError> {
    // Nearly every fact is shorter than this, and then one call reads it: a regular file gives all that it has.
    let mut bytes = vec![0; FACT_BYTES];
    let n = retry(|| file.read(&mut bytes))?;
    bytes.truncate(n);
    if n == FACT_BYTES {
        file.take(max.saturating_add(1).saturating_sub(n as u64)).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > max {
        return Err(ReadError::Refused(format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

fn split(path: &Path) -> io::Result<(&Path, &str)> {
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(folder), Some(name)) => Ok((folder, name)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` names no file", path.display()))),
    }
}

/// Writes a file from its beginning, and flushes what it says. After a failure the file is no good and is not flushed
/// again: a system may report a lost write once.
fn fill(mut file: fs_err::File, bytes: &[u8], flush: Flush) -> io::Result<()> {
    file.write_all(bytes)?;
    if flush == Flush::Power {
        file.sync_all()?;
    }
    Ok(())
}

fn take(file: &fs_err::File, mode: LockMode, wait: Wait) -> io::Result<bool> {
    let file: &File = file.file();
    let tried = match (mode, wait) {
        (LockMode::Shared, Wait::Try) => file.try_lock_shared(),
        (LockMode::Exclusive, Wait::Try) => file.try_lock(),
        (LockMode::Shared, Wait::Block) => retry(|| file.lock_shared()).map_err(TryLockError::Error),
        (LockMode::Exclusive, Wait::Block) => retry(|| file.lock()).map_err(TryLockError::Error),
    };
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A signal that is handled interrupts a wait for a lock; that says nothing about the lock.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn refused_as_io(error: ReadError, path: &Path) -> io::Error {
    match error {
        ReadError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("`{}` is {other}", path.display())),
    }
}
