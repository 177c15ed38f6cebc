//! The JSON documents besides the job itself. They are a contract: see `hearback schema`.

use hearback_core::{Durability, Gap, JobId, JobView, OsText, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

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
    /// `doctor`.
    pub(crate) doctor: DoctorDocument,
}
