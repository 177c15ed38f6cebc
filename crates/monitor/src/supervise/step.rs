//! What a supervisor does next: a pure function of how far it is and what happened.

use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::process::LaunchSignal;
use hearback_core::{
    Exit, KilledBy, Leftovers, Limits, LogCap, LostReason, Outcome, OverCap, ProcessIdentity, StartError,
    Usage,
};

/// How far a supervisor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waiting to be told that the spec is on disk.
    Waiting,
    /// Asking for the job: somebody may have declared it abandoned.
    Claiming,
    /// Hanging the bell, listening and opening the log. From here on a request to end the job is heard.
    Preparing,
    /// Starting the target.
    Starting,
    /// The executor has accepted the target, which may still wait for its turn there. No limit counts.
    Accepted,
    /// The target runs.
    Running {
        /// When it was started, on the awake clock.
        since: Duration,
    },
    /// The tree has been asked to end: for a cause, or because its main process is gone.
    Ending {
        /// What is known so far.
        end: Known,
        /// When asking turns into forcing, on the awake clock.
        deadline: Duration,
    },
    /// The tree is being killed.
    Killing {
        /// What is known so far.
        end: Known,
    },
    /// The end is recorded, and what was left behind is kept: only its output is still taken.
    Keeping,
    /// Nothing is left to do.
    Over,
}

/// Why a job was ended that did not end by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// It ran longer than this.
    Timeout {
        /// The limit.
        limit_ms: u64,
    },
    /// It printed nothing for this long.
    Idle {
        /// The limit.
        limit_ms: u64,
    },
    /// It printed more than this.
    Output {
        /// The limit.
        cap: LogCap,
    },
    /// Somebody asked.
    Kill {
        /// Who.
        by: KilledBy,
        /// In their words.
        reason: Option<String>,
    },
}

/// How the main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// How.
    pub exit: Exit,
    /// What it used.
    pub usage: Option<Usage>,
    /// When, on the awake clock.
    pub at: Duration,
}

/// What is known about an end that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// When the target was started, on the awake clock.
    since: Duration,
    /// Nothing when it ended by itself.
    cause: Option<Cause>,
    /// Nothing while the main process is there.
    seen: Option<Seen>,
    /// How many processes the main one left behind when it ended by itself.
    left_behind: usize,
}

impl Known {
    /// The end of a target that is there, or was about to be, for a cause.
    fn caused(cause: Cause, since: Duration) -> Self {
        Self { since, cause: Some(cause), seen: None, left_behind: 0 }
    }

    /// The cause is what was acted on, and what was then seen is kept beside it.
    fn ending(self, survivors: Vec<ProcessIdentity>) -> Ending {
        let exit = self.seen.map(|seen| seen.exit);
        let outcome = match (self.cause, exit) {
            (Some(Cause::Timeout { limit_ms }), exit) => Outcome::TimedOut { limit_ms, exit },
            (Some(Cause::Idle { limit_ms }), exit) => Outcome::IdleTimedOut { limit_ms, exit },
            (Some(Cause::Kill { by, reason }), exit) => Outcome::Killed { by, reason, exit },
            (Some(Cause::Output { cap }), exit) => {
                let reason = Some(format!("it printed more than {} bytes", cap.bytes()));
                Outcome::Killed { by: KilledBy::OutputLimit, reason, exit }
            }
            (None, Some(exit)) => exit.into(),
            (None, None) => Outcome::Lost { reason: LostReason::SupervisorDied },
        };
        Ending {
            outcome,
            usage: self.seen.and_then(|seen| seen.usage),
            ran: self.seen.map(|seen| seen.at.saturating_sub(self.since)),
            survivors,
            left_behind: self.left_behind,
        }
    }
}

/// What is known about the end of a job before it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Option<Usage>,
    /// How long it ran.
    pub ran: Option<Duration>,
    /// Who would not end, or was kept.
    pub survivors: Vec<ProcessIdentity>,
    /// How many processes the main one left behind.
    pub left_behind: usize,
}

