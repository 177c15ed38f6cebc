//! The facts of a job after its spec. Each is written once, atomically, and never changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::session::Interruption;
use crate::variant::reads_newer_variants;
use crate::{
    AnswerRecord, Extra, FORMAT, Facts, Outcome, Output, ProcessIdentity, Session, Spec, Stamp, TargetHandle,
    Timestamp,
};

/// A supervisor has claimed the job, or the job is abandoned. The process that publishes first decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// The format of this fact.
    pub format: u32,
    /// The process that claimed or abandoned it.
    pub by: BegunBy,
    /// When.
    pub at_ms: Timestamp,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Who decided whether the job runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum BegunBy {
    /// This process owns the job.
    Supervisor(ProcessIdentity),
    /// The launcher is gone and no supervisor came: one that comes late must run nothing.
    Abandoned,
    /// By an actor that only a newer build knows. It was begun; whether it still runs, its locks do not tell.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(BegunBy);

impl Begin {
    /// A begin of this build's format.
    pub fn new(by: BegunBy, at_ms: Timestamp) -> Self {
        Self { format: FORMAT, by, at_ms, extra: Extra::new() }
    }
}

/// The target, as its executor accepted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The format of this fact.
    pub format: u32,
    /// How its executor finds it again. Facts of earlier builds call it `process`.
    #[serde(alias = "process")]
    pub handle: TargetHandle,
    /// When it was started.
    pub at_ms: Timestamp,
    /// How far it is detached: what it lives through.
    pub survives: Vec<String>,
    /// The unit of a service manager, or the Job Object, of its launcher, with which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_to: Option<String>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A request to kill the job. The first names the cause, later ones escalate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// The format of this fact.
    pub format: u32,
    /// When it was requested.
    pub at_ms: Timestamp,
    /// Who requested it.
    pub by: KilledBy,
    /// The reason that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long to wait between terminating and killing; zero kills at once.
    pub grace_ms: u64,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Who requested a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KilledBy {
    /// An agent, in this session.
    Session(Session),
    /// A caller outside any session.
    Person,
    /// The system, when it shuts down.
    System,
    /// The monitor, which restarts or stops; the job was launched with `--bound`.
    Host,
    /// hearback, because the output exceeded the log cap.
    OutputLimit,
    /// An actor that only a newer build knows. It was killed all the same.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(KilledBy);

impl fmt::Display for KilledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(session) => write!(f, "session {session}"),
            Self::Person => f.write_str("a person or a script"),
            Self::System => f.write_str("the system"),
            Self::Host => f.write_str("the host"),
            Self::OutputLimit => f.write_str("its output limit"),
            Self::Unknown => f.write_str("an actor that a newer hearback knows"),
        }
    }
}

/// The job has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The format of this fact.
    pub format: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When that was seen.
    pub at_ms: Timestamp,
    /// The same moment on every clock, for telling how long ago it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Stamp>,
    /// Who says so. Only a supervisor knows an exit.
    pub author: EndAuthor,
    /// How long the target ran, on a monotonic clock that stops while the machine sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// What it used, as far as the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it printed.
    pub output: Output,
    /// Processes of the job that could not be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<ProcessIdentity>,
    /// Where its processes are that could not be seen from where this was recorded, such as a pid namespace: nothing is
    /// known about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_sight: Option<String>,
    /// How many more there are than the record has room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub survivors_omitted: u64,
    /// What else a person should know: a failure of hearback itself, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Who recorded the end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum EndAuthor {
    /// The parent of the target.
    Supervisor,
    /// Any process that found the job without its supervisor.
    Reconciler,
    /// An author that only a newer build knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(EndAuthor);

/// The CPU time and memory of a job, with the children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// CPU time in the program.
    pub user_ms: u64,
    /// CPU time in the kernel.
    pub system_ms: u64,
    /// The largest memory of one of its processes.
    pub peak_memory_bytes: u64,
}

