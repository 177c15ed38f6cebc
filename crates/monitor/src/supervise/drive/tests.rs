//! Tests of `drive.rs`.

use super::*;
use crate::testing::Events;
use hearback_core::port::disk::Publish;
use hearback_core::port::executor::Executors;
use hearback_core::port::process::LaunchSignal;
use hearback_core::port::record::{FactStore, JobFiles};
use hearback_core::testing::{
    FakeClock, FakeExecutor, FakeProcesses, FakeStore, FakeSurround, Heard, Script, sample,
};
use hearback_core::{ExecutorName, Exit, Fact, Facts, JobState, LockView, fold};

/// A launcher that gives one signal and keeps the answer.
struct FakeWire(LaunchSignal, Vec<LaunchAnswer>);

impl LauncherLink for FakeWire {
    fn word(&mut self) -> LaunchSignal {
        self.0
    }
    fn answer(&mut self, answer: &LaunchAnswer) {
        self.1.push(answer.clone());
    }
}

fn supervise(
    word: LaunchSignal,
    script: Script,
    facts: Option<Facts>,
) -> (FakeStore, FakeExecutor, Vec<LaunchAnswer>) {
    supervise_in(&FakeSurround::default(), word, script, facts)
}

fn supervise_in(
    surround: &FakeSurround,
    word: LaunchSignal,
    script: Script,
    facts: Option<Facts>,
) -> (FakeStore, FakeExecutor, Vec<LaunchAnswer>) {
    let store = FakeStore::default();
    let id = sample::id(1);
    store.put(&id, facts.unwrap_or(launched()));
    let executor = FakeExecutor::plays(script);
    let executors = Executors::local(executor.clone());
    let ports = Ports::new(store.clone(), FakeProcesses::default(), FakeClock::default(), executors);
    let mut wire = FakeWire(word, vec![]);
    let _ = Supervisor::new(&ports, surround, &mut wire, &|_| {}, id).run();
    (store, executor, wire.1)
}

fn launched() -> Facts {
    Facts { spec: Read::Present(sample::unowned(&sample::id(1))), ..Facts::default() }
}

fn outcome(store: &FakeStore) -> Outcome {
    store.facts(&sample::id(1)).end.present().unwrap().outcome.clone()
}

fn exits(code: u32) -> Script {
    let exit = Exit::Exited { code };
    let events = [RunEvent::Exited { exit, usage: None }].into();
    Script { events, prints: b"hello".into(), ..Script::default() }
}

#[test]
fn a_job_is_run_recorded_answered_and_settled() {
    let (store, executor, answers) = supervise(LaunchSignal::Durable, exits(3), None);
    assert_eq!(answers, [LaunchAnswer::Started { pid: Some(101), bound_to: Some("fake.service".into()) }]);
    assert_eq!(executor.calls(), ["start"]);
    let facts = store.facts(&sample::id(1));
    let end = facts.end.present().unwrap();
    assert_eq!(end.outcome, Outcome::Exited { code: 3 });
    assert_eq!(end.output.bytes, 5);
    assert!(facts.settled.present().is_some());
}

#[test]
fn a_job_that_was_abandoned_is_not_run() {
    let facts = Facts {
        spec: Read::Present(sample::unowned(&sample::id(1))),
        begin: Read::Present(sample::abandoned()),
        ..Facts::default()
    };
    // A supervisor whose launcher has died has no process to answer.
    for (signal, expected) in
        [(LaunchSignal::Durable, vec![LaunchAnswer::Taken]), (LaunchSignal::Gone, vec![])]
    {
        let (_, executor, answers) = supervise(signal, exits(0), Some(facts.clone()));
        assert_eq!(answers, expected);
        assert!(executor.calls().is_empty());
    }
}

