//! Run it in the background. Always hear back.
//!
//! This crate is the `hearback` program and, with the `cli` feature off, a small front for programs that embed it:
//!
//! ```no_run
//! use hearback::{Hearback, Options, argv};
//!
//! // First thing in `main`: the supervisor of a job is this same program, executed again.
//! hearback::supervise_if_asked();
//!
//! let hearback = Hearback::open(Options::default())?;
//! let launched = hearback.launch(&argv(["make", "all"])?)?;
//! let job = hearback.wait(launched.id())?;
//! println!("{}", job.view.outcome.map_or("running".into(), |outcome| outcome.to_string()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The types to know: [`Hearback`] is a store and everything that can be done with it, [`Request`] is what to
//! launch (made by [`argv`] or [`shell()`]), and [`Job`] is what is known of it.

mod answers;
mod doctor;
mod follow_ups;
mod front;
mod home;
mod lookup;
mod mask;
mod monitor;
mod rehearsal;
mod session;
mod sessions;
mod settings;
mod sinks;
mod supervisor;

#[cfg(feature = "cli")]
pub mod cli;

pub use answers::{Acknowledged, Asker, Results, ask};
pub use doctor::{Diagnosis, DoctorError};
pub use front::{
    FollowError, Hearback, Job, Killed, Listing, OpenError, Options, Printed, RequestError, Select, argv,
    shell,
};
pub use hearback_core as core;
pub use hearback_core::port::disk::Wait;
pub use hearback_monitor::delivery::{Closed, Retry};
pub use hearback_monitor::doctor::{Check, Level};
pub use hearback_monitor::kill::{KillError, Request as KillRequest};
pub use hearback_monitor::launch::{DEFAULT_TIMEOUT, LaunchError, Launched, Request};
pub use hearback_monitor::prune::Retention;
pub use hearback_monitor::session::{OpenTurn, Refusal};
pub use hearback_monitor::wait::{Until, WaitError};
pub use lookup::FindError;
pub use monitor::{MonitorEnd, MonitorOptions, Predecessor, SeenMonitor, StopResponse};
pub use session::{SessionError, current_session};
pub use sessions::{MAX_MESSAGE_BYTES, OutgoingMessage, SeenSession, SendError, Sent, TurnRequest};
pub use settings::{EffectiveSetting, SettingSource, Settings};
pub use sinks::{Input, PluginCheck, Route, SinkSettings};
pub use supervisor::supervise_if_asked;
