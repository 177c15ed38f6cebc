//! Text that looks like a credential: a token, a key, a password. Found by its form alone, because nobody named it.
//!
//! Written by hand, without expressions or tables that a program would have to build first: a supervisor masks with it,
//! too. Nothing here looks back further than [`LOOK_BACK`] or across the beginning of a line, and nothing that is found
//! is longer than [`LONGEST`], so that text that comes in pieces can be masked with little of it held back.

use std::borrow::Cow;
use std::ops::Range;

use crate::{CommandLine, OsText};

/// How many bytes before a place decide, at most, whether a credential begins there.
pub const LOOK_BACK: usize = 128;
/// The length of the longest credential: a private key.
pub const LONGEST: usize = 16 * 1024;
/// The length of the longest credential of one word. What goes on after that is something else.
const LONGEST_WORD: usize = 4 * 1024;
/// A shorter value is too common to be a secret.
const SHORTEST: usize = 4;

/// Whether more bytes may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The bytes at the end may be the beginning of something.
    MayCome,
    /// These are all.
    Complete,
}

/// The next credential in some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// There is none.
    None,
    /// It is here.
    At {
        /// Which bytes.
        range: Range<usize>,
        /// What replaces it.
        mask: &'static str,
    },
    /// More bytes have to come before it is known whether one begins here, or where it ends.
    Undecided {
        /// Where it may begin.
        start: usize,
        /// What replaces it, if so much of it is there that it is one, unless it turns out to be shorter than any.
        mask: Option<&'static str>,
    },
}

/// The text with every credential masked.
pub fn mask_credentials(text: &str) -> Cow<'_, str> {
    let mut masked = String::new();
    let mut at = 0;
    while let Found::At { range, mask } = find_credential(text.as_bytes(), at, Rest::Complete) {
        // Credentials begin and end next to characters of one byte.
        masked.push_str(&text[at..range.start]);
        masked.push_str(mask);
        at = range.end;
    }
    if at == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(&text[at..]);
    Cow::Owned(masked)
}

/// The command with every credential masked. The word after an option such as `--password` is one, whatever it looks
/// like.
pub fn mask_command(command: &CommandLine) -> CommandLine {
    match command {
        CommandLine::Argv(words) => {
            let mut named = None;
            let masked = words.iter().map(|word| {
                let text = word.to_string();
                let name =
                    named.take().filter(|_| text.len() >= SHORTEST && !text.starts_with(['-', '[', '$']));
                named = names_credential(&text);
                match mask_credentials(&text) {
                    Cow::Owned(masked) => OsText::Text(masked),
                    Cow::Borrowed(_) => name.map_or_else(|| word.clone(), OsText::from),
                }
            });
            CommandLine::Argv(masked.collect())
        }
        CommandLine::Shell { shell, program } => {
            CommandLine::Shell { shell: mask_credentials(shell).into_owned(), program: program.clone() }
        }
        CommandLine::Unknown(_) => command.clone(),
    }
}

/// What replaces the word after this one, if this is an option that takes a credential: `--password`, `--api-key`.
fn names_credential(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix("--")?;
    let whole = name.bytes().all(is_name);
    named(name.as_bytes()).filter(|_| whole).map(|name| name.mask)
}

/// The credential that a cut at `at` would divide, and what replaces it.
pub fn credential_across(bytes: &[u8], at: usize) -> Option<(Range<usize>, &'static str)> {
    let bytes = &bytes[..bytes.len().min(at.saturating_add(LONGEST))];
    let mut from = at.saturating_sub(LONGEST);
    while from < at {
        match find_credential(bytes, from, Rest::Complete) {
            Found::At { range, mask } if range.end > at => {
                return (range.start < at).then_some((range, mask));
            }
            Found::At { range, .. } => from = range.end,
            Found::Undecided { .. } | Found::None => return None,
        }
    }
    None
}

