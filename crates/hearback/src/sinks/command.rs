//! Sinks that run a program: its input and its arguments are configured, and its exit code is the reply.

use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{SinkPayload, StartErrorKind};
use hearback_platform::Native;
use serde::Deserialize;

use super::hand_over::{HandOver, Opening, answer, line};
use super::kind::{SinkKind, TableKind};
use super::settings::SinkSettings;
use super::template::{arguments, needs_session};
use crate::settings_file::{Problem, SpannedTable};

/// A program that is run for each delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandSink {
    /// A program with its arguments; the first that is installed is run. `{session}`, `{text}`, `{delivery}`, `{job}`,
    /// `{title}`, `{command}`, `{name}`, `{ran}` and `{destination}` are replaced by their values.
    pub alternatives: Vec<Vec<String>>,
    /// What it reads on its standard input.
    pub input: Input,
}

/// What a program reads on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// The delivery in its envelope, as one line of JSON.
    Json,
    /// Its text.
    Text,
    /// Nothing.
    #[serde(rename = "none")]
    Nothing,
}

impl CommandSink {
    /// A program with its arguments, which reads JSON.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        Self { alternatives: vec![words], input: Input::Json }
    }

    /// Says that no program of it is installed.
    fn missing(&self) -> String {
        let programs = self.alternatives.iter().filter_map(|words| words.first());
        let names: Vec<_> = programs.map(|name| format!("`{name}`")).collect();
        match &names[..] {
            [] => "its command is empty".into(),
            // A path is not looked for elsewhere.
            [name] if name.contains(std::path::is_separator) => format!("there is no program {name}"),
            [name] => format!("{name} was not found on the PATH"),
            _ => format!("none of {} was found on the PATH", names.join(", ")),
        }
    }

    fn stdin(&self, payload: &SinkPayload) -> Result<Vec<u8>, SinkError> {
        match self.input {
            Input::Nothing => Ok(Vec::new()),
            Input::Text => Ok(payload.text().as_bytes().to_vec()),
            Input::Json => line(&payload.event()),
        }
    }
}

impl SinkKind for CommandSink {
    fn check(&self, native: Native) -> Option<String> {
        let mut programs = self.alternatives.iter().filter_map(|words| words.first());
        let is_found = programs.any(|program| native.find_program(program).is_some());
        (!is_found).then(|| self.missing())
    }

    fn needs_session(&self) -> bool {
        self.alternatives.iter().all(|words| needs_session(words))
    }

    fn deliver(&self, hand_over: &HandOver<'_>) -> Result<SinkReply, SinkError> {
        for words in &self.alternatives {
            let argv = match arguments(words, hand_over.payload) {
                Ok(argv) => argv,
                Err(reason) => return Ok(SinkReply::Gone { reason }),
            };
            let stdin = self.stdin(hand_over.payload)?;
            match hand_over.run(argv, stdin, Opening::Input) {
                Ok(report) => return answer(&report),
                Err(error) if error.kind == StartErrorKind::NotFound => {}
                Err(error) => return Err(hand_over.not_started(error)),
            }
        }
        // A program that the settings name may be back soon. Of those that a preset looks for, this machine has none.
        match self.alternatives.len() {
            0 | 1 => Err(SinkError::Failed(self.missing())),
            _ => Ok(SinkReply::Gone { reason: self.missing() }),
        }
    }
}

/// `command = […]` in the settings file.
pub(super) const TABLE: TableKind = TableKind { key: "command", keys: &["command", "stdin"], parse };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    command: Vec<String>,
    stdin: Option<Input>,
}

fn parse(table: SpannedTable<'_>) -> Result<SinkSettings, Problem> {
    let Table { command, stdin } = table.read()?;
    if command.is_empty() {
        return Err("`command` is a list of a program and its arguments".into());
    }
    let input = stdin.unwrap_or(Input::Json);
    Ok(SinkSettings::new(CommandSink { alternatives: vec![command], input }))
}
