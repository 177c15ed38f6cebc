//! The arguments of the tools. The doc comments are what a model reads.

use std::collections::BTreeMap;

use hearback::core::StateWord;
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `launch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaunchInput {
    /// The command line to run, in a shell. Give this or `argv`.
    pub(crate) command: Option<String>,
    /// A program and its arguments, run without a shell. Give this or `command`.
    pub(crate) argv: Option<Vec<String>>,
    /// The directory to run in, as an absolute path. Default: the directory of this server.
    pub(crate) cwd: Option<String>,
    /// Variables to add to the environment.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// A short name by which you recognise the job later.
    pub(crate) label: Option<String>,
    /// A name that makes a repeat harmless: a second launch with the same key returns the first job.
    pub(crate) key: Option<String>,
    /// Kill the job after this many seconds; 0 for no limit. Default: one hour, or what the settings say.
    pub(crate) timeout_s: Option<u64>,
    /// Kill the job after this many seconds without output. Default: no limit.
    #[schemars(range(min = 1))]
    pub(crate) idle_timeout_s: Option<u64>,
    /// Whether you are notified when the job ends. Default: true. Keep it true for work whose result you need: you can
    /// end your turn and need not poll. Use false only for a job whose end does not matter to you, such as a server
    /// that you will kill yourself, or when you call `wait` for it in the same turn.
    #[serde(default = "yes")]
    pub(crate) notify_on_complete: bool,
}

fn yes() -> bool {
    true
}

/// Arguments of `list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListInput {
    /// Only jobs in this state.
    pub(crate) state: Option<StateWord>,
    /// At most this many jobs, newest first.
    #[serde(default = "listed")]
    #[schemars(range(min = 1, max = 200))]
    pub(crate) limit: usize,
}

fn listed() -> usize {
    20
}

/// Arguments of `show`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowInput {
    /// The id of the job, or at least four characters from either end of it.
    pub(crate) job: String,
}

/// Arguments of `output`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputInput {
    /// The id of the job, or at least four characters from either end of it.
    pub(crate) job: String,
    /// Only the first lines.
    pub(crate) head: Option<u64>,
    /// Only the last lines. The default is the last 100 lines.
    pub(crate) tail: Option<u64>,
    /// From this byte on. Pass the `end` of the last answer to continue.
    pub(crate) offset: Option<u64>,
    /// At most this many bytes.
    #[serde(default = "bytes")]
    #[schemars(range(min = 256, max = 262144))]
    pub(crate) max_bytes: usize,
}

fn bytes() -> usize {
    16 * 1024
}

/// Arguments of `wait`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitInput {
    /// The ids of the jobs.
    #[schemars(length(min = 1))]
    pub(crate) jobs: Vec<String>,
    /// Whether to wait until all of them have ended, or any of them.
    #[serde(default)]
    pub(crate) until: WaitUntil,
    /// How long to wait, in seconds. The jobs continue after that.
    #[serde(default = "patience")]
    #[schemars(range(min = 0, max = 600))]
    pub(crate) timeout_s: u64,
}

/// When a wait is over.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitUntil {
    #[default]
    All,
    Any,
}

fn patience() -> u64 {
    50
}

/// Arguments of `kill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KillInput {
    /// The id of the job, or at least four characters from either end of it.
    pub(crate) job: String,
    /// Why; it is recorded.
    pub(crate) reason: Option<String>,
    /// Whether to kill a supervisor that does not answer, too. Only after a kill has failed for that reason.
    #[serde(default)]
    pub(crate) force: bool,
}

/// Arguments of `follow_ups`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowUpsInput {
    /// `list` shows what is pending; `next` returns the oldest pending follow-up with its text, which stays pending;
    /// `ack` closes those of `deliveries`, so that you do not hear of them again.
    #[serde(default)]
    pub(crate) action: FollowUpsAction,
    /// For `ack`: the ids of the deliveries, or of their jobs.
    #[serde(default)]
    pub(crate) deliveries: Vec<String>,
    /// For `next`: how long to wait for one, in seconds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 600))]
    pub(crate) wait_s: u64,
}

/// What to do with follow-ups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FollowUpsAction {
    #[default]
    List,
    Next,
    Ack,
}