/// Where text that would be cut at `at` is cut instead, so that what is before it can be masked by itself: at most
/// there, and not within a credential.
pub fn cut_before(bytes: &[u8], at: usize) -> usize {
    let bytes = &bytes[..bytes.len().min(at.saturating_add(LONGEST))];
    let mut from = at.saturating_sub(LONGEST);
    while let Found::At { range, .. } = find_credential(bytes, from, Rest::Complete) {
        if range.start >= at {
            break;
        }
        let alone = find_credential(&bytes[..at], from, Rest::Complete);
        if !matches!(alone, Found::At { range: alone, .. } if alone == range) {
            return range.start;
        }
        from = range.end;
    }
    at
}

/// Where text that would be cut at `at` is cut instead, so that what is after it can be masked by itself: at least
/// there, not within a credential, and not between a credential and the name that shows what it is.
pub fn cut_after(bytes: &[u8], mut at: usize) -> usize {
    if let Some((range, _)) = credential_across(bytes, at) {
        at = range.end;
    }
    let mut from = at;
    while let Found::At { range, .. } = find_credential(bytes, from, Rest::Complete) {
        if range.start > at + LOOK_BACK {
            break;
        }
        let alone = find_credential(&bytes[at..], from - at, Rest::Complete);
        if !matches!(alone, Found::At { range: alone, .. } if alone == (range.start - at..range.end - at)) {
            at = range.end;
        }
        from = range.end;
    }
    at
}

/// Finds the first credential that begins at `from` or later. The bytes before `from` are looked back at.
pub fn find_credential(bytes: &[u8], from: usize, rest: Rest) -> Found {
    for start in from..bytes.len() {
        let before = if start == 0 { b'\n' } else { bytes[start - 1] };
        // All of them begin after something that is not part of a word, except the line that begins a key.
        if is_word(before) && bytes[start] != b'-' {
            continue;
        }
        let view = View { bytes, start, before, rest };
        match view.verdict() {
            Verdict::No => {}
            Verdict::Yes(end, mask) => return Found::At { range: start..end, mask },
            Verdict::Undecided(mask) => return Found::Undecided { start, mask },
        }
    }
    Found::None
}

/// One place, and what is around it.
struct View<'a> {
    bytes: &'a [u8],
    start: usize,
    before: u8,
    rest: Rest,
}

