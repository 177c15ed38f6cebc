//! Reading a log that may be larger than memory, grow meanwhile, and have lost its middle.
//!
//! Offsets count every byte that the job ever printed. What is not kept of them is a gap: recorded with the end of
//! the job, and before that a hole in the file. Where the cap has cut, no half line is shown.

use std::io::{self, SeekFrom};

use hearback_core::message::Excerpt;
use hearback_core::port::disk::ReadSeek;
use hearback_core::{Gap, GapReason, Output};

const BLOCK: u64 = 64 * 1024;

/// What a job printed.
pub struct Log {
    file: Box<dyn ReadSeek>,
    /// The end of a log whose middle could not be given up.
    tail: Option<Box<dyn ReadSeek>>,
    /// What the job's end says, once there is one.
    recorded: Option<Output>,
}

/// What is to be found at some place of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// This many bytes were read.
    Bytes(usize),
    /// Nothing until the end of this gap.
    Gap(Gap),
    /// Nothing more, so far.
    End,
}

impl Log {
    /// Reads `file` and, if its middle could not be given up, `tail`; `recorded` is what the end of the job says.
    pub fn new(file: Box<dyn ReadSeek>, tail: Option<Box<dyn ReadSeek>>, recorded: Option<Output>) -> Self {
        Self { file, tail, recorded }
    }

