//! The input of a target: a named pipe, from which a thread of the supervisor copies into the pipe of the target.
//!
//! A target cannot read the named pipe itself: it would see the end of its input when the first writer leaves. The name
//! of the pipe is random, and stands in a file where the input of the job is.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use hearback_core::port::process::InputPipe;
use windows_sys::Win32::Foundation::{
    ERROR_FILE_NOT_FOUND, ERROR_NO_DATA, ERROR_OPERATION_ABORTED, ERROR_PIPE_BUSY, ERROR_PIPE_CONNECTED,
    ERROR_PIPE_NOT_CONNECTED,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_FIRST_PIPE_INSTANCE, PIPE_ACCESS_INBOUND};
use windows_sys::Win32::System::IO::CancelSynchronousIo;
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, CreateNamedPipeW, DisconnectNamedPipe, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS,
    PIPE_TYPE_BYTE, PIPE_WAIT,
};

use super::{call, clock, files, pump};

const SPACE: &str = r"\\.\pipe\hearback-";
/// More than a name has.
const NAME_MAX: u64 = 128;
const CHUNK: usize = 64 * 1024;
/// The pipe has one writer at a time: how long the next one may wait for its turn, and how often it tries.
const TURN_WITHIN: Duration = Duration::from_secs(10);
const TRY_EVERY: Duration = Duration::from_millis(5);

/// The supervisor's side. Its drop ends the input and removes the name.
pub(crate) struct Input {
    name: String,
    path: PathBuf,
    stop: Arc<AtomicBool>,
    copier: Option<JoinHandle<()>>,
}

impl Input {
    /// Makes the pipe; the reading end is the target's.
    pub(crate) fn new(path: &Path) -> io::Result<(Self, OwnedHandle)> {
        let random = || getrandom::u64().map_err(io::Error::other);
        let name = format!("{SPACE}{:016x}{:016x}", random()?, random()?);
        let server = serve(&name)?;
        let (reader, writer) = pump::pipe()?;
        let stop = Arc::new(AtomicBool::new(false));
        let copier =
            Copier { server: File::from(server), target: File::from(writer), stop: Arc::clone(&stop) };
        let copier = std::thread::Builder::new().name("input".into()).spawn(move || copier.run())?;
        // One of a supervisor that died before it began.
        let _ = fs_err::remove_file(path);
        files::create_new(path)?.write_all(name.as_bytes())?;
        Ok((Self { name, path: path.to_owned(), stop, copier: Some(copier) }, reader))
    }

    /// Ends the input if its name was removed.
    pub(crate) fn check(&mut self) {
        if self.path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            self.end();
        }
    }

    /// Lets the thread copy what was written so far, and then close the pipe of the target.
    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let Some(copier) = self.copier.take() else { return };
        // It waits for a writer: this is one that writes nothing. While another one writes, it is not needed.
        let deadline = clock::awake() + TURN_WITHIN;
        while !copier.is_finished() && clock::awake() < deadline {
            match File::options().write(true).open(&self.name) {
                Err(error) if call::is(&error, ERROR_PIPE_BUSY) => std::thread::sleep(TRY_EVERY),
                _ => return,
            }
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if self.copier.is_some() {
            let _ = fs_err::remove_file(&self.path); // Otherwise it is removed with the folder.
            self.end();
        }
    }
}

/// The named pipe, for one writer at a time.
fn serve(name: &str) -> io::Result<OwnedHandle> {
    let name = call::zero_ended(name.as_ref())?;
    let access = PIPE_ACCESS_INBOUND | FILE_FLAG_FIRST_PIPE_INSTANCE;
    let mode = PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS;
    // SAFETY: the name ends with a zero and outlives the call. Without attributes only this user may write.
    let raw =
        unsafe { CreateNamedPipeW(name.as_ptr(), access, mode, 1, 0, CHUNK as u32, 0, std::ptr::null()) };
    // SAFETY: the handle was made for us by the line above.
    unsafe { call::own(raw) }
}

/// What the thread works with.
struct Copier {
    server: File,
    target: File,
    stop: Arc<AtomicBool>,
}

impl Copier {
    fn run(mut self) {
        let mut buffer = vec![0; CHUNK];
        while !self.stop.load(Ordering::SeqCst) {
            if self.connect().is_err() || self.copy(&mut buffer).is_err() {
                return;
            }
            // SAFETY: the handle is ours. Everything that the writer wrote was read.
            if call::done(unsafe { DisconnectNamedPipe(self.server.as_raw_handle()) }).is_err() {
                return;
            }
        }
    }

