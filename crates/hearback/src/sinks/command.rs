//! Sinks that run a program: its input and its arguments are configured, and its exit code is the reply.

use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{SinkPayload, StartErrorKind};
use hearback_platform::Native;
use serde::Deserialize;

use super::hand_over::{HandOver, Opening, answer, line};
use super::kind::{SinkKind, TableKind};
use super::settings::SinkSettings;
use super::template::arguments;
use crate::settings_file::{Problem, SpannedTable};

/// A program that is run for each delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandSink {
    /// A program with its arguments; the first that is installed is run. `{session}`, `{text}`, `{delivery}`, `{job}`,
    /// `{title}`, `{command}` and `{destination}` are replaced by their values.
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
        let programs: Vec<_> = self.alternatives.iter().filter_map(|words| words.first()).collect();
        let found = programs.iter().any(|program| native.find_program(program).is_some());
        let missing = || programs.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" nor ");
        (!found).then(|| format!("{} was not found on the PATH", missing()))
    }

    fn deliver(&self, hand_over: &HandOver<'_>) -> Result<SinkReply, SinkError> {
        let mut missing = "its command is empty".to_owned();
        for words in &self.alternatives {
            let argv = match arguments(words, hand_over.payload) {
                Ok(argv) => argv,
                Err(reason) => return Ok(SinkReply::Gone { reason }),
            };
            let stdin = self.stdin(hand_over.payload)?;
            match hand_over.run(argv, stdin, Opening::Input) {
                Ok(report) => return answer(&report),
                Err(error) if error.kind == StartErrorKind::NotFound => missing = error.message,
                Err(error) => return Err(hand_over.not_started(error)),
            }
        }
        Err(SinkError::Failed(missing))
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
