//! From the target's pipe into the log.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::Arc;

use hearback_core::port::surroundings::{OutputLog, Source};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::surroundings::source;

/// Large reads halve the cost of small writes; see docs/decisions.
const CHUNK: usize = 64 * 1024;
/// The most that a pipe can hold, and so the most that is worth draining when its end is not waited for.
const DRAIN_MAX: usize = 1024 * 1024;
/// Larger pipes wake us less often. Not larger than this: a user's pipes share a budget.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 256 * 1024;

/// Copies what the target prints.
pub(crate) struct Pump {
    pipe: Option<PipeReader>,
    log: Arc<dyn OutputLog>,
    /// Allocated with the first byte: most jobs are silent, and their supervisors small.
    buffer: Vec<u8>,
}

impl Pump {
    /// Makes the pipe; the writing end is the target's.
    pub(crate) fn new(log: Arc<dyn OutputLog>) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_SIZE); // A smaller one does too.
        Ok((Self { pipe: Some(reader), log, buffer: Vec::new() }, writer))
    }

    /// What to wait on; nothing once every writer has closed it.
    pub(crate) fn source(&self) -> Option<Source<'_>> {
        self.pipe.as_ref().map(source)
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

    /// Copies what is in the pipe now, without waiting for its writers to close it.
    pub(crate) fn drain(&mut self) {
        let mut drained = 0;
        while drained < DRAIN_MAX {
            match self.copy() {
                0 => break,
                n => drained += n,
            }
        }
    }
}
