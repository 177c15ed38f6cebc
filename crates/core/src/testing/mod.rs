//! Fakes of every port, and the suites that fakes and real implementations both have to pass.
//!
//! A decision is tested against the fakes in microseconds; that the fakes tell the truth is what the suites are for.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "this is test code that other crates link"
)]

mod fake_clock;
mod fake_disk;
mod fake_executor;
mod fake_processes;
mod fake_relaunch;
mod fake_sink;
mod fake_stop;
mod fake_store;
mod fake_surroundings;
mod polled_surround;
pub mod sample;
pub mod suite;

pub use fake_clock::FakeClock;
pub use fake_disk::FakeDisk;
pub use fake_executor::{FakeExecutor, FakeRunning, Script};
pub use fake_processes::{FakeLink, FakeProcesses};
pub use fake_relaunch::FakeRelaunch;
pub use fake_sink::FakeSink;
pub use fake_stop::FakeStop;
pub use fake_store::FakeStore;
pub use fake_surroundings::{FakeLog, FakeSurround, FakeSurroundings, Heard};
pub use polled_surround::PolledSurround;
