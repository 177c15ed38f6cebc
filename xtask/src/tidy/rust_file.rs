//! Splits a Rust file into code, comments and string literals, which is all the syntax that tidy needs.
//!
//! A full parser would see through macros and `cfg` less well than this, because much of what the rules look
//! for sits in tokens that a parser leaves unparsed.

/// A Rust file, with its text in separate channels of equal line structure.
pub(crate) struct RustFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    /// The text with comments, and the insides of literals, replaced by spaces.
    pub(crate) code: String,
    /// The text with everything but comments replaced by spaces.
    pub(crate) comments: String,
    pub(crate) strings: Vec<StringLiteral>,
}

/// A string, byte string or raw string, with its escapes as they were written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StringLiteral {
    /// The line it starts on, counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl<'a> RustFile<'a> {
    pub(crate) fn new(path: &'a str, text: &'a str) -> Self {
        let mut lexer = Lexer { rest: text, line: 1, ..Lexer::default() };
        lexer.run();
        let Lexer { code, comments, strings, .. } = lexer;
        Self { path, text, code, comments, strings }
    }

    /// The line, counted from 1, that a byte offset into `code` is on.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        1 + self.code[..offset].matches('\n').count()
    }
}

/// Where `word` stands alone in `text`: `unsafe` is not a word of `unsafe_code`.
pub(crate) fn find_word(text: &str, word: &str) -> impl Iterator<Item = usize> {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word_char) && !after.is_some_and(is_word_char)
    })
}

pub(crate) fn has_word(text: &str, word: &str) -> bool {
    find_word(text, word).next().is_some()
}

pub(crate) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Code,
    Comment,
    Literal,
}

#[derive(Default)]
struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    code: String,
    comments: String,
    strings: Vec<StringLiteral>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(first) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()), Channel::Comment);
            } else if self.rest.starts_with("/*") {
                self.take(block_comment_len(self.rest), Channel::Comment);
            } else if first == '"' {
                self.take_string(0, plain_string_len(&self.rest[1..]));
            } else if first == '\'' {
                self.take_char_or_lifetime();
            } else if is_word_char(first) {
                self.take_word();
            } else {
                self.take(first.len_utf8(), Channel::Code);
            }
        }
    }

    /// Moves the next `len` bytes into `channel`, and blanks into the others.
    fn take(&mut self, len: usize, channel: Channel) {
        let (taken, rest) = self.rest.split_at(len);
        for c in taken.chars() {
            let blank = if c == '\n' { '\n' } else { ' ' };
            self.code.push(if channel == Channel::Code { c } else { blank });
            self.comments.push(if channel == Channel::Comment { c } else { blank });
        }
        self.line += taken.matches('\n').count();
        self.rest = rest;
    }

    /// Takes a whole word, and the raw string that it opens if it is such a prefix.
    fn take_word(&mut self) {
        let len = self.rest.find(|c| !is_word_char(c)).unwrap_or(self.rest.len());
        let word = &self.rest[..len];
        self.take(len, Channel::Code);
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        // `r#fn` is a raw identifier, hence the look at the quote.
        if matches!(word, "r" | "br" | "cr") && self.rest[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = &self.rest[hashes + 1..];
            self.take_string(hashes, body.find(&end).unwrap_or(body.len()));
        }
    }

    /// Takes a string whose quote follows `hashes` hashes and whose inside is `len` bytes long.
    fn take_string(&mut self, hashes: usize, len: usize) {
        self.take(hashes + 1, Channel::Code);
        self.strings.push(StringLiteral { line: self.line, text: self.rest[..len].to_owned() });
        self.take(len, Channel::Literal);
        // A file that ends inside a string does not compile, but must not panic here either.
        self.take((hashes + 1).min(self.rest.len()), Channel::Code);
    }

    fn take_char_or_lifetime(&mut self) {
        let mut chars = self.rest.char_indices().skip(1);
        let len = match (chars.next(), chars.next()) {
            // An escape: the first quote after the escaped character closes it.
            (Some((_, '\\')), Some((at, escaped))) => {
                let after = at + escaped.len_utf8();
                self.rest[after..].find('\'').map_or(self.rest.len(), |quote| after + quote + 1)
            }
            (Some(_), Some((at, '\''))) => at + 1,
            _ => return self.take(1, Channel::Code),
        };
        self.take(len, Channel::Literal);
    }
}

/// The length of the block comment that `text` starts with; such comments nest.
fn block_comment_len(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = text[at..].find(['/', '*']).map(|offset| at + offset) {
        at = next + 2;
        match text.get(next..at) {
            Some("/*") => depth += 1,
            Some("*/") if depth == 1 => return at,
            Some("*/") => depth -= 1,
            _ => at = next + 1,
        }
    }
    text.len()
}

/// The length of `text` up to the first quote that no backslash escapes.
fn plain_string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_split(text: &str, code: &str, strings: &[&str]) {
        let file = RustFile::new("a.rs", text);
        assert_eq!(file.code.split_whitespace().collect::<Vec<_>>().join(" "), code);
        assert_eq!(file.strings.iter().map(|string| string.text.as_str()).collect::<Vec<_>>(), strings);
        assert_eq!(file.code.lines().count(), text.lines().count());
        assert_eq!(file.comments.lines().count(), text.lines().count());
    }

    #[test]
    fn comments_are_not_code() {
        assert_split("a // b \"c\"\nd /* e /* f */ \n g */ h", "a d h", &[]);
        assert_eq!(RustFile::new("a.rs", "a // b\n/// c").comments, "  // b\n/// c");
    }

    #[test]
    fn strings_are_not_code() {
        assert_split(r#"f("a \" // b", b"c")"#, r#"f(" ", b" ")"#, &[r#"a \" // b"#, "c"]);
        assert_split("r#\"a \" b\"# + r#fn", "r#\" \"# + r#fn", &["a \" b"]);
        assert_split("x\"\\\\\" y", "x\" \" y", &["\\\\"]);
    }

    #[test]
    fn a_quote_opens_a_character_or_a_lifetime() {
        assert_split("('\"', '\\'', b'\\u{7d}', 'é') \"s\"", "( , , b , ) \" \"", &["s"]);
        assert_split("fn f<'a>(x: &'a str) \"s\"", "fn f<'a>(x: &'a str) \" \"", &["s"]);
    }

    #[test]
    fn a_literal_knows_its_line_and_an_unclosed_one_does_not_panic() {
        assert_eq!(RustFile::new("a.rs", "\"a\nb\"\n\"c\"").strings[1].line, 3);
        for text in ["\"a", "r##\"a\"#", "'\\", "/* a", "'", "\"é"] {
            RustFile::new("a.rs", text);
        }
    }

    #[test]
    fn a_word_stands_alone() {
        assert!(has_word("pub unsafe fn", "unsafe"));
        assert!(!has_word("unsafe_code, not_unsafe", "unsafe"));
    }
}
