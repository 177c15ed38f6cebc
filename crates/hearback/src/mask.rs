//! Masking secrets in what is shown and sent: the name of a variable replaces its value.

use std::fmt;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use hearback_core::message::left_out_text;
use hearback_core::port::sink::Delivery;

/// A shorter text is too common to be a secret, and a shorter part of a secret reveals little.
const SHORTEST: usize = 4;
/// Each line of a secret with several lines is masked by itself, because text is quoted and cut by lines. Shorter lines
/// are too common.
const SHORTEST_LINE: usize = 8;

/// The values to mask, each with the name that replaces it.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The longest first: a secret that is the beginning of another must not hide the rest of it.
    secrets: Vec<Secret>,
    /// Finds them, if there are any. A process without secrets builds nothing.
    finder: Option<AhoCorasick>,
}

#[derive(Clone)]
struct Secret {
    value: String,
    /// In brackets.
    name: String,
}

/// Shows the names alone.
impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.secrets.iter().map(|secret| &secret.name)).finish()
    }
}

impl Secrets {
    /// Collects the secrets that are long enough.
    pub(crate) fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in values {
            let value = value.trim_matches(['\r', '\n']);
            let shortest = if value.contains('\n') { SHORTEST_LINE } else { SHORTEST };
            let lines = value.lines().filter(|line| line.len() >= shortest);
            secrets.extend(lines.map(|line| Secret { value: line.to_owned(), name: format!("[{name}]") }));
        }
        secrets.sort_by_key(|secret: &Secret| std::cmp::Reverse(secret.value.len()));
        let finder = (!secrets.is_empty()).then(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                // Small, and fast enough for text that is shown: the others trade memory for speed.
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(secrets.iter().map(|secret| &secret.value))
                .expect("an environment is smaller than the two billion bytes that would be too many")
        });
        Self { secrets, finder }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The text with all secrets masked. If two overlap, the one that begins first is masked, and of those the longest.
    pub fn masked(&self, text: &str) -> String {
        let Some(finder) = &self.finder else { return text.to_owned() };
        let mut masked = String::with_capacity(text.len());
        let mut at = 0;
        for found in finder.find_iter(text) {
            masked.push_str(&text[at..found.start()]);
            masked.push_str(&self.secrets[found.pattern()].name);
            at = found.end();
        }
        masked.push_str(&text[at..]);
        masked
    }

    /// Masks text whose end was cut off, perhaps within a secret: the beginning of a secret is masked as well.
    fn masked_before_cut(&self, text: &str) -> String {
        let masked = self.masked(text);
        match self.begun_at_end(masked.as_bytes()) {
            Some((start, name)) => format!("{}{name}", &masked[..start]),
            None => masked,
        }
    }

    /// Masks text whose beginning was cut off, perhaps within a secret: the end of a secret is masked as well.
    pub fn masked_after_cut(&self, text: &str) -> String {
        let masked = self.masked(text);
        match self.ended_at_start(masked.as_bytes()) {
            Some((end, name)) => format!("{name}{}", &masked[end..]),
            None => masked,
        }
    }

    /// If these bytes end with the beginning of a secret: where that begins, and its name.
    pub fn begun_at_end(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        self.secrets.iter().find_map(|Secret { value, name }| {
            let value = value.as_bytes();
            let begun = (SHORTEST..value.len()).rev().find(|len| bytes.ends_with(&value[..*len]))?;
            Some((bytes.len() - begun, name.as_str()))
        })
    }

    /// If these bytes begin with the end of a secret: where that ends, and its name.
    pub fn ended_at_start(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        self.secrets.iter().find_map(|Secret { value, name }| {
            let value = value.as_bytes();
            let ended =
                (SHORTEST..value.len()).rev().find(|len| bytes.starts_with(&value[value.len() - len..]))?;
            Some((ended, name.as_str()))
        })
    }

    /// Masks the two parts of an excerpt around the part that was left out.
    pub(crate) fn mask_excerpt(&self, delivery: &mut Delivery) {
        if self.is_empty() || delivery.output.omitted == 0 {
            return;
        }
        let output = &mut delivery.output;
        output.head = self.masked_before_cut(&output.head);
        output.tail = self.masked_after_cut(&output.tail);
        let between = left_out_text(output.omitted, &delivery.job.id);
        if let Some((head, tail)) = delivery.text.split_once(&between) {
            let head = head.strip_suffix('\n').unwrap_or(head);
            let tail = tail.strip_prefix("\n| ").map(|tail| format!("| {}", self.masked_after_cut(tail)));
            delivery.text =
                format!("{}\n{between}\n{}", self.masked_before_cut(head), tail.unwrap_or_default());
        }
    }

    /// Masks bytes that come in pieces.
    pub fn masker(&self) -> Masker<'_> {
        Masker { secrets: self, held: Vec::new() }
    }

    /// The bytes with all secrets masked.
    pub fn masked_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut masker, mut out) = (self.masker(), Vec::with_capacity(bytes.len()));
        masker.push(bytes, &mut out);
        masker.flush(&mut out);
        out
    }

    /// How many bytes at the end may be the beginning of a secret whose rest has not come yet.
    pub fn unsettled(&self, bytes: &[u8]) -> usize {
        let mut masker = self.masker();
        masker.push(bytes, &mut Vec::new());
        masker.held.len()
    }

    /// If a secret reaches across `at`: where it ends, and its name.
    pub fn across(&self, bytes: &[u8], at: usize) -> Option<(usize, &str)> {
        self.secrets.iter().find_map(|Secret { value, name }| {
            let starts = at.saturating_sub(value.len() - 1)..at;
            let start = starts.into_iter().find(|start| bytes[*start..].starts_with(value.as_bytes()))?;
            Some((start + value.len(), name.as_str()))
        })
    }

    /// The first place from `at` on from which the rest may be the beginning of a secret; the end if there is none.
    fn begun_from(&self, bytes: &[u8], at: usize) -> usize {
        let from = at.max(bytes.len().saturating_sub(self.reach()));
        let is_begun = |start: &usize| {
            let rest = &bytes[*start..];
            let mut values = self.secrets.iter().map(|secret| secret.value.as_bytes());
            values.any(|value| rest.len() < value.len() && value.starts_with(rest))
        };
        (from..bytes.len()).find(is_begun).unwrap_or(bytes.len())
    }

    /// How many bytes around a position are needed to tell whether a secret reaches across it.
    pub fn reach(&self) -> usize {
        self.secrets.first().map_or(0, |secret| secret.value.len().saturating_sub(1))
    }
}

