//! How much of a job's output a follow-up holds.

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

    /// The part for the head.
    pub fn head(self) -> u64 {
        self.0 / 4
    }

    /// The part for the tail.
    pub fn tail(self) -> u64 {
        self.0 - self.head()
    }

    /// Cuts an excerpt whose text exceeds the budget. Text may be longer than the bytes, because an invalid byte
    /// becomes a character of three. Cuts between lines if possible, never inside a character; counts what is left out
    /// in bytes of the output.
    pub fn cut(self, excerpt: Excerpt) -> Excerpt {
        let Excerpt { head, tail, omitted } = excerpt;
        if text_len(&head) + text_len(&tail) <= self.0 {
            return Excerpt { head, tail, omitted };
        }
        let (mut first, last) = if omitted == 0 { ([head, tail].concat(), None) } else { (head, Some(tail)) };
        let all = first.len() + last.as_ref().map_or(0, Vec::len);
        let kept = whole_lines(&first[..end_within(&first, self.head())]);
        let last = last.unwrap_or_else(|| first.split_off(kept));
        first.truncate(kept);
        let last = &last[start_within(&last, self.tail())..];
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

/// The end of the longest head of at most `most` bytes of text.
fn end_within(bytes: &[u8], most: u64) -> usize {
    let mut left = most;
    let fits = |(_, text): &(usize, u64)| {
        let room = *text <= left;
        left = left.saturating_sub(*text);
        room
    };
    characters(bytes).take_while(fits).map(|(len, _)| len).sum()
}

/// The start of the longest tail of at most `most` bytes of text; at the start of a line if possible.
fn start_within(bytes: &[u8], most: u64) -> usize {
    let mut over = text_len(bytes).saturating_sub(most);
    if over == 0 {
        return 0;
    }
    let too_much = |(_, text): &(usize, u64)| {
        let skipped = over > 0;
        over = over.saturating_sub(*text);
        skipped
    };
    let start: usize = characters(bytes).take_while(too_much).map(|(len, _)| len).sum();
    if start > 0 && bytes[start - 1] == b'\n' {
        return start;
    }
    let line = bytes[start..].iter().position(|byte| *byte == b'\n').map(|end| start + end + 1);
    line.filter(|line| *line < bytes.len()).unwrap_or(start)
}

/// The size of the whole lines in `bytes`; all of it when there is no line end.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(budget.cut(of(b"a\n\xff", b"\xff\xff\n\xff\xff\n", 7)), of(b"a\n", b"\xff\xff\n", 11));
        assert_eq!(NoticeBytes::new(0).unwrap().cut(of(b"x", b"", 0)), of(b"", b"", 1));
        assert_eq!(NoticeBytes::new(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn nothing_is_sent_over_the_budget_and_every_byte_is_counted(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'\n'), Just(0xe2), Just(0x82), Just(0xac), any::<u8>()],
                0..300,
            ),
            split in 0_usize..300,
            omitted in 0_u64..3,
            most in 0_u64..200,
        ) {
            let split = split.min(bytes.len());
            let budget = NoticeBytes::new(most).unwrap();
            let cut = budget.cut(of(&bytes[..split], &bytes[split..], omitted));
            prop_assert!(text_len(&cut.head) + text_len(&cut.tail) <= most);
            prop_assert_eq!(cut.head.len() as u64 + cut.tail.len() as u64 + cut.omitted, bytes.len() as u64 + omitted);
            prop_assert!(bytes.starts_with(&cut.head) && bytes.ends_with(&cut.tail));
        }
    }
}
