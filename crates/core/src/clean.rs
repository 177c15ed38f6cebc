//! Removes control characters from text of unknown origin, so that it is safe to print.

use std::ops::Range;

/// Removes control characters and escape sequences, and shows line ends as `⏎`, so that the text stays on one line. A
/// tab, which is as wide as the terminal likes, becomes a space.
pub fn clean_line(text: &str) -> String {
    clean(text).replace('\n', "⏎").replace('\t', " ")
}

/// Removes control characters and escape sequences; line ends and tabs stay.
pub fn clean(text: &str) -> String {
    let mut cleaner = Cleaner::default();
    let mut out = String::with_capacity(text.len());
    cleaner.push(text.as_bytes(), &mut out);
    cleaner.finish(&mut out);
    out
}

/// Output as a terminal shows it in the end: of a line that was overwritten, such as a progress bar, its last state.
/// Without control characters and escape sequences.
pub fn shown(output: &[u8]) -> String {
    let mut last_states = Vec::with_capacity(output.len());
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        last_states.extend_from_slice(&line[last_state(line)]);
        last_states.extend(line.last().filter(|byte| **byte == b'\n'));
    }
    clean(&String::from_utf8_lossy(&last_states))
}

/// Where the last state of a line is: after the last carriage return that text follows.
pub(crate) fn last_state(line: &[u8]) -> Range<usize> {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let end = line.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    let start = line[..end].iter().rposition(|byte| *byte == b'\r').map_or(0, |last| last + 1);
    start..end
}

/// Cleans bytes that arrive in pieces, which may be cut inside a character or a sequence.
#[derive(Debug, Clone, Default)]
pub struct Cleaner {
    keeps_all: bool,
    keeps_colours: bool,
    returns: Returns,
    inside: Inside,
    /// The current line, as long as it may be overwritten.
    line: String,
    /// The parameters of the control sequence that is being read.
    parameters: String,
    /// Whether a colour is in force that the text has to end.
    is_coloured: bool,
    /// The first bytes of a character whose rest has not arrived.
    partial: Vec<u8>,
}

/// What a carriage return within a line means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Returns {
    /// The end of a line: nothing is lost.
    #[default]
    EndLines,
    /// What follows replaces the line, of which only the last state is kept.
    Replace,
    /// The same on a terminal, which does it while it is watched: they stay.
    Stay,
}

/// A line that grows longer than this is no longer held back for what may replace it.
const LINE_MAX: usize = 64 * 1024;
const PARAMETERS_MAX: usize = 64;
const NO_COLOURS: &str = "\u{1b}[0m";

/// What the next character belongs to. A sequence without an end removes at most the rest of its line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Text,
    /// A carriage return. With a newline after it, both are one line end.
    Return,
    Escape,
    /// Bytes between an escape and its final byte, as in `ESC ( B`, which selects a character set.
    Intermediate,
    Control,
    String,
    StringEscape,
}

impl Cleaner {
    /// A cleaner that keeps control characters, and only replaces invalid UTF-8: some terminals accept only text.
    pub fn to_text() -> Self {
        Self { keeps_all: true, ..Self::default() }
    }

    /// A cleaner for a terminal: of a progress bar it keeps what a terminal shows, and colours if they are wanted.
    pub fn to_terminal(returns: Returns, keeps_colours: bool) -> Self {
        Self { returns, keeps_colours, ..Self::default() }
    }

