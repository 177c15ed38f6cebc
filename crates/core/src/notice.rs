//! How much of a job's output a follow-up holds.

use crate::clean::last_state;
use crate::credentials::{cut_after, cut_before};
use crate::message::Excerpt;

/// The most of a job's output that one follow-up holds, counted as text: a head and a longer tail, because errors are
/// usually at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeBytes(u64);

impl Default for NoticeBytes {
    fn default() -> Self {
        Self(8 * 1024)
    }
}

impl NoticeBytes {
    /// The largest budget: more is too much for a model and for a sink.
    pub const MOST: Self = Self(1024 * 1024);

    /// A budget of `bytes`, which may be zero; `None` if that is more than [`NoticeBytes::MOST`].
    pub fn new(bytes: u64) -> Option<Self> {
        (bytes <= Self::MOST.0).then_some(Self(bytes))
    }

    /// The whole budget.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// The part of each of `n` follow-ups that share it. Each has room for a few lines.
    pub fn shared(self, n: usize) -> Self {
        const FEW_LINES: u64 = 512;
        Self((self.0 / n.max(1) as u64).max(FEW_LINES).min(self.0))
    }

    /// The part for the head.
    pub fn head(self) -> u64 {
        self.0 / 4
    }

    /// The part for the tail.
    pub fn tail(self) -> u64 {
        self.0 - self.head()
    }

    /// Cuts an excerpt whose text exceeds the budget. The text may be longer than the bytes, because an invalid byte
    /// becomes a character of three; or shorter, because of an overwritten line only the last state is shown. Cuts
    /// between lines where that wastes little, never inside a character or a credential; counts what is left out in
    /// bytes of the output.
    pub fn cut(self, excerpt: Excerpt) -> Excerpt {
        let Excerpt { head, tail, omitted } = excerpt;
        if shown_len(&head) + shown_len(&tail) <= self.0 {
            return Excerpt { head, tail, omitted };
        }
        let (mut first, last) = if omitted == 0 { ([head, tail].concat(), None) } else { (head, Some(tail)) };
        let all = first.len() + last.as_ref().map_or(0, Vec::len);
        let kept = cut_before(&first, end_within(&first, self.head()));
        let last = last.unwrap_or_else(|| first.split_off(kept));
        first.truncate(kept);
        let last = &last[cut_after(&last, start_within(&last, self.0 - shown_len(&first)))..];
        let cut = all - first.len() - last.len();
        Excerpt { head: first, tail: last.to_vec(), omitted: omitted + cut as u64 }
    }
}

/// For each character or invalid sequence: its size in the output, and its size as text.
fn characters(bytes: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(|c| (c.len_utf8(), c.len_utf8() as u64));
        let bad = chunk.invalid().len();
        valid.chain((bad > 0).then_some((bad, char::REPLACEMENT_CHARACTER.len_utf8() as u64)))
    })
}

fn text_len(bytes: &[u8]) -> u64 {
    characters(bytes).map(|(_, text)| text).sum()
}

