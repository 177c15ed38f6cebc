//! What was asked for: the command and everything its owner chose about it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::agents::LaunchingAgent;
use crate::variant::reads_newer_variants;
use crate::{BootId, Extra, JobId, LogCap, MachineId, Timestamp, json};

/// The format that this build writes into every fact. A fact with a higher one is shown and never changed.
pub const FORMAT: u32 = 1;

/// What was asked for. Written by the launcher before anything runs.
///
/// The environment is not in here: it travels by inheritance and is never stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The format of this fact.
    pub format: u32,
    /// The job.
    pub id: JobId,
    /// What to run, without secrets.
    pub command: CommandLine,
    /// Whether a secret is masked in the command. What runs is recorded nowhere: the launcher hands it to the
    /// supervisor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub command_is_masked: bool,
    /// Whether records about the job keep text that looks like a credential. Otherwise it is masked in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_credentials: bool,
    /// Where to run it.
    pub cwd: OsText,
    /// Which executor runs it.
    #[serde(default, skip_serializing_if = "ExecutorName::is_local")]
    pub executor: ExecutorName,
    /// Who is told when it is over, and who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The agent whose session launched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<LaunchingAgent>,
    /// Whether it was launched through the MCP server: its owner has tools, and perhaps no shell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mcp: bool,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The key under which a repeated launch finds this job again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// When the owner is told. Absent in a fact that is older than the choice, which then wants nothing.
    #[serde(default = "NotifyPolicy::before_there_was_a_choice")]
    pub notify: NotifyPolicy,
    /// Where the follow-up goes, in this order; fixed at launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<String>,
    /// Names of variables that hold secrets, which the target does not inherit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withhold: Vec<String>,
    /// How many follow-ups led to this launch: a woken agent launches jobs that wake it again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Whether it ends with the host: a monitor that restarts or stops ends it first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// Whether other processes can write to its input. Otherwise its input is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_input: bool,
    /// It has an answer, which is worked out when it is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer: bool,
    /// The prompt of a job that has an answer, without secrets; it is part of the command, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// When and how it is ended.
    #[serde(default)]
    pub limits: Limits,
    /// Whether records survive a power cut.
    #[serde(default)]
    pub durability: Durability,
    /// When it was asked for.
    pub launched_at_ms: Timestamp,
    /// The boot in which it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// The machine on which it was asked for. A copy of the store elsewhere shows the job and leaves it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// The hearback that launched it.
    pub version: String,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Spec {
    /// Whether the end of the job may wake its owner: it has one, and the policy is not `never`.
    pub fn can_notify(&self) -> bool {
        self.notify != NotifyPolicy::Never && (self.session.is_some() || !self.sinks.is_empty())
    }

    /// A command for the executor `local`, without an owner, a notification or a limit.
    pub fn new(id: JobId, command: CommandLine, cwd: OsText, launched_at_ms: Timestamp) -> Self {
        Self {
            format: FORMAT,
            id,
            command,
            command_is_masked: false,
            keeps_credentials: false,
            cwd,
            launched_at_ms,
            executor: ExecutorName::default(),
            session: None,
            agent: None,
            mcp: false,
            label: None,
            key: None,
            notify: NotifyPolicy::Never,
            sinks: Vec::new(),
            withhold: Vec::new(),
            depth: 0,
            bound: false,
            takes_input: false,
            answer: false,
            prompt: None,
            limits: Limits::default(),
            durability: Durability::default(),
            boot: None,
            machine: None,
            version: String::new(),
            extra: Extra::new(),
        }
    }

    /// What has to survive a power cut; for a choice of a newer build, everything that this one can make do so.
    pub fn durability(&self) -> Durability {
        match self.durability {
            Durability::Process => Durability::Process,
            Durability::Power | Durability::Unknown => Durability::Power,
        }
    }
}

/// A program with its arguments, or text for a shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CommandLine {
    /// Run as given, without a shell; the first is the program.
    Argv(Vec<OsText>),
    /// Handed to a shell as a script file, so that nothing in it can break the bookkeeping.
    Shell {
        /// The text.
        shell: String,
        /// The shell that runs it, if one was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<String>,
    },
    /// A kind that only a newer build knows, as it stands in the spec. This build shows it and does not run it.
    Unknown(Extra),
}

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Shell {
            shell: String,
            program: Option<String>,
        }
        json::first_of(
            deserializer,
            &[
                |value| json::from_value(value).map(Self::Argv),
                |value| {
                    json::from_value(value).map(|Shell { shell, program }| Self::Shell { shell, program })
                },
                |value| json::from_value(value).map(Self::Unknown),
            ],
        )
    }
}

impl CommandLine {
    /// The command as one line of JSON, without its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a command has no map with keys that are not text")
    }

    /// Parses a line; `None` when it is no command.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        json::from_slice(line).ok()
    }
}

/// Text as the operating system has it: mostly UTF-8, but bound to nothing.
///
/// Valid text is stored as a string, anything else as the exact units it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OsText {
    /// Valid Unicode.
    Text(String),
    /// Bytes of a Unix name that are not UTF-8.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// UTF-16 units of a Windows name that are not Unicode.
    Wide {
        /// The units.
        wide: Vec<u16>,
    },
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Bytes {
            bytes: Vec<u8>,
        }
        #[derive(Deserialize)]
        struct Wide {
            wide: Vec<u16>,
        }
        json::first_of(
            deserializer,
            &[
                |value| json::from_value(value).map(Self::Text),
                |value| json::from_value(value).map(|Bytes { bytes }| Self::Bytes { bytes }),
                |value| json::from_value(value).map(|Wide { wide }| Self::Wide { wide }),
            ],
        )
    }
}

