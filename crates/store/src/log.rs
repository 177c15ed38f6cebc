//! Reading a log that may be larger than memory.

use std::io::{self, Read, SeekFrom};

use hearback_core::message::Excerpt;
use hearback_core::port::disk::ReadSeek;

const BLOCK: u64 = 64 * 1024;

/// Finds lines by their number from either end.
#[derive(Debug)]
pub struct Lines;

impl Lines {
    /// Where the first `count` lines end.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn end_of_first(log: &mut dyn ReadSeek, count: u64) -> io::Result<u64> {
        let (mut at, mut left) = (log.seek(SeekFrom::Start(0))?, count);
        let mut block = vec![0; BLOCK as usize];
        while left > 0 {
            let n = log.read(&mut block)?;
            if n == 0 {
                return Ok(at);
            }
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
    pub fn start_of_last(log: &mut dyn ReadSeek, count: u64) -> io::Result<u64> {
        let size = log.seek(SeekFrom::End(0))?;
        if count == 0 || size == 0 {
            return Ok(size);
        }
        let mut left = count;
        let mut block_end = size;
        while block_end > 0 {
            let start = block_end.saturating_sub(BLOCK);
            let block = read_range(log, start, block_end - start)?;
            for (i, byte) in block.iter().enumerate().rev() {
                let after = start + i as u64 + 1;
                // The end of the very last line begins nothing.
                if *byte == b'\n' && after < size {
                    left -= 1;
                    if left == 0 {
                        return Ok(after);
                    }
                }
            }
            block_end = start;
        }
        Ok(0)
    }
}

/// Cuts a log to at most `head` bytes of its beginning and `tail` bytes of its end, at line ends where there are any.
///
/// # Errors
///
/// When the log cannot be read.
pub fn excerpt(log: &mut dyn ReadSeek, head: u64, tail: u64) -> io::Result<Excerpt> {
    let size = log.seek(SeekFrom::End(0))?;
    if size <= head + tail {
        return Ok(Excerpt { head: read_range(log, 0, size)?, tail: Vec::new(), omitted: 0 });
    }
    let mut first = read_range(log, 0, head)?;
    if let Some(end) = first.iter().rposition(|byte| *byte == b'\n') {
        first.truncate(end + 1);
    }
    let mut last = read_range(log, size - tail, tail)?;
    // A tail of one endless line is better cut anywhere than not shown.
    if let Some(end) = last.iter().position(|byte| *byte == b'\n')
        && end + 1 < last.len()
    {
        last.drain(..=end);
    }
    let omitted = size - first.len() as u64 - last.len() as u64;
    Ok(Excerpt { head: first, tail: last, omitted })
}

fn read_range(log: &mut dyn ReadSeek, start: u64, length: u64) -> io::Result<Vec<u8>> {
    log.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    log.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn head_and_tail(text: &str, n: u64) -> (String, String) {
        let mut log = Cursor::new(text.as_bytes().to_vec());
        let end = Lines::end_of_first(&mut log, n).unwrap() as usize;
        let start = Lines::start_of_last(&mut log, n).unwrap() as usize;
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

    #[test]
    fn an_excerpt_counts_what_it_leaves_out() {
        let text = (0..100).map(|n| format!("line {n:03}\n")).collect::<String>();
        let cut = excerpt(&mut Cursor::new(text.clone().into_bytes()), 20, 20).unwrap();
        assert_eq!(cut.head, b"line 000\nline 001\n");
        assert_eq!(cut.tail, b"line 098\nline 099\n");
        assert_eq!(cut.omitted as usize + cut.head.len() + cut.tail.len(), text.len());
        let whole = excerpt(&mut Cursor::new(b"short".to_vec()), 20, 20).unwrap();
        assert_eq!(whole, Excerpt { head: b"short".to_vec(), tail: vec![], omitted: 0 });
        let endless = excerpt(&mut Cursor::new(vec![b'x'; 100]), 10, 10).unwrap();
        assert_eq!((endless.head.len(), endless.tail.len(), endless.omitted), (10, 10, 80));
    }
}
