//! Tests of `step.rs`.

use super::*;
use hearback_core::testing::sample;
use hearback_core::{Exit, KilledBy, LogCap, StartErrorKind};

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

fn main_exit(at: u64) -> MainExit {
    MainExit { exit: Exit::Exited { code: 3 }, usage: None, at: seconds(at) }
}

fn exited(left: Vec<ProcessIdentity>) -> Event {
    Event::Exited { main: main_exit(12), left }
}

fn stop_requested(grace: u64, at: u64) -> Event {
    let cause = Cause::Kill { by: KilledBy::Person, reason: None };
    Event::StopRequested { cause, grace: seconds(grace), at: seconds(at) }
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
    assert_eq!(state, State::Done);
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
        assert_eq!(state, State::Done);
        let answer = Action::AnswerFailed(error.clone());
        assert_eq!(actions[before..], [Action::End(ending.clone()), answer]);
    }
}

#[test]
fn a_job_that_is_killed_before_its_start_never_runs() {
    let events = until_accepted().into_iter().take(2).chain([stop_requested(5, 1), Event::Surrounded]);
    let (state, actions) = run(events);
    assert_eq!(state, State::Done);
    let ending = Ending::of(killed(None));
    assert_eq!(actions[2..], [Action::End(ending), Action::AnswerKilled]);
}

#[test]
fn a_target_that_waits_for_its_turn_elsewhere_hears_a_kill_and_has_no_limit_yet() {
    let limits = Limits { timeout_ms: Some(1), idle_timeout_ms: Some(1), ..NONE };
    let (state, _) = run_with(&limits, until_accepted());
    assert_eq!(state.deadline(&limits, Duration::ZERO), None);
    let (ending, actions) = step(&limits, state.clone(), stop_requested(5, 10));
    assert_eq!(
        (ending.deadline(&limits, Duration::ZERO), actions),
        (Some(seconds(15)), vec![Action::Terminate])
    );
    let (_, actions) = step(&limits, state, exited(vec![]));
    assert_eq!(the_end(&actions).outcome, Outcome::Exited { code: 3 });
}

#[test]
fn leftovers_are_terminated_then_killed_then_named() {
    let (state, actions) = after_start(&NONE, [exited(vec![sample::process(7)])]);
    assert_eq!(actions, [Action::Terminate]);
    assert_eq!(state.deadline(&NONE, Duration::ZERO), Some(seconds(17)));

    let (done, actions) = step(&NONE, state.clone(), Event::Emptied);
    assert_eq!(done, State::Done);
    assert_eq!(the_end(&actions).survivors, []);

    let deadline = Event::Deadline { at: seconds(17), last_output: Duration::ZERO };
    let (forcing, actions) = step(&NONE, state, deadline);
    assert_eq!(actions, [Action::Kill]);
    let survivors = vec![sample::process(7)];
    let (_, actions) = step(&NONE, forcing, Event::Killed { main: None, survivors: survivors.clone() });
    assert_eq!(the_end(&actions).survivors, survivors);
    assert_eq!(the_end(&actions).outcome, Outcome::Exited { code: 3 }, "leftovers change no outcome");
}

#[test]
fn kept_leftovers_are_named_and_watched_to_their_end() {
    let keep = Limits { leftovers: Leftovers::Keep, ..NONE };
    let (state, actions) = after_start(&keep, [exited(vec![sample::process(7)])]);
    assert_eq!(state, State::Keeping);
    assert!(matches!(&actions[..], [Action::End(ending), Action::Keep] if ending.survivors.len() == 1));
    assert_eq!(
        step(&keep, state.clone(), stop_requested(5, 20)).0,
        State::Done,
        "a supervisor that keeps leftovers can be stopped"
    );
    assert_eq!(step(&keep, state, Event::Emptied), (State::Done, vec![Action::Drain]));
}

#[test]
fn a_kill_terminates_then_kills_and_keeps_the_exit_that_was_seen() {
    let (state, actions) = after_start(&NONE, [stop_requested(5, 10)]);
    assert_eq!(actions, [Action::Terminate]);
    assert_eq!(state.deadline(&NONE, Duration::ZERO), Some(seconds(15)));
    // A second request is only more urgent.
    let (state, actions) = step(&NONE, state, stop_requested(1, 11));
    assert_eq!((state.deadline(&NONE, Duration::ZERO), actions), (Some(seconds(12)), vec![]));

    let (_, actions) = step(&NONE, state.clone(), exited(vec![]));
    assert_eq!(the_end(&actions).outcome, killed(Some(Exit::Exited { code: 3 })));

    let (state, _) = step(&NONE, state, Event::Deadline { at: seconds(12), last_output: seconds(2) });
    let (_, actions) = step(&NONE, state, Event::Killed { main: None, survivors: vec![] });
    assert_eq!(the_end(&actions).outcome, killed(None), "an exit that was not seen is not invented");
    assert_eq!(
        after_start(&NONE, [stop_requested(0, 10)]).1,
        [Action::Kill],
        "without grace the tree is killed at once"
    );
}

#[test]
fn an_exit_that_was_seen_before_a_kill_is_an_exit() {
    let (state, actions) = after_start(&NONE, [exited(vec![sample::process(7)]), stop_requested(0, 13)]);
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
    assert_eq!(actions, [], "there was output meanwhile");
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
fn a_job_over_its_log_cap_is_killed_only_if_the_limits_say_so() {
    let trim = Limits { log_cap: Some(LogCap::MIN), ..NONE };
    let over = || Event::OverCap { at: seconds(9) };
    assert_eq!(after_start(&trim, [over()]), (State::Running { since: seconds(2) }, vec![]));

    let kill = Limits { over_cap: OverCap::Kill, ..trim };
    let (state, actions) = after_start(&kill, [over()]);
    assert_eq!((state.deadline(&kill, seconds(9)), actions), (Some(seconds(14)), vec![Action::Terminate]));
    let (_, actions) = step(&kill, state, exited(vec![]));
    let by = KilledBy::OutputLimit;
    let reason = Some("its output exceeded 1048576 bytes".into());
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
        stop_requested(0, 3),
        stop_requested(5, 3),
        Event::OverCap { at: seconds(3) },
        Event::Emptied,
        Event::Deadline { at: seconds(99), last_output: Duration::ZERO },
        Event::Killed { main: Some(main_exit(4)), survivors: vec![] },
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
