//! How a job ended: distinct facts, never merged, never invented.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fact::KilledBy;
use crate::variant::reads_newer_variants;

/// How a job ended.
///
/// A time limit, a kill and a failed start are outcomes with their own data, so that nobody has to guess from a
/// number. Only the supervisor, the one parent, states an exit; everybody else may only say [`Outcome::Lost`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Outcome {
    /// The command ended by itself with this code. Windows codes keep all their 32 bits.
    Exited {
        /// Zero is success.
        code: u32,
    },
    /// A signal that hearback did not send ended it.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether it left a memory image.
        core: bool,
    },
    /// It ran longer than it was allowed to.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// What was then seen of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// It printed nothing for longer than it was allowed to.
    IdleTimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// What was then seen of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// Somebody asked for its end.
    Killed {
        /// Who asked.
        by: KilledBy,
        /// In their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What was then seen of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// Nothing ran.
    FailedToStart {
        /// Why.
        error: StartError,
    },
    /// Nobody knows how it ended.
    Lost {
        /// What is known.
        reason: LostReason,
    },
    /// An outcome of a newer build. Never a success.
    #[serde(other)]
    Unknown,
}

/// What was observed of a process that was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Exit {
    /// It returned this code.
    Exited {
        /// The code.
        code: u32,
    },
    /// It died of this signal.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether it left a memory image.
        core: bool,
    },
    /// An exit that only a newer build knows.
    #[serde(other)]
    Unknown,
}

/// Why nobody knows how a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum LostReason {
    /// The machine was restarted under it. Said only when proved.
    Reboot,
    /// Its supervisor died, and the job was ended with it.
    SupervisorDied,
    /// The launch was cut short before anything ran.
    Abandoned,
    /// The record of its end cannot be read.
    Unreadable,
    /// A reason of a newer build.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(LostReason);

/// Why a command could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct StartError {
    /// What a caller would treat differently.
    pub kind: StartErrorKind,
    /// In the operating system's words, with what it is about.
    pub message: String,
}

impl StartError {
    /// Cuts a message that quotes a command line of a megabyte to what somebody would read.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        crate::fact::truncate(&mut self.message, 1024);
        self
    }
}

/// The ways in which a start fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum StartErrorKind {
    /// There is no such program.
    NotFound,
    /// There is one, but it cannot be executed.
    NotExecutable,
    /// The working directory is not there or not ours to enter.
    BadDirectory,
    /// Everything else: out of memory, out of processes, arguments too long.
    Other,
    /// A kind that only a newer build knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(StartErrorKind);

impl Outcome {
    /// Whether it ended by itself with code 0: everything else is a failure.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exited { code: 0 })
    }

    /// The exit code with which `hearback wait` passes this outcome on.
    pub fn exit_code(&self) -> u32 {
        match self {
            Self::Exited { code } => *code,
            Self::Signaled { signal, .. } => 128 + signal.unsigned_abs(),
            Self::TimedOut { .. } | Self::IdleTimedOut { .. } => 124,
            Self::Killed { exit: Some(Exit::Signaled { signal, .. }), .. } => 128 + signal.unsigned_abs(),
            Self::Killed { .. } => 143,
            Self::FailedToStart { error } => error.kind.exit_code(),
            Self::Lost { .. } | Self::Unknown => 125,
        }
    }
}

impl StartErrorKind {
    /// The code that shells give to the same failure.
    pub fn exit_code(self) -> u32 {
        match self {
            Self::NotFound => 127,
            Self::NotExecutable => 126,
            Self::BadDirectory | Self::Other | Self::Unknown => 125,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signaled { signal, .. } => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("an exit that a newer hearback knows"),
        }
    }
}

impl From<Exit> for Outcome {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Exited { code } => Self::Exited { code },
            Exit::Signaled { signal, core } => Self::Signaled { signal, core },
            Exit::Unknown => Self::Unknown,
        }
    }
}

/// One line that begins with the kind, as people and models read it.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code: 0 } => write!(f, "done: exit code 0"),
            Self::Exited { code } => write!(f, "failed: exit code {code}"),
            Self::Signaled { signal, core } => {
                write!(f, "failed: ended by signal {signal}{}", if *core { ", core dumped" } else { "" })
            }
            Self::TimedOut { limit_ms, exit } => {
                write!(f, "timed out: over its limit of {}", Seconds(*limit_ms))?;
                write_exit(f, *exit)
            }
            Self::IdleTimedOut { limit_ms, exit } => {
                write!(f, "timed out: no output for {}", Seconds(*limit_ms))?;
                write_exit(f, *exit)
            }
            Self::Killed { by, reason, exit } => {
                write!(f, "killed: by {by}")?;
                if let Some(reason) = reason {
                    write!(f, ", {reason}")?;
                }
                write_exit(f, *exit)
            }
            Self::FailedToStart { error } => write!(f, "failed to start: {error}"),
            Self::Lost { reason } => write!(f, "lost: {reason}"),
            Self::Unknown => write!(f, "ended: in a way that a newer hearback knows"),
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reboot => "the machine was restarted; nobody knows how far it came",
            Self::SupervisorDied => "its supervisor died and the job was ended; its exit code is unknown",
            Self::Abandoned => "the launch was cut short, and nothing was run",
            Self::Unreadable => "the record of its end cannot be read",
            Self::Unknown => "for a reason that a newer hearback knows",
        })
    }
}

fn write_exit(f: &mut fmt::Formatter<'_>, exit: Option<Exit>) -> fmt::Result {
    exit.map_or(Ok(()), |exit| write!(f, " (then {exit})"))
}

struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) {
            write!(f, "{} s", self.0 / 1000)
        } else {
            write!(f, "{} ms", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_named_where_it_ended_a_job() {
        let outcome = Outcome::Killed { by: KilledBy::Host, reason: Some("restart".into()), exit: None };
        assert_eq!(outcome.to_string(), "killed: by the host, restart");
        assert_eq!(serde_json::to_value(&outcome).unwrap()["by"], "host");
    }

    #[test]
    fn only_code_zero_is_done() {
        assert!(Outcome::Exited { code: 0 }.is_success());
        for failed in [
            Outcome::Exited { code: 259 },
            Outcome::Signaled { signal: 9, core: false },
            Outcome::Killed { by: KilledBy::Person, reason: None, exit: Some(Exit::Exited { code: 0 }) },
            Outcome::TimedOut { limit_ms: 1, exit: Some(Exit::Exited { code: 0 }) },
            Outcome::Lost { reason: LostReason::SupervisorDied },
            Outcome::Unknown,
        ] {
            assert!(!failed.is_success(), "{failed}");
            assert_ne!(failed.exit_code(), 0, "{failed}");
        }
    }

    #[test]
    fn an_outcome_of_a_newer_build_is_no_success() {
        let outcome: Outcome = serde_json::from_str(r#"{"kind":"ascended","code":0}"#).unwrap();
        assert_eq!(outcome, Outcome::Unknown);
        let lost: Outcome = serde_json::from_str(r#"{"kind":"lost","reason":"eaten_by_a_bear"}"#).unwrap();
        assert_eq!(lost, Outcome::Lost { reason: LostReason::Unknown });
    }
}