    /// How much the job has printed.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn size(&mut self) -> io::Result<u64> {
        let stored = self.file.seek(SeekFrom::End(0))?;
        Ok(self.recorded(stored).map_or(stored, |recorded| recorded.bytes))
    }

    /// What the record says, unless more was printed after it was written.
    fn recorded(&self, stored: u64) -> Option<&Output> {
        self.recorded.as_ref().filter(|recorded| {
            // Less is stored when what was lost was the end, and nothing after the head of a compact log.
            stored <= compact_gap(recorded).map_or(recorded.bytes, |gap| gap.start)
        })
    }

    /// Every part that is not kept, as it is on disk.
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
            // Which of the two it was is only known to who wrote it; a hole is nearly always the cap's.
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
        // The hole may have grown over what was just read, which then were zeroes.
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

    /// A cap cuts anywhere, and its gap is told as whole lines. What a full disk lost came and went between two
    /// writes, mostly of whole lines: there every byte that is left counts.
    fn widened(&mut self, output: &Output, gap: &Gap) -> io::Result<Gap> {
        if gap.why == GapReason::Lost {
            return Ok(*gap);
        }
        let start = self.line_start_before(output, gap.start)?;
        let end = self.line_start_after(output, gap.end)?;
        Ok(Gap { start, end, why: gap.why })
    }

    /// Where the line begins that `at` cuts in two; `at` itself when it is longer than a block.
    fn line_start_before(&mut self, output: &Output, at: u64) -> io::Result<u64> {
        let from = at.saturating_sub(BLOCK);
        let from = output.gaps.iter().map(|gap| gap.end).filter(|end| *end <= at).fold(from, u64::max);
        let block = self.range(output, from, at)?;
        Ok(match block.iter().rposition(|byte| *byte == b'\n') {
            Some(place) => from + place as u64 + 1,
            None if from == 0 => 0,
            None => at,
        })
    }

    /// Where the first whole line after `at` begins; `at` itself when the line that it cuts is longer than a block.
    fn line_start_after(&mut self, output: &Output, at: u64) -> io::Result<u64> {
        let to = (at + BLOCK).min(output.bytes);
        let to = output.gaps.iter().map(|gap| gap.start).filter(|start| *start >= at).fold(to, u64::min);
        let block = self.range(output, at, to)?;
        let place = block.iter().position(|byte| *byte == b'\n');
        Ok(place.map_or(at, |place| at + place as u64 + 1))
    }

    fn range(&mut self, output: &Output, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut block = vec![0; usize::try_from(to - from).unwrap_or(0)];
        let n = self.read_stored(output, from, &mut block)?;
        block.truncate(n);
        Ok(block)
    }

    /// Fills `block` from `at` on, as far as there is anything.
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

    /// Where the first `count` lines end.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn end_of_first(&mut self, count: u64) -> io::Result<u64> {
        let (mut at, mut left) = (0, count);
        let mut block = vec![0; BLOCK as usize];
        while left > 0 {
            let n = match self.read(at, &mut block)? {
                Piece::Bytes(n) => n,
                Piece::Gap(gap) => {
                    at = gap.end;
                    continue;
                }
                Piece::End => return Ok(at),
            };
            for byte in &block[..n] {
                at += 1;
                if *byte == b'\n' {
                    left -= 1;
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        Ok(at)
    }

    /// Where the last `count` lines begin. A last line without its end is one.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn start_of_last(&mut self, count: u64) -> io::Result<u64> {
        let output = self.output()?;
        let (size, mut left) = (output.bytes, count);
        if count == 0 || size == 0 {
            return Ok(size);
        }
        let mut runs = Vec::new();
        let mut start = 0;
        for gap in &output.gaps {
            let gap = self.widened(&output, gap)?;
            runs.push(start..gap.start);
            start = gap.end;
        }
        runs.push(start..size);
        for run in runs.into_iter().rev().filter(|run| !run.is_empty()) {
            let mut end = run.end;
            while end > run.start {
                let from = end.saturating_sub(BLOCK).max(run.start);
                let block = self.range(&output, from, end)?;
                for (place, byte) in block.iter().enumerate().rev() {
                    let after = from + place as u64 + 1;
                    // The end of the last line before a gap, or of all, begins nothing.
                    if *byte == b'\n' && after < run.end {
                        left -= 1;
                        if left == 0 {
                            return Ok(after);
                        }
                    }
                }
                end = from;
            }
            left -= 1;
            if left == 0 {
                return Ok(run.start);
            }
        }
        Ok(0)
    }

    /// Cuts what is there to at most `head` bytes of its beginning and `tail` bytes of its end, at line ends where
    /// there are any.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn excerpt(&mut self, head: u64, tail: u64) -> io::Result<Excerpt> {
        let output = self.output()?;
        let size = output.bytes;
        if output.gaps.is_empty() && size <= head.saturating_add(tail) {
            return Ok(Excerpt { head: self.range(&output, 0, size)?, tail: Vec::new(), omitted: 0 });
        }
        let head_end = output.gaps.first().map_or(size, |gap| gap.start).min(head);
        let mut first = self.range(&output, 0, head_end)?;
        match first.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => first.truncate(end + 1),
            None => first.truncate(whole_characters(&first)),
        }
        let whole_from = match output.gaps.last() {
            Some(gap) => self.widened(&output, gap)?.end,
            None => first.len() as u64,
        };
        let tail_start = size.saturating_sub(tail);
        let last = if tail_start <= whole_from {
            self.range(&output, whole_from, size)?
        } else {
            // With the byte before it, which tells whether a line begins here.
            let mut last = self.range(&output, tail_start - 1, size)?;
            let line = last.iter().position(|byte| *byte == b'\n').filter(|end| end + 1 < last.len());
            // A tail of one endless line is better cut between any two characters than not shown.
            let cut = line.map_or_else(|| rest_of_character(&last, 1), |end| end + 1);
            last.drain(..cut);
            last
        };
        let omitted = size - first.len() as u64 - last.len() as u64;
        Ok(Excerpt { head: first, tail: last, omitted })
    }
}

/// The longest character has four bytes; those after the first say so of themselves.
const CHARACTER_MAX: usize = 4;

