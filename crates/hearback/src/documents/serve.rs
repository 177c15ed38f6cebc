//! The messages of `hearback serve`: what a host asks, what it is answered, and what it is notified of. They are a
//! contract: see `hearback schema` and `docs/serve.md`.

use std::collections::BTreeMap;

use hearback_core::note::{HistoryEnd, Note};
use hearback_core::session::Interruption;
use hearback_core::{CloudEvent, JobView, NotifyPolicy, Session, SinkPayload, StateWord, StopKind};
use serde::{Deserialize, Deserializer, Serialize};

use super::{ErrorDetail, EventDocument, KillDocument, Problem, Reply};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// The first line, from the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelloDocument {
    /// The version of this document.
    pub format: u32,
    /// The version of the protocol. A host that does not know it ends.
    pub protocol: u32,
    /// The version of hearback.
    pub version: String,
    /// Where the store is.
    pub home: String,
    /// The process of the server.
    pub pid: u32,
}

/// What `launch` takes: `command` or `shell`, and how to run it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchParams {
    /// A program and its arguments, which no shell reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Text for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The session that owns the job; by default that of the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The working directory, as an absolute path; by default that of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables that are set, or with `null` removed. The rest is the environment of the server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Option<String>>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Makes the launch repeatable: the same key names the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long it may run; `null` for no limit. Left out, the settings decide.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Option<u64>>,
    /// How long it may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// How long its processes have between being terminated and being killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// When its owner is notified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifyPolicy>,
    /// Where the follow-up goes, in this order. Left out, that of a session comes to a host that attends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sinks: Option<Vec<String>>,
    /// How much of its output is kept; `null` for all. At least 1 MiB.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub log_cap_bytes: Option<Option<u64>>,
}

/// Tells a value that is `null` from one that is left out.
fn some<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// What `list` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListParams {
    /// Only jobs of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Only jobs in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateWord>,
    /// Only jobs that ended so: a kind of `outcome`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Only jobs with this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// At most so many, the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The whole history. Otherwise what is open, and the newest 20 of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// What `show` takes: a job as people name one, or a key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowParams {
    /// The job: its id, four characters of either end of it, its label or `@last`. Either this or `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The key that the job was launched with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Adds the end of its output as `log`, at most so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Only a job of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
}

/// What `output` takes: at most one of `offset`, `head` and `tail`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputParams {
    /// The job.
    pub job: String,
    /// Only a job of this session, which has read how it ended if the answer says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// From this offset on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Only the first lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<u64>,
    /// Only the last lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u64>,
    /// At most so many bytes; by default 64 KiB, and never more than 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<usize>,
}

/// What `wait` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitParams {
    /// The jobs.
    pub jobs: Vec<String>,
    /// Only jobs of this session, which has read how they ended when it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Return when one of them has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any: bool,
    /// How long to wait; left out or `null`, until they have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The session has not read how they ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peek: bool,
}

/// What `wait` answers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitedDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs as they are now, in the order of the request.
    pub jobs: Vec<JobView>,
    /// Whether the time of the wait passed before it was complete. The jobs continue.
    pub timed_out: bool,
    /// Jobs that cannot be waited for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// What `kill` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KillParams {
    /// The jobs. If one of them is not found, none is killed.
    pub jobs: Vec<String>,
    /// Only jobs of this session, which kills them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long its processes have between being terminated and being killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Kill a supervisor that does not answer, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// What `kill` answers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KilledDocument {
    /// The version of this document.
    pub format: u32,
    /// The jobs that have ended, each with why something of it is left, if that is so.
    pub jobs: Vec<Reply<KillDocument>>,
    /// Why others are not known to have ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorDetail>,
}

/// What `send` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SendParams {
    /// The session that gets it.
    pub session: Session,
    /// Its text.
    pub text: String,
    /// The sink that it goes to; by default where the last turn went, else the host that attends the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Where the host shows what the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
}

/// What `attend` and `unattend` take: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttendParams {
    /// This session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Every session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// An answer that says no more than that it is done.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoneDocument {
    /// The version of this document.
    pub format: u32,
}

/// What `turn.open` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnOpenParams {
    /// The session.
    pub session: Session,
    /// How long to wait while the session is in another turn.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
    /// Where the host shows what the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// What the history of the conversation ends with, if the host knows: it decides whether the agent gets a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryWord>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What the history of a conversation ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HistoryWord {
    /// Tool results that the agent has not processed.
    ToolResults,
    /// A message of the agent or its user.
    Text,
    /// Nothing: the history is empty.
    Empty,
}

