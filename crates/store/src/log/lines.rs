//! Lines of a log: where the first and the last of them are, and gaps that are widened to whole lines.

use std::io;

use hearback_core::{Gap, GapReason, Output};

use super::read::{BLOCK, Log, Piece};

impl Log {
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

    /// Where the last `count` lines begin. A last line without a line end counts.
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
                    // No line begins after the last line end before a gap, or of the whole log.
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

    /// The cap cuts anywhere, so its gap is widened to whole lines. A full disk loses whole writes, which are mostly
    /// whole lines: such a gap is not widened, so that no byte is hidden.
    pub(super) fn widened(&mut self, output: &Output, gap: &Gap) -> io::Result<Gap> {
        if gap.reason == GapReason::Lost {
            return Ok(*gap);
        }
        let start = self.line_start_before(output, gap.start)?;
        let end = self.line_start_after(output, gap.end)?;
        Ok(Gap { start, end, reason: gap.reason })
    }

    /// Where the line begins that `at` cuts in two; `at` itself if the line is longer than a block.
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

    /// Where the first whole line after `at` begins; `at` itself if the line that it cuts is longer than a block.
    fn line_start_after(&mut self, output: &Output, at: u64) -> io::Result<u64> {
        let to = (at + BLOCK).min(output.bytes);
        let to = output.gaps.iter().map(|gap| gap.start).filter(|start| *start >= at).fold(to, u64::min);
        let block = self.range(output, at, to)?;
        let place = block.iter().position(|byte| *byte == b'\n');
        Ok(place.map_or(at, |place| at + place as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn log(text: &[u8]) -> Log {
        Log::new(Box::new(Cursor::new(text.to_vec())), None, None)
    }

    fn head_and_tail(text: &str, n: u64) -> (String, String) {
        let mut log = log(text.as_bytes());
        let end = log.end_of_first(n).unwrap() as usize;
        let start = log.start_of_last(n).unwrap() as usize;
        (text[..end].to_owned(), text[start..].to_owned())
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
}
