//! The JSON documents besides the job itself. They are a contract: see `hearback schema`.

use hearback_core::service::ServiceManager;
use hearback_core::session::Interruption;
use hearback_core::{Durability, Gap, JobId, JobView, OsText, Outcome, Session, StopKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::EffectiveSetting;

/// What `list --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// Newest first.
    pub(crate) jobs: Vec<JobView>,
    /// Jobs that could not be shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<Problem>,
}

/// A job that something could not be done with.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// The job.
    pub(crate) id: JobId,
    /// Why.
    pub(crate) error: String,
}

/// What `logs --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The job.
    pub(crate) id: JobId,
    /// Where in the log the text begins.
    pub(crate) offset: u64,
    /// Where it ends; pass it as `--offset` to read on.
    pub(crate) end: u64,
    /// How much the job has printed so far.
    pub(crate) bytes: u64,
    /// How much of that is not kept.
    pub(crate) dropped: u64,
    /// What it printed there; bytes that are not UTF-8 become replacement characters.
    pub(crate) text: String,
    /// What is missing between `offset` and `end`, in order; widened to whole lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gaps: Vec<Gap>,
}

/// What `followups --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FollowUpsDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The jobs whose follow-up is open, the first that ended first.
    pub(crate) jobs: Vec<JobView>,
}

/// What `followups ack`, `retry` and `discard` print with `--json` for each delivery.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ClosedDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The delivery.
    pub(crate) delivery: String,
    /// Whether anything was done.
    pub(crate) changed: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// What `results --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResultsDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The jobs that have ended and whose answer was not read yet, the first that ended first.
    pub(crate) results: Vec<JobView>,
    /// Those that have not ended.
    pub(crate) running: Vec<JobId>,
    /// Those that were asked for by name and had been read before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) read: Vec<JobId>,
    /// How many more have ended than are acknowledged at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What `sink test --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SinkTestDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The sink.
    pub(crate) sink: String,
    /// Whether it took the sample.
    pub(crate) delivered: bool,
    /// What it answered.
    pub(crate) answer: String,
}

/// What `plugin check --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PluginCheckDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The program that was tried.
    pub(crate) program: OsText,
    /// Whether it keeps to the protocol.
    pub(crate) passed: bool,
    /// Everything that was tried.
    pub(crate) checks: Vec<ConformanceDocument>,
}

/// One thing that was tried with a plugin.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConformanceDocument {
    /// Its name, which never changes.
    pub(crate) name: String,
    /// Whether it went as it should.
    pub(crate) passed: bool,
    /// What was seen.
    pub(crate) seen: String,
}

/// What `kill --json` prints for each job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KillDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The job.
    pub(crate) id: JobId,
    /// Whether it was over before anybody asked.
    pub(crate) was_over: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Outcome>,
    /// Pids of processes that could not be ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) survivors: Vec<u32>,
}

/// What `reconcile --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReconcileDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// Whether nothing was done.
    pub(crate) dry_run: bool,
    /// What was done, or would be.
    pub(crate) steps: Vec<StepDocument>,
    /// Jobs that could not be brought up to date.
    pub(crate) problems: Vec<Problem>,
}

/// One step of a reconcile.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepDocument {
    /// The job.
    pub(crate) id: JobId,
    /// `abandon`, `lose`, `answer`, `settle` or `archive`.
    pub(crate) step: String,
}

/// What `prune --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PruneDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// Whether nothing was done.
    pub(crate) dry_run: bool,
    /// Jobs that are gone, or would be.
    pub(crate) pruned: Vec<JobId>,
    /// Leftovers of crashes that are gone.
    pub(crate) tidied: usize,
    /// Jobs that should be gone and are not.
    pub(crate) problems: Vec<Problem>,
}

/// What `send --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SentDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// Whom it is for.
    pub(crate) session: Session,
    /// Its number.
    pub(crate) message: u32,
    /// Whether the turn that the session was in has been cut short for it.
    pub(crate) interrupted: bool,
    /// Whether the session was in a turn.
    pub(crate) in_turn: bool,
}

/// What `sessions --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionsDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// By name.
    pub(crate) sessions: Vec<SessionDocument>,
}

/// What is known of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionDocument {
    /// Which.
    pub(crate) session: Session,
    /// The turn that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_turn: Option<u32>,
    /// The newest turn that was cut short since the last good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupted: Option<InterruptedDocument>,
    /// Why it is not continued any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suspended: Option<String>,
    /// How many messages wait.
    pub(crate) waiting: usize,
    /// How many nobody could be given.
    pub(crate) dead_letters: usize,
    /// The sink of its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sink: Option<String>,
    /// Where that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) destination: Option<String>,
    /// When that began (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_turn_at: Option<String>,
}

/// A turn that was cut short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InterruptedDocument {
    /// Its number.
    pub(crate) turn: u32,
    /// Why.
    pub(crate) reason: Interruption,
    /// When, as far as that is known (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
}

