//! How a job ends: why the supervisor ended it, how its main process exited, and the outcome that follows.

use std::time::Duration;

use hearback_core::{Exit, KilledBy, LogCap, LostReason, Outcome, ProcessIdentity, Usage};

/// Why the supervisor ended a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// It ran longer than this.
    Timeout {
        /// The limit.
        limit_ms: u64,
    },
    /// It had no output for this long.
    Idle {
        /// The limit.
        limit_ms: u64,
    },
    /// Its output exceeded the log cap.
    Output {
        /// The cap.
        cap: LogCap,
    },
    /// A user, a session or the system requested it.
    Kill {
        /// Who requested it.
        by: KilledBy,
        /// Their reason.
        reason: Option<String>,
    },
}

/// How the main process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MainExit {
    /// Its exit code or signal.
    pub exit: Exit,
    /// What it used.
    pub usage: Option<Usage>,
    /// When, on the awake clock.
    pub at: Duration,
}

/// What is known so far about an end that is in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndSoFar {
    /// When the target was started, on the awake clock.
    pub(super) since: Duration,
    /// None if it ended by itself.
    pub(super) cause: Option<Cause>,
    /// None while the main process runs.
    pub(super) main: Option<MainExit>,
    /// How many processes were left when the main one exited by itself.
    pub(super) left_behind: usize,
}

impl EndSoFar {
    /// The end, for a cause, of a target that runs or was about to.
    pub(super) fn caused(cause: Cause, since: Duration) -> Self {
        Self { since, cause: Some(cause), main: None, left_behind: 0 }
    }

    /// The end of a target whose main process exited by itself.
    pub(super) fn exited(main: MainExit, since: Duration, left_behind: usize) -> Self {
        Self { since, cause: None, main: Some(main), left_behind }
    }

    /// The cause decides the outcome. The exit that was seen after it is kept beside it.
    pub(super) fn ending(self, survivors: Vec<ProcessIdentity>) -> Ending {
        let exit = self.main.map(|main| main.exit);
        let outcome = match (self.cause, exit) {
            (Some(Cause::Timeout { limit_ms }), exit) => Outcome::TimedOut { limit_ms, exit },
            (Some(Cause::Idle { limit_ms }), exit) => Outcome::IdleTimedOut { limit_ms, exit },
            (Some(Cause::Kill { by, reason }), exit) => Outcome::Killed { by, reason, exit },
            (Some(Cause::Output { cap }), exit) => {
                let reason = Some(format!("its output exceeded {} bytes", cap.bytes()));
                Outcome::Killed { by: KilledBy::OutputLimit, reason, exit }
            }
            (None, Some(exit)) => exit.into(),
            (None, None) => Outcome::Lost { reason: LostReason::SupervisorDied },
        };
        Ending {
            outcome,
            usage: self.main.and_then(|main| main.usage),
            ran: self.main.map(|main| main.at.saturating_sub(self.since)),
            survivors,
            left_behind: self.left_behind,
        }
    }
}

/// The end of a job, before it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Option<Usage>,
    /// How long it ran.
    pub ran: Option<Duration>,
    /// Processes that survived the kill, or were kept.
    pub survivors: Vec<ProcessIdentity>,
    /// How many processes were left when the main one exited.
    pub left_behind: usize,
}

impl Ending {
    /// An ending of which only the outcome is known.
    pub fn of(outcome: Outcome) -> Self {
        Self { outcome, usage: None, ran: None, survivors: Vec::new(), left_behind: 0 }
    }
}