    /// Cleans the next piece.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = if self.partial.is_empty() {
            bytes
        } else {
            joined = [&std::mem::take(&mut self.partial), bytes].concat();
            &joined[..]
        };
        loop {
            let (valid, error) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, None),
                Err(error) => {
                    let valid = std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default();
                    (valid, Some(error))
                }
            };
            valid.chars().for_each(|c| self.character(c, out));
            rest = &rest[valid.len()..];
            match error.map(|error| error.error_len()) {
                None => return,
                Some(Some(bad)) => {
                    self.character(char::REPLACEMENT_CHARACTER, out);
                    rest = &rest[bad..];
                }
                Some(None) => {
                    self.partial = rest.to_vec();
                    return;
                }
            }
        }
    }

    /// Ends the text: cleans the bytes that were held back. The next piece begins a new text.
    pub fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.character(char::REPLACEMENT_CHARACTER, out);
        }
        let inside = std::mem::take(&mut self.inside);
        self.release_line(out);
        if inside == Inside::Return {
            out.push('\n');
        }
        if std::mem::take(&mut self.is_coloured) {
            out.push_str(NO_COLOURS);
        }
    }

    fn release_line(&mut self, out: &mut String) {
        out.push_str(&self.line);
        self.line.clear();
    }

    /// Passes on a character that is kept.
    fn keep(&mut self, c: char, out: &mut String) {
        if self.returns != Returns::Replace {
            out.push(c);
            return;
        }
        self.line.push(c);
        if c == '\n' || self.line.len() > LINE_MAX {
            self.release_line(out);
        }
    }

    /// A carriage return that text follows.
    fn return_within_line(&mut self, out: &mut String) {
        match self.returns {
            Returns::EndLines => out.push('\n'),
            Returns::Stay => out.push('\r'),
            Returns::Replace => {
                self.line.clear();
                if std::mem::take(&mut self.is_coloured) {
                    self.line.push_str(NO_COLOURS);
                }
            }
        }
    }

    /// A control sequence is complete: one that chooses colours is kept, if colours are wanted.
    fn end_sequence(&mut self, last: char, out: &mut String) {
        let parameters = std::mem::take(&mut self.parameters);
        if self.keeps_colours && last == 'm' && is_harmless(&parameters) {
            self.is_coloured = !matches!(parameters.as_str(), "" | "0");
            let sequence = format!("\u{1b}[{parameters}m");
            sequence.chars().for_each(|c| self.keep(c, out));
        }
    }

    fn character(&mut self, c: char, out: &mut String) {
        if self.keeps_all {
            out.push(c);
            return;
        }
        // A model may take a separator of lines or paragraphs for the end of a line, so it is one.
        if matches!(c, '\n' | '\u{2028}' | '\u{2029}') {
            self.inside = Inside::Text;
            self.keep('\n', out);
            return;
        }
        if self.inside == Inside::Return {
            self.return_within_line(out);
        }
        self.inside = match self.inside {
            Inside::StringEscape if c == '\\' => Inside::Text,
            Inside::Text | Inside::Return | Inside::StringEscape => match c {
                '\u{1b}' => Inside::Escape,
                '\u{9b}' => {
                    self.parameters.clear();
                    Inside::Control
                }
                '\r' => Inside::Return,
                c if (c.is_control() && c != '\t') || is_unseen(c) => Inside::Text,
                c => {
                    self.keep(c, out);
                    Inside::Text
                }
            },
            Inside::Escape => match c {
                '[' => {
                    self.parameters.clear();
                    Inside::Control
                }
                ']' | 'P' | 'X' | '_' | '^' => Inside::String,
                ' '..='/' => Inside::Intermediate,
                _ => Inside::Text,
            },
            Inside::Intermediate if (' '..='/').contains(&c) => Inside::Intermediate,
            Inside::Intermediate => Inside::Text,
            Inside::Control if ('\u{40}'..='\u{7e}').contains(&c) => {
                self.end_sequence(c, out);
                Inside::Text
            }
            Inside::Control => {
                if self.parameters.len() < PARAMETERS_MAX {
                    self.parameters.push(c);
                }
                Inside::Control
            }
            Inside::String => match c {
                '\u{7}' | '\u{9c}' => Inside::Text,
                '\u{1b}' => Inside::StringEscape,
                _ => Inside::String,
            },
        };
    }
}

/// Whether the parameters of a sequence choose colours and weights and nothing that hides text.
fn is_harmless(parameters: &str) -> bool {
    if parameters.len() >= PARAMETERS_MAX || !parameters.chars().all(|c| c.is_ascii_digit() || c == ';') {
        return false;
    }
    // A terminal reads `08` as 8, and nothing as 0.
    let mut numbers = parameters.split(';').map(|number| number.parse().unwrap_or(0_u32));
    while let Some(number) = numbers.next() {
        match number {
            // One colour of many, which has numbers of its own.
            38 | 48 => match numbers.next() {
                Some(5) => drop(numbers.next()),
                Some(2) => drop(numbers.nth(2)),
                _ => return false,
            },
            8 => return false,
            _ => {}
        }
    }
    true
}

