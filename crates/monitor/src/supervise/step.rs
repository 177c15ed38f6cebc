//! What a supervisor does next: a pure function of how far it is and what happened.

use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::process::Word;
use hearback_core::{Exit, Outcome, ProcessIdentity, StartError, Usage};

/// How far a supervisor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waiting to be told that the spec is on disk.
    Waiting,
    /// Asking for the job: somebody may have declared it abandoned.
    Claiming,
    /// Starting the target.
    Starting,
    /// The target runs.
    Running {
        /// When it was started, on the awake clock.
        since: Duration,
    },
    /// The main process has ended, and what it left behind has been asked to follow.
    Clearing {
        /// How the job ended.
        ending: Ending,
        /// When asking turns into forcing, on the awake clock.
        deadline: Duration,
    },
    /// Leftovers are being forced.
    Forcing {
        /// How the job ended.
        ending: Ending,
    },
    /// Nothing is left to do.
    Over,
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
    /// Who would not end.
    pub survivors: Vec<ProcessIdentity>,
}

impl Ending {
    /// An ending of which only the outcome is known.
    pub fn of(outcome: Outcome) -> Self {
        Self { outcome, usage: None, ran: None, survivors: Vec::new() }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The launcher spoke, or is gone.
    Word(Word),
    /// The begin was published, or somebody was quicker.
    Claimed(Publish),
    /// hearback could not do its part before anything ran.
    Unable(String),
    /// The target runs.
    Started {
        /// Since when, on the awake clock.
        at: Duration,
        /// Its pid, for people.
        pid: u32,
    },
    /// The target could not be started.
    StartFailed(StartError),
    /// The main process ended.
    Exited {
        /// How.
        exit: Exit,
        /// What it used.
        usage: Option<Usage>,
        /// When, on the awake clock.
        at: Duration,
        /// Whether it left nothing behind.
        alone: bool,
    },
    /// Nothing is left of the tree.
    Emptied,
    /// The deadline of the state passed.
    Deadline,
    /// Force was used.
    Forced {
        /// Who would not end.
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
    /// Start the target.
    Start,
    /// Record the target, and answer that it runs.
    Announce {
        /// Its pid, for people.
        pid: u32,
    },
    /// Ask what is left of the tree to end.
    Ask,
    /// End it by force.
    Force,
    /// Record the end.
    End(Ending),
    /// Answer that the target could not be started; its end is recorded.
    AnswerFailed(StartError),
    /// Answer that nothing runs, because hearback could not do its part.
    Refuse(String),
    /// Answer that somebody else had decided about the job already.
    AnswerTaken,
}

/// How long leftovers have between being asked and being forced.
const GRACE: Duration = Duration::from_secs(5);

/// Decides. An event that makes no sense in a state changes nothing.
pub fn step(state: State, event: Event) -> (State, Vec<Action>) {
    match (state, event) {
        (State::Waiting, Event::Word(Word::Durable)) => (State::Claiming, vec![Action::Claim]),
        (State::Waiting, Event::Word(Word::Gone)) => {
            (State::Claiming, vec![Action::FlushSpec, Action::Claim])
        }
        (State::Waiting, Event::Word(Word::Failed)) => (State::Over, vec![]),
        (State::Waiting | State::Claiming, Event::Unable(why)) => (State::Over, vec![Action::Refuse(why)]),

        (State::Claiming, Event::Claimed(Publish::New)) => (State::Starting, vec![Action::Start]),
        (State::Claiming, Event::Claimed(Publish::Exists)) => (State::Over, vec![Action::AnswerTaken]),

        (State::Starting, Event::Started { at, pid }) => {
            (State::Running { since: at }, vec![Action::Announce { pid }])
        }
        (State::Starting, Event::StartFailed(error)) => {
            let ending = Ending::of(Outcome::FailedToStart { error: error.clone() });
            (State::Over, vec![Action::End(ending), Action::AnswerFailed(error)])
        }

        (State::Running { since }, Event::Exited { exit, usage, at, alone }) => {
            let ran = Some(at.saturating_sub(since));
            let ending = Ending { outcome: exit.into(), usage, ran, survivors: Vec::new() };
            if alone {
                (State::Over, vec![Action::End(ending)])
            } else {
                (State::Clearing { ending, deadline: at + GRACE }, vec![Action::Ask])
            }
        }

        (State::Clearing { ending, .. }, Event::Emptied) => (State::Over, vec![Action::End(ending)]),
        (State::Clearing { ending, .. }, Event::Deadline) => (State::Forcing { ending }, vec![Action::Force]),

        (State::Forcing { ending }, Event::Forced { survivors }) => {
            (State::Over, vec![Action::End(Ending { survivors, ..ending })])
        }

        (state, _) => (state, vec![]),
    }
}

impl State {
    /// When the state has to be left, whatever happens; nothing when it may last.
    pub fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Clearing { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }

    /// What would have to be recorded if the supervisor failed now: never an exit that was not seen.
    pub fn known_ending(&self) -> Option<&Ending> {
        match self {
            Self::Clearing { ending, .. } | Self::Forcing { ending } => Some(ending),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::StartErrorKind;
    use hearback_core::testing::sample;

    fn run(events: impl IntoIterator<Item = Event>) -> (State, Vec<Action>) {
        let mut all = Vec::new();
        let mut state = State::Waiting;
        for event in events {
            let (next, actions) = step(state, event);
            state = next;
            all.extend(actions);
        }
        (state, all)
    }

    fn exited(alone: bool) -> Event {
        Event::Exited { exit: Exit::Exited { code: 3 }, usage: None, at: Duration::from_secs(12), alone }
    }

    fn until_running() -> [Event; 3] {
        [
            Event::Word(Word::Durable),
            Event::Claimed(Publish::New),
            Event::Started { at: Duration::from_secs(2), pid: 101 },
        ]
    }

    #[test]
    fn the_plain_life_of_a_job() {
        let (state, actions) = run(until_running().into_iter().chain([exited(true)]));
        assert_eq!(state, State::Over);
        let ending = Ending { ran: Some(Duration::from_secs(10)), ..Ending::of(Outcome::Exited { code: 3 }) };
        assert_eq!(
            actions,
            [Action::Claim, Action::Start, Action::Announce { pid: 101 }, Action::End(ending)]
        );
    }

    #[test]
    fn nothing_runs_unless_the_spec_is_durable_and_the_job_is_ours() {
        let runs = |events: Vec<Event>| run(events).1.contains(&Action::Start);
        assert!(!runs(vec![Event::Word(Word::Failed), Event::Claimed(Publish::New)]));
        assert!(!runs(vec![Event::Word(Word::Durable), Event::Claimed(Publish::Exists)]));
        assert!(!runs(vec![Event::Word(Word::Durable), Event::Unable("no room".into())]));
        assert!(!runs(vec![Event::Unable("no room".into()), Event::Word(Word::Durable)]));
        assert_eq!(run([Event::Word(Word::Gone)]).1, [Action::FlushSpec, Action::Claim]);
    }

    #[test]
    fn a_failed_start_is_recorded_before_it_is_answered() {
        let error = StartError { kind: StartErrorKind::NotFound, message: "no".into() };
        let (state, actions) = run([
            Event::Word(Word::Durable),
            Event::Claimed(Publish::New),
            Event::StartFailed(error.clone()),
        ]);
        assert_eq!(state, State::Over);
        let ending = Ending::of(Outcome::FailedToStart { error: error.clone() });
        assert_eq!(actions[2..], [Action::End(ending), Action::AnswerFailed(error)]);
    }

    #[test]
    fn leftovers_are_asked_then_forced_then_named() {
        let (state, actions) = run(until_running().into_iter().chain([exited(false)]));
        assert_eq!(actions.last(), Some(&Action::Ask));
        assert_eq!(state.deadline(), Some(Duration::from_secs(17)));

        let (over, actions) = step(state.clone(), Event::Emptied);
        assert_eq!(over, State::Over);
        assert!(matches!(&actions[..], [Action::End(ending)] if ending.survivors.is_empty()));

        let (forcing, actions) = step(state, Event::Deadline);
        assert_eq!(actions, [Action::Force]);
        let survivors = vec![sample::process(7)];
        let (_, actions) = step(forcing, Event::Forced { survivors: survivors.clone() });
        assert!(matches!(&actions[..], [Action::End(ending)]
            if ending.survivors == survivors && ending.outcome == Outcome::Exited { code: 3 }));
    }

    #[test]
    fn an_end_is_recorded_at_most_once_whatever_happens() {
        let events = [
            Event::Word(Word::Durable),
            Event::Word(Word::Gone),
            Event::Claimed(Publish::New),
            Event::Started { at: Duration::ZERO, pid: 1 },
            exited(true),
            exited(false),
            Event::Emptied,
            Event::Deadline,
            Event::Forced { survivors: vec![] },
        ];
        // Every sequence of four after the target runs.
        let n = events.len();
        for code in 0..n.pow(4) {
            let pick = |place: u32| events[code / n.pow(place) % n].clone();
            let (_, actions) = run(until_running().into_iter().chain((0..4).map(pick)));
            let ends = actions.iter().filter(|action| matches!(action, Action::End(_))).count();
            assert!(ends <= 1, "{actions:?}");
        }
    }
}
