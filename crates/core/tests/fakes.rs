//! The fakes keep the promises of their ports.

use std::path::Path;

use hearback_core::testing::{FakeClock, FakeDisk, FakeProcesses, FakeSink, FakeStore, suite};

#[test]
fn fakes_pass_the_suites_of_their_ports() {
    suite::clock(&FakeClock::default());
    suite::disk(&FakeDisk::default(), Path::new("/home"));
    suite::process(&FakeProcesses::default());
    suite::record(&FakeStore::default());
    suite::sink(&FakeSink::default());
}
