//! Reading the output of a job from any offset, and its gaps.

use std::io::{self, SeekFrom};

use hearback_core::port::disk::ReadSeek;
use hearback_core::{Gap, GapReason, Output};

pub(super) const BLOCK: u64 = 64 * 1024;

/// The output of a job.
pub struct Log {
    file: Box<dyn ReadSeek>,
    /// The file of the tail, if the file system cannot free the middle of a log.
    tail: Option<Box<dyn ReadSeek>>,
    /// What the end of the job says about its output, once there is one.
    recorded: Option<Output>,
}

/// What is at an offset of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// This many bytes were read.
    Bytes(usize),
    /// The output is missing until the end of this gap.
    Gap(Gap),
    /// There is no more output so far.
    End,
}

impl Log {
    /// Reads `file`, and `tail` if the tail has a file of its own; `recorded` is what the end of the job says.
    pub fn new(file: Box<dyn ReadSeek>, tail: Option<Box<dyn ReadSeek>>, recorded: Option<Output>) -> Self {
        Self { file, tail, recorded }
    }

    /// How many bytes of output there were.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn size(&mut self) -> io::Result<u64> {
        let stored = self.file.seek(SeekFrom::End(0))?;
        Ok(self.recorded(stored).map_or(stored, |recorded| recorded.bytes))
    }

    /// What the record says, unless there was more output after it.
    fn recorded(&self, stored: u64) -> Option<&Output> {
        self.recorded.as_ref().filter(|recorded| {
            // The file is shorter if the end of the output was lost, and ends with the head in a compact log.
            stored <= compact_gap(recorded).map_or(recorded.bytes, |gap| gap.start)
        })
    }

    /// Every missing part, as it is on disk.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn output(&mut self) -> io::Result<Output> {
        let size = self.file.seek(SeekFrom::End(0))?;
        if let Some(recorded) = self.recorded(size) {
            return Ok(recorded.clone());
        }
        let mut output = Output { bytes: size, ..Output::default() };
        let mut at = 0;
        while at < size {
            let stored = self.file.stored(at)?;
            let next = stored.as_ref().map_or(size, |stored| stored.start.min(size));
            // Only the supervisor knows the reason of a hole. It is nearly always the cap.
            output.lose(at..next, GapReason::Cap);
            at = stored.map_or(size, |stored| stored.end);
        }
        Ok(output)
    }

    /// Reads into `block` from `at` on.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn read(&mut self, at: u64, block: &mut [u8]) -> io::Result<Piece> {
        let output = self.output()?;
        let upto = at + block.len() as u64;
        let gap = match self.gap_within(&output, at, upto)? {
            Some(gap) if gap.start <= at => return Ok(Piece::Gap(Gap { start: at, ..gap })),
            gap => gap,
        };
        let end = gap.map_or(output.bytes, |gap| gap.start);
        let wanted = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(block.len());
        let n = self.read_stored(&output, at, &mut block[..wanted])?;
        // The hole may have grown over the bytes that were just read. Then they are zeroes.
        let now = self.output()?;
        match self.gap_within(&now, at, at)? {
            Some(gap) if gap.start <= at => Ok(Piece::Gap(Gap { start: at, ..gap })),
            _ if n == 0 => Ok(Piece::End),
            _ => Ok(Piece::Bytes(n)),
        }
    }

    /// The first gap that ends after `from` and may begin before `to`, widened to whole lines.
    fn gap_within(&mut self, output: &Output, from: u64, to: u64) -> io::Result<Option<Gap>> {
        // Widening moves neither end by more than a block.
        let near = output.gaps.iter().filter(|gap| from < gap.end + BLOCK && gap.start <= to + BLOCK);
        for gap in near {
            let gap = self.widened(output, gap)?;
            if gap.end > from {
                return Ok(Some(gap));
            }
        }
        Ok(None)
    }

    pub(super) fn range(&mut self, output: &Output, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut block = vec![0; usize::try_from(to - from).unwrap_or(0)];
        let n = self.read_stored(output, from, &mut block)?;
        block.truncate(n);
        Ok(block)
    }

    /// Fills `block` from `at` on, as far as there is output.
    fn read_stored(&mut self, output: &Output, at: u64, block: &mut [u8]) -> io::Result<usize> {
        let (file, at) = match (compact_gap(output), &mut self.tail) {
            (Some(gap), Some(tail)) if at >= gap.end => (tail, at - gap.end),
            _ => (&mut self.file, at),
        };
        file.seek(SeekFrom::Start(at))?;
        let mut filled = 0;
        while filled < block.len() {
            match file.read(&mut block[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// The gap of the cap in a log that has no hole there.
fn compact_gap(output: &Output) -> Option<&Gap> {
    output.gaps.iter().find(|gap| output.compact && gap.reason == GapReason::Cap)
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("recorded", &self.recorded).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read, Seek};
    use std::ops::Range;

    /// Everything from `at` on, with gaps as `<bytes>`.
    fn shown(log: &mut Log, mut at: u64) -> String {
        let (mut text, mut block) = (String::new(), [0; 7]);
        loop {
            match log.read(at, &mut block).unwrap() {
                Piece::Bytes(n) => {
                    text.push_str(std::str::from_utf8(&block[..n]).unwrap());
                    at += n as u64;
                }
                Piece::Gap(gap) => {
                    assert_eq!(gap.start, at);
                    text.push_str(&format!("<{}>", gap.len()));
                    at = gap.end;
                }
                Piece::End => return text,
            }
        }
    }

    /// A file with a hole.
    struct Holed(Cursor<Vec<u8>>, Range<u64>);

    impl Read for Holed {
        fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
            self.0.read(block)
        }
    }
    impl Seek for Holed {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    impl ReadSeek for Holed {
        fn stored(&mut self, from: u64) -> io::Result<Option<Range<u64>>> {
            let size = self.0.get_ref().len() as u64;
            let run = if from < self.1.start { from..self.1.start } else { from.max(self.1.end)..size };
            Ok((run.start < size).then_some(run))
        }
    }

    #[test]
    fn a_hole_is_a_gap_between_whole_lines() {
        let text = b"one\ntwo\n\0\0\0\0\0\0\0hree\nfour\n".to_vec();
        let size = text.len() as u64;
        let mut log = Log::new(Box::new(Holed(Cursor::new(text), 6..15)), None, None);
        assert_eq!(log.size().unwrap(), size);
        assert_eq!(shown(&mut log, 0), "one\n<16>four\n");
        assert_eq!(shown(&mut log, 10), "<10>four\n", "from inside a gap, the rest of it is shown");
        assert_eq!(log.end_of_first(2).unwrap(), size, "lines that are there are counted");
        assert_eq!([1, 2, 9].map(|n| log.start_of_last(n).unwrap()), [20, 0, 0]);
        let cut = log.excerpt(100, 100).unwrap();
        assert_eq!((&cut.head[..], &cut.tail[..], cut.omitted), (&b"one\n"[..], &b"four\n"[..], 16));
    }

    #[test]
    fn a_compact_log_keeps_its_offsets() {
        let mut recorded = Output { bytes: 1_000, compact: true, ..Output::default() };
        recorded.lose(8..992, GapReason::Cap);
        let (head, tail) = (Cursor::new(b"one\ntwo\n".to_vec()), Cursor::new(b"d\nlast\n\n".to_vec()));
        let mut log = Log::new(Box::new(head), Some(Box::new(tail)), Some(recorded));
        assert_eq!(log.size().unwrap(), 1_000);
        assert_eq!(shown(&mut log, 0), "one\ntwo\n<986>last\n\n");
        assert_eq!(shown(&mut log, 996), "st\n\n");
        assert_eq!(log.start_of_last(1).unwrap(), 999);
        let cut = log.excerpt(4, 6).unwrap();
        assert_eq!((&cut.head[..], &cut.tail[..], cut.omitted), (&b"one\n"[..], &b"last\n\n"[..], 990));
    }

    #[test]
    fn output_after_the_record_is_there_too() {
        let recorded = Output { bytes: 4, ..Output::default() };
        let mut log = Log::new(Box::new(Cursor::new(b"one\nlater\n".to_vec())), None, Some(recorded));
        assert_eq!(shown(&mut log, 0), "one\nlater\n");
    }
}