fn is_continued(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// How many bytes there are before a last character that was cut in two.
fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(CHARACTER_MAX);
    let half = (from..bytes.len()).find(|at| {
        let rest = std::str::from_utf8(&bytes[*at..]);
        rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    half.unwrap_or(bytes.len())
}

/// Where the first character at or after `at` begins, if that is a matter of one character.
fn rest_of_character(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.iter().skip(at).take_while(|byte| is_continued(**byte)).count();
    if rest < CHARACTER_MAX { at + rest } else { at }
}

/// What the cap has cut out of a log that has no hole there.
fn compact_gap(output: &Output) -> Option<&Gap> {
    output.gaps.iter().find(|gap| output.compact && gap.why == GapReason::Cap)
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

    fn log(text: &[u8]) -> Log {
        Log::new(Box::new(Cursor::new(text.to_vec())), None, None)
    }

    fn head_and_tail(text: &str, n: u64) -> (String, String) {
        let mut log = log(text.as_bytes());
        let end = log.end_of_first(n).unwrap() as usize;
        let start = log.start_of_last(n).unwrap() as usize;
        (text[..end].to_owned(), text[start..].to_owned())
    }

    /// Everything from `at` on, with gaps as `<bytes>`.
    fn told(log: &mut Log, mut at: u64) -> String {
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
    fn lines_are_counted_from_both_ends() {
        let of = |text: &str, n| head_and_tail(text, n);
        assert_eq!(of("a\nb\nc\n", 1), ("a\n".into(), "c\n".into()));
        assert_eq!(of("a\nb\nc", 2), ("a\nb\n".into(), "b\nc".into()));
        assert_eq!(of("a\nb", 9), ("a\nb".into(), "a\nb".into()));
        assert_eq!(of("", 3), (String::new(), String::new()));
        assert_eq!(of("\n\n", 1), ("\n".into(), "\n".into()));
        assert_eq!(of("a\n", 0), (String::new(), String::new()));
        let long = format!("{}\n", "x".repeat(100_000)).repeat(3);
        assert_eq!(of(&long, 1).1.len(), 100_001, "a line may span blocks");
    }

    #[test]
    fn an_excerpt_counts_what_it_leaves_out() {
        let text = (0..100).map(|n| format!("line {n:03}\n")).collect::<String>();
        let cut = log(text.as_bytes()).excerpt(20, 20).unwrap();
        assert_eq!(cut.head, b"line 000\nline 001\n");
        assert_eq!(cut.tail, b"line 098\nline 099\n");
        assert_eq!(cut.omitted as usize + cut.head.len() + cut.tail.len(), text.len());
        let whole = log(b"short").excerpt(20, 20).unwrap();
        assert_eq!(whole, Excerpt { head: b"short".to_vec(), tail: vec![], omitted: 0 });
        let endless = log(&[b'x'; 100]).excerpt(10, 10).unwrap();
        assert_eq!((endless.head.len(), endless.tail.len(), endless.omitted), (10, 10, 80));
    }

    #[test]
    fn a_hole_is_a_gap_between_whole_lines() {
        let text = b"one\ntwo\n\0\0\0\0\0\0\0hree\nfour\n".to_vec();
        let size = text.len() as u64;
        let mut log = Log::new(Box::new(Holed(Cursor::new(text), 6..15)), None, None);
        assert_eq!(log.size().unwrap(), size);
        assert_eq!(told(&mut log, 0), "one\n<16>four\n");
        assert_eq!(told(&mut log, 10), "<10>four\n", "from inside a gap the rest of it is told");
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
        assert_eq!(told(&mut log, 0), "one\ntwo\n<986>last\n\n");
        assert_eq!(told(&mut log, 996), "st\n\n");
        assert_eq!(log.start_of_last(1).unwrap(), 999);
        let cut = log.excerpt(4, 6).unwrap();
        assert_eq!((&cut.head[..], &cut.tail[..], cut.omitted), (&b"one\n"[..], &b"last\n\n"[..], 990));
    }

    #[test]
    fn what_was_printed_after_the_record_is_there_too() {
        let recorded = Output { bytes: 4, ..Output::default() };
        let mut log = Log::new(Box::new(Cursor::new(b"one\nlater\n".to_vec())), None, Some(recorded));
        assert_eq!(told(&mut log, 0), "one\nlater\n");
    }
}
