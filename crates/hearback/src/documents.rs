//! The JSON documents of all commands, except the job itself. They are a contract: see `hearback schema`.

use crate::{Attempt, Event, Expectation, Hearback, Killed, Listing, SeenAgent, SetupState, SinkOverview};
use hearback_core::event::Happened;
use hearback_core::service::ServiceManager;
use hearback_core::session::Interruption;
use hearback_core::{
    CloudEvent, DOCUMENT_FORMAT, Durability, GapReason, JobId, JobView, OsText, Outcome, Session, StopKind,
};
use hearback_monitor::delivery::CallerClaim;
use serde::Serialize;

use crate::EffectiveSetting;

pub mod serve;

/// A document, and why the command failed, if it did. Every command prints its document in this form.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{T}Reply"))]
pub struct Reply<T> {
    /// What there is to say.
    #[serde(flatten)]
    pub document: T,
    /// Why the command failed, wholly or in part; absent when it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorDetail>,
}

/// What a command prints with `--json` when it failed and there is nothing else to say.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDocument {
    /// The version of this document.
    pub format: u32,
    /// Why the command failed.
    pub error: ErrorDetail,
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetail {
    /// What kind of error it is. It decides the exit code.
    pub kind: ErrorKind,
    /// What failed, and why, for people.
    pub message: String,
    /// What to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// Which job or delivery it is about, as the caller named it; its id if the caller did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// The kinds of errors. `docs/exit-codes.md` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ErrorKind {
    /// The call is wrong: an unknown option, a missing session, an empty message.
    Usage,
    /// `HEARBACK_DENY` denies it.
    Denied,
    /// There is no such sink, or no sink for this session.
    NoSink,
    /// The session that should get the answer is unknown.
    UnknownSession,
    /// The key names another job.
    KeyTaken,
    /// Too long a chain of follow-ups, or too many in an hour.
    ChainLimit,
    /// There is no such job.
    UnknownJob,
    /// Several jobs could be meant.
    AmbiguousJob,
    /// The job has not ended, and has to.
    NotEnded,
    /// The job has no answer.
    NoAnswer,
    /// There is nothing to print or to change.
    Nothing,
    /// The token of a claim is over, and another process has the follow-up; or it is no token.
    ClaimLost,
    /// A kill left processes, failed or got no response.
    NotKilled,
    /// The job takes no input, or no more of it.
    NoInput,
    /// The sink did not accept the sample.
    NotDelivered,
    /// A check failed.
    CheckFailed,
    /// The person at the terminal said no.
    Declined,
    /// No monitor is running.
    NoMonitor,
    /// Not now: the session is in a turn, or the monitor is about to end.
    Busy,
    /// The wait reached its deadline. The job continues.
    Deadline,
    /// The program is not executable.
    NotExecutable,
    /// The program was not found.
    NotFound,
    /// The job or the agent could not be started, or its start was not confirmed.
    NotStarted,
    /// Some jobs or sessions could not be read or changed. The rest was.
    Partly,
    /// The store cannot be opened, read or written.
    Store,
    /// The monitor does not answer.
    MonitorSilent,
    /// Anything else failed.
    Failed,
    /// The command was interrupted.
    Interrupted,
    /// The host cancelled the request.
    Cancelled,
    /// The turn, the claim or the subscription is over, or never was.
    UnknownToken,
}

impl ErrorKind {
    /// The exit code of a command that fails so.
    pub fn exit_code(self) -> u32 {
        match self {
            Self::UnknownJob
            | Self::AmbiguousJob
            | Self::NotEnded
            | Self::NoAnswer
            | Self::Nothing
            | Self::UnknownToken
            | Self::ClaimLost
            | Self::NotKilled
            | Self::NoInput
            | Self::NotDelivered
            | Self::CheckFailed
            | Self::Declined
            | Self::NoMonitor => 1,
            Self::Usage
            | Self::Denied
            | Self::NoSink
            | Self::UnknownSession
            | Self::KeyTaken
            | Self::ChainLimit => 2,
            Self::Busy | Self::Deadline => 75,
            Self::NotStarted | Self::Partly | Self::Store | Self::MonitorSilent | Self::Failed => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Interrupted | Self::Cancelled => 130,
        }
    }
}