impl From<HistoryWord> for HistoryEnd {
    fn from(word: HistoryWord) -> Self {
        match word {
            HistoryWord::ToolResults => Self::ToolResults,
            HistoryWord::Text => Self::Text,
            HistoryWord::Empty => Self::Empty,
        }
    }
}

/// What `turn.claim` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnClaimParams {
    /// The token of the turn.
    pub turn: String,
}

/// What `turn.close` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnCloseParams {
    /// The token of the turn.
    pub turn: String,
    /// How it ended.
    pub how: TurnCloseHow,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TurnCloseHow {
    /// The agent did what it was asked. What is open of its items is acknowledged.
    Done,
    /// It did not. What is open of its items is given back, and an attempt is spent.
    Failed,
}

/// What `ack` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AckParams {
    /// The token of the item.
    pub token: String,
}

/// What `release` takes. The item is free when its turn ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseParams {
    /// The token of the item.
    pub token: String,
    /// Why.
    pub how: ReleaseHow,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When to offer it again; otherwise after a pause that grows. Not for `gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Why an item is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReleaseHow {
    /// Not now. No attempt is spent.
    Busy,
    /// The agent could not take it. An attempt is spent.
    Failed,
    /// The session no longer exists here: the next sink of the chain gets it.
    Gone,
}

/// A follow-up or a message that this host holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ItemDocument {
    /// Names the claim, for `ack` and `release`. It is used once.
    pub token: String,
    /// What it is.
    pub kind: ItemKind,
    /// The id of the delivery: the same in every attempt, so that a repeat is recognisable.
    pub id: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// What a sink gets: a follow-up or a message in its envelope.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub payload: CloudEvent<SinkPayload>,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ItemKind {
    /// A job has ended.
    FollowUp,
    /// Somebody sent a message.
    Message,
}

/// A turn that this host runs: what `turn.open` answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnOpenedDocument {
    /// The version of this document.
    pub format: u32,
    /// The token of the turn.
    pub turn: String,
    /// The session.
    pub session: Session,
    /// The number of the turn.
    pub number: u32,
    /// What the agent should hear first: the turn before was cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Where the host shows what the agent says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// What the turn holds. Empty in the answer of `turn.open`.
    pub items: Vec<ItemDocument>,
    /// Variables for the processes of the agent. By these they are found, and ended, if this host dies.
    pub env: BTreeMap<String, String>,
}

/// A turn that the server has begun, because something is due: the notification `turn`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnDocument {
    /// The turn, and what it holds.
    #[serde(flatten)]
    pub turn: TurnOpenedDocument,
    /// The note and the items as text for the agent.
    pub text: String,
}

/// What `turn.claim` answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimedDocument {
    /// The version of this document.
    pub format: u32,
    /// What the turn holds besides, from now on.
    pub items: Vec<ItemDocument>,
    /// The items as text for the agent; absent without an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What `events` takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsParams {
    /// The `cursor` of an event, `beginning` or `now`; by default `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only what happens to this session and its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
}

/// What `events` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscribedDocument {
    /// The version of this document.
    pub format: u32,
    /// Names the subscription.
    pub subscription: u64,
    /// What to pass to `since` to read on from here.
    pub cursor: String,
}

/// What `events.stop` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsStopParams {
    /// The subscription.
    pub subscription: u64,
}

/// What the notification `cancel` of a host takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelParams {
    /// The `id` of a request that is not answered yet.
    #[cfg_attr(feature = "schema", schemars(with = "RequestId"))]
    pub id: serde_json::Value,
}

/// Something became due for a session while a turn of this host runs there: the notification `due`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DueDocument {
    /// The version of this document.
    pub format: u32,
    /// The session.
    pub session: Session,
    /// The token of the turn.
    pub turn: String,
    /// How much is due now. `turn.claim` takes it; otherwise it comes after the turn.
    pub count: usize,
}

/// A turn is to end: the notification `interrupt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptDocument {
    /// The version of this document.
    pub format: u32,
    /// The session.
    pub session: Session,
    /// The token of the turn.
    pub turn: String,
    /// Why.
    pub reason: Interruption,
}

