//! A job as programs see it: the JSON contract of `--json`.

use serde::{Deserialize, Serialize};

use crate::fold::{Flaw, Here};
use crate::{
    Answer, CommandLine, Facts, FollowUpState, Gap, JobId, JobState, NotifyPolicy, Observed, OsText, Outcome,
    Output, Read, Session, Usage, delivery_id,
};

/// The version of every JSON document that hearback prints. It changes for other reasons than the format on disk.
pub const DOCUMENT_FORMAT: u32 = 1;

/// One job, as `show --json`, `list --json` and `wait --json` print it. Absent means absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobView {
    /// The version of this document.
    pub format: u32,
    /// The job.
    pub id: JobId,
    /// How far it is.
    pub state: StateWord,
    /// It runs, but stands still: somebody stopped its main process. Its limits count on.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub paused: bool,
    /// Its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it runs; absent when the record of it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
    /// When it was asked for (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched_at: Option<String>,
    /// When its process was started (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When its end was seen (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How long it ran, in milliseconds awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// Its process, for people; a pid alone is never good enough to signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The longest it may run, in milliseconds awake; absent when there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest it may print nothing, in milliseconds awake; absent when there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What came of it, if it is a job with an answer and is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What it used of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The message owed to its owner.
    pub follow_up: FollowUpView,
    /// What it printed.
    pub output: OutputView,
    /// What it lives through.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub survives: Vec<String>,
    /// What it ends with all the same: the unit of a service manager, or the Job Object, that it was launched in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_to: Option<String>,
    /// Whether it ends with the host: a monitor that restarts or stops ends it first.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub bound: bool,
    /// Pids of processes that could not be ended with it, or were kept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub survivors: Vec<u32>,
    /// What keeps this from being the whole truth: a fact that cannot be read, a newer format, another machine.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

/// How far a job is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StateWord {
    /// Being launched.
    Starting,
    /// Alive.
    Running,
    /// Ended with code 0.
    Done,
    /// Ended in any other way.
    Failed,
    /// Ended in a way that only a newer build knows: not with code 0, and not known to have failed.
    Ended,
}

impl StateWord {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Ended => "ended",
        }
    }

    /// Whether the job is over.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Ended)
    }
}

/// The message owed to the owner of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowUpView {
    /// What the owner chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<NotifyPolicy>,
    /// How far it is.
    pub state: FollowUpState,
    /// Its identity, which never changes; absent when nothing is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// How often it was tried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a job printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputView {
    /// Every byte that it printed.
    pub bytes: u64,
    /// Where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<OsText>,
    /// Those that are not kept.
    #[serde(default)]
    pub dropped: u64,
    /// Where those were, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl OutputView {
    fn new(recorded: Option<&Output>, seen: &Output, path: OsText) -> Self {
        // What was kept may go on printing after the end.
        let output = recorded.filter(|recorded| recorded.bytes >= seen.bytes).unwrap_or(seen);
        let Output { bytes, dropped, gaps, .. } = output.clone();
        Self { bytes, path: Some(path), dropped, gaps }
    }
}

impl JobView {
    /// Shows what was observed; `log` is where its output is, as text of the system.
    ///
    /// Returns nothing when there is no job.
    pub fn new(seen: &Observed, here: &Here, log: OsText) -> Option<Self> {
        let facts = &seen.facts;
        let folded = seen.fold();
        let mut notes = notes(seen);
        // Said of a job of a newer build as well: both are true of it.
        let foreign = here.is_foreign(facts);
        if foreign {
            notes.push("launched on another machine: shown, and left alone".into());
        }
        let lost = |reason| (StateWord::Failed, Some(Outcome::Lost { reason }));
        let (state, outcome) = match &folded.state {
            JobState::Nothing => return None,
            JobState::Starting => (StateWord::Starting, None),
            JobState::Running => (StateWord::Running, None),
            // Its locks say nothing here, so neither do we.
            JobState::Unclaimed | JobState::Orphaned if foreign => (StateWord::Running, None),
            JobState::Unclaimed | JobState::Orphaned => lost(here.lost_reason(facts)),
            JobState::Ended { outcome, .. } => {
                let word = match outcome {
                    Outcome::Unknown => StateWord::Ended,
                    _ if outcome.is_success() => StateWord::Done,
                    _ => StateWord::Failed,
                };
                (word, Some(outcome.clone()))
            }
        };
        let spec = facts.spec.present();
        let target = facts.target.present();
        let end = facts.end.present();
        let wanted = folded.follow_up.state != FollowUpState::NotWanted;
        Some(Self {
            format: DOCUMENT_FORMAT,
            id: seen.id.clone(),
            state,
            // No fact tells; whoever can see the process says so.
            paused: false,
            session: spec.and_then(|spec| spec.session.clone()),
            label: spec.and_then(|spec| spec.label.clone()),
            command: spec.map(|spec| spec.command.clone()),
            cwd: spec.map(|spec| spec.cwd.clone()),
            launched_at: spec.map(|spec| spec.launched_at_ms.to_string()),
            started_at: target.map(|target| target.at_ms.to_string()),
            ended_at: end.map(|end| end.at_ms.to_string()),
            ran_ms: end.and_then(|end| end.ran_ms),
            pid: target.and_then(|target| target.handle.pid()),
            timeout_ms: spec.and_then(|spec| spec.limits.timeout_ms),
            idle_timeout_ms: spec.and_then(|spec| spec.limits.idle_timeout_ms),
            outcome,
            answer: answer(facts),
            usage: end.and_then(|end| end.usage),
            follow_up: FollowUpView {
                policy: folded.follow_up.policy,
                state: folded.follow_up.state,
                delivery: wanted.then(|| delivery_id(&seen.id)),
                attempts: seen.attempts(),
                error: last_error(facts, folded.follow_up.state),
            },
            output: OutputView::new(end.map(|end| &end.output), &seen.output, log),
            survives: target.map(|target| target.survives.clone()).unwrap_or_default(),
            bound_to: target.and_then(|target| target.bound_to.clone()),
            bound: spec.is_some_and(|spec| spec.bound),
            survivors: end.map(|end| end.survivors.iter().map(|who| who.pid).collect()).unwrap_or_default(),
            notes,
        })
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// One that is there and cannot be used is told as what it is: whoever waits for it waits for nothing more.
fn answer(facts: &Facts) -> Option<Answer> {
    match (&facts.answer, facts.answer.flaw()) {
        (Read::Present(record), _) => Some(record.answer.clone()),
        (_, Some(Flaw::Unreadable(why))) => Some(Answer::unusable(why)),
        (_, Some(Flaw::Newer(_))) => Some(Answer::unusable("a newer hearback wrote it")),
        (_, None) => None,
    }
}

fn last_error(facts: &Facts, state: FollowUpState) -> Option<String> {
    let last = facts.results.iter().max_by_key(|(n, _)| n).filter(|_| !state.is_closed());
    last?.1.present()?.error.clone()
}

fn notes(seen: &Observed) -> Vec<String> {
    let facts = &seen.facts;
    let flaws = facts.flaws().into_iter().map(|(kind, flaw)| match flaw {
        Flaw::Unreadable(why) => format!("{kind} cannot be read: {why}"),
        Flaw::Newer(format) => {
            format!("{kind} has format {format}, written by a newer hearback: left alone")
        }
    });
    let mut notes: Vec<_> = flaws.collect();
    if let Some(words) = facts.end.present().and_then(|end| end.note.clone()) {
        notes.push(words);
    }
    notes
}
