//! The fakes keep the promises of their ports.

use std::path::Path;

use hearback_core::port::executor::RunEvent;
use hearback_core::testing::{
    FakeClock, FakeDisk, FakeExecutor, FakeProcesses, FakeSink, FakeStore, Script, suite,
};
use hearback_core::{CommandLine, Exit, StartError, StartErrorKind};

#[test]
fn fakes_pass_the_suites_of_their_ports() {
    suite::clock(&FakeClock::default());
    suite::disk(&FakeDisk::default(), Path::new("/home"));
    suite::process(&FakeProcesses::default());
    suite::record(&FakeStore::default());
    suite::sink(&FakeSink::default());
}

#[test]
fn the_fake_executor_passes_the_suite_when_it_is_told_how() {
    let refuse = |kind| StartError { kind, message: "as told".into() };
    let script = Script {
        refuse: [StartErrorKind::NotFound, StartErrorKind::BadDirectory].map(refuse).into(),
        events: [RunEvent::Exited { exit: Exit::Exited { code: 3 }, usage: None }].into(),
        ..Script::default()
    };
    let executor = FakeExecutor::default();
    *executor.0.lock().expect("no test panicked") = script;
    let nothing = || CommandLine::Argv(vec!["nothing".into()]);
    let commands = suite::Commands {
        hello_then_3: nothing(),
        missing: nothing(),
        cwd: "/".into(),
        no_such_dir: "/nowhere".into(),
    };
    suite::executor(&executor, &commands, Path::new("/log"));
}
