//! Cutting a log to a budget: between lines where that wastes little, and never within a character.

use std::io;
use std::ops::Range;

use hearback_core::Output;
use hearback_core::credentials::{self, cut_after, cut_before};
use hearback_core::message::Excerpt;

use super::read::Log;

impl Log {
    /// Cuts the log to at most `head` bytes of its beginning and `tail` bytes of its end, at line ends where that
    /// wastes little, and never within text that looks like a credential: half of it could not be recognised, and so
    /// not be masked.
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
        let line_end = first.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
        match line_end.filter(|end| is_cheap(first.len() - end, head)) {
            Some(end) => first.truncate(end),
            None => first.truncate(whole_characters(&first)),
        }
        let whole_to = output.gaps.first().map_or(size, |gap| gap.start);
        let head_end = self.cut(&output, 0..whole_to, first.len() as u64, cut_before)?;
        first.truncate(usize::try_from(head_end).unwrap_or(0));
        let gap_end = match output.gaps.last() {
            Some(gap) => Some(self.widened(&output, gap)?.end),
            None => None,
        };
        let whole_from = gap_end.unwrap_or(first.len() as u64);
        let tail_start = size.saturating_sub(tail);
        let mut last = if tail_start <= whole_from {
            self.range(&output, whole_from, size)?
        } else {
            // With the byte before it, which shows whether a line begins here.
            let mut last = self.range(&output, tail_start - 1, size)?;
            let line = last.iter().position(|byte| *byte == b'\n').filter(|end| is_cheap(*end, tail));
            // A long line is cut between any two characters.
            let cut = line.map_or_else(|| rest_of_character(&last, 1), |end| end + 1);
            last.drain(..cut);
            last
        };
        let start = size - last.len() as u64;
        let tail_start = self.cut(&output, gap_end.unwrap_or(0)..size, start, cut_after)?;
        last.drain(..usize::try_from(tail_start - start).unwrap_or(0));
        let omitted = size - first.len() as u64 - last.len() as u64;
        Ok(Excerpt { head: first, tail: last, omitted })
    }
}

/// Whether a cut between lines leaves so little of the budget unused that it is better than one within a line.
fn is_cheap(unused: usize, budget: u64) -> bool {
    unused as u64 <= budget / 4
}

impl Log {
    /// Moves a cut at `at` as `moved` says for the bytes around it. There is no gap `within` these bytes.
    fn cut(
        &mut self,
        output: &Output,
        within: Range<u64>,
        at: u64,
        moved: fn(&[u8], usize) -> usize,
    ) -> io::Result<u64> {
        let reach = (credentials::LONGEST + credentials::LOOK_BACK) as u64;
        let from = at.saturating_sub(reach).max(within.start);
        if from >= at || at >= within.end {
            return Ok(at);
        }
        let around = self.range(output, from, at.saturating_add(reach).min(within.end))?;
        Ok(from + moved(&around, usize::try_from(at - from).unwrap_or(0)) as u64)
    }
}

/// A character has at most four bytes. The bytes after the first can be recognised.
const CHARACTER_MAX: usize = 4;

fn is_continued(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The length without a last character that was cut in two.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn log(text: &[u8]) -> Log {
        Log::new(Box::new(Cursor::new(text.to_vec())), None, None)
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
        let ended = log(&[&[b'x'; 100][..], b"\nend\n"].concat()).excerpt(10, 20).unwrap();
        assert_eq!(ended.tail, [&[b'x'; 15][..], b"\nend\n"].concat(), "most of a long line, not none");
        let endless = log(&[b'x'; 100]).excerpt(10, 10).unwrap();
        assert_eq!((endless.head.len(), endless.tail.len(), endless.omitted), (10, 10, 80));
    }
}
