//! The JSON documents besides the job itself. They are a contract: see `hearback schema`.

use hearback_core::service::ServiceManager;
use hearback_core::session::Interruption;
use hearback_core::{Durability, Gap, JobId, JobView, OsText, Outcome, Session, StopKind};
use serde::Serialize;

use crate::EffectiveSetting;

/// What `list --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListDocument {
    /// The version of this document.
    pub format: u32,
    /// Newest first.
    pub jobs: Vec<JobView>,
    /// Jobs that could not be shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// A job that something could not be done with.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The job.
    pub id: JobId,
    /// Why.
    pub error: String,
}

/// What `logs --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogDocument {
    /// The version of this document.
    pub format: u32,
    /// The job.
    pub id: JobId,
    /// Where in the log the text begins.
    pub offset: u64,
    /// Where it ends; pass it as `--offset` to read on.
    pub end: u64,
    /// How much the job has printed so far.
    pub bytes: u64,
    /// How much of that is not kept.
    pub dropped: u64,
    /// What it printed there; bytes that are not UTF-8 become replacement characters.
    pub text: String,
    /// What is missing between `offset` and `end`, in order; widened to whole lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

/// What `followups --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowUpsDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs whose follow-up is open, the first that ended first.
    pub jobs: Vec<JobView>,
}

/// What `followups ack`, `retry` and `discard` print with `--json` for each delivery.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosedDocument {
    /// The version of this document.
    pub format: u32,
    /// The delivery.
    pub delivery: String,
    /// Whether anything was done.
    pub changed: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What `results --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultsDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs that have ended and whose answer was not read yet, the first that ended first.
    pub results: Vec<JobView>,
    /// Those that have not ended.
    pub running: Vec<JobId>,
    /// Those that were asked for by name and had been read before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<JobId>,
    /// How many more have ended than are acknowledged at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What `sink test --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SinkTestDocument {
    /// The version of this document.
    pub format: u32,
    /// The sink.
    pub sink: String,
    /// Whether it took the sample.
    pub delivered: bool,
    /// What it answered.
    pub answer: String,
}

/// What `plugin check --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PluginCheckDocument {
    /// The version of this document.
    pub format: u32,
    /// The program that was tried.
    pub program: OsText,
    /// Whether it keeps to the protocol.
    pub passed: bool,
    /// Everything that was tried.
    pub checks: Vec<ConformanceDocument>,
}

/// One thing that was tried with a plugin.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConformanceDocument {
    /// Its name, which never changes.
    pub name: String,
    /// Whether it went as it should.
    pub passed: bool,
    /// What was seen.
    pub seen: String,
}

/// What `kill --json` prints for each job.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KillDocument {
    /// The version of this document.
    pub format: u32,
    /// The job.
    pub id: JobId,
    /// Whether it was over before anybody asked.
    pub was_over: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Pids of processes that could not be ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
}

/// What `reconcile --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReconcileDocument {
    /// The version of this document.
    pub format: u32,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What was done, or would be.
    pub steps: Vec<StepDocument>,
    /// Jobs that could not be brought up to date.
    pub problems: Vec<Problem>,
}

/// One step of a reconcile.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepDocument {
    /// The job.
    pub id: JobId,
    /// `abandon`, `lose`, `answer`, `settle` or `archive`.
    pub step: String,
}

/// What `prune --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PruneDocument {
    /// The version of this document.
    pub format: u32,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// Jobs that are gone, or would be.
    pub pruned: Vec<JobId>,
    /// Leftovers of crashes that are gone.
    pub tidied: usize,
    /// Jobs that should be gone and are not.
    pub problems: Vec<Problem>,
}

/// What `send --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentDocument {
    /// The version of this document.
    pub format: u32,
    /// Whom it is for.
    pub session: Session,
    /// Its number.
    pub message: u32,
    /// Whether the turn that the session was in has been cut short for it.
    pub interrupted: bool,
    /// Whether the session was in a turn.
    pub in_turn: bool,
}

/// What `sessions --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionsDocument {
    /// The version of this document.
    pub format: u32,
    /// By name.
    pub sessions: Vec<SessionDocument>,
}

/// What is known of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionDocument {
    /// Which.
    pub session: Session,
    /// The turn that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_turn: Option<u32>,
    /// The newest turn that was cut short since the last good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<InterruptedDocument>,
    /// Why it is not continued any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<String>,
    /// How many messages wait.
    pub waiting: usize,
    /// How many nobody could be given.
    pub dead_letters: usize,
    /// The sink of its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Where that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// When that began (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn_at: Option<String>,
}

