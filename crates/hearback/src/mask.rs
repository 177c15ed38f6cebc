//! Masking secrets in what is stored, shown and sent. The name of a variable replaces its value; the kind of a
//! credential replaces text that looks like one.

use std::fmt;
use std::ops::Range;

use hearback_core::credentials::{self, Found, LONGEST, LOOK_BACK, Rest, find_credential};
use hearback_core::message::left_out_text;
use hearback_core::port::sink::Delivery;
use hearback_core::{CommandLine, OsText, SmallSort};

/// A shorter text is too common to be a secret, and a shorter part of a secret reveals little.
const SHORTEST: usize = 4;
/// Each line of a secret with several lines is masked by itself, because text is quoted and cut by lines. Shorter lines
/// are too common.
const SHORTEST_LINE: usize = 8;

/// What to mask: the values of variables, each with the name that replaces it, and text that looks like a credential.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The longest first: a secret that is the beginning of another must not hide the rest of it.
    secrets: Vec<Secret>,
    /// For each byte, the secrets that begin with it: their second bytes, and their places in this list. Empty if there
    /// are no secrets.
    by_first_byte: Vec<Vec<(u8, usize)>>,
    /// Whether credentials are masked that no variable names.
    credentials: bool,
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
        secrets.small_sort_by_key(|secret: &Secret| std::cmp::Reverse(secret.value.len()));
        let mut by_first_byte = Vec::new();
        if !secrets.is_empty() {
            by_first_byte.resize(256, Vec::new());
        }
        for (place, secret) in secrets.iter().enumerate() {
            let value = secret.value.as_bytes();
            by_first_byte[usize::from(value[0])].push((value[1], place));
        }
        Self { secrets, by_first_byte, credentials: false }
    }

    /// The same, which masks text that looks like a credential, or does not.
    #[must_use]
    pub(crate) fn with_credentials(mut self, masked: bool) -> Self {
        self.credentials = masked;
        self
    }

    /// Whether nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && !self.credentials
    }

    /// The text with all secrets masked. If two overlap, the one that begins first is masked, and of those the longest.
    pub fn masked(&self, text: &str) -> String {
        // Both a value and a credential begin and end between characters.
        String::from_utf8(self.masked_bytes(text.as_bytes())).unwrap_or_default()
    }

    /// Masks text whose end was cut off, perhaps within a secret: the beginning of a secret is masked as well.
    pub(crate) fn masked_before_cut(&self, text: &str) -> String {
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
    fn begun_at_end(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        let named = self.secrets.iter().find_map(|Secret { value, name }| {
            let value = value.as_bytes();
            let begun = (SHORTEST..value.len()).rev().find(|len| bytes.ends_with(&value[..*len]))?;
            Some((bytes.len() - begun, name.as_str()))
        });
        named.or_else(|| self.credential_at_end(bytes, bytes.len().saturating_sub(LONGEST)))
    }

    fn credential_at_end(&self, bytes: &[u8], mut at: usize) -> Option<(usize, &'static str)> {
        if !self.credentials {
            return None;
        }
        loop {
            match find_credential(bytes, at, Rest::MayCome) {
                Found::At { range, .. } => at = range.end,
                Found::Undecided { start, mask: Some(mask) } => return Some((start, mask)),
                Found::Undecided { start, mask: None } => at = start + 1,
                Found::None => return None,
            }
        }
    }

    /// If these bytes begin with the end of a secret: where that ends, and its name. The end of a credential that no
    /// variable names looks like nothing: such text is not cut in two in the first place.
    fn ended_at_start(&self, bytes: &[u8]) -> Option<(usize, &str)> {
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
        let between = left_out_text(output.omitted, &delivery.job);
        if let Some((head, tail)) = delivery.text.split_once(&between) {
            let head = head.strip_suffix('\n').unwrap_or(head);
            let tail = tail.strip_prefix("\n| ").map(|tail| format!("| {}", self.masked_after_cut(tail)));
            delivery.text =
                format!("{}\n{between}\n{}", self.masked_before_cut(head), tail.unwrap_or_default());
        }
    }

    /// A command as it is recorded; none if nothing in it is a secret.
    pub(crate) fn masked_command(&self, command: &CommandLine) -> Option<CommandLine> {
        let masked = match command {
            CommandLine::Argv(words) => {
                CommandLine::Argv(words.iter().map(|word| self.masked_word(word)).collect())
            }
            CommandLine::Shell { shell, program } => {
                CommandLine::Shell { shell: self.masked(shell), program: program.clone() }
            }
            CommandLine::Unknown(_) => return None,
        };
        let masked = if self.credentials { credentials::mask_command(&masked) } else { masked };
        (masked != *command).then_some(masked)
    }

    fn masked_word(&self, word: &OsText) -> OsText {
        let text = word.to_string();
        match self.masked(&text) {
            masked if masked != text => OsText::Text(masked),
            _ => word.clone(),
        }
    }

    /// Masks bytes that come in pieces.
    pub fn masker(&self) -> Masker<'_> {
        self.masker_after(&[])
    }

    /// Masks bytes that come in pieces, after bytes that were masked before: a name before a value shows what that is.
    pub fn masker_after(&self, before: &[u8]) -> Masker<'_> {
        let before = before[before.len().saturating_sub(LOOK_BACK)..].to_vec();
        Masker { secrets: self, before, held: Vec::new(), is_after_gap: false }
    }

    /// The bytes with all secrets masked.
    pub fn masked_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut masker, mut out) = (self.masker(), Vec::with_capacity(bytes.len()));
        masker.finish_with(bytes, &mut out);
        out
    }

    /// If a secret reaches across `at`: where it ends, and its name.
    pub fn across(&self, bytes: &[u8], at: usize) -> Option<(usize, &str)> {
        let named = self.secrets.iter().find_map(|Secret { value, name }| {
            let starts = at.saturating_sub(value.len() - 1)..at;
            let start = starts.into_iter().find(|start| bytes[*start..].starts_with(value.as_bytes()))?;
            Some((start + value.len(), name.as_str()))
        });
        let looks_like_one = || credentials::credential_across(bytes, at).filter(|_| self.credentials);
        named.or_else(|| looks_like_one().map(|(range, mask)| (range.end, mask)))
    }

    /// The first place from `at` on from which the rest may be the beginning of a named secret; the end if there is
    /// none.
    fn begun_from(&self, bytes: &[u8], at: usize) -> usize {
        let from = at.max(bytes.len().saturating_sub(self.longest()));
        let is_begun = |start: &usize| {
            let rest = &bytes[*start..];
            let mut values = self.secrets.iter().map(|secret| secret.value.as_bytes());
            values.any(|value| rest.len() < value.len() && value.starts_with(rest))
        };
        (from..bytes.len()).find(is_begun).unwrap_or(bytes.len())
    }

    /// The length of the longest named secret, but for its last byte.
    fn longest(&self) -> usize {
        self.secrets.first().map_or(0, |secret| secret.value.len().saturating_sub(1))
    }

    /// How many bytes around a position are needed to tell whether a secret reaches across it.
    pub fn reach(&self) -> usize {
        self.longest().max(if self.credentials { LONGEST + LOOK_BACK } else { 0 })
    }
}