impl From<&str> for OsText {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Shows what can be shown; units that are no text become replacement characters.
impl fmt::Display for OsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Bytes { bytes } => f.pad(&String::from_utf8_lossy(bytes)),
            Self::Wide { wide } => f.pad(&String::from_utf16_lossy(wide)),
        }
    }
}

/// Why a session, a key or a reader was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("a {0} cannot be empty")]
    Empty(&'static str),
    /// What was given is not text.
    #[error("a {0} is text, and this is not UTF-8")]
    NotText(&'static str),
    /// More was given than anybody means.
    #[error("a {0} has at most {max} bytes", max = MAX_NAME)]
    TooLong(&'static str),
}

const MAX_NAME: usize = 1024;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $noun:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $type(String);

        impl $type {
            /// Checks the text once, at the door.
            ///
            /// # Errors
            ///
            /// When it is empty or absurdly long.
            pub fn parse(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                match text.len() {
                    0 => Err(NameError::Empty($noun)),
                    1..=MAX_NAME => Ok(Self(text)),
                    _ => Err(NameError::TooLong($noun)),
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name! {
    /// The owner of a job: one conversation of one agent. Chosen by the host, opaque to us.
    Session, "session"
}
name! {
    /// Makes a launch repeatable: the same key of the same session names the same job.
    Key, "key"
}

name! {
    /// A reader of answers besides the parent. hearback tracks what each reader has read.
    Reader, "reader"
}

name! {
    /// Where a job runs: the name of an executor. The default is `local`.
    ExecutorName, "executor"
}

impl ExecutorName {
    const LOCAL: &str = "local";

    /// Whether it names the executor of this machine.
    pub fn is_local(&self) -> bool {
        self.0 == Self::LOCAL
    }
}

/// This machine, which is also what a spec means that names no executor.
impl Default for ExecutorName {
    fn default() -> Self {
        Self(Self::LOCAL.to_owned())
    }
}

/// When the owner of a job is notified that it has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NotifyPolicy {
    /// Always, except when the session itself killed the job.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Only if the job failed.
    Failure,
    /// Only if the job succeeded.
    Success,
    /// Never.
    Never,
    /// A choice that only a newer build knows. The owner is told as under [`NotifyPolicy::Auto`]: once too often is
    /// better than never.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(NotifyPolicy);

impl NotifyPolicy {
    fn before_there_was_a_choice() -> Self {
        Self::Never
    }
}

/// When and how a job is ended. All times are awake time: they stand still while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The longest it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest time without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// The time between terminating processes and killing them.
    #[serde(default = "Limits::default_grace_ms")]
    pub grace_ms: u64,
    /// What happens to processes that outlive the main process.
    #[serde(default)]
    pub leftovers: Leftovers,
    /// The most of its output that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cap: Option<LogCap>,
    /// What happens when the output exceeds the log cap.
    #[serde(default)]
    pub over_cap: OverCap,
}

impl Limits {
    const fn default_grace_ms() -> u64 {
        5_000
    }
}

/// A record from before there were limits has none.
impl Default for Limits {
    fn default() -> Self {
        let grace_ms = Self::default_grace_ms();
        Self {
            timeout_ms: None,
            idle_timeout_ms: None,
            grace_ms,
            leftovers: Leftovers::default(),
            log_cap: None,
            over_cap: OverCap::default(),
        }
    }
}

/// What happens to processes that outlive the main process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum Leftovers {
    /// They are killed when the job ends.
    #[default]
    Kill,
    /// They continue, and their output is kept.
    Keep,
    /// A choice that only a newer build knows; taken for the default.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(Leftovers);

/// What happens to a job whose output exceeds the log cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum OverCap {
    /// It continues; the beginning and the end of its output are kept.
    #[default]
    Trim,
    /// It is killed: so much output means that it is out of control.
    Kill,
    /// A choice that only a newer build knows; taken for the default.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(OverCap);

/// Whether records survive a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Durability {
    /// Requests and outcomes are flushed to the disk before any process relies on them.
    #[default]
    Power,
    /// Nothing is flushed: facts survive every crash of a process, not of the machine.
    Process,
    /// A choice that only a newer build knows; taken for [`Durability::Power`], the strongest that this one knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(Durability);

/// What becomes of a message to a session that is in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Busy {
    /// It waits for the end of the turn.
    #[default]
    Queue,
    /// The turn is interrupted for it.
    Interrupt,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_unicode_keeps_every_unit() {
        for text in [
            OsText::from("naïve"),
            OsText::Bytes { bytes: vec![b'a', 0xff, b'/'] },
            OsText::Wide { wide: vec![0x61, 0xd800] },
        ] {
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<OsText>(&json).unwrap(), text);
        }
    }

    #[test]
    fn a_spec_that_names_no_executor_runs_on_this_machine() {
        let local = crate::testing::sample::spec("s");
        let mut json = serde_json::to_value(&local).unwrap();
        assert_eq!(json.get("executor"), None, "as specs of earlier builds are");
        assert_eq!(serde_json::from_value::<Spec>(json.clone()).unwrap(), local);
        json["executor"] = "ssh:host".into();
        let remote: Spec = serde_json::from_value(json).unwrap();
        assert!(!remote.executor.is_local() && remote.extra.is_empty());
    }

    #[test]
    fn sessions_are_opaque_but_not_empty() {
        assert!(Session::parse("thread 7/ümlaut").is_ok());
        assert_eq!(Session::parse(""), Err(NameError::Empty("session")));
        assert_eq!(Key::parse("k".repeat(1025)), Err(NameError::TooLong("key")));
    }
}
