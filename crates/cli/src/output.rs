//! Printing: data to standard output, the rest to standard error, and a closed pipe is a quiet end.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::documents::{ErrorDocument, Reply};
use serde::Serialize;

use crate::args::Color;
use crate::error::CliError;
use crate::wrap::{beside, columns, whole, wrap};

/// Where a command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();
/// A name that somebody chose.
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

impl Output {
    pub(crate) fn new(color: Color, json: bool) -> Self {
        match color {
            Color::Auto => {}
            Color::Always => ColorChoice::Always.write_global(),
            Color::Never => ColorChoice::Never.write_global(),
        }
        Self { json }
    }

    /// Whether a program reads this.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person watches standard output.
    pub(crate) fn is_watched(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// How wide the terminal is, if a person watches one.
    pub(crate) fn width(&self) -> Option<usize> {
        let size = self.is_watched().then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0))
    }

    /// How many columns and rows the terminal has, if a person watches one.
    pub(crate) fn size(&self) -> Option<(usize, usize)> {
        let (width, height) = self.is_watched().then(terminal_size::terminal_size).flatten()?;
        Some((usize::from(width.0), usize::from(height.0)))
    }

    /// Draws lines in place of the last `drawn` ones, in one piece.
    pub(crate) fn redraw(&self, lines: &[String], drawn: usize) -> Result<(), CliError> {
        self.enable_escape_sequences();
        let choice = AutoStream::choice(&io::stdout());
        let mut picture = match drawn {
            0 => Vec::new(),
            n => format!("\r\u{1b}[{n}A").into_bytes(),
        };
        for line in lines {
            // Colours may be refused; the sequences that draw are needed all the same.
            let mut stream = AutoStream::new(Vec::new(), choice);
            stream.write_all(line.as_bytes()).map_err(CliError::Output)?;
            picture.extend(stream.into_inner());
            picture.extend_from_slice(b"\x1b[K\r\n");
        }
        picture.extend_from_slice(b"\x1b[J");
        self.bytes(&picture)
    }

    /// How wide the terminal is on which hints and the status are shown.
    pub(crate) fn screen_width(&self) -> Option<usize> {
        screen_width()
    }

    /// Prints text, with its colours if colour is on.
    pub(crate) fn text(&self, text: &str) -> Result<(), CliError> {
        if self.is_watched() {
            return finish(anstream::stdout().lock().write_all(text.as_bytes()));
        }
        // In one piece: the stream that removes colours makes a call for each line.
        let mut plain = AutoStream::new(Vec::new(), AutoStream::choice(&io::stdout()));
        plain.write_all(text.as_bytes()).map_err(CliError::Output)?;
        self.bytes(&plain.into_inner())
    }

    /// Whether colours are shown on standard output.
    pub(crate) fn shows_colours(&self) -> bool {
        AutoStream::choice(&io::stdout()) != ColorChoice::Never
    }

    /// Switches the console to interpret escape sequences, on systems where that is a mode.
    pub(crate) fn enable_escape_sequences(&self) {
        // Creating such a stream sets the mode, and it stays set.
        let _ = AutoStream::always_ansi(io::stdout());
    }

    /// Prints bytes unchanged.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        finish(io::stdout().lock().write_all(bytes))
    }

    /// Prints one JSON document, indented when a person watches.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<(), CliError> {
        self.bytes(to_json(document, self.is_watched())?.as_bytes())
    }

    /// Prints one JSON object of a stream, on one line.
    pub(crate) fn object(&self, object: &impl Serialize) -> Result<(), CliError> {
        self.bytes(to_json(object, false)?.as_bytes())
    }

    pub(crate) fn line(&self, line: &str) -> Result<(), CliError> {
        self.text(&format!("{line}\n"))
    }

    /// Prints sentences that are the data of a command. Their lines end between words on a terminal.
    pub(crate) fn prose(&self, text: &str) -> Result<(), CliError> {
        self.line(&wrap(text, self.width(), 0))
    }

    /// Whether hints are shown: a person watches, and the output is not JSON.
    pub(crate) fn is_guided(&self) -> bool {
        !self.json && io::stderr().is_terminal()
    }

    /// Shows a person what to do next. Programs get no hints.
    pub(crate) fn hint(&self, line: &str) {
        if self.is_guided() {
            say(line);
        }
    }

    /// Shows a person which commands may come next.
    pub(crate) fn next(&self, commands: &[String]) {
        if !commands.is_empty() {
            self.hint(&next_text(commands, screen_width()));
        }
    }

    /// Tells people and agents what happens next. Programs that read JSON find it there.
    pub(crate) fn tell(&self, line: &str) {
        if !self.json {
            say(line);
        }
    }

    /// Asks a person to confirm. Anything but a yes is a no; without a terminal there is no answer.
    #[cfg(feature = "setup")]
    pub(crate) fn confirm(&self, question: &str) -> Option<bool> {
        if !self.is_guided() || !io::stdin().is_terminal() {
            return None;
        }
        let _ = write!(anstream::stderr().lock(), "{question}");
        let mut answer = String::new();
        let _ = io::stdin().read_line(&mut answer);
        Some(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
    }

    /// Prints a line that is not data, to standard error.
    pub(crate) fn say(&self, line: &str) {
        say(line);
    }

    /// Prints a line to standard error, and tells whether it was written: what a caller never got, it has not read.
    pub(crate) fn report(&self, line: &str) -> bool {
        writeln!(anstream::stderr().lock(), "{}", wrap(line, screen_width(), 0)).is_ok()
    }

    pub(crate) fn warn(&self, what: &str) {
        say(&beside(&format!("{BUSY}warning:{BUSY:#} "), &clean_line(what), screen_width()));
    }

    /// Prints what failed, why, and what to try: as JSON to standard output for programs.
    pub(crate) fn error(&self, error: &CliError) {
        if matches!(error, CliError::Closed) {
            return;
        }
        if self.json {
            let document = ErrorDocument { format: DOCUMENT_FORMAT, error: error.detail() };
            // If standard output cannot be written, the error is printed as for people.
            if self.object(&document).is_ok() {
                return;
            }
        } else if matches!(error, CliError::Answer { .. }) {
            return;
        }
        let names =
            std::iter::once(format!("{BAD}error:{BAD:#} ")).chain(std::iter::repeat("  cause: ".to_owned()));
        for (name, line) in names.zip(error.lines()) {
            say(&beside(&name, &line, screen_width()));
        }
        if let Some(tip) = error.tip() {
            say(&beside(&format!("{GOOD}tip:{GOOD:#} "), &tip, screen_width()));
        }
    }

    /// Prints the document of a command, with the error that it ends with, and returns the exit code.
    pub(crate) fn reply(&self, document: impl Serialize, error: Option<&CliError>) -> Result<u32, CliError> {
        self.document(&Reply { document, error: error.map(CliError::detail) })?;
        Ok(error.map_or(0, CliError::exit_code))
    }
}

