//! Keeping secrets out of what is shown and sent: the name of a variable stands where its value was.

use hearback_core::message::left_out_text;
use hearback_core::port::sink::Delivery;

/// What is shorter is too common to be a secret, and half of one that is shorter tells little.
const SHORTEST: usize = 4;
/// A line of a secret of several is masked by itself, because text is quoted and cut by lines; short ones are common.
const SHORTEST_LINE: usize = 8;

/// The values that nobody is to see, each with the name that stands for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<Secret>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Secret {
    value: String,
    /// In brackets.
    name: String,
}

impl Secrets {
    /// Those that are long enough, longest first: what begins like another is not cut short by it.
    pub(crate) fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in values {
            let value = value.trim_matches(['\r', '\n']);
            let shortest = if value.contains('\n') { SHORTEST_LINE } else { SHORTEST };
            let lines = value.lines().filter(|line| line.len() >= shortest);
            secrets.extend(lines.map(|line| Secret { value: line.to_owned(), name: format!("[{name}]") }));
        }
        secrets.sort_by_key(|secret: &Secret| std::cmp::Reverse(secret.value.len()));
        Self(secrets)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same text without them.
    pub fn masked(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for Secret { value, name } in self.0.iter().filter(|_| !text.is_empty()) {
            masked = masked.replace(value, name);
        }
        masked
    }

    /// Text that was cut off at its end, perhaps within a secret: the beginning of one is masked as well.
    fn masked_before_cut(&self, text: &str) -> String {
        let masked = self.masked(text);
        match self.begun_at_end(masked.as_bytes()) {
            Some((start, name)) => format!("{}{name}", &masked[..start]),
            None => masked,
        }
    }

    /// Text whose beginning was cut off, perhaps within a secret: the end of one is masked as well.
    pub fn masked_after_cut(&self, text: &str) -> String {
        let masked = self.masked(text);
        match self.ended_at_start(masked.as_bytes()) {
            Some((end, name)) => format!("{name}{}", &masked[end..]),
            None => masked,
        }
    }

    /// Where the beginning of a secret is that ends with these bytes, and what stands for it.
    pub fn begun_at_end(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        self.0.iter().find_map(|Secret { value, name }| {
            let value = value.as_bytes();
            let begun = (SHORTEST..value.len()).rev().find(|len| bytes.ends_with(&value[..*len]))?;
            Some((bytes.len() - begun, name.as_str()))
        })
    }

    /// How far the end of a secret reaches that these bytes begin with, and what stands for it.
    pub fn ended_at_start(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        self.0.iter().find_map(|Secret { value, name }| {
            let value = value.as_bytes();
            let ended =
                (SHORTEST..value.len()).rev().find(|len| bytes.starts_with(&value[value.len() - len..]))?;
            Some((ended, name.as_str()))
        })
    }

    /// What the two parts of an excerpt look like where something was left out between them.
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

    /// A mask for bytes that come in pieces.
    pub fn masker(&self) -> Masker<'_> {
        Masker { secrets: self, held: Vec::new() }
    }

    /// The same bytes without them.
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

    /// How far a secret reaches that was begun before `at`, and what stands for it.
    pub fn across(&self, bytes: &[u8], at: usize) -> Option<(usize, &str)> {
        self.0.iter().find_map(|Secret { value, name }| {
            let starts = at.saturating_sub(value.len() - 1)..at;
            let start = starts.into_iter().find(|start| bytes[*start..].starts_with(value.as_bytes()))?;
            Some((start + value.len(), name.as_str()))
        })
    }

    /// The most that has to be known around a place to tell whether a secret reaches across it.
    pub fn reach(&self) -> usize {
        self.0.first().map_or(0, |secret| secret.value.len().saturating_sub(1))
    }
}

impl Secret {
    fn is_begun_by(&self, bytes: &[u8]) -> bool {
        bytes.len() < self.value.len() && self.value.as_bytes().starts_with(bytes)
    }
}

/// Masks bytes that come in pieces, wherever these are cut. What may be the beginning of a secret is held back until
/// it is known.
#[derive(Debug)]
pub struct Masker<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
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
        let at = self.mask(&all, out, true);
        self.held = all.split_off(at);
    }

    /// Masks what was held back, because nothing more comes of it.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.mask(&held, out, false);
    }

    /// Tells how far it came: everything, unless more may come.
    fn mask(&self, bytes: &[u8], out: &mut Vec<u8>, more: bool) -> usize {
        let secrets = &self.secrets.0;
        let mut begins = [false; 256];
        for secret in secrets {
            begins[usize::from(secret.value.as_bytes()[0])] = true;
        }
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if !begins[usize::from(rest[0])] {
                out.push(rest[0]);
                at += 1;
                continue;
            }
            if more && secrets.iter().any(|secret| secret.is_begun_by(rest)) {
                return at;
            }
            // The longest comes first.
            match secrets.iter().find(|secret| rest.starts_with(secret.value.as_bytes())) {
                Some(secret) => {
                    out.extend_from_slice(secret.name.as_bytes());
                    at += secret.value.len();
                }
                None => {
                    out.push(rest[0]);
                    at += 1;
                }
            }
        }
        at
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
