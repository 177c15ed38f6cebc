//! The input of a target: a FIFO in the job's folder. Other processes write into it directly, so that what they write
//! neither wakes the supervisor nor passes through it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::port::process::InputPipe;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;

/// The supervisor's side: it writes nothing, but while it is open the target does not see the end of its input when a
/// writer leaves. Its drop removes the name.
pub(crate) struct Input {
    /// None once the input has ended.
    open: Option<OwnedFd>,
    path: PathBuf,
}

impl Input {
    /// Makes the FIFO; the reading end is the target's.
    pub(crate) fn new(path: &Path) -> io::Result<(Self, OwnedFd)> {
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // One of a supervisor that died before it began.
        let _ = fs_err::remove_file(path);
        nix::unistd::mkfifo(path, Mode::from_bits_truncate(0o600))?;
        // The reader first: without one, the other end cannot be opened.
        let reader = open(path, OFlag::O_RDONLY | flags, Mode::empty())?;
        let writer = open(path, OFlag::O_WRONLY | flags, Mode::empty())?;
        // Programs expect an input that waits.
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::empty()))?;
        Ok((Self { open: Some(writer), path: path.to_owned() }, reader))
    }

    /// Ends the input if its name was removed.
    pub(crate) fn check(&mut self) {
        if self.path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            self.open = None;
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if self.open.is_some() {
            let _ = fs_err::remove_file(&self.path); // Otherwise it is removed with the folder.
        }
    }
}

/// Opens the input of a target for writing.
pub(crate) fn open_input(path: &Path) -> io::Result<Box<dyn InputPipe>> {
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match open(path, flags, Mode::empty()) {
        Ok(pipe) => Ok(Box::new(Writer(pipe))),
        Err(Errno::ENXIO) => Err(io::ErrorKind::BrokenPipe.into()),
        Err(error) => Err(error.into()),
    }
}

struct Writer(OwnedFd);

impl InputPipe for Writer {
    fn write(&mut self, bytes: &[u8], within: Option<Duration>) -> io::Result<usize> {
        let deadline = within.map(|within| super::clock::awake().saturating_add(within));
        loop {
            match nix::unistd::write(&self.0, bytes) {
                Err(Errno::EAGAIN) => {}
                Err(Errno::EINTR) => continue,
                written => return Ok(written?),
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(super::clock::awake()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // Rounded up, so that it does not spin in the last millisecond; a longer wait is made in parts.
            let left = left.map(|left| i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX));
            let left = left
                .map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
            match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLOUT)], left) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn writers_come_and_go_and_the_input_ends_when_its_name_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        assert_eq!(open_input(&path).err().unwrap().kind(), io::ErrorKind::NotFound);
        let (mut input, reader) = Input::new(&path).unwrap();
        let mut reader = File::from(reader);
        let mut bytes = [0; 5];
        for word in [b"first", b"again"] {
            assert_eq!(open_input(&path).unwrap().write(word, LONG).unwrap(), 5);
            input.check();
            reader.read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, word);
        }
        open_input(&path).unwrap().write(b"last", LONG).unwrap();
        fs_err::remove_file(&path).unwrap();
        input.check();
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "last", "and then its end");
    }

    #[test]
    fn a_target_that_does_not_read_makes_a_writer_wait_and_one_that_is_gone_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        let (input, reader) = Input::new(&path).unwrap();
        let mut writer = open_input(&path).unwrap();
        let (chunk, soon) = (vec![b'x'; 1 << 20], Some(Duration::from_millis(20)));
        assert!(writer.write(&chunk, soon).unwrap() < chunk.len(), "as much as fits");
        assert_eq!(writer.write(&chunk, soon).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(reader);
        assert_eq!(writer.write(&chunk, LONG).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(open_input(&path).err().unwrap().kind(), io::ErrorKind::BrokenPipe);
        drop(input);
        assert!(!path.exists());
    }
}
