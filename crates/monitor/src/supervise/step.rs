//! What a supervisor does next: a pure function of its state and of what happened.

use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::process::LaunchSignal;
use hearback_core::{Leftovers, Limits, Outcome, OverCap, ProcessIdentity, StartError};

use super::ending::{Cause, EndSoFar, Ending, MainExit};

/// The state of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waiting for the signal of the launcher that the spec is on disk.
    Waiting,
    /// Claiming the job. Another process may have declared it abandoned.
    Claiming,
    /// Making the bell, listening for stop requests and opening the log. From here on a kill request is noticed.
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
    /// The tree was requested to terminate: for a cause, or because its main process has exited.
    Ending {
        /// What is known so far.
        end: EndSoFar,
        /// When the tree is killed, on the awake clock.
        deadline: Duration,
    },
    /// The tree is being killed.
    Killing {
        /// What is known so far.
        end: EndSoFar,
    },
    /// The end is recorded, and the leftover processes are kept: the supervisor only takes their output.
    Keeping,
    /// Nothing is left to do.
    Done,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The launcher gave its signal, or has died.
    LaunchSignal(LaunchSignal),
    /// The begin was published, by this supervisor or before it by another process.
    Claimed(Publish),
    /// hearback could not prepare the job. Nothing ran.
    Unable(String),
    /// The surroundings of the target exist.
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
    /// The main process exited.
    Exited {
        /// How.
        main: MainExit,
        /// The processes that it left behind.
        left: Vec<ProcessIdentity>,
    },
    /// Another process, or the system, requested the end of the job.
    StopRequested {
        /// Who requested it, and why.
        cause: Cause,
        /// The time between terminating and killing the tree.
        grace: Duration,
        /// When, on the awake clock.
        at: Duration,
    },
    /// Its output exceeded the log cap.
    OverCap {
        /// When, on the awake clock.
        at: Duration,
    },
    /// No process of the tree is left.
    Emptied,
    /// The deadline of the state passed.
    Deadline {
        /// When, on the awake clock.
        at: Duration,
        /// When the job last had output, on the awake clock.
        last_output: Duration,
    },
    /// The tree was killed.
    Killed {
        /// How the main process exited, if that was not known before.
        main: Option<MainExit>,
        /// The processes that survived.
        survivors: Vec<ProcessIdentity>,
    },
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Flush the spec, because the launcher died before it could.
    FlushSpec,
    /// Take the alive lock and publish the begin.
    Claim,
    /// Make the bell, listen for stop requests, and open the log.
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
    /// Go on taking the output of the leftover processes.
    Keep,
    /// Take the last of that output.
    Drain,
    /// Answer that the target could not be started; its end is recorded.
    AnswerFailed(StartError),
    /// Answer that the job was killed before its target was started; its end is recorded.
    AnswerKilled,
    /// Answer that nothing runs, because hearback could not prepare the job.
    Refuse(String),
    /// Answer that another process had published the begin before.
    AnswerTaken,
}

/// Decides what to do next. An event that does not fit the state changes nothing.
pub fn step(limits: &Limits, state: State, event: Event) -> (State, Vec<Action>) {
    match &state {
        State::Waiting | State::Claiming | State::Preparing | State::Starting => step_to_start(state, event),
        State::Accepted | State::Running { .. } => step_of_target(limits, state, event),
        State::Ending { .. } | State::Killing { .. } | State::Keeping | State::Done => {
            step_to_end(state, event)
        }
    }
}

/// From the launcher's signal until the executor has accepted the target.
fn step_to_start(state: State, event: Event) -> (State, Vec<Action>) {
    match (state, event) {
        (State::Waiting, Event::LaunchSignal(LaunchSignal::Durable)) => {
            (State::Claiming, vec![Action::Claim])
        }
        (State::Waiting, Event::LaunchSignal(LaunchSignal::Gone)) => {
            (State::Claiming, vec![Action::FlushSpec, Action::Claim])
        }
        (State::Waiting, Event::LaunchSignal(LaunchSignal::Failed)) => (State::Done, vec![]),
        (State::Waiting | State::Claiming, Event::Unable(why)) => (State::Done, vec![Action::Refuse(why)]),

        (State::Claiming, Event::Claimed(Publish::New)) => (State::Preparing, vec![Action::Surround]),
        (State::Claiming, Event::Claimed(Publish::Exists)) => (State::Done, vec![Action::AnswerTaken]),

        (State::Preparing, Event::Surrounded) => (State::Starting, vec![Action::Start]),
        // Nothing has run, and nothing will.
        (State::Preparing, Event::StopRequested { cause, at, .. }) => {
            let ending = EndSoFar::caused(cause, at).ending(vec![]);
            (State::Done, vec![Action::End(ending), Action::AnswerKilled])
        }
        (State::Preparing | State::Starting, Event::StartFailed(error)) => {
            let ending = Ending::of(Outcome::FailedToStart { error: error.clone() });
            (State::Done, vec![Action::End(ending), Action::AnswerFailed(error)])
        }

        (State::Starting, Event::Accepted) => (State::Accepted, vec![Action::Announce]),

        (state, _) => (state, vec![]),
    }
}

