//! The JSON documents of all commands, except the job itself. They are a contract: see `hearback schema`.

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
    /// The jobs, newest first.
    pub jobs: Vec<JobView>,
    /// Jobs that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// A job that could not be processed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The job.
    pub id: JobId,
    /// What failed.
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
    /// Where the text begins in the output, in bytes.
    pub offset: u64,
    /// Where the text ends; pass it as `--offset` to continue reading.
    pub end: u64,
    /// The size of all output so far.
    pub bytes: u64,
    /// How many of these bytes were dropped.
    pub dropped: u64,
    /// The output; bytes that are not UTF-8 become replacement characters.
    pub text: String,
    /// The missing parts between `offset` and `end`, in order; widened to whole lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// How the job ended; only in a document that reaches the end of the output of an ended job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// What `followups --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowUpsDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs whose follow-up is pending, leased or a dead letter; the one that ended first comes first.
    pub jobs: Vec<JobView>,
}

/// What `followups ack`, `retry` and `discard` print with `--json` for each delivery.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosedDocument {
    /// The version of this document.
    pub format: u32,
    /// The id of the delivery.
    pub delivery: String,
    /// Whether the command changed anything.
    pub changed: bool,
    /// Why it changed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What `results --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultsDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs that have ended and whose answer is unread; the one that ended first comes first.
    pub results: Vec<JobView>,
    /// The jobs that have not ended.
    pub running: Vec<JobId>,
    /// The jobs in the arguments whose answer was already read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<JobId>,
    /// With `--ack`: how many more have ended than this call acknowledges.
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
    /// Whether the sink accepted the sample.
    pub delivered: bool,
    /// The reply of the sink.
    pub reply: String,
}

/// What `plugin check --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PluginCheckDocument {
    /// The version of this document.
    pub format: u32,
    /// The program that was checked.
    pub program: OsText,
    /// Whether all checks passed.
    pub passed: bool,
    /// The checks.
    pub checks: Vec<ConformanceDocument>,
}

/// One check of a plugin.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConformanceDocument {
    /// Its name, which never changes.
    pub name: String,
    /// Whether the check passed.
    pub passed: bool,
    /// What the plugin did.
    pub message: String,
}

/// What `kill --json` prints for each job.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KillDocument {
    /// The version of this document.
    pub format: u32,
    /// The job.
    pub id: JobId,
    /// Whether the job had ended before the kill.
    pub already_ended: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Pids of processes that could not be killed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
}

/// What `reconcile --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReconcileDocument {
    /// The version of this document.
    pub format: u32,
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
    /// The steps that were done; in a dry run, the steps that would be done.
    pub steps: Vec<StepDocument>,
    /// Jobs whose records could not be updated.
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
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
    /// The jobs that were removed; in a dry run, the jobs that would be removed.
    pub pruned: Vec<JobId>,
    /// How many leftovers of crashes were removed.
    pub tidied: usize,
    /// Jobs that could not be removed.
    pub problems: Vec<Problem>,
}

/// What `send --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentDocument {
    /// The version of this document.
    pub format: u32,
    /// The session that gets the message.
    pub session: Session,
    /// The number of the message.
    pub message: u32,
    /// Whether the message interrupted a turn of the session.
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
    /// The sessions, sorted by name.
    pub sessions: Vec<SessionDocument>,
}

/// The state of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionDocument {
    /// The name of the session.
    pub session: Session,
    /// The number of the turn in progress; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The newest turn that was interrupted since the last turn that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<InterruptedDocument>,
    /// Why hearback no longer continues interrupted turns of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<String>,
    /// How many messages wait.
    pub waiting: usize,
    /// How many messages are dead letters: hearback gave up their delivery.
    pub dead_letters: usize,
    /// The sink of its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// The destination of its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// When its last turn began (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn_at: Option<String>,
}

/// A turn that was interrupted.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptedDocument {
    /// The number of the turn.
    pub turn: u32,
    /// Why it was interrupted.
    pub reason: Interruption,
    /// When it was interrupted, if known (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What `inbox --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InboxDocument {
    /// The version of this document.
    pub format: u32,
    /// The messages, in order for each session.
    pub messages: Vec<MessageDocument>,
}

/// A message that waits, or that is a dead letter.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageDocument {
    /// The session that gets the message.
    pub session: Session,
    /// The number of the message.
    pub message: u32,
    /// The text of the message; absent when it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// When it was sent (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<String>,
    /// How many attempts were made to deliver it.
    pub attempts: usize,
    /// Whether hearback gave up its delivery.
    pub dead_letter: bool,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What `monitor install --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallDocument {
    /// The version of this document.
    pub format: u32,
    /// The service manager.
    pub manager: ServiceManager,
    /// The name of the service.
    pub name: String,
    /// The file that describes the service.
    pub file: OsText,
    /// The content of that file.
    pub text: String,
    /// Whether the service was installed or removed; false with `--print`.
    pub done: bool,
    /// The commands of the service manager that were run, or with `--print` would be.
    pub commands: Vec<OrderDocument>,
}

/// A command of the service manager.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderDocument {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Why it failed; absent if it succeeded or may fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What `monitor status --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MonitorDocument {
    /// The version of this document.
    pub format: u32,
    /// Whether a monitor is running.
    pub running: bool,
    /// The pid of the monitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When the monitor started (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The version of the monitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether a service manager runs the monitor.
    pub service: bool,
    /// What the monitor is about to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StopKind>,
    /// All known sessions.
    pub sessions: Vec<SessionDocument>,
    /// The settings, as this command sees them.
    pub settings: Vec<EffectiveSetting>,
}

/// What `monitor restart`, `stop` and `drain` print with `--json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MonitorRequestDocument {
    /// The version of this document.
    pub format: u32,
    /// What was requested.
    pub kind: StopKind,
    /// How many turns the monitor waits for, or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaited_turns: Option<u32>,
    /// Whether the monitor ignored this repeat of an old request.
    pub ignored: bool,
}

/// What `settings --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingsDocument {
    /// The version of this document.
    pub format: u32,
    /// The path of the settings file, whether it exists or not.
    pub file: OsText,
    /// The settings in force.
    pub settings: Vec<EffectiveSetting>,
    /// Invalid values that were ignored, each with its reason.
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
    pub version: String,
    /// The path of the store, whether it exists or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<OsText>,
    /// Whether records are written to survive a power cut.
    pub durability: Durability,
    /// The checks.
    pub checks: Vec<CheckDocument>,
}

/// One check of `doctor`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckDocument {
    /// Its name, which never changes.
    pub name: String,
    /// `ok`, `warn`, `fail`, or `skip` if the check was not made.
    pub level: String,
    /// The finding.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
}

/// The JSON Schema of everything that hearback prints as JSON.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    // The schema of what hearback prints, not of what it reads: a list that is left out when empty is not required.
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
    /// What a sink gets, and `followups next` prints.
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
    /// What a sink gets for a message; the envelope is that of `event`.
    message: hearback_core::MessagePayload,
    /// What a sink gets for a notice; the envelope is that of `event`.
    notice: hearback_core::Notice,
    /// `sessions`.
    sessions: SessionsDocument,
    /// `inbox`.
    inbox: InboxDocument,
    /// `monitor status`.
    monitor: MonitorDocument,
    /// `monitor restart`, `monitor stop` and `monitor drain`.
    monitor_request: MonitorRequestDocument,
    /// `monitor install`.
    monitor_install: InstallDocument,
    /// `settings`.
    settings: SettingsDocument,
    /// `doctor`.
    doctor: DoctorDocument,
}
