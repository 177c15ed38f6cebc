//! How a job ended: distinct outcomes, never merged, never guessed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fact::KilledBy;
use crate::variant::reads_newer_variants;

/// How a job ended.
///
/// A time limit, a kill and a failed start are outcomes with their own data, so that a caller need not interpret exit
/// codes. Only the supervisor, the parent of the target, records an exit; any other process may only record `lost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Outcome {
    /// The command exited with this code. Windows codes keep all their 32 bits.
    Exited {
        /// Zero is success.
        code: u32,
    },
    /// A signal that hearback did not send killed the command.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core dump.
        core: bool,
    },
    /// The job exceeded its time limit.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// How its main process then ended, if that was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The job was without output for longer than its idle limit.
    IdleTimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// How its main process then ended, if that was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The job was killed on request.
    Killed {
        /// Who requested it.
        by: KilledBy,
        /// The reason that was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// How its main process then ended, if that was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The command could not be started, and nothing ran.
    FailedToStart {
        /// Why it could not be started.
        error: StartError,
    },
    /// How the job ended is unknown.
    Lost {
        /// Why that is unknown.
        reason: LostReason,
    },
    /// An outcome that only a newer hearback knows. Never a success.
    #[serde(other)]
    Unknown,
}

/// The kind of an outcome, as `outcome.kind` has it in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// [`Outcome::Exited`].
    Exited,
    /// [`Outcome::Signaled`].
    Signaled,
    /// [`Outcome::TimedOut`].
    TimedOut,
    /// [`Outcome::IdleTimedOut`].
    IdleTimedOut,
    /// [`Outcome::Killed`].
    Killed,
    /// [`Outcome::FailedToStart`].
    FailedToStart,
    /// [`Outcome::Lost`].
    Lost,
    /// [`Outcome::Unknown`].
    Unknown,
}

/// How a process that hearback terminated or killed then ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Exit {
    /// It exited with this code.
    Exited {
        /// The code.
        code: u32,
    },
    /// A signal killed it.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core dump.
        core: bool,
    },
    /// An exit that only a newer build knows.
    #[serde(other)]
    Unknown,
}

/// Why it is unknown how a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum LostReason {
    /// The machine was restarted. Recorded only when that is proved.
    Reboot,
    /// Its supervisor died, and the rest of the job was killed.
    SupervisorDied,
    /// Its supervisor died, and it is not known that all of its processes have ended: some survived a sweep, or could
    /// not be seen by it.
    Unswept,
    /// The launch was interrupted before anything ran.
    Abandoned,
    /// The record of its end cannot be read.
    Unreadable,
    /// A reason that only a newer hearback knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(LostReason);

/// Why a command could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct StartError {
    /// The kind of failure.
    pub kind: StartErrorKind,
    /// The message of the operating system, with the name of the program or directory.
    pub message: String,
}

impl StartError {
    /// Cuts a long message, which may quote a command line of a megabyte.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        crate::fact::truncate(&mut self.message, 1024);
        self
    }
}

/// The kinds of failed starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum StartErrorKind {
    /// The program does not exist.
    NotFound,
    /// The program cannot be executed.
    NotExecutable,
    /// The working directory does not exist or cannot be entered.
    BadDirectory,
    /// Any other failure: out of memory, too many processes, arguments too long.
    Other,
    /// A kind that only a newer build knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(StartErrorKind);

impl Outcome {
    /// Whether the command exited with code 0. Every other outcome is a failure.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exited { code: 0 })
    }

    /// Its kind.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Exited { .. } => OutcomeKind::Exited,
            Self::Signaled { .. } => OutcomeKind::Signaled,
            Self::TimedOut { .. } => OutcomeKind::TimedOut,
            Self::IdleTimedOut { .. } => OutcomeKind::IdleTimedOut,
            Self::Killed { .. } => OutcomeKind::Killed,
            Self::FailedToStart { .. } => OutcomeKind::FailedToStart,
            Self::Lost { .. } => OutcomeKind::Lost,
            Self::Unknown => OutcomeKind::Unknown,
        }
    }

    /// The exit code of `hearback wait` for this outcome.
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

    /// The outcome in one or two words, for a table.
    pub fn short(&self) -> String {
        match self {
            Self::Exited { code } => format!("exit {code}"),
            Self::Signaled { signal, .. } => signal_text(*signal),
            Self::TimedOut { .. } | Self::IdleTimedOut { .. } => "timed out".into(),
            Self::Killed { .. } => "killed".into(),
            Self::FailedToStart { .. } => "not started".into(),
            Self::Lost { .. } => "lost".into(),
            Self::Unknown => "unknown".into(),
        }
    }
}

impl StartErrorKind {
    /// The exit code that shells use for the same failure.
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
            Self::Signaled { signal, .. } => f.write_str(&signal_text(*signal)),
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

/// One line that begins with the kind of the outcome, for people and models.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code: 0 } => write!(f, "done: exit code 0"),
            Self::Exited { code } => write!(f, "failed: exit code {code}"),
            Self::Signaled { signal, core } => {
                let dumped = if *core { ", core dumped" } else { "" };
                write!(f, "failed: ended by {}{dumped}", signal_text(*signal))
            }
            Self::TimedOut { limit_ms, exit } => {
                write!(f, "timed out: exceeded its limit of {}", Seconds(*limit_ms))?;
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
            Self::Unknown => write!(f, "ended: with an outcome that only a newer hearback knows"),
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reboot => "the machine was restarted; how far the job got is unknown",
            Self::SupervisorDied => "its supervisor died and the job was killed; its exit code is unknown",
            Self::Unswept => {
                "its supervisor died, and some of its processes may not have ended; its exit code is unknown"
            }
            Self::Abandoned => "the launch was interrupted before anything ran",
            Self::Unreadable => "the record of its end cannot be read",
            Self::Unknown => "for a reason that only a newer hearback knows",
        })
    }
}

fn write_exit(f: &mut fmt::Formatter<'_>, exit: Option<Exit>) -> fmt::Result {
    match exit {
        None => Ok(()),
        Some(Exit::Signaled { signal, .. }) => write!(f, " (ended by {})", signal_text(signal)),
        Some(exit) => write!(f, " ({exit})"),
    }
}

/// A signal by its name, or by its number where that has different names on different systems.
pub fn signal_text(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        number => return format!("signal {number}"),
    };
    name.to_owned()
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
    fn an_outcome_names_the_host_that_killed_the_job() {
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
    fn an_unknown_outcome_is_no_success() {
        let outcome: Outcome = serde_json::from_str(r#"{"kind":"ascended","code":0}"#).unwrap();
        assert_eq!(outcome, Outcome::Unknown);
        let lost: Outcome = serde_json::from_str(r#"{"kind":"lost","reason":"eaten_by_a_bear"}"#).unwrap();
        assert_eq!(lost, Outcome::Lost { reason: LostReason::Unknown });
    }
}