/// While there is a target, until it ends or has to.
fn step_of_target(limits: &Limits, state: State, event: Event) -> (State, Vec<Action>) {
    match (state, event) {
        (State::Accepted, Event::Started { at }) => (State::Running { since: at }, vec![]),
        (State::Accepted, Event::StopRequested { cause, grace, at }) => {
            terminate(EndSoFar::caused(cause, at), grace, at)
        }
        (State::Accepted, Event::Exited { main, left }) => {
            exited(limits, EndSoFar::exited(main, main.at, left.len()), left)
        }

        (State::Running { since }, Event::Exited { main, left }) => {
            exited(limits, EndSoFar::exited(main, since, left.len()), left)
        }
        (State::Running { since }, Event::StopRequested { cause, grace, at }) => {
            terminate(EndSoFar::caused(cause, since), grace, at)
        }
        (State::Running { since }, Event::Deadline { at, last_output }) => {
            over_limit(limits, since, limits.exceeded(since, last_output, at), at)
        }
        (State::Running { since }, Event::OverCap { at }) => {
            let cause = limits.log_cap.filter(|_| limits.over_cap == OverCap::Kill);
            over_limit(limits, since, cause.map(|cap| Cause::Output { cap }), at)
        }

        (state, _) => (state, vec![]),
    }
}

/// From the request to terminate until the end is recorded and nothing is kept.
fn step_to_end(state: State, event: Event) -> (State, Vec<Action>) {
    match (state, event) {
        (State::Ending { end, deadline }, Event::Exited { main, left }) => {
            let end = EndSoFar { main: Some(main), ..end };
            if left.is_empty() {
                (State::Done, vec![Action::End(end.ending(left))])
            } else {
                (State::Ending { end, deadline }, vec![])
            }
        }
        // The first request names the cause. A later one can only shorten the grace.
        (State::Ending { end, deadline }, Event::StopRequested { grace, at, .. }) => {
            (State::Ending { end, deadline: deadline.min(at + grace) }, vec![])
        }
        (State::Ending { end, .. }, Event::Emptied) => (State::Done, vec![Action::End(end.ending(vec![]))]),
        (State::Ending { end, .. }, Event::Deadline { .. }) => (State::Killing { end }, vec![Action::Kill]),

        (State::Killing { end }, Event::Killed { main, survivors }) => {
            let end = EndSoFar { main: end.main.or(main), ..end };
            (State::Done, vec![Action::End(end.ending(survivors))])
        }

        // The supervisor itself is to stop. It does not end the processes that the job was launched to keep.
        (State::Keeping, Event::Emptied | Event::StopRequested { .. }) => (State::Done, vec![Action::Drain]),

        (state, _) => (state, vec![]),
    }
}

/// The main process has exited by itself.
fn exited(limits: &Limits, end: EndSoFar, left: Vec<ProcessIdentity>) -> (State, Vec<Action>) {
    match limits.leftovers {
        _ if left.is_empty() => (State::Done, vec![Action::End(end.ending(left))]),
        Leftovers::Keep => (State::Keeping, vec![Action::End(end.ending(left)), Action::Keep]),
        Leftovers::Kill | Leftovers::Unknown => {
            let at = end.main.map_or(end.since, |main| main.at);
            terminate(end, Duration::from_millis(limits.grace_ms), at)
        }
    }
}

fn over_limit(limits: &Limits, since: Duration, cause: Option<Cause>, at: Duration) -> (State, Vec<Action>) {
    match cause {
        None => (State::Running { since }, vec![]),
        Some(cause) => terminate(EndSoFar::caused(cause, since), Duration::from_millis(limits.grace_ms), at),
    }
}

/// Terminates the tree, or kills it at once if there is no grace.
fn terminate(end: EndSoFar, grace: Duration, at: Duration) -> (State, Vec<Action>) {
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
    /// When this state has to be checked again even if no event comes; none if it has no deadline.
    pub fn deadline(&self, limits: &Limits, last_output: Duration) -> Option<Duration> {
        match self {
            Self::Running { since } => limits.deadline(*since, last_output),
            Self::Ending { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }

    /// What to record if the supervisor fails now. It never contains an exit that was not seen.
    pub fn known_ending(&self) -> Option<Ending> {
        match self {
            Self::Ending { end, .. } | Self::Killing { end } => Some(end.clone().ending(Vec::new())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