/// What `launch --json` prints: the job, and what to expect when it ends.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchDocument {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// Whether this launch made it; false if its key names a job that was launched before.
    pub created: bool,
    /// What its owner can expect when it ends.
    pub expect: ExpectationDocument,
}

/// What an owner can expect when its job ends.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpectationDocument {
    /// `woken`: its session is woken. `woken_when_closed`: its session is woken once it is closed. `sent`: a sink that
    /// starts no turn is notified. `fetch`: the follow-up waits until the session fetches it. `unreachable`: the sink
    /// cannot be used here. `nothing`: no follow-up is wanted.
    pub kind: &'static str,
    /// The sink, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Why its session is not woken, if there is a reason to give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// All of this in words.
    pub text: String,
}

impl ExpectationDocument {
    /// What is expected, and the same in words.
    pub fn new(expectation: Expectation, text: String) -> Self {
        let (kind, sink, reason) = match expectation {
            Expectation::Woken { sink } => ("woken", Some(sink), None),
            Expectation::WokenWhenClosed { sink, .. } => ("woken_when_closed", Some(sink), None),
            Expectation::Sent { sink } => ("sent", Some(sink), None),
            Expectation::Fetch => ("fetch", None, None),
            Expectation::Unreachable { sink, reason } => ("unreachable", Some(sink), Some(reason)),
            Expectation::Nothing { reason } => ("nothing", None, Some(reason)),
        };
        Self { kind, sink, reason, text }
    }
}

/// What `show --json` prints: the job, and with `--output` the end of its output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowDocument {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// The end of its output, as much as `--output` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogDocument>,
}

/// What `list --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs, newest first.
    pub jobs: Vec<JobView>,
    /// Whether more jobs may match: only the open ones and the newest of history were listed.
    pub truncated: bool,
    /// How many jobs there are in all; absent with a filter, or when there are too many to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// Jobs that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

impl ListDocument {
    /// The document of a listing.
    pub fn new(listing: Listing) -> Self {
        let problems = listing.problems.into_iter();
        Self {
            format: DOCUMENT_FORMAT,
            jobs: listing.jobs.into_iter().map(|job| job.view).collect(),
            truncated: listing.truncated,
            total: listing.total,
            problems: problems.map(|(id, error)| Problem { id, error: error.to_string() }).collect(),
        }
    }
}

/// What `timeline --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimelineDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs, newest first.
    pub jobs: Vec<TimelineJob>,
    /// Whether more jobs may match: only the open ones and the newest of history are in it.
    pub truncated: bool,
    /// Jobs that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// A job, and the attempts to notify its owner.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimelineJob {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// The attempts, in order.
    pub attempts: Vec<AttemptDocument>,
}

/// One attempt to notify the owner of a job.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptDocument {
    /// When it was begun (RFC 3339).
    pub at: String,
    /// When it failed (RFC 3339); absent if it succeeded, or its process died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<Attempt> for AttemptDocument {
    fn from(attempt: Attempt) -> Self {
        Self {
            at: attempt.at.to_string(),
            ended_at: attempt.ended_at.map(|at| at.to_string()),
            sink: attempt.sink,
            error: attempt.error,
        }
    }
}

impl TimelineDocument {
    /// The document of a listing.
    pub fn new(hearback: &Hearback, listing: Listing) -> Self {
        let problems = listing.problems.into_iter();
        Self {
            format: DOCUMENT_FORMAT,
            jobs: listing
                .jobs
                .into_iter()
                .map(|job| TimelineJob {
                    attempts: hearback.attempts(&job).into_iter().map(Into::into).collect(),
                    job: job.view,
                })
                .collect(),
            truncated: listing.truncated,
            problems: problems.map(|(id, error)| Problem { id, error: error.to_string() }).collect(),
        }
    }
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
    /// Where this document begins in the output, in bytes.
    pub offset: u64,
    /// Where this document ends; pass it as `--offset` to continue reading.
    pub end: u64,
    /// The size of all output so far.
    pub bytes: u64,
    /// How many of these bytes were dropped.
    pub dropped: u64,
    /// The output from `offset` to `end`, in order. Each part begins where the one before it ends.
    pub parts: Vec<LogPart>,
    /// How the job ended; only in a document that reaches the end of the output of an ended job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// A part of the output: text, or the reason why it is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPart {
    /// Where it begins in the output, in bytes.
    pub offset: u64,
    /// Where it ends.
    pub end: u64,
    /// The text. Bytes that are not UTF-8 become replacement characters, and a secret its name, so its length is not
    /// always that of the part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why there is no text. A gap of the log is widened to whole lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
}