impl End {
    /// An end by a supervisor with nothing known but the outcome.
    pub fn new(outcome: Outcome, at_ms: Timestamp) -> Self {
        Self {
            format: FORMAT,
            outcome,
            at_ms,
            at: None,
            author: EndAuthor::Supervisor,
            ran_ms: None,
            usage: None,
            output: Output::default(),
            survivors: Vec::new(),
            out_of_sight: None,
            survivors_omitted: 0,
            note: None,
            extra: Extra::new(),
        }
    }

    /// Cuts words, then lists, until the record fits into `bytes`, and counts what it cut from the lists.
    ///
    /// What happened is never cut, only what was said about it.
    pub fn fit(&mut self, bytes: usize) {
        let size = |end: &Self| serde_json::to_vec(end).map_or(0, |json| json.len());
        if size(self) <= bytes {
            return;
        }
        let words = match &mut self.outcome {
            Outcome::Killed { reason, .. } => reason.as_mut(),
            Outcome::FailedToStart { error } => Some(&mut error.message),
            _ => None,
        };
        for text in self.note.as_mut().into_iter().chain(words) {
            truncate(text, 512);
        }
        while size(self) > bytes && !self.survivors.is_empty() {
            let keep = self.survivors.len() / 2;
            self.survivors_omitted += (self.survivors.len() - keep) as u64;
            self.survivors.truncate(keep);
        }
    }
}

impl Kill {
    /// Cuts its reason so that its JSON has at most `bytes` bytes.
    pub fn fit(&mut self, bytes: usize) {
        if serde_json::to_vec(self).is_ok_and(|json| json.len() > bytes)
            && let Some(reason) = &mut self.reason
        {
            truncate(reason, 512);
        }
    }
}

/// After the end, nothing of the job is left any more: a sweep saw and killed what had survived, was kept, or had been
/// out of sight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// The format of this fact.
    pub format: u32,
    /// When.
    pub at: Stamp,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Swept {
    /// A sweep of this build's format.
    pub fn new(at: Stamp) -> Self {
        Self { format: FORMAT, at, extra: Extra::new() }
    }
}

pub(crate) fn truncate(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
}

/// One attempt at a delivery: who holds the highest number may invoke the sink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// The format of this fact.
    pub format: u32,
    /// When the attempt was begun.
    pub at: Stamp,
    /// How long it may take.
    pub deadline_ms: u64,
    /// Attempts that count towards giving up, this one included; zero for a retry by hand.
    pub attempts_used: u32,
    /// Which sink of the chain, from 0.
    #[serde(default)]
    pub sink: u32,
    /// How long to wait after [`Self::at`] if this attempt leaves no result.
    #[serde(default)]
    pub next_ms: u64,
    /// Whether the attempt is a turn of the session: without a result, that turn was cut short by a death.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn: bool,
    /// The sink that could not reach the session, if this attempt goes to a later one of the chain in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<u32>,
    /// What the caller shows that took this lease and exited: the lease lasts until its deadline, and its lock says
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Lease {
    /// A lease of this build's format that was taken at some moment, and nothing else.
    pub fn at(at: Stamp) -> Self {
        Self {
            format: FORMAT,
            at,
            deadline_ms: 0,
            attempts_used: 0,
            sink: 0,
            next_ms: 0,
            turn: false,
            in_place_of: None,
            secret: None,
            extra: Extra::new(),
        }
    }
}

/// How one attempt at a delivery ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaseResult {
    /// The format of this fact.
    pub format: u32,
    /// When it ended.
    pub at: Stamp,
    /// No further attempt is made until a person acts.
    pub gave_up: bool,
    /// The session was busy, so that the attempt does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// The session no longer exists there: the next attempt goes to the next sink.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The session is open where it cannot be reached: the next sink of the chain is told, and this one is tried again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
    /// The process in which the session is open, if it is known. When that has ended, the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_in: Option<ProcessIdentity>,
    /// A sink took it in place of one that could not reach the session. The session has not heard of it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_in_place: bool,
    /// Why its turn was cut short, if it was. The attempt does not count, but several of them in a row do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// How long to wait after [`Self::at`].
    #[serde(default)]
    pub next_ms: u64,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The delivery is closed. There is one receipt, no matter how many processes tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The format of this fact.
    pub format: u32,
    /// How it ended.
    pub how: ReceiptHow,
    /// When.
    pub at: Stamp,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Receipt {
    /// A receipt of this build's format.
    pub fn new(how: ReceiptHow, at: Stamp) -> Self {
        Self { format: FORMAT, how, at, extra: Extra::new() }
    }
}