/// A monitor restarts or stops, and no turn begins until that is over: the notification `draining`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrainingDocument {
    /// The version of this document.
    pub format: u32,
    /// What the monitor does.
    pub kind: StopKind,
    /// Whether it is over.
    pub over: bool,
}

/// Something happened: the notification `event`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HappenedDocument {
    /// The subscription.
    pub subscription: u64,
    /// What happened. A line of `hearback events --json`.
    #[serde(flatten)]
    pub event: EventDocument,
}

/// Why a subscription ended that the host did not stop: the notification `events.ended`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsEndedDocument {
    /// The version of this document.
    pub format: u32,
    /// The subscription.
    pub subscription: u64,
    /// Why.
    pub error: ErrorDetail,
}

/// What the server tells without being asked.
#[derive(Debug, Serialize)]
#[serde(tag = "method", content = "params")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "each variant is the document that it holds")]
pub enum Notification {
    #[serde(rename = "hello")]
    Hello(HelloDocument),
    #[serde(rename = "turn")]
    Turn(Box<TurnDocument>),
    #[serde(rename = "due")]
    Due(DueDocument),
    #[serde(rename = "interrupt")]
    Interrupt(InterruptDocument),
    #[serde(rename = "draining")]
    Draining(DrainingDocument),
    #[serde(rename = "event")]
    Event(Box<HappenedDocument>),
    #[serde(rename = "events.ended")]
    EventsEnded(EventsEndedDocument),
}

/// The error of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RpcError {
    /// -32000, or what JSON-RPC says about the request itself.
    pub code: i32,
    /// What failed, and why, for people.
    pub message: String,
    /// What kind of error it is, and what to try.
    pub data: RpcErrorData,
}

/// The error of a request, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RpcErrorData {
    /// The kind, as the errors of `--json` have it.
    pub kind: super::ErrorKind,
    /// What to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// Which job it is about, as the caller named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl RpcError {
    /// The error of a request that was understood.
    pub fn of(detail: ErrorDetail) -> Self {
        let ErrorDetail { kind, message, tip, subject } = detail;
        Self { code: -32000, message, data: RpcErrorData { kind, tip, subject } }
    }
}

/// How a request is named: text or a number.
#[cfg(feature = "schema")]
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum RequestId {
    Number(i64),
    Text(String),
}

/// Every message of `hearback serve`. Each line is an object of JSON-RPC 2.0.
#[cfg(feature = "schema")]
#[derive(Debug, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ServeProtocol {
    /// The `params` of each request of a host.
    params: ServeParams,
    /// The `result` of each request.
    results: ServeResults,
    /// The `error` of a request that failed.
    error: RpcError,
    /// `method` and `params` of what the server tells without being asked.
    notification: Notification,
}

#[cfg(feature = "schema")]
#[derive(Debug, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ServeParams {
    launch: LaunchParams,
    list: ListParams,
    show: ShowParams,
    output: OutputParams,
    wait: WaitParams,
    kill: KillParams,
    send: SendParams,
    attend: AttendParams,
    unattend: AttendParams,
    #[schemars(rename = "turn.open")]
    turn_open: TurnOpenParams,
    #[schemars(rename = "turn.claim")]
    turn_claim: TurnClaimParams,
    #[schemars(rename = "turn.close")]
    turn_close: TurnCloseParams,
    ack: AckParams,
    release: ReleaseParams,
    events: EventsParams,
    #[schemars(rename = "events.stop")]
    events_stop: EventsStopParams,
    /// A notification: it has no answer of its own.
    cancel: CancelParams,
}

#[cfg(feature = "schema")]
#[derive(Debug, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ServeResults {
    launch: super::LaunchDocument,
    list: super::ListDocument,
    show: super::ShowDocument,
    output: super::LogDocument,
    wait: WaitedDocument,
    kill: KilledDocument,
    send: super::SentDocument,
    attend: DoneDocument,
    unattend: DoneDocument,
    #[schemars(rename = "turn.open")]
    turn_open: TurnOpenedDocument,
    #[schemars(rename = "turn.claim")]
    turn_claim: ClaimedDocument,
    #[schemars(rename = "turn.close")]
    turn_close: DoneDocument,
    ack: DoneDocument,
    release: DoneDocument,
    events: SubscribedDocument,
    #[schemars(rename = "events.stop")]
    events_stop: DoneDocument,
}