/// Why a part of the output is not printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Missing {
    /// The log has it, but there was no room for it in `--max-bytes`. `--offset` prints it.
    LeftOut,
    /// The output exceeded the log cap, and its middle was dropped.
    Cap,
    /// The output could not be written: the disk was full, or failed.
    Lost,
    /// For a reason that only a newer build knows.
    Unknown,
}

impl From<GapReason> for Missing {
    fn from(reason: GapReason) -> Self {
        match reason {
            GapReason::Cap => Self::Cap,
            GapReason::Lost => Self::Lost,
            GapReason::Unknown => Self::Unknown,
        }
    }
}

/// What `followups --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowUpsDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs whose follow-up is pending, leased or a dead letter; the one that ended first comes first.
    pub jobs: Vec<JobView>,
    /// Jobs that could not be read. Their follow-ups may be pending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// What `followups ack`, `release`, `retry` and `discard` print with `--json` for each delivery.
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

/// What `followups claim --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimDocument {
    /// The version of this document.
    pub format: u32,
    /// What acknowledges or releases it.
    pub token: String,
    /// `follow_up`.
    pub kind: ClaimKind,
    /// The id of the delivery, which never changes.
    pub id: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Until when no other caller gets it (RFC 3339).
    pub until: String,
    /// What a sink would get.
    pub payload: CloudEvent,
}

/// What was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ClaimKind {
    /// The follow-up of a job.
    FollowUp,
}

impl From<CallerClaim> for ClaimDocument {
    fn from(claim: CallerClaim) -> Self {
        let CallerClaim { delivery, token, until } = claim;
        Self {
            format: DOCUMENT_FORMAT,
            token: token.to_string(),
            kind: ClaimKind::FollowUp,
            id: delivery.id.clone(),
            attempt: delivery.attempt,
            until: until.to_string(),
            payload: delivery.into(),
        }
    }
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
    pub running: Vec<JobView>,
    /// The jobs in the arguments whose answer was already read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<JobId>,
    /// With `--ack`: how many more have ended than this call acknowledges.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Jobs that could not be read. They may have an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What `agent list --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentsDocument {
    /// The version of this document.
    pub format: u32,
    /// The agents that hearback knows.
    pub agents: Vec<AgentDocument>,
}

/// An agent that hearback knows.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentDocument {
    /// Its name, which is also the name of its sink.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its program; absent if it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What it says its version is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The ways into one of its sessions, in the order in which they are tried.
    pub doors: Vec<String>,
    /// Whether it runs this command.
    pub here: bool,
}

impl From<SeenAgent> for AgentDocument {
    fn from(seen: SeenAgent) -> Self {
        Self {
            name: seen.agent.name.to_owned(),
            title: seen.agent.title.to_owned(),
            program: seen.program.map(|program| program.display().to_string()),
            version: seen.version,
            doors: seen.agent.doors.iter().map(|door| door.name().to_owned()).collect(),
            here: seen.here,
        }
    }
}

/// What `agent setup --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupDocument {
    /// The version of this document.
    pub format: u32,
    /// The agent.
    pub agent: String,
    /// Its files.
    pub files: Vec<SetupFileDocument>,
}

/// A file of a set-up.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupFileDocument {
    /// Where it is.
    pub path: String,
    /// What was there before.
    pub state: SetupState,
    /// Whether this call wrote or removed it.
    pub changed: bool,
    /// What it should hold.
    pub text: String,
}

/// What `sink list --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SinksDocument {
    /// The version of this document.
    pub format: u32,
    /// The names of all sinks: configured and built in.
    pub sinks: Vec<String>,
    /// The same sinks, and those that the settings define wrongly, each with whether it can be used here.
    pub details: Vec<SinkDocument>,
}

/// One sink.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SinkDocument {
    /// Its name.
    pub name: String,
    /// Whether it can be used here, as far as that is known without running it.
    pub usable: bool,
    /// Why it cannot be used: its program is missing, say, or its settings are invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether it can only take the follow-up of a job that has a session.
    pub needs_session: bool,
}

