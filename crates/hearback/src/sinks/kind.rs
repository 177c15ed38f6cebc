//! The kinds of sinks. A new kind is a file beside this one, a variant and an arm of [`Route`], and, if it can be
//! written in the settings file, a row of [`TABLES`].

use hearback_core::Spec;
use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_platform::Native;

use super::agent::AgentSink;
use super::command::{self, CommandSink};
use super::file::{self, FileSink};
use super::hand_over::HandOver;
use super::plugin::PluginSink;
use super::preset;
use super::settings::SinkSettings;
use super::webhook::{self, WebhookSink};
use crate::settings_file::{Problem, SpannedTable};

/// What each kind of sink does.
pub(super) trait SinkKind {
    /// Why it cannot be run here, as far as that is known without running it.
    fn check(&self, native: Native) -> Option<String>;

    /// Whether it can only take the follow-up of a job that has a session.
    fn needs_session(&self) -> bool {
        false
    }

    /// Why it cannot take the follow-up of a job, as far as that is known at launch.
    fn check_for(&self, native: Native, _: &Spec) -> Option<String> {
        self.check(native)
    }

    /// Hands over one payload.
    fn deliver(&self, hand_over: &HandOver<'_>) -> Result<SinkReply, SinkError>;
}

/// Where a delivery goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// An agent, which is woken in its session.
    Agent(AgentSink),
    /// A program with its arguments.
    Command(CommandSink),
    /// An address that takes events.
    Webhook(WebhookSink),
    /// A file to which each delivery appends one line.
    File(FileSink),
    /// A program that speaks the plugin protocol.
    Plugin(PluginSink),
}

impl Route {
    pub(super) fn kind(&self) -> &dyn SinkKind {
        match self {
            Self::Agent(sink) => sink,
            Self::Command(sink) => sink,
            Self::Webhook(sink) => sink,
            Self::File(sink) => sink,
            Self::Plugin(sink) => sink,
        }
    }
}

impl From<AgentSink> for Route {
    fn from(sink: AgentSink) -> Self {
        Self::Agent(sink)
    }
}

impl From<CommandSink> for Route {
    fn from(sink: CommandSink) -> Self {
        Self::Command(sink)
    }
}

impl From<WebhookSink> for Route {
    fn from(sink: WebhookSink) -> Self {
        Self::Webhook(sink)
    }
}

impl From<FileSink> for Route {
    fn from(sink: FileSink) -> Self {
        Self::File(sink)
    }
}

impl From<PluginSink> for Route {
    fn from(sink: PluginSink) -> Self {
        Self::Plugin(sink)
    }
}

/// One way to write a sink in the settings file.
pub(super) struct TableKind {
    /// The key that chooses it.
    pub(super) key: &'static str,
    /// Its keys, besides those of every sink.
    pub(super) keys: &'static [&'static str],
    /// Reads a table that has only these keys.
    pub(super) parse: fn(SpannedTable<'_>) -> Result<SinkSettings, Problem>,
}

/// Every way to write a sink in the settings file.
pub(super) const TABLES: [TableKind; 4] = [command::TABLE, preset::TABLE, webhook::TABLE, file::TABLE];