enum Verdict {
    No,
    /// It is one, up to here.
    Yes(usize, &'static str),
    Undecided(Option<&'static str>),
}

const PASSWORD: &str = "[masked: password]";
const TOKEN: &str = "[masked: token]";
const SECRET: &str = "[masked: secret]";
const API_KEY: &str = "[masked: API key]";
const PRIVATE_KEY: &str = "[masked: private key]";

/// A form of token that is known by how it begins.
struct Form {
    prefix: &'static [u8],
    /// The least number of characters after the prefix.
    least: usize,
    /// The greatest number, where all have the same.
    most: usize,
    of: fn(u8) -> bool,
    is_one: fn(&[u8]) -> bool,
    mask: &'static str,
}

const fn form(prefix: &'static str, least: usize, of: fn(u8) -> bool, mask: &'static str) -> Form {
    Form { prefix: prefix.as_bytes(), least, most: LONGEST_WORD, of, is_one: has_digit, mask }
}

const GITHUB: &str = "[masked: GitHub token]";
const SLACK: &str = "[masked: Slack token]";
const AWS: &str = "[masked: AWS key]";

const FORMS: [Form; 26] = [
    Form { is_one: is_random, ..form("sk-", 17, is_token, API_KEY) },
    form("sk_live_", 16, is_alphanumeric, API_KEY),
    form("sk_test_", 16, is_alphanumeric, API_KEY),
    form("rk_live_", 16, is_alphanumeric, API_KEY),
    form("ghp_", 20, is_alphanumeric, GITHUB),
    form("gho_", 20, is_alphanumeric, GITHUB),
    form("ghu_", 20, is_alphanumeric, GITHUB),
    form("ghs_", 20, is_alphanumeric, GITHUB),
    form("ghr_", 20, is_alphanumeric, GITHUB),
    form("github_pat_", 20, is_word, GITHUB),
    form("glpat-", 20, is_token, "[masked: GitLab token]"),
    Form { most: 16, ..form("AKIA", 16, is_capital, AWS) },
    Form { most: 16, ..form("ASIA", 16, is_capital, AWS) },
    form("xoxa-", 10, is_token, SLACK),
    form("xoxb-", 10, is_token, SLACK),
    form("xoxc-", 10, is_token, SLACK),
    form("xoxd-", 10, is_base64, SLACK),
    form("xoxe-", 10, is_token, SLACK),
    form("xoxp-", 10, is_token, SLACK),
    form("xoxr-", 10, is_token, SLACK),
    form("xoxs-", 10, is_token, SLACK),
    form("xapp-", 10, is_token, SLACK),
    Form { most: 35, ..form("AIza", 35, is_token, API_KEY) },
    form("npm_", 36, is_alphanumeric, TOKEN),
    form("hf_", 30, is_alphanumeric, TOKEN),
    form("whsec_", 20, is_base64, SECRET),
];

/// The longest prefix: no other form needs more bytes before it is known that it is none.
const LONGEST_PREFIX: usize = 11;

impl View<'_> {
    fn verdict(&self) -> Verdict {
        let by_form = match self.bytes[self.start] {
            b's' | b'r' | b'g' | b'A' | b'x' | b'n' | b'h' | b'w' => self.known_form(),
            b'e' => self.web_token(),
            b'-' => self.private_key(),
            _ => Verdict::No,
        };
        if !matches!(by_form, Verdict::No) {
            return by_form;
        }
        match self.before {
            b'=' | b'"' | b'\'' | b' ' | b'\t' | b':' => self.by_what_is_before(),
            _ => Verdict::No,
        }
    }

    fn after(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// What may belong to a name before the place: the end of its line.
    fn line_before(&self) -> &[u8] {
        let before = &self.bytes[self.start.saturating_sub(LOOK_BACK)..self.start];
        let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        &before[line..]
    }

    /// How many bytes from the place on are like that; none if more may come.
    fn run(&self, is_part: impl Fn(u8) -> bool, most: usize) -> Option<usize> {
        let after = self.after();
        let mut len = after.iter().take(most).take_while(|byte| is_part(**byte)).count();
        let is_known = len < after.len() || len == most || self.rest == Rest::Complete;
        // Where it is cut because it is too long, no character is.
        while after.get(len).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
            len -= 1;
        }
        is_known.then_some(len)
    }

    fn known_form(&self) -> Verdict {
        let after = self.after();
        let begun = &after[..after.len().min(LONGEST_PREFIX)];
        let mut verdict = Verdict::No;
        for form in &FORMS {
            if after.starts_with(form.prefix) {
                return self.rest_of(form);
            }
            if self.rest == Rest::MayCome && begun.len() == after.len() && form.prefix.starts_with(begun) {
                verdict = Verdict::Undecided(None);
            }
        }
        verdict
    }

    fn rest_of(&self, form: &Form) -> Verdict {
        // `desk-1`, `--sk-1`: part of a longer name.
        if self.before == b'-' {
            return Verdict::No;
        }
        let most = form.prefix.len() + form.most;
        let is_part = |at: usize, byte| at < form.prefix.len() || (form.of)(byte);
        let after = self.after();
        let len = after.iter().enumerate().take(most).take_while(|(at, byte)| is_part(*at, **byte)).count();
        let has_fixed_length = form.most < LONGEST_WORD;
        let may_go_on = len == after.len() && (len < most || has_fixed_length);
        if may_go_on && self.rest == Rest::MayCome {
            return Verdict::Undecided(Some(form.mask));
        }
        let random = &after[form.prefix.len()..len];
        // Where all have the same length, something longer is something else.
        let goes_on = has_fixed_length && after.get(len).is_some_and(|byte| is_alphanumeric(*byte));
        if random.len() >= form.least && !goes_on && (form.is_one)(random) {
            Verdict::Yes(self.start + len, form.mask)
        } else {
            Verdict::No
        }
    }

    /// A JSON Web Token: three parts of base64, of which the first is JSON.
    fn web_token(&self) -> Verdict {
        const BEGIN: &[u8] = b"eyJ";
        let after = self.after();
        let is_begun = after.starts_with(BEGIN) || BEGIN.starts_with(after);
        if !is_begun || self.before == b'-' {
            return Verdict::No;
        }
        let Some(len) = self.run(|byte| is_token(byte) || byte == b'.', LONGEST_WORD) else {
            return Verdict::Undecided(after.starts_with(BEGIN).then_some(TOKEN));
        };
        let mut parts = after[..len].split(|byte| *byte == b'.');
        let [header, payload, signature] =
            [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
        if header.len() >= 10 && payload.len() >= 10 && signature.len() >= 10 && after.starts_with(BEGIN) {
            Verdict::Yes(self.start + header.len() + payload.len() + signature.len() + 2, TOKEN)
        } else {
            Verdict::No
        }
    }

    /// A block of lines in base64 between a line that begins it and one that ends it. It may be quoted, or written as
    /// one line with `\n` for line ends.
    fn private_key(&self) -> Verdict {
        const BEGIN: &[u8] = b"-----BEGIN ";
        const END: &[u8] = b"-----END ";
        const LONGEST_LABEL: usize = 48;
        let all = self.after();
        let after = &all[..all.len().min(LONGEST)];
        let more_may_come = self.rest == Rest::MayCome && after.len() < LONGEST;
        if !after.starts_with(BEGIN) {
            let is_begun = more_may_come && BEGIN.starts_with(after);
            return if is_begun { Verdict::Undecided(None) } else { Verdict::No };
        }
        let Some(mut at) = label_end(after, BEGIN.len(), LONGEST_LABEL) else {
            let is_cut =
                more_may_come && after.len() < BEGIN.len() + LONGEST_LABEL && !after.contains(&b'\n');
            return if is_cut { Verdict::Undecided(None) } else { Verdict::No };
        };
        if !contains(&after[..at], b"PRIVATE KEY") {
            return Verdict::No;
        }
        let (mut end, mut in_body) = (at, false);
        loop {
            at += between_lines(&after[at..]);
            let rest = &after[at..];
            if let Some(closed) =
                rest.strip_prefix(END).and_then(|_| label_end(rest, END.len(), LONGEST_LABEL))
            {
                return Verdict::Yes(self.start + at + closed, PRIVATE_KEY);
            }
            let line = &rest[..rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())];
            // What is there may end in the middle of the block, of its last line, or of a line end.
            let is_cut = line.len() == rest.len()
                && (!in_body || END.starts_with(rest) || rest.starts_with(END) || rest == b"\\");
            if more_may_come && is_cut {
                return Verdict::Undecided(Some(PRIVATE_KEY));
            }
            if !in_body && contains(line, b": ") && line[0].is_ascii_uppercase() {
                at += line.len();
                end = at;
                continue;
            }
            in_body = true;
            let run = line.iter().take_while(|byte| is_base64(**byte)).count();
            let spaces = line[run..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            // A word with another word after it is no line of a key.
            let is_prose = spaces > 0 && !matches!(line.get(run + spaces), None | Some(b'\r' | b'\\'));
            if run == 0 || is_prose {
                return Verdict::Yes(self.start + end, PRIVATE_KEY);
            }
            at += run;
            if more_may_come && at + spaces == after.len() {
                return Verdict::Undecided(Some(PRIVATE_KEY));
            }
            end = at;
        }
    }

    /// What a name before it makes a credential: `PASSWORD=…`, `Bearer …`, `https://user:…@host`.
    fn by_what_is_before(&self) -> Verdict {
        // A variable, a placeholder or a mask is none.
        if matches!(
            self.after()[0],
            b'$' | b'%' | b'<' | b'{' | b'[' | b'(' | b'*' | b'`' | b'=' | b'\n' | b'\r'
        ) {
            return Verdict::No;
        }
        let line = self.line_before();
        match self.before {
            b'=' => self.assigned(&line[..line.len() - 1]),
            b'"' | b'\'' => self.quoted(line),
            b':' => match in_address(line) {
                true => self.address(),
                false => self.header(line),
            },
            _ => match self.header(line) {
                Verdict::No => self.option(line),
                found => found,
            },
        }
    }

    fn assigned(&self, name: &[u8]) -> Verdict {
        let Some(name) = named(name).filter(|_| !matches!(self.after()[0], b'"' | b'\'')) else {
            return Verdict::No;
        };
        match self.run(is_value, LONGEST_WORD) {
            None => Verdict::Undecided(Some(name.mask)),
            Some(len) => self.value(len, &name),
        }
    }

    fn value(&self, len: usize, name: &Name) -> Verdict {
        let value = &self.after()[..len];
        let is_number = name.mask != PASSWORD && value.len() < 8 && value.iter().all(u8::is_ascii_digit);
        let is_one = if name.is_certain { is_no_word(value) && !is_number } else { is_likely(value) };
        if is_one { Verdict::Yes(self.start + len, name.mask) } else { Verdict::No }
    }

    /// In quotes: `PASSWORD="…"`, `"password": "…"`, also where the quotes are escaped.
    fn quoted(&self, line: &[u8]) -> Verdict {
        let quote = self.before;
        let before = &line[..line.len() - 1];
        let is_escaped = before.ends_with(b"\\");
        let before = before.strip_suffix(b"\\").unwrap_or(before);
        let name = match before.split_last() {
            Some((b'=', name)) => named(name),
            Some((b' ' | b':', _)) => {
                let name = before.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
                let name = name.and_then(|name| name.strip_suffix(b"\"").or_else(|| name.strip_suffix(b"'")));
                name.and_then(|name| named(name.strip_suffix(b"\\").unwrap_or(name)))
            }
            _ => None,
        };
        let Some(name) = name else { return Verdict::No };
        let ends = |byte| byte == quote || byte == b'\n' || (is_escaped && byte == b'\\');
        match self.run(|byte| !ends(byte), LONGEST_WORD) {
            None => Verdict::Undecided(Some(name.mask)),
            Some(len) => self.value(len, &Name { is_certain: true, ..name }),
        }
    }

    /// `Authorization: Bearer …`, `Bearer …`, `X-Api-Key: …`.
    fn header(&self, line: &[u8]) -> Verdict {
        const SCHEMES: [&[u8]; 8] =
            [b"bearer", b"basic", b"token", b"digest", b"negotiate", b"apikey", b"ntlm", b"aws4-hmac-sha256"];
        const HEADERS: [&[u8]; 6] =
            [b"authorization:", b"x-api-key:", b"api-key:", b"apikey:", b"private-token:", b"x-auth-token:"];
        let before = line.trim_ascii_end();
        let is_header = |before: &[u8]| HEADERS.iter().any(|name| ends_with_word(before, name));
        let scheme =
            SCHEMES.iter().find(|scheme| before.len() < line.len() && ends_with_word(before, scheme));
        if let Some(scheme) = scheme {
            let name = before[..before.len() - scheme.len()].trim_ascii_end();
            if is_header(name) {
                // Everything up to the end of the line, or of the quotes that the header stands in.
                return match self
                    .run(|byte| !matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'\\'), LONGEST_WORD)
                {
                    None => Verdict::Undecided(Some(TOKEN)),
                    Some(0) => Verdict::No,
                    Some(len) => Verdict::Yes(self.start + len, TOKEN),
                };
            }
            if *scheme != b"bearer" {
                return Verdict::No;
            }
        } else if !is_header(before) {
            return Verdict::No;
        }
        match self.run(is_value, LONGEST_WORD) {
            None => Verdict::Undecided(Some(TOKEN)),
            Some(len) => self.value(len, &Name { mask: TOKEN, is_certain: false }),
        }
    }

    /// `--password …`
    fn option(&self, line: &[u8]) -> Verdict {
        let before = line.trim_ascii_end();
        let name = before.iter().rposition(|byte| !is_name(*byte)).map_or(0, |at| at + 1);
        let option = str::from_utf8(&before[name..]).ok().and_then(names_credential);
        let Some(mask) = option.filter(|_| self.after()[0] != b'-') else { return Verdict::No };
        match self.run(is_value, LONGEST_WORD) {
            None => Verdict::Undecided(Some(mask)),
            Some(len) => {
                // In a help text, a word for the value is here.
                let is_one = has_digit(&self.after()[..len]);
                if is_one { self.value(len, &Name { mask, is_certain: true }) } else { Verdict::No }
            }
        }
    }

    /// `https://user:…@host`
    fn address(&self) -> Verdict {
        const LONGEST: usize = 256;
        let in_password = |byte: u8| is_value(byte) && !b"/?#@".contains(&byte);
        match self.run(in_password, LONGEST) {
            None => Verdict::Undecided(Some(PASSWORD)),
            Some(len) if len > 0 && self.after().get(len) == Some(&b'@') => {
                Verdict::Yes(self.start + len, PASSWORD)
            }
            Some(_) => Verdict::No,
        }
    }
}

/// Whether this ends with a scheme, a host's `//` and the name of a user.
fn in_address(line: &[u8]) -> bool {
    let before = &line[..line.len() - 1];
    let user = before.iter().rposition(|byte| !byte.is_ascii_graphic() || b"/@:\"'".contains(byte));
    user.is_some_and(|at| before[..=at].ends_with(b"://"))
}

/// What a name says about its value.
struct Name {
    mask: &'static str,
    /// Whether every value is a credential, or only one that looks like it.
    is_certain: bool,
}

/// What the name at the end of these bytes says, if it is one of a credential.
fn named(bytes: &[u8]) -> Option<Name> {
    const NAMES: [(&[u8], &str); 14] = [
        (b"password", PASSWORD),
        (b"passwd", PASSWORD),
        (b"passphrase", PASSWORD),
        (b"token", TOKEN),
        (b"secret", SECRET),
        (b"api_key", API_KEY),
        (b"api-key", API_KEY),
        (b"apikey", API_KEY),
        (b"access_key", API_KEY),
        (b"access-key", API_KEY),
        (b"secret_key", API_KEY),
        (b"secret-key", API_KEY),
        (b"private_key", API_KEY),
        (b"private-key", API_KEY),
    ];
    let name = &bytes[bytes.iter().rposition(|byte| !is_name(*byte)).map_or(0, |at| at + 1)..];
    let (_, mask) = *NAMES.iter().find(|(end, _)| {
        name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
    })?;
    // A variable or an option. Programs also print `token=…` about tokens of other kinds.
    let is_variable = !name.iter().any(u8::is_ascii_lowercase);
    Some(Name { mask, is_certain: is_variable || name.starts_with(b"--") || mask == PASSWORD })
}

/// Whether a value that belongs to a credential can be one.
fn is_no_word(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] =
        [b"true", b"false", b"null", b"none", b"undefined", b"redacted", b"unset", b"string"];
    let is_word = WORDS.iter().any(|word| value.eq_ignore_ascii_case(word));
    let is_one_character = value.iter().all(|byte| *byte == value[0]);
    value.len() >= SHORTEST && !is_word && !is_one_character
}

