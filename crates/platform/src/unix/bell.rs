//! The bell: a FIFO in the job's folder, by which others wake a supervisor that sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// The supervisor's side. Taken down when it is dropped: a FIFO in an old folder only makes a reader wait.
pub(crate) struct Bell {
    rope: OwnedFd,
    path: PathBuf,
}

impl Bell {
    /// Hangs the bell up. It is opened for both directions, so that it never looks as if every writer had left.
    pub(crate) fn hang(path: &Path) -> io::Result<Self> {
        match nix::unistd::mkfifo(path, Mode::from_bits_truncate(0o600)) {
            // One that was hung up before us under the same id.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(Self { rope: open(path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// Takes note of every ring so far.
    pub(crate) fn acknowledge(&self) {
        let mut bytes = [0; 64];
        while nix::unistd::read(&self.rope, &mut bytes).is_ok_and(|n| n == bytes.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rope.as_fd()
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = fs_err::remove_file(&self.path); // Otherwise it is removed with the folder.
    }
}

/// Rings a bell; reports whether a process listened.
pub(crate) fn ring(path: &Path) -> io::Result<bool> {
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let bell = match open(path, flags, Mode::empty()) {
        Ok(bell) => bell,
        Err(Errno::ENOENT | Errno::ENXIO) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match nix::unistd::write(&bell, &[1]) {
        // A bell that is full of rings has not been heard yet, but will be.
        Ok(_) | Err(Errno::EAGAIN) => Ok(true),
        // The supervisor took it down after it was opened here: the same as if it had been gone before.
        Err(Errno::EPIPE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