impl From<SinkOverview> for SinkDocument {
    fn from(sink: SinkOverview) -> Self {
        let SinkOverview { name, problem, needs_session } = sink;
        Self { name, usable: problem.is_none(), problem, needs_session }
    }
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
    /// How many processes that had outlived the job were killed now.
    #[serde(skip_serializing_if = "is_zero")]
    pub leftovers_killed: usize,
    /// Pids of processes that could not be killed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
    /// The pid namespace in which processes of it may still run: they cannot be seen from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_sight: Option<String>,
    /// The job, as it is now.
    pub job: JobView,
    /// The end of its output, as much as `--output` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogDocument>,
}

impl KillDocument {
    /// The document of a kill; `log` is the end of the output, if it is wanted.
    pub fn new(killed: &Killed, log: Option<LogDocument>) -> Self {
        let job = killed.job.view.clone();
        Self {
            format: DOCUMENT_FORMAT,
            id: job.id.clone(),
            already_ended: killed.already_ended,
            outcome: job.outcome.clone(),
            leftovers_killed: killed.leftovers_killed,
            survivors: killed.survivors.iter().map(|who| who.pid).collect(),
            out_of_sight: killed.out_of_sight.clone(),
            job,
            log,
        }
    }
}

/// What `write --json` prints. If not everything was written, `error` says why.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenDocument {
    /// The version of this document.
    pub format: u32,
    /// The job.
    pub id: JobId,
    /// How many bytes the job can read now, or has read.
    pub bytes: u64,
    /// Whether its input was ended behind them.
    pub ended: bool,
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
    /// Sessions that could not be read.
    pub problems: Vec<SessionProblem>,
}

/// A session that could not be read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionProblem {
    /// The session, or the name of its folder if it is not known whose it is.
    pub session: String,
    /// What failed.
    pub error: String,
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
    /// How many jobs it owns, among the open ones and the newest 1,000 of history.
    pub jobs: usize,
    /// How many messages wait.
    pub waiting: usize,
    /// Whether they wait for a host that attends the session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_host: bool,
    /// How many messages are dead letters: hearback gave up their delivery, or holds them for a person.
    pub dead_letters: usize,
    /// Why the oldest of them is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_error: Option<String>,
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
    /// Whether hearback gave up its delivery, or holds it for a person: `error` says why.
    pub dead_letter: bool,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What `inbox retry` and `inbox discard` print with `--json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedMessageDocument {
    /// The version of this document.
    pub format: u32,
    /// The session of the message.
    pub session: Session,
    /// The number of the message.
    pub message: u32,
    /// Whether the command changed anything.
    pub changed: bool,
}

/// What `turn --json` prints when the agent has ended, after all output of the agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnDocument {
    /// The version of this document.
    pub format: u32,
    /// The session.
    pub session: Session,
    /// How the agent ended.
    pub outcome: Outcome,
}

/// What `exit-codes --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitCodesDocument {
    /// The version of this document.
    pub format: u32,
    /// The codes, those of one group of commands after those of another.
    pub codes: Vec<ExitCodeDocument>,
}

/// One exit code of some commands.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitCodeDocument {
    /// The commands, in words.
    pub of: String,
    /// The code, or several in words, such as `128+n`.
    pub code: String,
    /// What it means.
    pub meaning: String,
}

/// What `--version --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionDocument {
    /// The version of this document.
    pub format: u32,
    /// The version of hearback.
    pub version: String,
}

/// What `completions --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletionsDocument {
    /// The version of this document.
    pub format: u32,
    /// The shell.
    pub shell: String,
    /// The script for it.
    pub script: String,
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
    /// Whether it answers; false for one that is paused, or leaves what is due undone.
    pub answers: bool,
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

/// What `monitor run --json` prints when the monitor ends.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MonitorRunDocument {
    /// The version of this document.
    pub format: u32,
    /// What it was requested to do; absent if it ended by itself, as with `--once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopKind>,
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

