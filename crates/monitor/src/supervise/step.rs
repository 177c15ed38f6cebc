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
mod tests {
    use super::*;
    use hearback_core::StartErrorKind;
    use hearback_core::testing::sample;

    const NONE: Limits = Limits {
        timeout_ms: None,
        idle_timeout_ms: None,
        grace_ms: 5_000,
        leftovers: Leftovers::Kill,
        log_cap: None,
        over_cap: OverCap::Trim,
    };

    fn run_with(limits: &Limits, events: impl IntoIterator<Item = Event>) -> (State, Vec<Action>) {
        let mut all = Vec::new();
        let mut state = State::Waiting;
        for event in events {
            let (next, actions) = step(limits, state, event);
            state = next;
            all.extend(actions);
        }
        (state, all)
    }

    fn run(events: impl IntoIterator<Item = Event>) -> (State, Vec<Action>) {
        run_with(&NONE, events)
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn seen(at: u64) -> Seen {
        Seen { exit: Exit::Exited { code: 3 }, usage: None, at: seconds(at) }
    }

    fn exited(left: Vec<ProcessIdentity>) -> Event {
        Event::Exited { seen: seen(12), left }
    }

    fn asked(grace: u64, at: u64) -> Event {
        let cause = Cause::Kill { by: KilledBy::Person, reason: None };
        Event::Asked { cause, grace: seconds(grace), at: seconds(at) }
    }

    fn killed(exit: Option<Exit>) -> Outcome {
        Outcome::Killed { by: KilledBy::Person, reason: None, exit }
    }

    fn until_accepted() -> [Event; 4] {
        [
            Event::LaunchSignal(LaunchSignal::Durable),
            Event::Claimed(Publish::New),
            Event::Surrounded,
            Event::Accepted,
        ]
    }

    fn until_running() -> impl Iterator<Item = Event> {
        until_accepted().into_iter().chain([Event::Started { at: seconds(2) }])
    }

    fn after_start(limits: &Limits, events: impl IntoIterator<Item = Event>) -> (State, Vec<Action>) {
        let (state, mut actions) = run_with(limits, until_running().chain(events));
        actions.drain(..4);
        (state, actions)
    }

    fn the_end(actions: &[Action]) -> &Ending {
        let [Action::End(ending)] = actions else { panic!("{actions:?}") };
        ending
    }

    #[test]
    fn the_plain_life_of_a_job() {
        let (state, actions) = run(until_running().chain([exited(vec![])]));
        assert_eq!(state, State::Over);
        let ending = Ending { ran: Some(seconds(10)), ..Ending::of(Outcome::Exited { code: 3 }) };
        assert_eq!(
            actions,
            [Action::Claim, Action::Surround, Action::Start, Action::Announce, Action::End(ending)]
        );
    }

    #[test]
    fn nothing_runs_unless_the_spec_is_durable_and_the_job_is_ours() {
        let runs = |events: Vec<Event>| run(events).1.contains(&Action::Start);
        assert!(!runs(vec![Event::LaunchSignal(LaunchSignal::Failed), Event::Claimed(Publish::New)]));
        assert!(!runs(vec![Event::LaunchSignal(LaunchSignal::Durable), Event::Claimed(Publish::Exists)]));
        assert!(!runs(vec![Event::LaunchSignal(LaunchSignal::Durable), Event::Unable("no room".into())]));
        assert!(!runs(vec![Event::Unable("no room".into()), Event::LaunchSignal(LaunchSignal::Durable)]));
        assert_eq!(run([Event::LaunchSignal(LaunchSignal::Gone)]).1, [Action::FlushSpec, Action::Claim]);
    }

    #[test]
    fn a_failed_start_is_recorded_before_it_is_answered() {
        let error = StartError { kind: StartErrorKind::NotFound, message: "no".into() };
        let ending = Ending::of(Outcome::FailedToStart { error: error.clone() });
        // Whether the executor refuses, or its surroundings cannot be made.
        for before in [2, 3] {
            let failed = [Event::StartFailed(error.clone())];
            let (state, actions) = run(until_accepted().into_iter().take(before).chain(failed));
            assert_eq!(state, State::Over);
            let answer = Action::AnswerFailed(error.clone());
            assert_eq!(actions[before..], [Action::End(ending.clone()), answer]);
        }
    }

    #[test]
    fn a_job_that_is_killed_before_its_start_never_runs() {
        let events = until_accepted().into_iter().take(2).chain([asked(5, 1), Event::Surrounded]);
        let (state, actions) = run(events);
        assert_eq!(state, State::Over);
        let ending = Ending::of(killed(None));
        assert_eq!(actions[2..], [Action::End(ending), Action::AnswerKilled]);
    }

    #[test]
    fn a_target_that_waits_for_its_turn_elsewhere_hears_a_kill_and_has_no_limit_yet() {
        let limits = Limits { timeout_ms: Some(1), idle_timeout_ms: Some(1), ..NONE };
        let (state, _) = run_with(&limits, until_accepted());
        assert_eq!(state.deadline(&limits, Duration::ZERO), None);
        let (ending, actions) = step(&limits, state.clone(), asked(5, 10));
        assert_eq!(
            (ending.deadline(&limits, Duration::ZERO), actions),
            (Some(seconds(15)), vec![Action::Terminate])
        );
        let (_, actions) = step(&limits, state, exited(vec![]));
        assert_eq!(the_end(&actions).outcome, Outcome::Exited { code: 3 });
    }

    #[test]
    fn leftovers_are_asked_then_forced_then_named() {
        let (state, actions) = after_start(&NONE, [exited(vec![sample::process(7)])]);
        assert_eq!(actions, [Action::Terminate]);
        assert_eq!(state.deadline(&NONE, Duration::ZERO), Some(seconds(17)));

        let (over, actions) = step(&NONE, state.clone(), Event::Emptied);
        assert_eq!(over, State::Over);
        assert_eq!(the_end(&actions).survivors, []);

        let deadline = Event::Deadline { at: seconds(17), last_output: Duration::ZERO };
        let (forcing, actions) = step(&NONE, state, deadline);
        assert_eq!(actions, [Action::Kill]);
        let survivors = vec![sample::process(7)];
        let (_, actions) = step(&NONE, forcing, Event::Killed { seen: None, survivors: survivors.clone() });
        assert_eq!(the_end(&actions).survivors, survivors);
        assert_eq!(the_end(&actions).outcome, Outcome::Exited { code: 3 }, "leftovers change no outcome");
    }

    #[test]
    fn kept_leftovers_are_named_and_watched_to_their_end() {
        let keep = Limits { leftovers: Leftovers::Keep, ..NONE };
        let (state, actions) = after_start(&keep, [exited(vec![sample::process(7)])]);
        assert_eq!(state, State::Keeping);
        assert!(matches!(&actions[..], [Action::End(ending), Action::Keep] if ending.survivors.len() == 1));
        assert_eq!(step(&keep, state.clone(), asked(5, 20)).0, State::Over, "a keeper can be told to leave");
        assert_eq!(step(&keep, state, Event::Emptied), (State::Over, vec![Action::Drain]));
    }

    #[test]
    fn a_kill_asks_then_forces_and_keeps_what_was_seen() {
        let (state, actions) = after_start(&NONE, [asked(5, 10)]);
        assert_eq!(actions, [Action::Terminate]);
        assert_eq!(state.deadline(&NONE, Duration::ZERO), Some(seconds(15)));
        // A second request is only more urgent.
        let (state, actions) = step(&NONE, state, asked(1, 11));
        assert_eq!((state.deadline(&NONE, Duration::ZERO), actions), (Some(seconds(12)), vec![]));

        let (_, actions) = step(&NONE, state.clone(), exited(vec![]));
        assert_eq!(the_end(&actions).outcome, killed(Some(Exit::Exited { code: 3 })));

        let (state, _) = step(&NONE, state, Event::Deadline { at: seconds(12), last_output: seconds(2) });
        let (_, actions) = step(&NONE, state, Event::Killed { seen: None, survivors: vec![] });
        assert_eq!(the_end(&actions).outcome, killed(None), "an exit that was not seen is not invented");
        assert_eq!(after_start(&NONE, [asked(0, 10)]).1, [Action::Kill], "no grace, no asking");
    }

    #[test]
    fn an_exit_that_was_seen_before_a_kill_is_an_exit() {
        let (state, actions) = after_start(&NONE, [exited(vec![sample::process(7)]), asked(0, 13)]);
        assert_eq!(actions, [Action::Terminate]);
        let (_, actions) = step(&NONE, state, Event::Emptied);
        assert_eq!(the_end(&actions).outcome, Outcome::Exited { code: 3 });
    }

    #[test]
    fn scenario_68_an_exit_that_was_seen_beats_a_limit_that_has_passed() {
        let limits = Limits { timeout_ms: Some(1_000), ..NONE };
        let late = Event::Deadline { at: seconds(60), last_output: seconds(2) };
        let (_, actions) = after_start(&limits, [exited(vec![]), late]);
        assert_eq!(the_end(&actions).outcome, Outcome::Exited { code: 3 });
    }

    #[test]
    fn limits_count_from_the_start_and_from_the_last_output() {
        let limits = Limits { timeout_ms: Some(60_000), idle_timeout_ms: Some(5_000), ..NONE };
        let (state, _) = after_start(&limits, []);
        assert_eq!(state.deadline(&limits, seconds(2)), Some(seconds(7)));
        assert_eq!(state.deadline(&limits, seconds(60)), Some(seconds(62)), "the hard limit comes first");

        let at = |at, last| Event::Deadline { at: seconds(at), last_output: seconds(last) };
        let (state, actions) = step(&limits, state, at(7, 6));
        assert_eq!(actions, [], "it has printed meanwhile");
        let (idle, actions) = step(&limits, state.clone(), at(11, 6));
        assert_eq!(actions, [Action::Terminate]);
        let (_, actions) = step(&limits, idle, exited(vec![]));
        let exit = Some(Exit::Exited { code: 3 });
        assert_eq!(the_end(&actions).outcome, Outcome::IdleTimedOut { limit_ms: 5_000, exit });

        let (hard, _) = step(&limits, state, at(62, 61));
        let (_, actions) = step(&limits, hard, exited(vec![]));
        assert_eq!(the_end(&actions).outcome, Outcome::TimedOut { limit_ms: 60_000, exit });
    }

    #[test]
    fn who_prints_too_much_is_ended_only_if_that_was_asked_for() {
        let trim = Limits { log_cap: Some(LogCap::MIN), ..NONE };
        let over = || Event::OverCap { at: seconds(9) };
        assert_eq!(after_start(&trim, [over()]), (State::Running { since: seconds(2) }, vec![]));

        let kill = Limits { over_cap: OverCap::Kill, ..trim };
        let (state, actions) = after_start(&kill, [over()]);
        assert_eq!(
            (state.deadline(&kill, seconds(9)), actions),
            (Some(seconds(14)), vec![Action::Terminate])
        );
        let (_, actions) = step(&kill, state, exited(vec![]));
        let by = KilledBy::OutputLimit;
        let reason = Some("it printed more than 1048576 bytes".into());
        let exit = Some(Exit::Exited { code: 3 });
        assert_eq!(the_end(&actions).outcome, Outcome::Killed { by, reason, exit });
    }

    #[test]
    fn an_end_is_recorded_at_most_once_whatever_happens() {
        let events = [
            Event::LaunchSignal(LaunchSignal::Durable),
            Event::Claimed(Publish::New),
            Event::Started { at: Duration::ZERO },
            exited(vec![]),
            exited(vec![sample::process(7)]),
            asked(0, 3),
            asked(5, 3),
            Event::OverCap { at: seconds(3) },
            Event::Emptied,
            Event::Deadline { at: seconds(99), last_output: Duration::ZERO },
            Event::Killed { seen: Some(seen(4)), survivors: vec![] },
        ];
        // Every sequence of five after the target runs, with every kind of limits.
        let n = events.len();
        for leftovers in [Leftovers::Kill, Leftovers::Keep] {
            let limits = Limits {
                timeout_ms: Some(1),
                leftovers,
                log_cap: Some(LogCap::MIN),
                over_cap: OverCap::Kill,
                ..NONE
            };
            for code in 0..n.pow(5) {
                let pick = |place: u32| events[code / n.pow(place) % n].clone();
                let (_, actions) = after_start(&limits, (0..5).map(pick));
                let ends = actions.iter().filter(|action| matches!(action, Action::End(_))).count();
                assert!(ends <= 1, "{actions:?}");
            }
        }
    }
}
