//! The fakes keep the promises of their ports.

use std::path::Path;

use hearback_core::port::surroundings::OutsideEvent;
use hearback_core::testing::{
    FakeClock, FakeDisk, FakeExecutor, FakeProcesses, FakeSink, FakeStore, FakeSurround, Heard,
    PolledSurround, suite,
};

#[test]
fn fakes_pass_the_suites_of_their_ports() {
    suite::clock(&FakeClock::default());
    suite::disk(&FakeDisk::default(), Path::new("/home"));
    suite::process(&FakeProcesses::default());
    suite::record(&FakeStore::default());
    suite::session(&FakeStore::default());
    suite::watch(&FakeStore::default());
    suite::sink(&FakeSink::default());
}

#[test]
fn the_fake_executor_passes_the_suite() {
    let surround = FakeSurround { hurry: true, ..FakeSurround::default() };
    let (executor, commands) = (FakeExecutor::default(), FakeExecutor::commands());
    suite::executor(&executor, &surround, &commands, Path::new("/folder"));
    assert_eq!(surround.log.bytes(), b"hello\n");
}

#[test]
fn the_fake_surroundings_pass_the_suite() {
    let surround = FakeSurround { hurry: true, ..FakeSurround::default() };
    let ring =
        || surround.heard.lock().expect("no test panicked").push_back(Heard::Event(OutsideEvent::Bell));
    suite::surroundings(&surround, &ring, Path::new("/folder"));
    assert_eq!(surround.log.bytes(), b"hello, world");
}

#[test]
fn surroundings_that_really_wait_pass_the_suite() {
    let surround = PolledSurround::default();
    suite::surroundings(&surround, &|| surround.ring(), Path::new("/folder"));
    assert_eq!(surround.log_bytes(), b"hello, world");
}
