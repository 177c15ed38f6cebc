//! A job's log as it is written: bounded, with every byte at its place.
//!
//! The byte that was printed as the n-th lies at offset n, whatever was lost before it. Over its cap, a log gives its
//! middle back to the file system. Where that is not possible, the head stays, and the tail is kept in memory until the
//! end, when it gets a file of its own.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use fs_err::File;
use hearback_core::port::surroundings::OutputLog;
use hearback_core::{GapReason, LogCap, Output};
use tracing::{info, warn};

use crate::sys::{clock, files};

/// How much of the end is kept in memory where a file system cannot give up the middle of a file.
const TAIL: usize = 64 * 1024;

/// How long a log that is slow to write may keep the supervisor.
const FINISH_WITHIN: Duration = Duration::from_secs(1);
/// How soon to try again meanwhile.
const TRY_EVERY: Duration = Duration::from_millis(2);

/// The log that a supervisor owns. The target's output comes from its thread or another.
pub(crate) struct SharedLog {
    writer: Mutex<LogWriter>,
    /// What the supervisor may want to know while the log is being written.
    progress: Mutex<Progress>,
    /// Wakes the supervisor, if it waits.
    wake: fn(),
}

struct Progress {
    output: Output,
    /// When something was last printed, on the awake clock.
    last_output: Duration,
    over_cap: bool,
    reported_over_cap: bool,
}

impl SharedLog {
    /// Opens the log. `wake` is called once, when the output exceeds the cap.
    pub(crate) fn open(path: &Path, tail: &Path, cap: Option<LogCap>, wake: fn()) -> io::Result<Self> {
        let writer = LogWriter::new(files::open_log(path)?, tail.to_owned(), cap);
        let progress = Progress {
            output: Output::default(),
            last_output: clock::awake(),
            over_cap: false,
            reported_over_cap: false,
        };
        Ok(Self { writer: Mutex::new(writer), progress: Mutex::new(progress), wake })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When something was last printed; when the log was opened, if nothing ever was.
    pub(crate) fn last_output(&self) -> Duration {
        self.progress().last_output
    }

    /// Whether the output exceeded the cap. Reported once.
    pub(crate) fn take_over_cap(&self) -> bool {
        let mut progress = self.progress();
        let news = progress.over_cap && !progress.reported_over_cap;
        progress.reported_over_cap |= news;
        news
    }

    /// Completes the file, and reports what it holds; if another thread is stuck writing, what was written before.
    pub(crate) fn finish(&self) -> Output {
        let deadline = clock::awake() + FINISH_WITHIN;
        loop {
            match self.writer.try_lock() {
                Ok(mut writer) => return writer.finish(),
                Err(TryLockError::Poisoned(writer)) => return writer.into_inner().finish(),
                Err(TryLockError::WouldBlock) if clock::awake() >= deadline => {
                    return self.progress().output.clone();
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_EVERY),
            }
        }
    }
}

impl OutputLog for SharedLog {
    fn keep(&self, bytes: &[u8]) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.keep(bytes);
        let mut progress = self.progress();
        (progress.last_output, progress.output) = (clock::awake(), writer.output().clone());
        if !progress.over_cap && writer.is_over_cap() {
            progress.over_cap = true;
            (self.wake)();
        }
    }
}

/// Writes what a job prints. A log that cannot be written loses output, never the job.
struct LogWriter {
    file: File,
    /// Where the end goes if the middle cannot be given back. Not into the file: a reader that follows it could not
    /// tell.
    tail_path: PathBuf,
    cap: Option<LogCap>,
    output: Output,
    tail: Option<Tail>,
}

/// The end of a log whose middle cannot be given back.
struct Tail {
    /// Where the head ends.
    head: u64,
    bytes: VecDeque<u8>,
    /// It is in its file, and the record of it has been given out.
    written: bool,
}

impl LogWriter {
    fn new(file: File, tail_path: PathBuf, cap: Option<LogCap>) -> Self {
        Self { file, tail_path, cap, output: Output::default(), tail: None }
    }