/// Masks bytes that come in pieces, wherever these are cut. Bytes that may begin a secret are held back until that is
/// known.
#[derive(Debug)]
pub struct Masker<'a> {
    secrets: &'a Secrets,
    /// The last bytes that were masked, as they were.
    before: Vec<u8>,
    held: Vec<u8>,
    /// Whether bytes are missing before the next ones.
    is_after_gap: bool,
}

impl Masker<'_> {
    /// Masks the next piece.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.mask_next(bytes, out, Rest::MayCome);
    }

    /// Masks what was held back, because no more bytes come.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.mask_next(&[], out, Rest::Complete);
    }

    /// Masks the last piece.
    pub fn finish_with(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.mask_next(bytes, out, Rest::Complete);
    }

    /// Says that bytes are missing here. Half a secret on either side of them is masked like a whole one.
    pub fn gap(&mut self, out: &mut Vec<u8>) {
        let from = self.before.len();
        let all = [&self.before[..], &self.held].concat();
        if let Some((start, mask)) = self.secrets.credential_at_end(&all, from) {
            self.mask(&all[..start], from, out, Rest::Complete);
            out.extend_from_slice(mask.as_bytes());
        } else {
            let mut rest = Vec::new();
            self.mask(&all, from, &mut rest, Rest::Complete);
            if let Some((start, name)) = self.secrets.begun_at_end(&rest) {
                rest.splice(start.., name.bytes());
            }
            out.extend_from_slice(&rest);
        }
        (self.before, self.held, self.is_after_gap) = (Vec::new(), Vec::new(), true);
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn mask_next(&mut self, bytes: &[u8], out: &mut Vec<u8>, rest: Rest) {
        if self.secrets.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        let mut bytes = bytes;
        if self.is_after_gap && !bytes.is_empty() {
            self.is_after_gap = false;
            if let Some((end, name)) = self.secrets.ended_at_start(bytes) {
                out.extend_from_slice(name.as_bytes());
                (self.before, bytes) = (bytes[..end].to_vec(), &bytes[end..]);
            }
        }
        let from = self.before.len();
        let all = [&self.before, &self.held, bytes].concat();
        let at = self.mask(&all, from, out, rest);
        self.held = all[at..].to_vec();
        self.before = all[at.saturating_sub(LOOK_BACK)..at].to_vec();
    }

    /// Masks the bytes after `from`, and returns how far it came: to the end, unless more may come.
    fn mask(&self, bytes: &[u8], from: usize, out: &mut Vec<u8>, rest: Rest) -> usize {
        let mut at = from;
        let (mut named, mut credential) = (self.next_named(bytes, at), self.next_credential(bytes, at, rest));
        let mut begun = self.begun_from(bytes, at, rest);
        loop {
            if named.as_ref().is_some_and(|found| found.range.start < at) {
                named = self.next_named(bytes, at);
            }
            if credential.start().is_some_and(|start| start < at) {
                credential = self.next_credential(bytes, at, rest);
            }
            if begun < at {
                begun = self.begun_from(bytes, at, rest);
            }
            let undecided = credential.undecided_from().unwrap_or(bytes.len()).min(begun);
            let (first, other) = first_of(named.as_ref(), credential.found());
            // What may overlap with something that is not complete has to wait for the next piece: a match that begins
            // where a longer secret may begin, and a match within which another may begin.
            let Some(first) = first.filter(|first| first.range.start < undecided) else {
                out.extend_from_slice(&bytes[at..undecided]);
                return undecided;
            };
            out.extend_from_slice(&bytes[at..first.range.start]);
            if credential.undecided_from().is_some_and(|start| start < first.range.end)
                || (first.is_credential && begun < first.range.end)
            {
                return first.range.start;
            }
            out.extend_from_slice(first.mask.as_bytes());
            // The end of one that overlaps with it is not shown either.
            let overlap =
                other.filter(|other| other.range.start < first.range.end).map(|other| other.range.end);
            at = overlap.map_or(first.range.end, |end| end.max(first.range.end));
        }
    }

    fn next_named(&self, bytes: &[u8], at: usize) -> Option<Match<'_>> {
        let Secrets { secrets, by_first_byte, .. } = self.secrets;
        if secrets.is_empty() {
            return None;
        }
        bytes.get(at..)?.windows(2).zip(at..).find_map(|(pair, start)| {
            let begun = by_first_byte[usize::from(pair[0])].iter().filter(|(second, _)| *second == pair[1]);
            let mut begun = begun.map(|(_, place)| &secrets[*place]);
            let Secret { value, name } =
                begun.find(|secret| bytes[start..].starts_with(secret.value.as_bytes()))?;
            Some(Match { range: start..start + value.len(), mask: name, is_credential: false })
        })
    }

    fn next_credential(&self, bytes: &[u8], at: usize, rest: Rest) -> NextCredential {
        if !self.secrets.credentials {
            return NextCredential::None;
        }
        match find_credential(bytes, at, rest) {
            Found::At { range, mask } => NextCredential::At(Match { range, mask, is_credential: true }),
            Found::Undecided { start, .. } => NextCredential::From(start),
            Found::None => NextCredential::None,
        }
    }

    fn begun_from(&self, bytes: &[u8], at: usize, rest: Rest) -> usize {
        match rest {
            Rest::MayCome => self.secrets.begun_from(bytes, at),
            Rest::Complete => bytes.len(),
        }
    }
}