impl Ending {
    /// An ending of which only the outcome is known.
    pub fn of(outcome: Outcome) -> Self {
        Self { outcome, usage: None, ran: None, survivors: Vec::new(), left_behind: 0 }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The launcher spoke, or is gone.
    LaunchSignal(LaunchSignal),
    /// The begin was published, or somebody was quicker.
    Claimed(Publish),
    /// hearback could not do its part before anything ran.
    Unable(String),
    /// What surrounds the target is there.
    Surrounded,
    /// The executor has accepted the target.
    Accepted,
    /// The target runs.
    Started {
        /// Since when, on the awake clock.
        at: Duration,
    },
    /// The target could not be started.
    StartFailed(StartError),
    /// The main process ended.
    Exited {
        /// How.
        seen: Seen,
        /// What it left behind.
        left: Vec<ProcessIdentity>,
    },
    /// Somebody asked for the end.
    Asked {
        /// Who and why.
        cause: Cause,
        /// How long the tree has between being asked and being forced.
        grace: Duration,
        /// When, on the awake clock.
        at: Duration,
    },
    /// It has printed more than its log keeps.
    OverCap {
        /// When, on the awake clock.
        at: Duration,
    },
    /// Nothing is left of the tree.
    Emptied,
    /// The deadline of the state passed.
    Deadline {
        /// When, on the awake clock.
        at: Duration,
        /// When the job last printed anything, on the awake clock.
        last_output: Duration,
    },
    /// The tree was killed.
    Killed {
        /// How the main process ended, if that was not known before.
        seen: Option<Seen>,
        /// What is not gone.
        survivors: Vec<ProcessIdentity>,
    },
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Flush the spec, which the launcher can no longer do.
    FlushSpec,
    /// Take the alive lock and publish the begin.
    Claim,
    /// Hang the bell, listen for requests to stop, and open the log.
    Surround,
    /// Start the target.
    Start,
    /// Record the target, and answer that it was started.
    Announce,
    /// Request the tree to terminate.
    Terminate,
    /// Kill the tree.
    Kill,
    /// Record the end.
    End(Ending),
    /// Go on taking the output of what was left behind.
    Keep,
    /// Take the last of that output.
    Drain,
    /// Answer that the target could not be started; its end is recorded.
    AnswerFailed(StartError),
    /// Answer that the job was killed before its target was started; its end is recorded.
    AnswerKilled,
    /// Answer that nothing runs, because hearback could not do its part.
    Refuse(String),
    /// Answer that somebody else had decided about the job already.
    AnswerTaken,
}

/// Decides. An event that makes no sense in a state changes nothing.
pub fn step(limits: &Limits, state: State, event: Event) -> (State, Vec<Action>) {
    match (state, event) {
        (State::Waiting, Event::LaunchSignal(LaunchSignal::Durable)) => {
            (State::Claiming, vec![Action::Claim])
        }
        (State::Waiting, Event::LaunchSignal(LaunchSignal::Gone)) => {
            (State::Claiming, vec![Action::FlushSpec, Action::Claim])
        }
        (State::Waiting, Event::LaunchSignal(LaunchSignal::Failed)) => (State::Over, vec![]),
        (State::Waiting | State::Claiming, Event::Unable(why)) => (State::Over, vec![Action::Refuse(why)]),

        (State::Claiming, Event::Claimed(Publish::New)) => (State::Preparing, vec![Action::Surround]),
        (State::Claiming, Event::Claimed(Publish::Exists)) => (State::Over, vec![Action::AnswerTaken]),

        (State::Preparing, Event::Surrounded) => (State::Starting, vec![Action::Start]),
        // Nothing has run, and nothing will.
        (State::Preparing, Event::Asked { cause, at, .. }) => {
            let ending = Known::caused(cause, at).ending(vec![]);
            (State::Over, vec![Action::End(ending), Action::AnswerKilled])
        }
        (State::Preparing | State::Starting, Event::StartFailed(error)) => {
            let ending = Ending::of(Outcome::FailedToStart { error: error.clone() });
            (State::Over, vec![Action::End(ending), Action::AnswerFailed(error)])
        }

        (State::Starting, Event::Accepted) => (State::Accepted, vec![Action::Announce]),
        (State::Accepted, Event::Started { at }) => (State::Running { since: at }, vec![]),
        (State::Accepted, Event::Asked { cause, grace, at }) => ask(Known::caused(cause, at), grace, at),
        (State::Accepted, Event::Exited { seen, left }) => {
            let since = seen.at;
            exited(limits, Known { since, cause: None, seen: Some(seen), left_behind: left.len() }, left)
        }

        (State::Running { since }, Event::Exited { seen, left }) => {
            exited(limits, Known { since, cause: None, seen: Some(seen), left_behind: left.len() }, left)
        }
        (State::Running { since }, Event::Asked { cause, grace, at }) => {
            ask(Known::caused(cause, since), grace, at)
        }
        (State::Running { since }, Event::Deadline { at, last_output }) => {
            over_limit(limits, since, limits.exceeded(since, last_output, at), at)
        }
        (State::Running { since }, Event::OverCap { at }) => {
            let cause = limits.log_cap.filter(|_| limits.over_cap == OverCap::Kill);
            over_limit(limits, since, cause.map(|cap| Cause::Output { cap }), at)
        }

        (State::Ending { end, deadline }, Event::Exited { seen, left }) => {
            let end = Known { seen: Some(seen), ..end };
            if left.is_empty() {
                (State::Over, vec![Action::End(end.ending(left))])
            } else {
                (State::Ending { end, deadline }, vec![])
            }
        }
        // The first names the cause, later ones are only more urgent.
        (State::Ending { end, deadline }, Event::Asked { grace, at, .. }) => {
            (State::Ending { end, deadline: deadline.min(at + grace) }, vec![])
        }
        (State::Ending { end, .. }, Event::Emptied) => (State::Over, vec![Action::End(end.ending(vec![]))]),
        (State::Ending { end, .. }, Event::Deadline { .. }) => (State::Killing { end }, vec![Action::Kill]),

        (State::Killing { end }, Event::Killed { seen, survivors }) => {
            let end = Known { seen: end.seen.or(seen), ..end };
            (State::Over, vec![Action::End(end.ending(survivors))])
        }

        // Asked by the system: what was kept is not ours to end, but we are.
        (State::Keeping, Event::Emptied | Event::Asked { .. }) => (State::Over, vec![Action::Drain]),

        (state, _) => (state, vec![]),
    }
}

/// The main process has ended by itself.
fn exited(limits: &Limits, end: Known, left: Vec<ProcessIdentity>) -> (State, Vec<Action>) {
    match limits.leftovers {
        _ if left.is_empty() => (State::Over, vec![Action::End(end.ending(left))]),
        Leftovers::Keep => (State::Keeping, vec![Action::End(end.ending(left)), Action::Keep]),
        Leftovers::Kill | Leftovers::Unknown => {
            let at = end.seen.map_or(end.since, |seen| seen.at);
            ask(end, Duration::from_millis(limits.grace_ms), at)
        }
    }
}

fn over_limit(limits: &Limits, since: Duration, cause: Option<Cause>, at: Duration) -> (State, Vec<Action>) {
    match cause {
        None => (State::Running { since }, vec![]),
        Some(cause) => ask(Known::caused(cause, since), Duration::from_millis(limits.grace_ms), at),
    }
}

fn ask(end: Known, grace: Duration, at: Duration) -> (State, Vec<Action>) {
    if grace.is_zero() {
        return (State::Killing { end }, vec![Action::Kill]);
    }
    (State::Ending { end, deadline: at + grace }, vec![Action::Terminate])
}

/// Limits on the awake clock.
trait Exceeded {
    fn deadline(&self, since: Duration, last_output: Duration) -> Option<Duration>;
    fn exceeded(&self, since: Duration, last_output: Duration, at: Duration) -> Option<Cause>;
}

impl Exceeded for Limits {
    fn deadline(&self, since: Duration, last_output: Duration) -> Option<Duration> {
        let hard = self.timeout_ms.map(|limit| since.saturating_add(Duration::from_millis(limit)));
        let quiet_since = last_output.max(since);
        let idle = self.idle_timeout_ms.map(|limit| quiet_since.saturating_add(Duration::from_millis(limit)));
        hard.into_iter().chain(idle).min()
    }

    fn exceeded(&self, since: Duration, last_output: Duration, at: Duration) -> Option<Cause> {
        let over = |limit: Option<u64>, from: Duration| {
            limit.filter(|limit| at >= from.saturating_add(Duration::from_millis(*limit)))
        };
        if let Some(limit_ms) = over(self.timeout_ms, since) {
            return Some(Cause::Timeout { limit_ms });
        }
        over(self.idle_timeout_ms, last_output.max(since)).map(|limit_ms| Cause::Idle { limit_ms })
    }
}

impl State {
    /// When the state has to be looked at again, whatever happens; nothing when it may last.
    pub fn deadline(&self, limits: &Limits, last_output: Duration) -> Option<Duration> {
        match self {
            Self::Running { since } => limits.deadline(*since, last_output),
            Self::Ending { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }

    /// What would have to be recorded if the supervisor failed now: never an exit that was not seen.
    pub fn known_ending(&self) -> Option<Ending> {
        match self {
            Self::Ending { end, .. } | Self::Killing { end } => Some(end.clone().ending(Vec::new())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
