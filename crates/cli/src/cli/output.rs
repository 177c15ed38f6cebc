//! Printing: data to standard output, the rest to standard error, and a closed pipe is a quiet end.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::args::Color;
use super::error::CliError;

/// Where a command prints.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
}

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();
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

    /// Prints text as it is, with its colours where they are wanted.
    pub(crate) fn text(&self, text: &str) -> Result<(), CliError> {
        finish(anstream::stdout().lock().write_all(text.as_bytes()))
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        finish(io::stdout().lock().write_all(bytes))
    }

    /// Prints one JSON document, for people to read as well when they watch.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<(), CliError> {
        self.line(&to_json(document, self.is_watched())?)
    }

    /// Prints one JSON object of a stream, on one line.
    pub(crate) fn object(&self, object: &impl Serialize) -> Result<(), CliError> {
        self.line(&to_json(object, false)?)
    }

    pub(crate) fn line(&self, line: &str) -> Result<(), CliError> {
        self.text(&format!("{line}\n"))
    }

    /// Tells a person what happens next. Programs, and people who do not watch, are not told.
    pub(crate) fn hint(&self, line: &str) {
        if !self.json && io::stderr().is_terminal() {
            say(line);
        }
    }

    /// Says something that is not data.
    pub(crate) fn say(&self, line: &str) {
        say(line);
    }

    pub(crate) fn warn(&self, what: &str) {
        say(&format!("{BUSY}warning:{BUSY:#} {what}"));
    }

    /// What failed, why, and what to try.
    pub(crate) fn error(&self, error: &CliError) {
        if matches!(error, CliError::Closed) {
            return;
        }
        let mut text = format!("{BAD}error:{BAD:#} {error}");
        let mut cause = error.source();
        while let Some(inner) = cause {
            let inner_text = inner.to_string();
            // A transparent wrapper repeats what was said.
            if !text.ends_with(&inner_text) {
                text.push_str(&format!("\n  cause: {inner_text}"));
            }
            cause = inner.source();
        }
        say(&text);
        if let Some(tip) = error.tip() {
            say(&format!("{GOOD}tip:{GOOD:#} {tip}"));
        }
    }
}

fn say(line: &str) {
    // Nobody may be there to hear it, and that is not what the command was about.
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

fn to_json(value: &impl Serialize, pretty: bool) -> Result<String, CliError> {
    let json = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    json.map_err(|error| CliError::Output(error.into()))
}

fn finish(written: io::Result<()>) -> Result<(), CliError> {
    match written.and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::Closed),
        Err(error) => Err(CliError::Output(error)),
    }
}