/// A secret in some bytes.
struct Match<'a> {
    range: Range<usize>,
    mask: &'a str,
    is_credential: bool,
}

/// The next credential, if there is one, or where one may begin.
enum NextCredential {
    None,
    At(Match<'static>),
    From(usize),
}

impl NextCredential {
    fn found(&self) -> Option<&Match<'static>> {
        match self {
            Self::At(found) => Some(found),
            _ => None,
        }
    }

    fn undecided_from(&self) -> Option<usize> {
        match self {
            Self::From(start) => Some(*start),
            _ => None,
        }
    }

    fn start(&self) -> Option<usize> {
        self.undecided_from().or_else(|| self.found().map(|found| found.range.start))
    }
}

/// The match that begins first, and of those the longest; then the other. A name says more than a kind.
fn first_of<'m, 'a>(
    named: Option<&'m Match<'a>>,
    credential: Option<&'m Match<'a>>,
) -> (Option<&'m Match<'a>>, Option<&'m Match<'a>>) {
    match (named, credential) {
        (Some(named), Some(credential)) => {
            let order = |found: &Match<'_>| (found.range.start, std::cmp::Reverse(found.range.end));
            if order(named) <= order(credential) {
                (Some(named), Some(credential))
            } else {
                (Some(credential), Some(named))
            }
        }
        (named, credential) => (named.or(credential), None),
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

    #[test]
    fn a_name_and_a_credential_that_overlap_are_masked_together() {
        let secrets = secrets(&["hunter2-and", "abc Bearer"]).with_credentials(true);
        assert_eq!(secrets.masked("PASSWORD=hunter2-and more"), "PASSWORD=[S0] more", "a name says more");
        assert_eq!(secrets.masked("PASSWORD=hunter2-and-more"), "PASSWORD=[masked: password]");
        assert_eq!(secrets.masked("TOKEN=hunter2-and"), "TOKEN=[S0]");
        assert_eq!(secrets.masked("TOKEN=abc Bearer x"), "TOKEN=[S1] x");
        assert_eq!(secrets.masked("ghp_0123456789abcdefghijabc Bearer x"), "[masked: GitHub token] x");
    }

    #[test]
    fn scenario_133_a_command_is_masked_word_by_word() {
        let secrets = secrets(&["hush-4711"]).with_credentials(true);
        let argv = |words: &[&str]| CommandLine::Argv(words.iter().map(|word| OsText::from(*word)).collect());
        assert_eq!(
            secrets.masked_command(&argv(&[
                "x",
                "hush-4711",
                "--password",
                "swordfish",
                "--token=abcd",
                "-v"
            ])),
            Some(argv(&["x", "[S0]", "--password", "[masked: password]", "--token=[masked: token]", "-v"]))
        );
        assert_eq!(secrets.masked_command(&argv(&["docker", "login", "--password-stdin", "me"])), None);
        assert_eq!(secrets.clone().with_credentials(false).masked_command(&argv(&["--token=abcd"])), None);
        let broken = OsText::Bytes { bytes: b"PASSWORD=\xffsword".to_vec() };
        let command = CommandLine::Argv(vec!["env".into(), broken, OsText::Bytes { bytes: vec![0xff] }]);
        let Some(CommandLine::Argv(masked)) = secrets.masked_command(&command) else { panic!("not masked") };
        assert_eq!(masked[1], OsText::from("PASSWORD=[masked: password]"));
        assert_eq!(masked[2], OsText::Bytes { bytes: vec![0xff] }, "the rest keeps every byte");
    }

    /// What no reader may see, with what shows that it is a secret.
    fn hidden() -> impl Strategy<Value = (String, String)> {
        let with = |before: &'static str, form: &'static str, after: &'static str| {
            form.prop_map(move |secret: String| (format!("{before}{secret}{after}"), secret))
        };
        prop_oneof![
            Just(("hush-4711-hush-4711 ".to_owned(), "hush-4711-hush-4711".to_owned())),
            with("", "ghp_[A-Z]{5}[0-9][a-z0-9]{30}", " "),
            with("", "sk-proj-[a-z]{20}[0-9][A-Za-z0-9]{20}", "\n"),
            with("PASSWORD=", "[a-zA-Z0-9!#]{9,40}", " "),
            with("Authorization: Bearer ", "[a-z]{9}[a-zA-Z0-9._-]{10,200}", "\n"),
            with("https://me:", "[a-z0-9]{9,30}", "@host/"),
            "[a-zA-Z0-9+]{64}".prop_map(|line| {
                let key =
                    format!("-----BEGIN PRIVATE KEY-----\n{line}\n{line}\nab==\n-----END PRIVATE KEY-----\n");
                (key, line)
            }),
        ]
    }

    /// A part of a secret that is shown and longer than a few characters.
    fn shown_part<'a>(shown: &str, secret: &'a str) -> Option<&'a str> {
        const TOO_MUCH: usize = 7;
        (TOO_MUCH..=secret.len()).map(|end| &secret[end - TOO_MUCH..end]).find(|part| shown.contains(part))
    }

    proptest! {
        // Each case cuts its text at every byte.
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn scenario_133_no_cut_shows_a_part_of_a_secret(
            words in proptest::collection::vec(
                prop_oneof!["[ .,;\n]{1,4}", "= {0,40}", "-{1,3} ", "\n\n"].prop_map(|text| (text, String::new()))
                    .boxed()
                    .prop_union(hidden().boxed()),
                1..8,
            ),
            pieces in 1_usize..30,
            head in 0_u64..150,
            tail in 0_u64..150,
        ) {
            let text: String = words.iter().map(|(text, _)| text.as_str()).collect();
            let hidden: Vec<_> = words.iter().map(|(_, secret)| secret).filter(|secret| !secret.is_empty()).collect();
            let secrets = secrets(&["hush-4711-hush-4711"]).with_credentials(true);
            let check = |how: &str, shown: &str| {
                for secret in &hidden {
                    let part = shown_part(shown, secret);
                    prop_assert!(part.is_none(), "{how}: {part:?} of {secret:?} in {shown:?} from {text:?}");
                }
                Ok(())
            };
            let whole = secrets.masked(&text);
            check("whole", &whole)?;
            let (mut masker, mut streamed) = (secrets.masker(), Vec::new());
            for piece in text.as_bytes().chunks(pieces) {
                masker.push(piece, &mut streamed);
            }
            masker.flush(&mut streamed);
            prop_assert_eq!(String::from_utf8(streamed).unwrap(), whole);
            // A reader that begins anywhere.
            for at in 0..=text.len() {
                let (from, instead) = secrets.across(text.as_bytes(), at).unwrap_or((at, ""));
                let mut shown = instead.as_bytes().to_vec();
                secrets.masker_after(&text.as_bytes()[..from]).finish_with(&text.as_bytes()[from..], &mut shown);
                check("from there on", &String::from_utf8(shown).unwrap())?;
            }
            // What is around a gap that begins or ends anywhere.
            for at in 0..=text.len() {
                let (mut masker, mut shown) = (secrets.masker(), Vec::new());
                masker.push(&text.as_bytes()[..at], &mut shown);
                masker.gap(&mut shown);
                check("before a gap", &String::from_utf8(shown).unwrap())?;
            }
            // An excerpt.
            let file = std::io::Cursor::new(text.clone().into_bytes());
            let excerpt = hearback_store::Log::new(Box::new(file), None, None).excerpt(head, tail).unwrap();
            let (head, tail) = (String::from_utf8(excerpt.head).unwrap(), String::from_utf8(excerpt.tail).unwrap());
            check("head", &secrets.masked_before_cut(&head))?;
            check("tail", &secrets.masked_after_cut(&tail))?;
        }
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
        }
    }
}
