//! Processes, locks, files and clocks of each operating system, behind the ports of `hearback-core`.
//!
//! Two types to know: [`Detached`] starts a program that outlives this process, and is all that a project needs which
//! wants nothing else of hearback. [`Native`] is the [`Disk`](hearback_core::port::disk::Disk), the
//! [`ProcessControl`](hearback_core::port::process::ProcessControl), the
//! [`Executor`](hearback_core::port::executor::Executor) `local`, the
//! [`Surround`](hearback_core::port::surroundings::Surround) and the [`Clock`](hearback_core::port::clock::Clock) of
//! the machine it runs on.
//!
//! ```
//! use hearback_core::port::clock::Clock;
//! use hearback_platform::Native;
//!
//! assert!(Native::default().awake() > std::time::Duration::ZERO);
//! ```
//!
//! Inside, one `sys` module is chosen; both have the same names. What a system cannot do is reported as data.

// `unsafe` lives in `sys` alone, in the modules that expect it: see `unix/mod.rs` and `windows/mod.rs`.

#[cfg_attr(unix, path = "unix/mod.rs")]
#[cfg_attr(windows, path = "windows/mod.rs")]
mod sys;

mod ancestors;
mod detached;
mod disk;
mod log;
mod mark;
mod native;
pub mod probe;
mod program;
mod service;
mod stop;
mod temporary;
mod wire;

pub use ancestors::Ancestor;
pub use detached::{Detached, DetachedTree};
pub use hearback_core::port::process::{Presence, ProcessIdentity, SweepReport};
pub use mark::{Mark, Names};
pub use native::Native;
pub use program::{exit_code, next_program, own_program};
pub use service::ServicePlace;
pub use stop::{StopWatch, suspend};
pub use sys::files::{open_to_add, state_directory};
pub use sys::local_time::local_offset;
pub use sys::service::service_place;
pub use sys::streams::stdout_is_connected;
#[cfg(all(windows, feature = "testing"))]
pub use sys::testing;
pub use sys::text::{TERMINALS_TAKE_BYTES, from_os, split_variable, to_os};
pub use wire::StdioWire;

/// The example of the README, which has to run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
