//! Tests of `launch.rs`.

use super::*;
use hearback_core::port::record::{FactStore, Housekeeping, JobFiles};
use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};
use hearback_core::{CommandLine, ExecutorName, Limits, LockView, NotifyPolicy, Session, StartErrorKind};

struct World {
    store: FakeStore,
    processes: FakeProcesses,
    ports: Ports,
}

fn world(heard: SupervisorReply) -> World {
    let (store, processes) = (FakeStore::default(), FakeProcesses::default());
    processes.next_supervisor_says(heard);
    let ports = Ports::new(store.clone(), processes.clone(), FakeClock::default(), FakeExecutor::default());
    World { store, processes, ports }
}

fn request(key: Option<&str>) -> Request {
    Request {
        command: CommandLine::Argv(vec!["make".into()]),
        masked_command: None,
        keeps_credentials: false,
        cwd: "/".into(),
        executor: ExecutorName::default(),
        session: Some(Session::parse("s").unwrap()),
        agent: None,
        mcp: false,
        label: None,
        key: key.map(|key| Key::parse(key).unwrap()),
        notify: NotifyPolicy::Auto,
        sinks: vec![],
        depth: 0,
        bound: false,
        takes_input: false,
        answer: false,
        prompt: None,
        withhold: vec![],
        env: vec![],
        limits: Limits::default(),
        timeout_is_open: false,
        durability: None,
    }
}

fn launcher() -> Launcher {
    Launcher {
        program: "hearback".into(),
        home: "/home".into(),
        version: "0".into(),
        durability: Durability::Power,
    }
}

const STARTED: SupervisorReply =
    SupervisorReply::Answer(LaunchAnswer::Started { pid: Some(7), bound_to: None });

#[test]
fn an_unknown_executor_is_refused_and_nothing_is_recorded() {
    let world = world(SupervisorReply::Gone);
    let request = Request { executor: ExecutorName::parse("elsewhere").unwrap(), ..request(None) };
    let error = launch(&world.ports, &launcher(), &request).unwrap_err();
    assert_eq!(error.to_string(), "there is no executor named `elsewhere`");
    assert!(world.store.open_jobs().unwrap().is_empty());
}

#[test]
fn a_launch_records_before_it_signals() {
    let world = world(STARTED);
    let Launched::Started { id, pid: Some(7), bound_to: None } =
        launch(&world.ports, &launcher(), &request(None)).unwrap()
    else {
        panic!("not started")
    };
    assert_eq!(world.processes.told(), [LaunchSignal::Durable]);
    assert!(world.store.facts(&id).spec.present().is_some());
}

#[test]
fn a_launch_that_cannot_be_recorded_leaves_nothing() {
    let world = world(SupervisorReply::Answer(LaunchAnswer::Refused { message: "no room".into() }));
    assert!(matches!(
        launch(&world.ports, &launcher(), &request(None)),
        Err(LaunchError::Refused(why)) if why == "no room"
    ));
    assert!(world.store.open_jobs().unwrap().is_empty());
    world.store.refuse_writes(true);
    assert!(matches!(launch(&world.ports, &launcher(), &request(None)), Err(LaunchError::Store(_))));
}

#[test]
fn a_failed_start_is_settled_as_read() {
    let error = StartError { kind: StartErrorKind::NotFound, message: "no".into() };
    let world = world(SupervisorReply::Answer(LaunchAnswer::FailedToStart { error: error.clone() }));
    let Err(LaunchError::FailedToStart { id, error: returned }) =
        launch(&world.ports, &launcher(), &request(None))
    else {
        panic!("started")
    };
    assert_eq!(returned, error);
    assert_eq!(world.store.facts(&id).receipt.present().unwrap().how, ReceiptHow::Read);
}

#[test]
fn a_supervisor_that_dies_without_an_answer_leaves_an_abandoned_job() {
    let world = world(SupervisorReply::Gone);
    let Err(LaunchError::SupervisorDied { id }) = launch(&world.ports, &launcher(), &request(None)) else {
        panic!("started")
    };
    let facts = world.store.facts(&id);
    assert!(matches!(fold(&facts, LockView::FREE).state, JobState::Ended { .. }));
}

#[test]
fn silence_is_not_taken_for_death() {
    let world = world(SupervisorReply::Silence);
    let Err(LaunchError::Unconfirmed { id }) = launch(&world.ports, &launcher(), &request(None)) else {
        panic!("started")
    };
    assert!(world.store.facts(&id).begin.is_absent());
}