    /// Keeps what was just printed, at most 64 KiB at a time.
    fn keep(&mut self, bytes: &[u8]) {
        let start = self.output.bytes;
        self.output.bytes += bytes.len() as u64;
        self.make_room(start);
        match &mut self.tail {
            None => {
                let written = write(&self.file, bytes, start) as u64;
                if start + written < self.output.bytes {
                    // Said once: a disk that is full stays so for a while.
                    if !self.output.gaps.iter().any(|gap| gap.reason == GapReason::Lost) {
                        warn!(offset = start + written, "output cannot be written, and is lost");
                    }
                    // Or the next byte that can be written would take the room of all that were lost before it.
                    let _ = files::allow_holes(&self.file);
                }
                self.output.lose(start + written..self.output.bytes, GapReason::Lost);
            }
            // The output is reported once.
            Some(tail) if tail.written => self.output.lose(start..self.output.bytes, GapReason::Cap),
            Some(tail) => {
                tail.bytes.extend(bytes);
                let over = tail.bytes.len().saturating_sub(TAIL);
                tail.bytes.drain(..over);
            }
        }
    }

    /// Whether more was printed than is kept.
    fn is_over_cap(&self) -> bool {
        self.tail.is_some() || self.output.gaps.iter().any(|gap| gap.reason == GapReason::Cap)
    }

    /// What was kept so far, and what was not.
    fn output(&self) -> &Output {
        &self.output
    }

    /// Completes the file, and tells what it holds.
    fn finish(&mut self) -> Output {
        match self.tail.take() {
            Some(tail) if !tail.written => self.write_tail(tail),
            tail => self.tail = tail,
        }
        if !self.output.compact && self.file.metadata().is_ok_and(|found| found.len() < self.output.bytes) {
            // What could not be written at the end is a hole as well. If not even that can be noted in the file,
            // the record still says it.
            let _ = self.file.set_len(self.output.bytes);
        }
        self.output.clone()
    }

    fn make_room(&mut self, written: u64) {
        let Some(cap) = self.cap.filter(|_| self.tail.is_none()) else { return };
        let head = cap.head();
        let cut = self.output.gaps.iter().find(|gap| gap.reason == GapReason::Cap);
        let hole_end = cut.map_or(head, |gap| gap.end);
        let Some(end) = cap.cut(hole_end, self.output.bytes) else { return };
        match files::punch(&self.file, hole_end..end) {
            Ok(()) => self.output.lose(head..end, GapReason::Cap),
            Err(error) => {
                info!(%error, "no hole can be made in the log, keeping its end in memory");
                self.fall_back(written);
            }
        }
    }

    /// From here on the end is kept in memory, and what was written of it is taken back.
    fn fall_back(&mut self, written: u64) {
        let head = written.saturating_sub(TAIL as u64);
        let mut bytes = vec![0; usize::try_from(written - head).unwrap_or(0)];
        let read = fill(&mut bytes, |rest, done| files::read_at(&self.file, rest, head + done));
        // What cannot be read back stays where it is.
        let (head, bytes) = if read == bytes.len() { (head, bytes) } else { (written, Vec::new()) };
        let _ = self.file.set_len(head);
        self.tail = Some(Tail { head, bytes: bytes.into(), written: false });
    }

    fn write_tail(&mut self, mut tail: Tail) {
        let kept = tail.bytes.len() as u64;
        let end = self.output.bytes;
        let file = files::open_log(&self.tail_path);
        let written = file.map_or(0, |file| write(&file, tail.bytes.make_contiguous(), 0)) as u64;
        self.output.lose(tail.head..end - kept, GapReason::Cap);
        self.output.lose(end - kept + written..end, GapReason::Lost);
        self.output.compact = true;
        self.tail = Some(Tail { head: tail.head, bytes: VecDeque::new(), written: true });
    }
}

fn write(file: &File, bytes: &[u8], at: u64) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match files::write_at(file, &bytes[written..], at + written as u64) {
            Ok(0) => break,
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    written
}

fn fill(bytes: &mut [u8], mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>) -> usize {
    let mut filled = 0;
    while filled < bytes.len() {
        match read(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    filled
}