fn lines(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

/// The most bytes of text that output can become; removing control characters makes it shorter still.
fn shown_len(bytes: &[u8]) -> u64 {
    lines(bytes).map(|line| text_len(&line[last_state(line)]) + line_end(line)).sum()
}

fn line_end(line: &[u8]) -> u64 {
    u64::from(line.ends_with(b"\n"))
}

/// Whether so much of a budget is left that a line is better cut than left out.
fn is_worth_a_cut(left: u64, most: u64) -> bool {
    left > most / 4
}

/// The end of a head of at most `most` bytes of text.
fn end_within(bytes: &[u8], most: u64) -> usize {
    let (mut left, mut end) = (most, 0);
    for line in lines(bytes) {
        let len = shown_len(line);
        if len <= left {
            left -= len;
            end += line.len();
            continue;
        }
        if is_worth_a_cut(left, most) {
            let state = last_state(line);
            let fits = |(_, text): &(usize, u64)| {
                let room = *text <= left;
                left = left.saturating_sub(*text);
                room
            };
            let part: usize = characters(&line[state.clone()]).take_while(fits).map(|(len, _)| len).sum();
            end += if part > 0 { state.start + part } else { 0 };
        }
        break;
    }
    end
}

/// The start of a tail of at most `most` bytes of text.
fn start_within(bytes: &[u8], most: u64) -> usize {
    let (mut left, mut start) = (most, bytes.len());
    for line in lines(bytes).rev() {
        let len = shown_len(line);
        if len <= left {
            left -= len;
            start -= line.len();
            continue;
        }
        if is_worth_a_cut(left, most) {
            let state = last_state(line);
            let mut over = len - left;
            let too_much = |(_, text): &(usize, u64)| {
                let skipped = over > 0;
                over = over.saturating_sub(*text);
                skipped
            };
            let part: usize = characters(&line[state.clone()]).take_while(too_much).map(|(len, _)| len).sum();
            let rest = state.end - state.start - part;
            start -= if rest > 0 { line.len() - state.start - part } else { 0 };
        }
        break;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::shown;
    use proptest::prelude::*;

    fn of(head: &[u8], tail: &[u8], omitted: u64) -> Excerpt {
        Excerpt { head: head.to_vec(), tail: tail.to_vec(), omitted }
    }

    #[test]
    fn an_excerpt_within_the_budget_is_unchanged_and_a_longer_one_is_cut_between_lines() {
        let budget = NoticeBytes::new(16).unwrap();
        assert_eq!(budget.cut(of(b"0123456789abcdef", b"", 0)), of(b"0123456789abcdef", b"", 0));
        // Six invalid bytes become eighteen bytes of text.
        assert_eq!(budget.cut(of(b"\xff\xff\xff\xff\xff\xff", b"", 0)), of(b"\xff", b"\xff\xff\xff\xff", 1));
        assert_eq!(
            budget.cut(of(b"a\n\xff", b"\xff\xff\n\xff\xff\n", 7)),
            of(b"a\n", b"\xff\xff\n\xff\xff\n", 8)
        );
        assert_eq!(NoticeBytes::new(0).unwrap().cut(of(b"x", b"", 0)), of(b"", b"", 1));
        assert_eq!(NoticeBytes::new(u64::MAX), None);
    }

    #[test]
    fn scenario_130_a_long_line_or_a_progress_bar_leaves_as_much_of_its_end_as_the_budget_allows() {
        let budget = NoticeBytes::default();
        let text = |output: &[u8]| {
            let cut = budget.cut(of(output, b"", 0));
            assert_eq!((cut.head.len() + cut.tail.len()) as u64 + cut.omitted, output.len() as u64);
            (shown(&cut.head), shown(&cut.tail))
        };
        let line = [&[b'x'; 30_000][..], b"\nthe end\n"].concat();
        let (head, tail) = text(&line);
        assert_eq!((head.len() + tail.len()) as u64, budget.bytes());
        assert!(tail.ends_with("xx\nthe end\n"));
        let bar: Vec<u8> = (0..10_000).flat_map(|n| format!("\r{n} of 10000").into_bytes()).collect();
        let output = [b"first\n", &bar[..], b"\nlast\n"].concat();
        assert_eq!(text(&output), ("first\n9999 of 10000\nlast\n".to_owned(), String::new()));
        let lines: String = (0..2_000).map(|n| format!("line {n:04}\n")).collect();
        let (head, tail) = text(&[lines.as_bytes(), &bar[..], b"\n"].concat());
        assert!(head.starts_with("line 0000\n") && head.ends_with('\n') && head.len() > 2_030, "{head}");
        assert!(tail.starts_with("line ") && tail.ends_with("line 1999\n9999 of 10000\n"), "{tail}");
        assert!((head.len() + tail.len()) as u64 > budget.bytes() - 20);
    }

    proptest! {
        #[test]
        fn nothing_is_sent_over_the_budget_and_every_byte_is_counted(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xe2), Just(0x82), Just(0xac), any::<u8>()],
                0..300,
            ),
            split in 0_usize..300,
            omitted in 0_u64..3,
            most in 0_u64..200,
        ) {
            let split = split.min(bytes.len());
            let budget = NoticeBytes::new(most).unwrap();
            let cut = budget.cut(of(&bytes[..split], &bytes[split..], omitted));
            prop_assert!(shown_len(&cut.head) + shown_len(&cut.tail) <= most);
            prop_assert!((shown(&cut.head).len() + shown(&cut.tail).len()) as u64 <= most);
            prop_assert_eq!(cut.head.len() as u64 + cut.tail.len() as u64 + cut.omitted, bytes.len() as u64 + omitted);
            prop_assert!(bytes.starts_with(&cut.head) && bytes.ends_with(&cut.tail));
        }
    }
}