/// What `inbox --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InboxDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// In order, for each session.
    pub(crate) messages: Vec<MessageDocument>,
}

/// A message that waits, or that nobody could be given.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageDocument {
    /// Whom it is for.
    pub(crate) session: Session,
    /// Its number.
    pub(crate) message: u32,
    /// What it says; absent when it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// When it was sent (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sent_at: Option<String>,
    /// How often it was tried.
    pub(crate) attempts: usize,
    /// Whether it is not tried any more.
    pub(crate) given_up: bool,
    /// What the last attempt came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// What `monitor install --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InstallDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// Who keeps the monitor running.
    pub(crate) manager: ServiceManager,
    /// By which that knows it.
    pub(crate) name: String,
    /// Where it is described.
    pub(crate) file: OsText,
    /// The description.
    pub(crate) text: String,
    /// Whether anything was done: installed, or removed.
    pub(crate) done: bool,
    /// What the manager was told, or would be.
    pub(crate) commands: Vec<OrderDocument>,
}

/// What a service manager is told.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OrderDocument {
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Why it failed, if it had to succeed and did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// What `monitor status --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MonitorDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// Whether one looks after the store.
    pub(crate) running: bool,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// Since when (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// The version of its hearback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Whether a service manager starts it again.
    pub(crate) service: bool,
    /// What it is about to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopping: Option<StopKind>,
    /// Every session of which anything is known.
    pub(crate) sessions: Vec<SessionDocument>,
    /// Every setting as it is in force here.
    pub(crate) settings: Vec<EffectiveSetting>,
}

/// What `monitor restart`, `stop` and `drain` print with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MonitorAskedDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// What was asked for.
    pub(crate) kind: StopKind,
    /// How many turns are waited for, or were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) awaited: Option<u32>,
    /// Whether it was an old request that came again, and nothing was done.
    pub(crate) ignored: bool,
}

/// What `settings --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettingsDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// Where the settings file is, or would be.
    pub(crate) file: OsText,
    /// Every setting as it is in force.
    pub(crate) settings: Vec<EffectiveSetting>,
    /// Values that were passed over, each with its reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

/// What `doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DoctorDocument {
    /// The version of this document.
    pub(crate) format: u32,
    /// The version of hearback.
    pub(crate) hearback: String,
    /// Where the store is, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<OsText>,
    /// What has to survive a power cut.
    pub(crate) durability: Durability,
    /// Everything that was looked at.
    pub(crate) checks: Vec<CheckDocument>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckDocument {
    /// Its name, which never changes.
    pub(crate) name: String,
    /// `ok`, `warn`, `fail`, or `skip` when it was not tried.
    pub(crate) level: String,
    /// What was seen.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tip: Option<String>,
}

/// Everything that hearback prints as JSON, by the command that prints it.
#[derive(Debug, JsonSchema)]
#[schemars(title = "hearback")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Documents {
    /// `show`, `launch`, `ask`, and each line of `wait`.
    pub(crate) job: JobView,
    /// `list`.
    pub(crate) list: ListDocument,
    /// `logs`.
    pub(crate) logs: LogDocument,
    /// What a sink is given, and `followups next` prints.
    pub(crate) event: hearback_core::CloudEvent,
    /// `results`.
    pub(crate) results: ResultsDocument,
    /// `followups`.
    pub(crate) followups: FollowUpsDocument,
    /// Each line of `followups ack`, `retry` and `discard`.
    pub(crate) followups_closed: ClosedDocument,
    /// `sink test`.
    pub(crate) sink_test: SinkTestDocument,
    /// `plugin check`.
    pub(crate) plugin_check: PluginCheckDocument,
    /// Each line of `kill`.
    pub(crate) kill: KillDocument,
    /// `reconcile`.
    pub(crate) reconcile: ReconcileDocument,
    /// `prune`.
    pub(crate) prune: PruneDocument,
    /// `send`.
    pub(crate) send: SentDocument,
    /// What a sink is given for a message; the envelope is that of `event`.
    pub(crate) message: hearback_core::MessagePayload,
    /// What a sink is given for a notice; the envelope is that of `event`.
    pub(crate) notice: hearback_core::Notice,
    /// `sessions`.
    pub(crate) sessions: SessionsDocument,
    /// `inbox`.
    pub(crate) inbox: InboxDocument,
    /// `monitor status`.
    pub(crate) monitor: MonitorDocument,
    /// `monitor restart`, `monitor stop` and `monitor drain`.
    pub(crate) monitor_asked: MonitorAskedDocument,
    /// `monitor install`.
    pub(crate) monitor_install: InstallDocument,
    /// `settings`.
    pub(crate) settings: SettingsDocument,
    /// `doctor`.
    pub(crate) doctor: DoctorDocument,
}