/// A turn that was cut short.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptedDocument {
    /// Its number.
    pub turn: u32,
    /// Why.
    pub reason: Interruption,
    /// When, as far as that is known (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What `inbox --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InboxDocument {
    /// The version of this document.
    pub format: u32,
    /// In order, for each session.
    pub messages: Vec<MessageDocument>,
}

/// A message that waits, or that nobody could be given.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageDocument {
    /// Whom it is for.
    pub session: Session,
    /// Its number.
    pub message: u32,
    /// What it says; absent when it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// When it was sent (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<String>,
    /// How often it was tried.
    pub attempts: usize,
    /// Whether it is not tried any more.
    pub given_up: bool,
    /// What the last attempt came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What `monitor install --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallDocument {
    /// The version of this document.
    pub format: u32,
    /// Who keeps the monitor running.
    pub manager: ServiceManager,
    /// By which that knows it.
    pub name: String,
    /// Where it is described.
    pub file: OsText,
    /// The description.
    pub text: String,
    /// Whether anything was done: installed, or removed.
    pub done: bool,
    /// What the manager was told, or would be.
    pub commands: Vec<OrderDocument>,
}

/// What a service manager is told.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderDocument {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Why it failed, if it had to succeed and did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What `monitor status --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MonitorDocument {
    /// The version of this document.
    pub format: u32,
    /// Whether one looks after the store.
    pub running: bool,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Since when (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The version of its hearback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether a service manager starts it again.
    pub service: bool,
    /// What it is about to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StopKind>,
    /// Every session of which anything is known.
    pub sessions: Vec<SessionDocument>,
    /// Every setting as it is in force here.
    pub settings: Vec<EffectiveSetting>,
}

/// What `monitor restart`, `stop` and `drain` print with `--json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MonitorAskedDocument {
    /// The version of this document.
    pub format: u32,
    /// What was asked for.
    pub kind: StopKind,
    /// How many turns are waited for, or were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaited: Option<u32>,
    /// Whether it was an old request that came again, and nothing was done.
    pub ignored: bool,
}

/// What `settings --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingsDocument {
    /// The version of this document.
    pub format: u32,
    /// Where the settings file is, or would be.
    pub file: OsText,
    /// Every setting as it is in force.
    pub settings: Vec<EffectiveSetting>,
    /// Values that were passed over, each with its reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What `doctor --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoctorDocument {
    /// The version of this document.
    pub format: u32,
    /// The version of hearback.
    pub hearback: String,
    /// Where the store is, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<OsText>,
    /// What has to survive a power cut.
    pub durability: Durability,
    /// Everything that was looked at.
    pub checks: Vec<CheckDocument>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckDocument {
    /// Its name, which never changes.
    pub name: String,
    /// `ok`, `warn`, `fail`, or `skip` when it was not tried.
    pub level: String,
    /// What was seen.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
}

/// The JSON Schema of everything that hearback prints as JSON.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    // For what is printed, not for what would be understood: a list that is left out when empty is not required.
    schemars::generate::SchemaSettings::default()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Documents>()
}

/// Everything that hearback prints as JSON, by the command that prints it.
#[cfg(feature = "schema")]
#[derive(Debug, schemars::JsonSchema)]
#[schemars(title = "hearback")]
#[expect(dead_code, reason = "only its schema is used")]
struct Documents {
    /// `show`, `launch`, `ask`, and each line of `wait`.
    job: JobView,
    /// `list`.
    list: ListDocument,
    /// `logs`.
    logs: LogDocument,
    /// What a sink is given, and `followups next` prints.
    event: hearback_core::CloudEvent,
    /// `results`.
    results: ResultsDocument,
    /// `followups`.
    followups: FollowUpsDocument,
    /// Each line of `followups ack`, `retry` and `discard`.
    followups_closed: ClosedDocument,
    /// `sink test`.
    sink_test: SinkTestDocument,
    /// `plugin check`.
    plugin_check: PluginCheckDocument,
    /// Each line of `kill`.
    kill: KillDocument,
    /// `reconcile`.
    reconcile: ReconcileDocument,
    /// `prune`.
    prune: PruneDocument,
    /// `send`.
    send: SentDocument,
    /// What a sink is given for a message; the envelope is that of `event`.
    message: hearback_core::MessagePayload,
    /// What a sink is given for a notice; the envelope is that of `event`.
    notice: hearback_core::Notice,
    /// `sessions`.
    sessions: SessionsDocument,
    /// `inbox`.
    inbox: InboxDocument,
    /// `monitor status`.
    monitor: MonitorDocument,
    /// `monitor restart`, `monitor stop` and `monitor drain`.
    monitor_asked: MonitorAskedDocument,
    /// `monitor install`.
    monitor_install: InstallDocument,
    /// `settings`.
    settings: SettingsDocument,
    /// `doctor`.
    doctor: DoctorDocument,
}