#[test]
fn a_job_whose_launcher_died_is_run_unless_another_process_launches_it_again() {
    let (store, executor, _) = supervise(LaunchSignal::Gone, exits(3), None);
    assert_eq!(executor.calls(), ["start"]);
    assert!(store.facts(&sample::id(1)).end.present().is_some());

    let (store, id) = (FakeStore::default(), sample::id(1));
    store.put(&id, Facts { spec: Read::Present(sample::unowned(&id)), ..Facts::default() });
    let again = store.lock(&id, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap();
    let late = std::thread::spawn({
        let store = store.clone();
        move || {
            let executor = FakeExecutor::default();
            let executors = Executors::local(executor.clone());
            let ports = Ports::new(store, FakeProcesses::default(), FakeClock::default(), executors);
            let mut wire = FakeWire(LaunchSignal::Gone, vec![]);
            let surround = FakeSurround::default();
            let _ = Supervisor::new(&ports, &surround, &mut wire, &|_| {}, sample::id(1)).run();
            executor.calls().len()
        }
    });
    // The supervisor of the second launch begins before its launcher releases the lock.
    let begin = Fact::Begin(sample::begin());
    assert_eq!(store.publish(&id, &begin, Durability::Power).unwrap(), Publish::New);
    drop(again);
    assert_eq!(late.join().unwrap(), 0, "it was run twice");
}

#[test]
fn a_folder_without_a_spec_is_no_job() {
    let (store, executor, answers) = supervise(LaunchSignal::Gone, exits(0), Some(Facts::default()));
    assert!(answers.is_empty());
    assert!(executor.calls().is_empty());
    assert!(store.facts(&sample::id(1)).begin.is_absent());
}

#[test]
fn a_supervisor_that_fails_ends_the_job_and_invents_no_exit() {
    let script = Script { leftovers: vec![sample::process(101)], kill_works: true, ..Script::default() };
    let events = Events::default();
    let (store, executor, _) = events.of(|| supervise(LaunchSignal::Durable, script, None));
    assert_eq!(executor.calls(), ["start", "kill"]);
    let facts = store.facts(&sample::id(1));
    let end = facts.end.present().unwrap();
    assert_eq!(end.outcome, Outcome::Lost { reason: LostReason::SupervisorDied });
    assert!(end.note.as_ref().unwrap().contains("the script has come to its end"), "{:?}", end.note);
    assert_eq!(events.with("supervisor failed").len(), 1, "{events:?}");
    assert!(events.with("supervisor failed")[0].contains(sample::id(1).as_str()), "{events:?}");
}

#[test]
fn a_supervisor_that_fails_after_the_exit_still_tells_it() {
    let script = Script { leftovers: vec![sample::process(102)], kill_works: true, ..exits(7) };
    let (store, ..) = supervise(LaunchSignal::Durable, script, None);
    let facts = store.facts(&sample::id(1));
    let JobState::Ended { outcome, .. } = fold(&facts, LockView::FREE).state else { panic!("not ended") };
    assert_eq!(outcome, Outcome::Exited { code: 7 });
}

#[test]
fn a_kill_request_before_the_start_is_obeyed_and_nothing_runs() {
    let kills = vec![(1, Read::Present(sample::kill()))];
    let facts = Facts { kills, ..launched() };
    let (store, executor, answers) = supervise(LaunchSignal::Durable, exits(0), Some(facts));
    assert!(executor.calls().is_empty(), "nothing was started");
    assert_eq!(answers, [LaunchAnswer::Killed]);
    assert!(matches!(outcome(&store), Outcome::Killed { exit: None, .. }));

    let stop = FakeSurround::hears([Heard::Event(OutsideEvent::Stop)]);
    let (store, executor, answers) = supervise_in(&stop, LaunchSignal::Durable, exits(0), None);
    assert!(executor.calls().is_empty(), "a system that shuts down starts nothing");
    assert_eq!(answers, [LaunchAnswer::Killed]);
    assert!(matches!(outcome(&store), Outcome::Killed { by: KilledBy::System, .. }));
}

#[test]
fn a_system_that_shuts_down_terminates_the_tree_then_kills_it() {
    let script = Script { leftovers: vec![sample::process(101)], ..Script::default() };
    let heard = [Heard::Deadline, Heard::Event(OutsideEvent::Stop), Heard::Deadline];
    let (store, executor, _) = supervise_in(&FakeSurround::hears(heard), LaunchSignal::Durable, script, None);
    assert_eq!(executor.calls(), ["start", "terminate", "kill"]);
    let facts = store.facts(&sample::id(1));
    assert_eq!(facts.end.present().unwrap().survivors, [sample::process(101)]);
}

#[test]
fn what_cannot_be_surrounded_or_has_no_executor_fails_to_start() {
    let refuse = FakeSurround { refuse: true, ..FakeSurround::default() };
    let (store, executor, answers) = supervise_in(&refuse, LaunchSignal::Durable, exits(0), None);
    assert!(executor.calls().is_empty());
    assert!(matches!(outcome(&store), Outcome::FailedToStart { .. }));
    assert!(matches!(&answers[..], [LaunchAnswer::FailedToStart { .. }]));

    let executor = ExecutorName::parse("elsewhere").unwrap();
    let spec = Spec { executor, ..sample::unowned(&sample::id(1)) };
    let facts = Facts { spec: Read::Present(spec), ..Facts::default() };
    let (store, ..) = supervise(LaunchSignal::Durable, exits(0), Some(facts));
    let Outcome::FailedToStart { error } = outcome(&store) else { panic!("{:?}", outcome(&store)) };
    assert!(error.message.contains("no executor named `elsewhere`"), "{error}");
}

/// A launcher that handed a command over before it gave its signal, or died.
struct HandedOver(LaunchSignal, Option<CommandLine>, Vec<LaunchAnswer>);

impl LauncherLink for HandedOver {
    fn word(&mut self) -> LaunchSignal {
        self.0
    }
    fn command(&mut self) -> Option<CommandLine> {
        self.1.take()
    }
    fn answer(&mut self, answer: &LaunchAnswer) {
        self.2.push(answer.clone());
    }
}

#[test]
fn scenario_133_what_was_handed_over_runs_and_a_masked_command_never_does() {
    let id = sample::id(1);
    let spec = Spec { command_is_masked: true, ..sample::unowned(&id) };
    for signal in [LaunchSignal::Durable, LaunchSignal::Gone] {
        for handed_over in [Some(FakeExecutor::commands().hello_then_3), None] {
            let store = FakeStore::default();
            store.put(&id, Facts { spec: Read::Present(spec.clone()), ..Facts::default() });
            let executor = FakeExecutor::plays(exits(9));
            let executors = Executors::local(executor.clone());
            let ports = Ports::new(store.clone(), FakeProcesses::default(), FakeClock::default(), executors);
            let mut wire = HandedOver(signal, handed_over.clone(), vec![]);
            let surround = FakeSurround::default();
            let _ = Supervisor::new(&ports, &surround, &mut wire, &|_| {}, id.clone()).run();
            assert!(executor.calls().is_empty(), "what the spec says is not what runs");
            match handed_over {
                Some(_) => assert_eq!(outcome(&store), Outcome::Exited { code: 3 }),
                None => assert!(matches!(&wire.2[..], [LaunchAnswer::Refused { .. }]), "{:?}", wire.2),
            }
        }
    }
}