/// The commands that may come next: in one line, or each in a line of its own where that is too long.
pub(crate) fn next_text(commands: &[String], width: Option<usize>) -> String {
    let line = format!("next: {}", commands.join(", "));
    if width.is_none_or(|width| columns(&line) <= width) {
        return line;
    }
    let names = std::iter::once("next: ").chain(std::iter::repeat("      "));
    let lines = names.zip(commands).map(|(name, command)| beside(name, &whole(command), width));
    lines.collect::<Vec<_>>().join("\n")
}

fn screen_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0))
}

fn say(line: &str) {
    // Standard error may be closed; the command still did its work.
    let _ = writeln!(anstream::stderr().lock(), "{}", wrap(line, screen_width(), 0));
}

/// Prints what the parser says of wrong arguments.
pub(crate) fn say_usage(error: &clap::Error) {
    #[cfg(feature = "parser-hints")]
    let text = error.render().ansi().to_string();
    #[cfg(not(feature = "parser-hints"))]
    let text = error.render().to_string();
    let _ = write!(anstream::stderr().lock(), "{}", wrap(&text, screen_width(), 2));
}

fn to_json(value: &impl Serialize, pretty: bool) -> Result<String, CliError> {
    let json = serde_json::to_string(value).map_err(|error| CliError::Output(error.into()))?;
    let mut json = shield(&if pretty { indented(&json) } else { json });
    json.push('\n');
    Ok(json)
}

/// Spreads JSON that has no white space over lines, as serde_json does. With the latter, the code that writes a type
/// would be compiled a second time.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(2 * json.len());
    let (mut depth, mut before) = (0, ' ');
    let (mut in_string, mut is_escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            out.push(c);
            continue;
        }
        let (opened, closes) = (matches!(before, '{' | '['), matches!(c, '}' | ']'));
        depth -= usize::from(closes);
        if opened != closes || before == ',' {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        }
        out.push(c);
        match c {
            '{' | '[' => depth += 1,
            ':' => out.push(' '),
            '"' => in_string = true,
            _ => {}
        }
        before = c;
    }
    out
}

/// Escapes control characters that JSON allows and a terminal interprets. They occur only inside strings.
fn shield(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// Treats a closed output as success.
pub(crate) fn unless_closed(printed: Result<(), CliError>) -> Result<(), CliError> {
    match printed {
        Err(CliError::Closed) => Ok(()),
        other => other,
    }
}

fn finish(written: io::Result<()>) -> Result<(), CliError> {
    match written.and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::Closed),
        Err(error) => Err(CliError::Output(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_for_people_has_the_lines_that_serde_json_gives_it() {
        let tricky = "a, b: {c} [d] \"e\" \\ \\\" \n ü";
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!("text"),
            json!([1, [], {}, [[-2.5]], {"a": []}]),
            json!({ tricky: [tricky, { tricky: { "b": true, "c": [tricky, null] } }], "z": "\\" }),
        ] {
            assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        }
    }
}
