//! The base of the end-to-end tests: a private world for hearback to run in, and ways to wait and to look.
//!
//! The programs that the tests run as jobs are in `src/bin`; what hearback promises is in `tests`.
#![allow(
    clippy::disallowed_methods,
    reason = "the harness starts ordinary programs and waits by the real clock"
)]

mod args;
mod campaign;
mod chance;
mod job;
pub mod killat;
mod link;
#[cfg(target_os = "linux")]
mod linux;
mod look;
mod mcp;
#[cfg(any(target_os = "linux", windows))]
mod mounts;
pub mod node;
mod outbox;
#[cfg(windows)]
pub mod outside;
mod owner;
mod process;
pub mod python;
mod run;
mod serve;
mod skip;
mod snapshot;
mod system;
#[cfg(any(target_os = "linux", windows))]
mod terminal;
#[cfg(windows)]
mod windows;
mod world;

pub use campaign::{is_full, rounds};
pub use chance::Chance;
pub use job::Job;
pub use link::{link_file, link_folder};
pub use look::{eventually, lines, witness};
pub use mcp::{Era, McpClient, misfits};
#[cfg(any(target_os = "linux", windows))]
pub use mounts::{Mount, with_private_mounts};
pub use outbox::{Call, Outbox};
pub use owner::{Forbidden, forbid_reading, give_away, me, take_back};
pub use process::{alive, go_on, kill_hard, kill_if_there, stop};
#[cfg(any(target_os = "linux", windows))]
pub use process::{carrying, start_ticks};
pub use run::{KillOnDrop, Ran, bin, copy_program, run};
pub use serve::ServeClient;
pub use skip::skipped;
pub use snapshot::Snapshot;
#[cfg(windows)]
pub use system::{CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS};
pub use system::{exit_killed, exit_terminated, is_real_windows, is_wine, open_to_others, scaled};
#[cfg(any(target_os = "linux", windows))]
pub use terminal::Terminal;
#[cfg(target_os = "linux")]
pub use terminal::Tmux;
pub use world::World;