/// Whether a character shows nothing by itself, and changes what is around it or hides in it: controls of direction can
/// make a line look like another one, and a person does not see what a model reads. The joiners that writing needs are
/// none of these.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_and_sequences_are_removed() {
        assert_eq!(clean_line("a\nb\u{202e}c\u{1b}[2Jd\te"), "a⏎bcd e");
        assert_eq!(clean("open \u{1b}[12;\nnext"), "open \nnext");
        assert_eq!(clean("\u{1b}(B\u{1b}[mplain\u{9b}31m red\u{1b}"), "plain red");
        assert_eq!(clean("10%\r20%\r\ndone\r"), "10%\n20%\ndone\n");
        assert_eq!(clean_line("a\u{2028}b\u{2029}c"), "a⏎b⏎c");
        assert_eq!(clean("a\u{b}b\u{c}c\u{85}d\u{1c}e"), "abcde", "no other character ends a line");
        let unseen = "\u{200b}\u{200e}\u{200f}\u{2060}\u{2066}\u{feff}\u{61c}\u{e0041}\u{fff9}";
        assert_eq!(clean(&format!("a{unseen}b")), "ab");
        assert_eq!(
            clean("e\u{301} \u{1f468}\u{200d}\u{1f467} \u{2764}\u{fe0f}").chars().count(),
            9,
            "as it is written"
        );
        assert_eq!(clean("\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b\tc\u{0}"), "ab\tc");
    }

    #[test]
    fn of_an_overwritten_line_the_last_state_is_shown() {
        assert_eq!(shown(b"10%\r20%\r100%\nnext\r\n"), "100%\nnext\n");
        assert_eq!(shown(b"a\n50%\r60%\r"), "a\n60%");
        assert_eq!(shown(b"\r\x1b[K 7/9\r\n\r\n\r"), " 7/9\n\n");
    }

    /// What a cleaner for a terminal makes of a text that arrives in one piece, or character by character.
    fn on_terminal(text: &str, returns: Returns, colours: bool) -> String {
        let of = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let (mut cleaner, mut out) = (Cleaner::to_terminal(returns, colours), String::new());
            pieces.for_each(|piece| cleaner.push(piece, &mut out));
            cleaner.finish(&mut out);
            out
        };
        let whole = of(&mut std::iter::once(text.as_bytes()));
        assert_eq!(whole, of(&mut text.as_bytes().chunks(1)));
        whole
    }

    #[test]
    fn scenario_151_a_progress_bar_is_one_line_on_a_terminal() {
        let bar = "fetching\n 10%\r 50%\r100%\nnext\r\nlast\r";
        assert_eq!(on_terminal(bar, Returns::Replace, false), "fetching\n100%\nnext\nlast\n");
        assert_eq!(on_terminal(bar, Returns::Stay, false), "fetching\n 10%\r 50%\r100%\nnext\nlast\n");
        let long = format!("{}\rshort\n", "x".repeat(LINE_MAX + 1));
        assert_eq!(on_terminal(&long, Returns::Replace, false).len(), LINE_MAX + 1 + "short\n".len());
    }

    #[test]
    fn scenario_151_colours_pass_to_a_terminal_and_attacks_do_not() {
        let of = |text: &str| on_terminal(text, Returns::Replace, true);
        assert_eq!(of("\u{1b}[1;31mred\u{1b}[0m plain\n"), "\u{1b}[1;31mred\u{1b}[0m plain\n");
        assert_eq!(of("\u{1b}[32mopen"), "\u{1b}[32mopen\u{1b}[0m", "what comes next is not green");
        assert_eq!(of("\u{1b}[38;5;8mgrey\u{1b}[m"), "\u{1b}[38;5;8mgrey\u{1b}[m");
        assert_eq!(of("\u{1b}[38;2;8;8;8mx\u{1b}[m"), "\u{1b}[38;2;8;8;8mx\u{1b}[m");
        for attack in [
            "\u{1b}[8m",
            "\u{1b}[1;8m",
            "\u{1b}[08m",
            "\u{1b}[2J",
            "\u{1b}[1A",
            "\u{1b}]0;title\u{7}",
            "\u{1b}[?1049h",
            "\u{1b}[>4m",
        ] {
            assert_eq!(of(&format!("a{attack}b")), "ab", "{attack:?}");
        }
        assert_eq!(on_terminal("\u{1b}[31mred\u{1b}[0m", Returns::Replace, false), "red");
    }

    proptest! {
        #[test]
        fn pieces_are_cleaned_like_the_whole(
            bytes in proptest::collection::vec(
                prop_oneof![
                    Just(0x1b), Just(b'['), Just(b']'), Just(b'\r'), Just(b'\n'), Just(0xe2), Just(0x82), Just(0xac),
                    any::<u8>(),
                ],
                0..200,
            ),
            cut in 1_usize..7,
        ) {
            let mut cleaner = Cleaner::default();
            let mut pieces = String::new();
            for piece in bytes.chunks(cut) {
                cleaner.push(piece, &mut pieces);
            }
            cleaner.finish(&mut pieces);
            prop_assert_eq!(&pieces, &clean(&String::from_utf8_lossy(&bytes)));
            let mut keeper = Cleaner::to_text();
            let mut kept = String::new();
            for piece in bytes.chunks(cut) {
                keeper.push(piece, &mut kept);
            }
            keeper.finish(&mut kept);
            prop_assert_eq!(&kept, &String::from_utf8_lossy(&bytes));
            prop_assert!(pieces.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{pieces:?}");
        }
    }
}