#[test]
fn the_same_key_names_the_same_job() {
    let world = world(STARTED);
    let Launched::Started { id, .. } = launch(&world.ports, &launcher(), &request(Some("k"))).unwrap() else {
        panic!("not started")
    };
    let _ = world.store.publish(&id, &Fact::Begin(sample::begin()), Durability::Power).unwrap();
    let again = launch(&world.ports, &launcher(), &request(Some("k"))).unwrap();
    assert_eq!(again, Launched::Known { id: id.clone() });
    let different =
        Request { command: CommandLine::Shell { shell: "make".into(), program: None }, ..request(Some("k")) };
    assert!(matches!(
        launch(&world.ports, &launcher(), &different),
        Err(LaunchError::KeyTaken { id: taken, .. }) if taken == id
    ));
    assert_eq!(world.store.open_jobs().unwrap(), [id], "no folder is left behind");
}

#[test]
fn a_key_whose_launch_died_is_finished_under_the_same_id() {
    let world = world(STARTED);
    let id = world.store.create(sample::at()).unwrap();
    let session = Session::parse("s").unwrap();
    let _ = world.store.claim_key(Some(&session), &Key::parse("k").unwrap(), &id).unwrap();
    let launched = launch(&world.ports, &launcher(), &request(Some("k"))).unwrap();
    assert_eq!(launched, Launched::Started { id, pid: Some(7), bound_to: None });
}

#[test]
fn a_key_whose_launcher_died_before_the_begin_is_finished_under_the_same_id() {
    let world = world(STARTED);
    let id = world.store.create(sample::at()).unwrap();
    let request = request(Some("k"));
    let key = request.key.as_ref().unwrap();
    let _ = world.store.claim_key(request.session.as_ref(), key, &id).unwrap();
    let recorded = Fact::Spec(Box::new(spec(&world.ports, &launcher(), &request, &id)));
    let _ = world.store.publish(&id, &recorded, Durability::Power).unwrap();
    let launched = launch(&world.ports, &launcher(), &request).unwrap();
    assert_eq!(launched, Launched::Started { id: id.clone(), pid: Some(7), bound_to: None });
    assert_eq!(world.processes.told(), [LaunchSignal::Durable]);

    // A job that was declared abandoned is not finished: its owner may have been notified.
    let _ = world.store.publish(&id, &Fact::Begin(sample::abandoned()), Durability::Power).unwrap();
    assert_eq!(launch(&world.ports, &launcher(), &request).unwrap(), Launched::Known { id });
}

fn with_token(token: &str, key: Option<&str>) -> Request {
    let command = |token: &str| CommandLine::Argv(vec!["deploy".into(), "--token".into(), token.into()]);
    let masked_command = Some(command("[masked: token]"));
    Request { command: command(token), masked_command, ..request(key) }
}

#[test]
fn scenario_133_a_secret_in_a_command_is_handed_over_and_not_recorded() {
    let world = world(STARTED);
    let request = with_token("hunter2", None);
    let launched = launch(&world.ports, &launcher(), &request).unwrap();
    let facts = world.store.facts(launched.id());
    let spec = facts.spec.present().unwrap();
    assert!(spec.command_is_masked && Some(&spec.command) == request.masked_command.as_ref(), "{spec:?}");
    assert_eq!(world.processes.handed_over(), [request.command]);
    let _ = launch(&world.ports, &launcher(), &self::request(None));
    assert_eq!(world.processes.handed_over().len(), 1, "a command without secrets is in the spec");
}

#[test]
fn scenario_133_a_launch_is_finished_with_the_secret_of_the_launcher_that_finishes_it() {
    let world = world(STARTED);
    let id = world.store.create(sample::at()).unwrap();
    let first = with_token("hunter2", Some("k"));
    let _ = world.store.claim_key(first.session.as_ref(), first.key.as_ref().unwrap(), &id).unwrap();
    let recorded = Fact::Spec(Box::new(spec(&world.ports, &launcher(), &first, &id)));
    let _ = world.store.publish(&id, &recorded, Durability::Power).unwrap();
    // It would record the command as it is. What is recorded is not.
    let second = Request { masked_command: None, ..with_token("hunter3", Some("k")) };
    let launched = launch(&world.ports, &launcher(), &second).unwrap();
    assert_eq!(launched, Launched::Started { id: id.clone(), pid: Some(7), bound_to: None });
    assert_eq!(world.processes.handed_over(), [second.command]);
    let _ = world.store.publish(&id, &Fact::Begin(sample::begin()), Durability::Power).unwrap();
    let third = with_token("hunter4", Some("k"));
    assert_eq!(launch(&world.ports, &launcher(), &third).unwrap(), Launched::Known { id });
}
