//! A job's log as it is written: bounded, with every byte at its place.
//!
//! The byte that was printed as the n-th lies at offset n, whatever was lost before it. Over its cap, a log gives its
//! middle back to the file system. Where that is not possible, the head stays, and the tail is kept in memory until the
//! end, when it gets a file of its own.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use fs_err::File;
use hearback_core::{GapReason, LogCap, Output};

use crate::sys::files;

/// How much of the end is kept in memory where a file system cannot give up the middle of a file.
const TAIL: usize = 64 * 1024;

/// Writes what a job prints. A log that cannot be written loses output, never the job.
pub(crate) struct LogWriter {
    file: File,
    /// Where the end goes if the middle cannot be given back. Not into the file: who follows it could not tell.
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
    pub(crate) fn new(file: File, tail_path: PathBuf, cap: Option<LogCap>) -> Self {
        Self { file, tail_path, cap, output: Output::default(), tail: None }
    }

    /// Keeps what was just printed, at most 64 KiB at a time.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        let start = self.output.bytes;
        self.output.bytes += bytes.len() as u64;
        self.make_room(start);
        match &mut self.tail {
            None => {
                let written = write(&self.file, bytes, start) as u64;
                if start + written < self.output.bytes {
                    // Or the next byte that can be written would take the room of all that were lost before it.
                    let _ = files::allow_holes(&self.file);
                }
                self.output.lose(start + written..self.output.bytes, GapReason::Lost);
            }
            // Nobody asks a second time what there was.
            Some(tail) if tail.written => self.output.lose(start..self.output.bytes, GapReason::Cap),
            Some(tail) => {
                tail.bytes.extend(bytes);
                let over = tail.bytes.len().saturating_sub(TAIL);
                tail.bytes.drain(..over);
            }
        }
    }

    /// Whether more was printed than is kept.
    pub(crate) fn is_over_cap(&self) -> bool {
        self.tail.is_some() || self.output.gaps.iter().any(|gap| gap.why == GapReason::Cap)
    }

    /// What was kept so far, and what was not.
    #[cfg_attr(unix, expect(dead_code, reason = "only Windows keeps output in another thread"))]
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// Completes the file, and tells what it holds.
    pub(crate) fn finish(&mut self) -> Output {
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
        let cut = self.output.gaps.iter().find(|gap| gap.why == GapReason::Cap);
        let hole_end = cut.map_or(head, |gap| gap.end);
        let Some(end) = cap.cut(hole_end, self.output.bytes) else { return };
        match files::punch(&self.file, hole_end..end) {
            Ok(()) => self.output.lose(head..end, GapReason::Cap),
            Err(_) => self.fall_back(written),
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
