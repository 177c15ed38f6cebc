//! Run it in the background. Always hear back.
//!
//! The library behind the `hearback` program, for programs that embed it:
//!
//! ```standalone_crate
//! use hearback::{Hearback, Options, argv};
//!
//! // First thing in `main`: the supervisor of a job is this same program, executed again.
//! hearback::supervise_if_asked();
//!
//! # let place = std::env::temp_dir().join(format!("hearback-doc-{}", std::process::id()));
//! let hearback = Hearback::open(Options::default().home(&place))?;
//! let launched = hearback.launch(&argv(["rustc", "--version"])?.label("version"))?;
//! let job = hearback.wait(launched.id())?;
//! assert_eq!(job.view.outcome.map(|outcome| outcome.to_string()).as_deref(), Some("done: exit code 0"));
//! # // Its supervisor may still move the job.
//! # while place.exists() {
//! #     let _ = std::fs::remove_dir_all(&place);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The types to know: [`Hearback`] is a store and everything that can be done with it, [`Request`] is what to
//! launch (made by [`argv`] or [`shell()`]), and [`Job`] is a job as it was seen. [`WaitLimit`] ends a wait: a time, or
//! a [`CancelWait`] that another thread cancels. [`Hearback::on_follow_up`] tells a closure of what has ended, and
//! [`Events`] of everything else. Nothing here polls, and every call blocks.

mod agent;
mod answers;
mod attend;
pub mod diagnostics;
mod doctor;
pub mod documents;
mod events;
mod expectation;
mod follow_ups;
pub mod home;
mod housekeeping;
mod jobs;
mod launch;
mod log_document;
pub mod log_parts;
mod logs;
mod lookup;
mod mask;
mod masked;
mod monitor;
mod on_follow_up;
mod open;
mod permissions;
mod rehearsal;
mod relaunch;
mod scope;
mod service;
pub mod session;
mod sessions;
mod setting_values;
mod settings;
mod settings_file;
mod setup;
mod sinks;
mod supervisor;
mod wait;

pub use agent::SeenAgent;
pub use answers::{Acknowledged, Results, ResultsQuery, ask, with_prompt};
pub use attend::{
    Attend, HostItem, HostNews, HostTurn, OpenTurnError, Release, SessionHost, TokenError, TurnClose,
};
pub use doctor::{Diagnosis, DoctorError};
pub use events::{Event, Events, EventsSince};
pub use expectation::Expectation;
pub use follow_ups::{ClaimError, ClaimedFollowUp, NextFollowUp};
pub use hearback_core as core;
pub use hearback_core::port::disk::Wait;
pub use hearback_monitor::delivery::{CallerClaim, Closed, Released, Retry};
pub use hearback_monitor::doctor::{Check, Level};
pub use hearback_monitor::host::{MonitorEnd, MonitorOptions, Predecessor, SeenMonitor, StopResponse};
pub use hearback_monitor::input::{InputError, InputOptions, NoInput};
pub use hearback_monitor::kill::{KillError, Request as KillRequest};
pub use hearback_monitor::launch::{LaunchError as LaunchFailure, Launched, Request};
pub use hearback_monitor::prune::Retention;
pub use hearback_monitor::session::{OpenTurn, Refusal};
pub use hearback_monitor::wait::{CancelHook, CancelWait, Until, WaitError, WaitLimit};
pub use hearback_monitor::{HostState, prune, reconcile};
pub use hearback_platform::{
    StopWatch, TERMINALS_TAKE_BYTES, exit_code, from_os, local_offset, split_variable, stdout_is_connected,
    suspend,
};
pub use hearback_store::{Log, Piece};
pub use home::RelativeHome;
pub use jobs::{Attempt, ChangedJobs, Job, Killed, Listing, Select};
pub use launch::{LaunchError, RequestError, argv, directory, shell};
pub use log_document::LogRange;
pub use logs::{FollowError, JobWatch, LogPiece};
pub use lookup::{FindError, LAST};
pub use mask::{Masker, Secrets};
pub use open::{Hearback, OpenError, Options};
pub use permissions::{Capability, DENY_VARIABLE, Denied, Guarded, Permissions, UnknownCapability};
pub use scope::Scope;
pub use service::{FailedOrder, InstallError, MonitorService};
pub use session::{SessionError, current_session};
pub use sessions::{
    MAX_MESSAGE_BYTES, OutgoingMessage, SeenSession, SendError, Sent, SessionListing, TurnRequest,
};
pub use setting_values::parse_size;
pub use settings::{DEFAULT_TIMEOUT, DefaultTimeout, EffectiveSetting, SettingSource, Settings};
pub use setup::{Setup, SetupError, SetupFile, SetupScope, SetupState};
pub use sinks::{
    AgentSink, ClaudeHook, CommandSink, FileSink, Input, NoSink, PluginCheck, PluginSink, Route,
    SinkOverview, SinkSettings, WebhookSink,
};
pub use supervisor::{supervise_if_asked, supervise_if_asked_with};
pub use wait::Reading;

/// Lets this process hear how agents and sinks end, although its parent ignores SIGCHLD and it inherited that. Programs
/// should call it first, unless they handle SIGCHLD themselves. Otherwise how they ended is unknown.
pub fn hear_of_children() {
    hearback_platform::Native::default().hear_of_children();
}

/// Makes a write over the limit on file sizes fail instead of killing this process. Programs that print or launch
/// should call it first.
pub fn survive_size_limits() {
    hearback_platform::Native::default().survive_size_limits();
}

/// The example of the README, which has to run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
