//! From the target's pipe into the log.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use hearback_core::{LogCap, Output};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::{clock, files};
use crate::log::LogWriter;

/// Large reads halve the cost of small writes; see docs/decisions.
const CHUNK: usize = 64 * 1024;
/// The most that a pipe can hold, and so the most that is worth draining when nobody waits for its end.
const DRAIN_MAX: usize = 1024 * 1024;
/// Larger pipes wake us less often. Not larger than this: a user's pipes share a budget.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 256 * 1024;

/// Copies what the target prints. A log that cannot be written loses output, never the job.
pub(crate) struct Pump {
    pipe: Option<PipeReader>,
    log: LogWriter,
    /// Allocated with the first byte: most jobs are silent, and their supervisors small.
    buffer: Vec<u8>,
    last_output: Duration,
    told_over_cap: bool,
}

impl Pump {
    /// Opens the log and makes the pipe; the writing end is the target's.
    pub(crate) fn new(log: &Path, tail: &Path, cap: Option<LogCap>) -> io::Result<(Self, PipeWriter)> {
        let log = LogWriter::new(files::open_log(log)?, tail.to_owned(), cap);
        let (reader, writer) = io::pipe()?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_SIZE); // A smaller one does too.
        Ok((
            Self {
                pipe: Some(reader),
                log,
                buffer: Vec::new(),
                last_output: clock::awake(),
                told_over_cap: false,
            },
            writer,
        ))
    }

    /// What to wait on; nothing once every writer has let go.
    pub(crate) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Copies one chunk; tells whether there may be more.
    pub(crate) fn copy(&mut self) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        if self.buffer.is_empty() {
            self.buffer = vec![0; CHUNK];
        }
        match pipe.read(&mut self.buffer) {
            Ok(0) => {
                self.pipe = None;
                0
            }
            Ok(n) => {
                self.last_output = clock::awake();
                self.log.keep(&self.buffer[..n]);
                n
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 1,
            Err(_) => {
                self.pipe = None;
                0
            }
        }
    }

    /// Copies what is in the pipe now, without waiting for anybody to close it.
    pub(crate) fn drain(&mut self) -> Output {
        let mut drained = 0;
        while drained < DRAIN_MAX {
            match self.copy() {
                0 => break,
                n => drained += n,
            }
        }
        self.log.finish()
    }

    /// Whether more was printed than is kept. Said once.
    pub(crate) fn take_over_cap(&mut self) -> bool {
        let news = !self.told_over_cap && self.log.is_over_cap();
        self.told_over_cap |= news;
        news
    }

    /// When something was last printed; when the pump was made, if nothing ever was.
    pub(crate) fn last_output(&self) -> Duration {
        self.last_output
    }
}