    /// Waits for a writer. One may have come, and even left, before this is called.
    fn connect(&self) -> io::Result<()> {
        // SAFETY: the handle is ours, and without an overlapped structure the call waits.
        match call::done(unsafe { ConnectNamedPipe(self.server.as_raw_handle(), std::ptr::null_mut()) }) {
            Err(error) if call::is(&error, ERROR_PIPE_CONNECTED) || call::is(&error, ERROR_NO_DATA) => Ok(()),
            connected => connected,
        }
    }

    /// Copies until the writer has left; an error when the target takes nothing more.
    fn copy(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            match self.server.read(buffer) {
                // A pipe whose writers have left reads as ended.
                Ok(0) => return Ok(()),
                Ok(n) => self.target.write_all(&buffer[..n])?,
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Opens the input of a target for writing.
pub(crate) fn open_input(path: &Path) -> io::Result<Box<dyn InputPipe>> {
    let file = files::open_checked(path).map_err(io::Error::other)?.ok_or(ErrorKind::NotFound)?;
    let mut name = String::new();
    file.take(NAME_MAX).read_to_string(&mut name)?;
    if !name.starts_with(SPACE) {
        return Err(ErrorKind::InvalidData.into());
    }
    let deadline = clock::awake() + TURN_WITHIN;
    loop {
        match File::options().write(true).open(&name) {
            Ok(pipe) => return Ok(Box::new(Writer(Arc::new(pipe)))),
            // The writer before this one has not been read to its end.
            Err(error) if call::is(&error, ERROR_PIPE_BUSY) && clock::awake() < deadline => {
                std::thread::sleep(TRY_EVERY);
            }
            Err(error) if call::is(&error, ERROR_FILE_NOT_FOUND) => return Err(ErrorKind::BrokenPipe.into()),
            Err(error) if call::is(&error, ERROR_PIPE_BUSY) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
}

struct Writer(Arc<File>);

impl InputPipe for Writer {
    fn write(&mut self, bytes: &[u8], within: Option<Duration>) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(CHUNK)];
        let written = match within {
            None => (&*self.0).write(bytes),
            Some(within) => self.write_within(bytes.to_vec(), within),
        };
        written.map_err(|error| match call::is(&error, ERROR_PIPE_NOT_CONNECTED) {
            true => ErrorKind::BrokenPipe.into(),
            false => error,
        })
    }
}

impl Writer {
    /// A write that waits can only be interrupted from another thread.
    fn write_within(&self, bytes: Vec<u8>, within: Duration) -> io::Result<usize> {
        let (pipe, (report, reported)) = (Arc::clone(&self.0), mpsc::channel());
        let writer = std::thread::Builder::new().spawn(move || {
            let _ = report.send((&*pipe).write(&bytes)); // The other side waits for it.
        })?;
        let mut wait = within;
        loop {
            match reported.recv_timeout(wait) {
                Ok(Err(error)) if call::is(&error, ERROR_OPERATION_ABORTED) => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Ok(written) => return written,
                Err(RecvTimeoutError::Disconnected) => return Err(ErrorKind::BrokenPipe.into()),
                Err(RecvTimeoutError::Timeout) => {
                    // SAFETY: the handle belongs to the thread's owner, which is us. A thread that is not writing
                    // yet is not disturbed, and is interrupted the next time.
                    unsafe { CancelSynchronousIo(writer.as_raw_handle()) };
                    wait = TRY_EVERY;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn writers_come_and_go_and_the_input_ends_when_its_name_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        assert_eq!(open_input(&path).err().unwrap().kind(), ErrorKind::NotFound);
        let (mut input, reader) = Input::new(&path).unwrap();
        let mut reader = File::from(reader);
        let mut bytes = [0; 5];
        for word in [b"first", b"again"] {
            assert_eq!(open_input(&path).unwrap().write(word, LONG).unwrap(), 5);
            input.check();
            reader.read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, word);
        }
        open_input(&path).unwrap().write(b"last", None).unwrap();
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
        let chunk = vec![b'x'; CHUNK];
        let error = (0..64).find_map(|_| writer.write(&chunk, Some(Duration::from_millis(100))).err());
        assert_eq!(error.unwrap().kind(), ErrorKind::TimedOut);
        drop(reader);
        let error = (0..64).find_map(|_| writer.write(&chunk, LONG).err());
        assert_eq!(error.unwrap().kind(), ErrorKind::BrokenPipe);
        drop(input);
        assert!(!path.exists());
    }
}
