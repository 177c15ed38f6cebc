//! How much of a job's output its owner is sent.

use crate::message::Excerpt;

/// The most of a job's output that one follow-up holds, counted as the text that it becomes: a head, and a longer
/// tail, because that is where it says what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeBytes(u64);

impl Default for NoticeBytes {
    fn default() -> Self {
        Self(8 * 1024)
    }
}

impl NoticeBytes {
    /// What no model wants to read in one message, and no sink has to take.
    pub const MOST: Self = Self(1024 * 1024);

    /// A budget of so many bytes, which may be none; nothing when that is more than [`NoticeBytes::MOST`].
    pub fn new(bytes: u64) -> Option<Self> {
        (bytes <= Self::MOST.0).then_some(Self(bytes))
    }

    /// All of it.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// How much of it is for the beginning.
    pub fn head(self) -> u64 {
        self.0 / 4
    }

    /// How much of it is for the end.
    pub fn tail(self) -> u64 {
        self.0 - self.head()
    }

    /// Cuts an excerpt whose text would be longer than its bytes are: one that is no text becomes a character of three.
    /// Between lines where there are any, and never inside a character; what is left out is counted as it was printed.
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

/// Each character, or what is none: how many bytes it has, and how many in text.
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

/// Where the longest beginning ends that is no more than `most` bytes of text.
fn end_within(bytes: &[u8], most: u64) -> usize {
    let mut left = most;
    let fits = |(_, text): &(usize, u64)| {
        let room = *text <= left;
        left = left.saturating_sub(*text);
        room
    };
    characters(bytes).take_while(fits).map(|(len, _)| len).sum()
}

/// Where the longest end begins that is no more than `most` bytes of text; at a line if there is one.
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

/// How many of these bytes are whole lines; all of them when there is no line end.
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
    fn what_fits_is_left_alone_and_what_grows_is_cut_between_lines() {
        let budget = NoticeBytes::new(16).unwrap();
        assert_eq!(budget.cut(of(b"0123456789abcdef", b"", 0)), of(b"0123456789abcdef", b"", 0));
        // Six bytes that are no text are eighteen of text.
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
