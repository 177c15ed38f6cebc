//! From the target's pipe into the log.
//!
//! One thread reads and waits; no other thread touches the pipe, since a read under way would hold up every other call
//! on it. A thread that wants all output so far to be kept interrupts that read.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hearback_core::port::surroundings::OutputLog;
use windows_sys::Win32::Foundation::ERROR_OPERATION_ABORTED;
use windows_sys::Win32::Storage::FileSystem::ReadFile;
use windows_sys::Win32::System::IO::CancelSynchronousIo;
use windows_sys::Win32::System::Pipes::{CreatePipe, PeekNamedPipe};

use super::{call, clock};

const CHUNK: usize = 64 * 1024;
/// More than the pipe holds, and so the most that is worth draining when its end is not waited for.
const DRAIN_MAX: usize = 1024 * 1024;
/// How long a log that is slow to write may keep us.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);
/// How soon to interrupt the reader again, if it was not reading when we tried.
const NUDGE_EVERY: Duration = Duration::from_millis(2);

/// Copies what the target prints.
pub(crate) struct Pump {
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How often all output was to be kept, and how often that was done.
    asked: u64,
    answered: u64,
    stop: bool,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pump {
    /// Makes the pipe; the writing end is the target's.
    pub(crate) fn new(log: Arc<dyn OutputLog>) -> io::Result<(Self, OwnedHandle)> {
        let (pipe, writer) = pipe()?;
        let shared = Arc::new(Shared::default());
        let copier = Copier { pipe, log, shared: Arc::clone(&shared), buffer: vec![0; CHUNK] };
        let reader = std::thread::Builder::new().name("output".into()).spawn(move || copier.run())?;
        Ok((Self { shared, reader }, writer))
    }

    /// Keeps what is in the pipe now, without waiting for its end.
    pub(crate) fn drain(&mut self) {
        let wanted = {
            let mut state = self.shared.state();
            state.asked += 1;
            state.asked
        };
        self.interrupt_until(|state| state.answered >= wanted);
    }

    /// Interrupts the reader until `done`, but not for long. It may be about to read when we first try.
    fn interrupt_until(&self, done: impl Fn(&State) -> bool) {
        let deadline = clock::awake() + DRAIN_WITHIN;
        let mut state = self.shared.state();
        while !state.ended && !done(&state) && clock::awake() < deadline {
            // SAFETY: the handle belongs to the thread's owner, which is us. A thread that is not reading or
            // writing is not disturbed, and what is interrupted is done again.
            unsafe { CancelSynchronousIo(self.reader.as_raw_handle()) };
            let waited = self.shared.changed.wait_timeout(state, NUDGE_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.shared.state().stop = true;
        // A reader that does not hear is left behind, and ends with the pipe or with us.
        self.interrupt_until(|state| state.ended);
    }
}

/// What the thread works with.
struct Copier {
    pipe: OwnedHandle,
    log: Arc<dyn OutputLog>,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
}

impl Copier {
    fn run(mut self) {
        while self.serve() && self.copy().is_some() {}
        self.shared.state().ended = true;
        self.shared.changed.notify_all();
    }

    /// Does what was requested since the last time; reports whether to go on.
    fn serve(&mut self) -> bool {
        let (asked, answered, stop) = {
            let state = self.shared.state();
            (state.asked, state.answered, state.stop)
        };
        if stop {
            return false;
        }
        if asked == answered {
            return true;
        }
        let mut drained = 0;
        let open = loop {
            match self.waiting() {
                Ok(true) if drained < DRAIN_MAX => match self.copy() {
                    Some(n) => drained += n,
                    None => break false,
                },
                Ok(_) => break true,
                Err(error) if call::is(&error, ERROR_OPERATION_ABORTED) => {}
                Err(_) => break false,
            }
        };
        self.shared.state().answered = asked;
        self.shared.changed.notify_all();
        open
    }

    /// Whether something is in the pipe. An error when no process can write to it any more, and nothing is left.
    fn waiting(&self) -> io::Result<bool> {
        let mut bytes = 0;
        // SAFETY: the handle is ours, nothing is read, and the pointer is to a number of ours.
        call::done(unsafe {
            PeekNamedPipe(
                self.pipe.as_raw_handle(),
                std::ptr::null_mut(),
                0,
                std::ptr::null_mut(),
                &raw mut bytes,
                std::ptr::null_mut(),
            )
        })?;
        Ok(bytes > 0)
    }

    /// Waits for a chunk and keeps it; nothing once every writer has closed it.
    fn copy(&mut self) -> Option<usize> {
        let mut n = 0;
        // SAFETY: the handle is ours, the buffer is as long as is said, and both outlive the call.
        let read = call::done(unsafe {
            ReadFile(
                self.pipe.as_raw_handle(),
                self.buffer.as_mut_ptr(),
                CHUNK as u32,
                &raw mut n,
                std::ptr::null_mut(),
            )
        });
        match read {
            // Zero bytes are no end here: a process wrote zero bytes.
            Ok(()) => {
                self.log.keep(&self.buffer[..n as usize]);
                Some(n as usize)
            }
            Err(error) if call::is(&error, ERROR_OPERATION_ABORTED) => Some(0),
            Err(_) => None,
        }
    }
}

/// A pipe whose ends no process inherits by accident: reader, writer.
pub(super) fn pipe() -> io::Result<(OwnedHandle, OwnedHandle)> {
    let (mut reader, mut writer) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the pointers are to handles of ours, and no attributes are allowed.
    call::done(unsafe { CreatePipe(&raw mut reader, &raw mut writer, std::ptr::null(), CHUNK as u32) })?;
    // SAFETY: the call above made this handle for us.
    let reader = unsafe { call::own(reader) }?;
    // SAFETY: as above.
    let writer = unsafe { call::own(writer) }?;
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::FakeLog;
    use std::io::Write;

    #[test]
    fn what_was_printed_is_kept_while_the_pipe_stays_open() {
        let log = FakeLog::default();
        let (mut pump, writer) = Pump::new(Arc::new(log.clone())).unwrap();
        let mut writer = io::PipeWriter::from(writer);
        let mut printed = Vec::new();
        for round in 1..=50_u8 {
            let text = vec![b'a' + round % 26; 3_000 * usize::from(round)];
            writer.write_all(&text).unwrap();
            printed.extend(text);
            let before = clock::awake();
            pump.drain();
            assert_eq!(log.bytes(), printed);
            assert!(clock::awake() - before < DRAIN_WITHIN, "a drain does not wait for the end");
        }
        drop(writer);
        pump.drain();
        assert_eq!(log.bytes(), printed, "and after the end too");
    }
}
