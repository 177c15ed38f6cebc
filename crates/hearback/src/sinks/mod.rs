//! All sinks, each kind in a file of its own (`kind.rs` lists them). Most run a program to its end; for built-in sinks,
//! that program is hearback itself.

mod address;
mod agent;
mod builtin;
mod command;
mod conformance;
mod file;
mod hand_over;
mod kind;
mod plugin;
#[cfg(feature = "webhook")]
mod post;
mod preset;
mod registry;
mod settings;
mod template;
mod webhook;

pub use agent::{AgentSink, ClaudeHook};
pub(crate) use builtin::{SINK_COMMAND, run as run_builtin};
pub use command::{CommandSink, Input};
pub use conformance::PluginCheck;
pub use file::FileSink;
pub use kind::Route;
pub use plugin::PluginSink;
pub use registry::{NoSink, SinkOverview};
pub(crate) use registry::{Registry, SinksInCode};
pub use settings::SinkSettings;
pub use webhook::WebhookSink;