/// One line of `events`: something that happened.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventDocument {
    /// The version of this document.
    pub format: u32,
    /// Its identity. An event that is read again has the same one.
    pub id: String,
    /// What to pass to `--since` to read on behind it.
    pub cursor: String,
    /// When it happened, by the clock of that moment.
    pub at: String,
    /// What happened.
    #[serde(flatten)]
    pub what: Happened,
    /// Whose job or session it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The job, as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobView>,
}

impl From<Event> for EventDocument {
    fn from(event: Event) -> Self {
        Self {
            format: DOCUMENT_FORMAT,
            id: event.key.to_string(),
            cursor: event.cursor.to_string(),
            at: event.at.to_string(),
            what: event.what,
            session: event.session,
            job: event.job.map(|job| job.view),
        }
    }
}

/// The first line of `events`: everything that happens from now on is read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadyDocument {
    /// The version of this document.
    pub format: u32,
    /// `ready`.
    pub r#type: ReadyType,
    /// What to pass to `--since` to read on from here.
    pub cursor: String,
}

/// The type of the first line of `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReadyType {
    /// The reader is ready.
    Ready,
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
    /// A call that failed without anything else to say, and each job of several that failed.
    error: ErrorDocument,
    /// A job: each line of `wait`, and what other documents have of jobs.
    job: Reply<JobView>,
    /// `show`.
    show: Reply<ShowDocument>,
    /// `launch` and `ask`.
    launch: Reply<LaunchDocument>,
    /// `list`.
    list: Reply<ListDocument>,
    /// `timeline`.
    timeline: Reply<TimelineDocument>,
    /// `logs`.
    logs: Reply<LogDocument>,
    /// What a sink gets, and `followups next` prints.
    event: hearback_core::CloudEvent,
    /// The first line of `events`.
    events_ready: ReadyDocument,
    /// Each other line of `events`.
    happening: EventDocument,
    /// `results`.
    results: Reply<ResultsDocument>,
    /// `followups`.
    followups: Reply<FollowUpsDocument>,
    /// `followups claim`.
    followups_claim: Reply<ClaimDocument>,
    /// Each line of `followups ack`, `release`, `retry` and `discard`.
    followups_closed: Reply<ClosedDocument>,
    /// `agent list`.
    agent_list: Reply<AgentsDocument>,
    /// `agent setup`.
    agent_setup: Reply<SetupDocument>,
    /// `sink list`.
    sink_list: Reply<SinksDocument>,
    /// `sink test`.
    sink_test: Reply<SinkTestDocument>,
    /// `plugin check`.
    plugin_check: Reply<PluginCheckDocument>,
    /// Each line of `kill`.
    kill: Reply<KillDocument>,
    /// `write`.
    write: Reply<WrittenDocument>,
    /// `reconcile`.
    reconcile: Reply<ReconcileDocument>,
    /// `prune`.
    prune: Reply<PruneDocument>,
    /// `send`.
    send: Reply<SentDocument>,
    /// What a sink that starts turns gets for several follow-ups; the envelope is that of `event`.
    follow_ups: hearback_core::FollowUps,
    /// What a sink gets for a message; the envelope is that of `event`.
    message: hearback_core::MessagePayload,
    /// What a sink gets for a notice; the envelope is that of `event`.
    notice: hearback_core::Notice,
    /// `sessions`.
    sessions: Reply<SessionsDocument>,
    /// `inbox`.
    inbox: Reply<InboxDocument>,
    /// `inbox retry` and `inbox discard`.
    inbox_change: Reply<ChangedMessageDocument>,
    /// `turn`.
    turn: Reply<TurnDocument>,
    /// `monitor run`.
    monitor_run: Reply<MonitorRunDocument>,
    /// `monitor status`.
    monitor: Reply<MonitorDocument>,
    /// `monitor restart`, `monitor stop` and `monitor drain`.
    monitor_request: Reply<MonitorRequestDocument>,
    /// `monitor install`.
    monitor_install: Reply<InstallDocument>,
    /// `settings`.
    settings: Reply<SettingsDocument>,
    /// `doctor`.
    doctor: Reply<DoctorDocument>,
    /// `completions`.
    completions: Reply<CompletionsDocument>,
    /// `exit-codes`.
    exit_codes: Reply<ExitCodesDocument>,
    /// `--version`.
    version: Reply<VersionDocument>,
    /// `serve`.
    serve: serve::ServeProtocol,
}