/// Whether a value looks like a credential.
fn is_likely(value: &[u8]) -> bool {
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    (value.len() >= 8 && has_digit(value) && letters > 0)
        || (value.len() >= 24 && value.iter().all(|byte| is_base64(*byte)))
}

/// Whether these bytes are more likely random than a name of several words.
fn is_random(token: &[u8]) -> bool {
    let has_long_part =
        token.split(|byte| matches!(byte, b'-' | b'_')).any(|part| part.len() >= 16 && has_digit(part));
    let is_mixed = token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase);
    has_digit(token) && (has_long_part || is_mixed)
}

fn has_digit(token: &[u8]) -> bool {
    token.iter().any(u8::is_ascii_digit)
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_token(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_name(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// What a value consists of that stands without quotes.
fn is_value(byte: u8) -> bool {
    (byte.is_ascii_graphic() && !b"\"'`;&|<>(),\\".contains(&byte)) || !byte.is_ascii()
}

/// Whether the bytes end with this word, in letters of any case.
fn ends_with_word(bytes: &[u8], word: &[u8]) -> bool {
    let Some(at) = bytes.len().checked_sub(word.len()) else { return false };
    bytes[at..].eq_ignore_ascii_case(word) && (at == 0 || !is_word(bytes[at - 1]))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Where the label ends that begins there: after five dashes, in the same line.
fn label_end(bytes: &[u8], at: usize, most: usize) -> Option<usize> {
    let label = bytes[at..].iter().take(most).take_while(|byte| is_capital(**byte) || **byte == b' ').count();
    bytes[at + label..].starts_with(b"-----").then_some(at + label + 5)
}

/// How many bytes stand between two lines of a block: line ends, also written as `\n`, and what quotes a line.
fn between_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match &bytes[at..] {
            [b'\\', b'n' | b'r', ..] => at += 2,
            [b' ' | b'\t' | b'\r' | b'\n' | b'|', ..] => at += 1,
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n\
                       AASCBKcwggSjAgEAAoIBAQC7VJTU\nab==\n-----END RSA PRIVATE KEY-----";

    #[test]
    fn scenario_133_what_looks_like_a_credential_is_masked_and_says_what_it_was() {
        for (text, masked) in [
            (
                "curl -H 'Authorization: Bearer abc.def' x",
                "curl -H 'Authorization: Bearer [masked: token]' x",
            ),
            ("authorization: basic dXNlcjpwYXNz\nnext", "authorization: basic [masked: token]\nnext"),
            ("got bearer 4f9a8b7c6d5e and left", "got bearer [masked: token] and left"),
            ("x-api-key: 4f9a8b7c6d5e", "x-api-key: [masked: token]"),
            ("key sk-proj-4f9a8b7c6d5e4f3a2b1c", "key [masked: API key]"),
            ("sk-ant-api03-aB3_dE5-fG7", "[masked: API key]"),
            ("ghp_0123456789abcdefghij0123456789abcdef.", "[masked: GitHub token]."),
            ("(gho_0123456789abcdefghij)", "([masked: GitHub token])"),
            ("github_pat_11ABCDEFG0123456789_abc", "[masked: GitHub token]"),
            ("AKIAIOSFODNN7EXAMPLE", "[masked: AWS key]"),
            ("xoxb-2345678901-abcdefghij", "[masked: Slack token]"),
            ("PASSWORD=hunter2", "PASSWORD=[masked: password]"),
            ("export DB_PASSWORD='two words' x", "export DB_PASSWORD='[masked: password]' x"),
            (
                "TOKEN=abcd SECRET=efgh API_KEY=ijkl",
                "TOKEN=[masked: token] SECRET=[masked: secret] API_KEY=[masked: API key]",
            ),
            (
                "--api-key=abcdef --password hunter2",
                "--api-key=[masked: API key] --password [masked: password]",
            ),
            ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[masked: API key]"),
            (r#"{"password": "hünter", "user": "x"}"#, r#"{"password": "[masked: password]", "user": "x"}"#),
            (r#""{\"apiKey\":\"4f9a8b7c\"}""#, r#""{\"apiKey\":\"[masked: API key]\"}""#),
            (
                "git clone https://me:hunter2@example.com/x",
                "git clone https://me:[masked: password]@example.com/x",
            ),
            ("redis://:hunter2@localhost:6379/0", "redis://:[masked: password]@localhost:6379/0"),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N, ok",
                "[masked: token], ok",
            ),
            (&format!("cat\n{KEY}\ndone"), "cat\n[masked: private key]\ndone"),
            (&format!("| {}\n| done", KEY.replace('\n', "\n| ")), "| [masked: private key]\n| done"),
            (&format!(r#"{{"k":"{}\n"}}"#, KEY.replace('\n', r"\n")), r#"{"k":"[masked: private key]\n"}"#),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\nit was cut",
                "[masked: private key]\nit was cut",
            ),
        ] {
            assert_eq!(mask_credentials(text), masked);
            assert_eq!(mask_credentials(masked), masked, "a mask is no credential");
        }
    }

    #[test]
    fn scenario_133_ordinary_output_stays_as_it_is() {
        for text in [
            "commit 4bfb95c2f0e14f9a8b7c6d5e4f3a2b1c0d9e8f70",
            "id 123e4567-e89b-12d3-a456-426614174000",
            "the task-list of desk-0123456789abcdef0123 and risk-free",
            "sk-learn-has-a-long-name-of-many-words sk-2024-11-17-release-notes-final",
            "docker login --password-stdin -u me",
            "PASSWORD= TOKEN='' SECRET=\"\" API_KEY=$KEY PASSWORD=${P} TOKEN=%T% SECRET=<secret>",
            "PASSWORD=**** TOKEN=xxxx SECRET=null max_tokens=4096 MAX_TOKEN=4096 PASSWORD_FILE=/run/p",
            "error: unexpected token: `}`, expected one of token=Ident or token=Comma",
            "if token == other { let secret = secret_of(x); }",
            "  --password string   the password\n  --token <TOKEN>     the token",
            "Authorization: required\nthe bearer of bad news uses bearer authentication",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
            "http://localhost:8080/a@b ssh://host:22/x http://[::1]:80/ see https://x.y/z:1@2",
            "AKIA is short, AKIAIOSFODNN7EXAMPLETOOLONG is long, ghp_short, xoxb-short",
            "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBg\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBg\n-----END PUBLIC KEY-----",
            "eyJhbGciOiJIUzI1NiJ9 is a part of something",
            "git@github.com:a/b.git 12:30:45 key: value, TOKEN: none",
            "running 12 tests... ok; 100% --color=always RUST_LOG=debug PWD=/root",
        ] {
            assert_eq!(mask_credentials(text), text);
        }
    }

    #[test]
    fn an_option_names_the_word_after_it() {
        assert_eq!(names_credential("--password"), Some(PASSWORD));
        assert_eq!(names_credential("--github-token"), Some(TOKEN));
        for other in ["--password-stdin", "password", "-p", "--token=x", "--max-tokens"] {
            assert_eq!(names_credential(other), None, "{other}");
        }
    }

    proptest! {
        /// However the bytes are cut, the same is found, because what is undecided waits.
        #[test]
        fn what_is_found_does_not_depend_on_where_the_bytes_are_cut(
            words in proptest::collection::vec(
                prop_oneof![
                    Just("PASSWORD="), Just("hunter2"), Just("\""), Just(" "), Just("\n"), Just("Authorization: "),
                    Just("Bearer "), Just("sk-proj-4f9a8b7c6d5e4f3a2b1c"), Just("AKIAIOSFODNN7EXAMPLE"),
                    Just("https://me:"), Just("@host"), Just(KEY), Just("eyJhbGciOiJIUzI1NiJ9."), Just("-"), Just("ü"),
                    Just("--token "), Just("'"), Just("x"), Just("\\n"), Just("-----BEGIN PRIVATE KEY-----"),
                    Just("Proc-Type: 4,ENCRYPTED"), Just("\"token\": "),
                ],
                0..12,
            ),
            cut in 1_usize..9,
        ) {
            let text = words.concat();
            let whole = mask_credentials(&text);
            let (mut shown, mut seen, mut at) = (Vec::new(), Vec::new(), 0);
            let mut pieces = text.as_bytes().chunks(cut).peekable();
            loop {
                seen.extend_from_slice(pieces.next().unwrap_or_default());
                let rest = if pieces.peek().is_some() { Rest::MayCome } else { Rest::Complete };
                at = loop {
                    match find_credential(&seen, at, rest) {
                        Found::At { range, mask } => {
                            shown.extend_from_slice(&seen[at..range.start]);
                            shown.extend_from_slice(mask.as_bytes());
                            at = range.end;
                        }
                        Found::Undecided { start, .. } => {
                            shown.extend_from_slice(&seen[at..start]);
                            break start;
                        }
                        Found::None => {
                            shown.extend_from_slice(&seen[at..]);
                            break seen.len();
                        }
                    }
                };
                if rest == Rest::Complete {
                    break;
                }
            }
            prop_assert_eq!(String::from_utf8(shown).unwrap(), whole);
        }
    }
}