/// The ways in which a delivery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum ReceiptHow {
    /// A sink accepted it.
    Delivered,
    /// The agent keeps it in a queue of its own, from which its session takes it.
    Queued,
    /// The owner has read the result itself.
    Read,
    /// A caller discarded it.
    Discarded,
    /// It was not delivered within `expire_after`.
    Expired,
    /// A way that only a newer build knows. The delivery has ended all the same.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(ReceiptHow);

/// Nothing more is pending. Holds every other fact, so that a settled job is one read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// The format of this fact.
    pub format: u32,
    /// When it was settled; retention counts from here.
    pub at: Stamp,
    /// What the disk said at that moment.
    pub facts: Box<Facts>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A fact on its way to the disk.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type that it holds")]
pub enum Fact {
    Spec(Box<Spec>),
    Begin(Begin),
    Target(Target),
    Kill(u32, Kill),
    End(Box<End>),
    Swept(Swept),
    Answer(AnswerRecord),
    Lease(u32, Lease),
    LeaseResult(u32, LeaseResult),
    Receipt(Receipt),
    Settled(Settled),
}

/// The name of a fact, numbered where there can be several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant names the type of the same name")]
pub enum FactKind {
    Spec,
    Begin,
    Target,
    Kill(u32),
    End,
    Swept,
    Answer,
    Lease(u32),
    LeaseResult(u32),
    Receipt,
    Settled,
}

impl FactKind {
    /// Those of which there is at most one.
    pub const SINGLE: [Self; 8] = [
        Self::Spec,
        Self::Begin,
        Self::Target,
        Self::End,
        Self::Swept,
        Self::Answer,
        Self::Receipt,
        Self::Settled,
    ];
}

impl fmt::Display for FactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec => f.write_str("spec"),
            Self::Begin => f.write_str("begin"),
            Self::Target => f.write_str("target"),
            Self::Kill(n) => write!(f, "kill.{n}"),
            Self::End => f.write_str("end"),
            Self::Swept => f.write_str("swept"),
            Self::Answer => f.write_str("answer"),
            Self::Lease(n) => write!(f, "lease.{n}"),
            Self::LeaseResult(n) => write!(f, "result.{n}"),
            Self::Receipt => f.write_str("receipt"),
            Self::Settled => f.write_str("settled"),
        }
    }
}

impl Fact {
    /// Which fact it is.
    pub fn kind(&self) -> FactKind {
        match self {
            Self::Spec(_) => FactKind::Spec,
            Self::Begin(_) => FactKind::Begin,
            Self::Target(_) => FactKind::Target,
            Self::Kill(n, _) => FactKind::Kill(*n),
            Self::End(_) => FactKind::End,
            Self::Swept(_) => FactKind::Swept,
            Self::Answer(_) => FactKind::Answer,
            Self::Lease(n, _) => FactKind::Lease(*n),
            Self::LeaseResult(n, _) => FactKind::LeaseResult(*n),
            Self::Receipt(_) => FactKind::Receipt,
            Self::Settled(_) => FactKind::Settled,
        }
    }

    /// The fact as it stands on disk.
    ///
    /// # Errors
    ///
    /// When it holds a map whose keys are no strings, which none of ours does.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Spec(fact) => serde_json::to_vec(fact),
            Self::Begin(fact) => serde_json::to_vec(fact),
            Self::Target(fact) => serde_json::to_vec(fact),
            Self::Kill(_, fact) => serde_json::to_vec(fact),
            Self::End(fact) => serde_json::to_vec(fact),
            Self::Swept(fact) => serde_json::to_vec(fact),
            Self::Answer(fact) => serde_json::to_vec(fact),
            Self::Lease(_, fact) => serde_json::to_vec(fact),
            Self::LeaseResult(_, fact) => serde_json::to_vec(fact),
            Self::Receipt(fact) => serde_json::to_vec(fact),
            Self::Settled(fact) => serde_json::to_vec(fact),
        }
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