/// Masks bytes that come in pieces, wherever these are cut. Bytes that may begin a secret are held back until that is
/// known.
#[derive(Debug)]
pub struct Masker<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
}

/// Whether more bytes may follow.
#[derive(Clone, Copy)]
enum Rest {
    MayCome,
    Complete,
}

impl Masker<'_> {
    /// Masks the next piece.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.secrets.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let at = self.mask(&all, out, Rest::MayCome);
        self.held = all.split_off(at);
    }

    /// Masks what was held back, because no more bytes come.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.mask(&held, out, Rest::Complete);
    }

    /// Masks bytes, and returns how many it took: all, unless more may come.
    fn mask(&self, bytes: &[u8], out: &mut Vec<u8>, rest: Rest) -> usize {
        let Secrets { secrets, finder: Some(finder) } = self.secrets else {
            out.extend_from_slice(bytes);
            return bytes.len();
        };
        let begun_from = |at| match rest {
            Rest::MayCome => self.secrets.begun_from(bytes, at),
            Rest::Complete => bytes.len(),
        };
        let (mut at, mut begun) = (0, begun_from(0));
        loop {
            if begun < at {
                begun = begun_from(at);
            }
            let found = finder.find(Input::new(bytes).range(at..));
            match found {
                // A match that begins where a longer secret may begin has to wait for the next piece.
                Some(found) if found.start() < begun => {
                    out.extend_from_slice(&bytes[at..found.start()]);
                    out.extend_from_slice(secrets[found.pattern()].name.as_bytes());
                    at = found.end();
                }
                _ => {
                    out.extend_from_slice(&bytes[at..begun]);
                    return begun;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secrets(values: &[&str]) -> Secrets {
        let named = values.iter().enumerate().map(|(n, value)| (format!("S{n}"), (*value).to_owned()));
        Secrets::new(named)
    }

    #[test]
    fn the_longer_secret_wins_and_what_is_short_is_none() {
        let secrets = secrets(&["abcd", "abcdef", "abc"]);
        assert_eq!(secrets.masked("abc abcd abcdef"), "abc [S0] [S1]");
        assert_eq!(secrets.masked_bytes(b"abc abcd abcdef abcde"), b"abc [S0] [S1] [S0]e");
    }

    #[test]
    fn of_two_that_overlap_the_first_is_masked_and_debugging_shows_no_value() {
        let secrets = secrets(&["abcd", "cdefgh"]);
        assert_eq!(secrets.masked("abcdefgh"), "[S0]efgh");
        assert_eq!(format!("{secrets:?}"), r#"{"[S1]", "[S0]"}"#);
    }

    #[test]
    fn a_secret_of_several_lines_is_masked_line_by_line_however_it_is_quoted() {
        let key = secrets(&["-----BEGIN KEY-----\nMIIEvQIBADANBg\nab\n-----END KEY-----\n"]);
        let text = "| -----BEGIN KEY-----\n| MIIEvQIBADANBg\n| ab\n| -----END KEY-----\n";
        assert_eq!(key.masked(text), "| [S0]\n| [S0]\n| ab\n| [S0]\n");
    }

    #[test]
    fn half_a_secret_at_a_cut_is_masked_too() {
        let secrets = secrets(&["hush-4711-hüsh"]);
        assert_eq!(secrets.masked_before_cut("token hush-4711"), "token [S0]");
        assert_eq!(secrets.masked_before_cut("token hus"), "token hus");
        assert_eq!(secrets.masked_after_cut("-hüsh and more"), "[S0] and more");
        assert_eq!(secrets.masked_after_cut("sh and hush-4711-hüsh"), "sh and [S0]");
    }

    #[test]
    fn a_secret_that_reaches_across_a_place_is_found() {
        let secrets = secrets(&["hush-4711"]);
        assert_eq!(secrets.across(b"a hush-4711 b", 5), Some((11, "[S0]")));
        assert_eq!([2, 11].map(|at| secrets.across(b"a hush-4711 b", at)), [None, None]);
    }

    proptest! {
        #[test]
        fn pieces_are_masked_like_the_whole(
            text in "[ab ]{0,80}",
            values in proptest::collection::vec("[ab]{4,7}", 0..3),
            cut in 1_usize..9,
        ) {
            let secrets = secrets(&values.iter().map(String::as_str).collect::<Vec<_>>());
            let (mut masker, mut pieces) = (secrets.masker(), Vec::new());
            for piece in text.as_bytes().chunks(cut) {
                masker.push(piece, &mut pieces);
            }
            masker.flush(&mut pieces);
            prop_assert_eq!(&pieces, &secrets.masked_bytes(text.as_bytes()));
            prop_assert_eq!(&pieces, &secrets.masked(&text).into_bytes(), "text and bytes alike");
            let shown = String::from_utf8(pieces).unwrap();
            for value in &values {
                prop_assert!(!shown.contains(value.as_str()), "{shown}");
            }
            let settled = text.len() - secrets.unsettled(text.as_bytes());
            let (one, two) = text.as_bytes().split_at(settled);
            let apart = [secrets.masked_bytes(one), secrets.masked_bytes(two)].concat();
            prop_assert_eq!(apart, shown.as_bytes(), "nothing is lost between two documents");
        }
    }
}
