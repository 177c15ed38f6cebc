//! A job as programs see it: the JSON contract of `--json`.

use serde::{Deserialize, Serialize};

use crate::agents::LaunchingAgent;
use crate::fold::{Flaw, Here};
use crate::{
    Answer, CommandLine, Facts, FollowUpState, Gap, JobId, JobState, LostReason, NotifyPolicy, Observed,
    OsText, Outcome, Output, Read, Session, Timestamp, Usage, delivery_id,
};

/// The version of every JSON document that hearback prints. It is independent of the format on disk.
pub const DOCUMENT_FORMAT: u32 = 1;

/// One job, as `show --json`, `list --json` and `wait --json` print it. A field without a value is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobView {
    /// The version of this document.
    pub format: u32,
    /// The id of the job.
    pub id: JobId,
    /// The state of the job.
    pub state: StateWord,
    /// Whether its main process is paused, by a signal or a suspend. Its limits still count.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub paused: bool,
    /// The session that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The agent whose session launched it, if it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<LaunchingAgent>,
    /// Whether it was launched through the MCP server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mcp: bool,
    /// Its label, from `--label`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its key, from `--key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The command that it runs; absent when its record cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "command_document")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<command_document::CommandDocument<'static>>"))]
    pub command: Option<CommandLine>,
    /// The prompt of a job that `ask` started with `--prompt`. It is part of the command, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
    /// When it was launched (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched_at: Option<String>,
    /// When its main process was started (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended, as the supervisor observed it (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How long it ran, in milliseconds, without the time in which the machine slept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// The pid of its main process, to show to people. Pids are reused, so do not send signals to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The longest time that it may run, in milliseconds; absent when there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest time without output, in milliseconds; absent when there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The answer of a job that `ask` started, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The CPU time and memory that it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The follow-up that notifies its owner.
    pub follow_up: FollowUpView,
    /// Its output.
    pub output: OutputView,
    /// What it survives.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub survives: Vec<String>,
    /// The unit of a service manager, or the Job Object, in which it was launched and with which it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_to: Option<String>,
    /// Whether a monitor that restarts or stops kills it first (`--bound`).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub bound: bool,
    /// Whether other processes can write to its input (`--stdin`).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub takes_input: bool,
    /// Pids of processes that outlived it and still run: they could not be killed, or were kept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub survivors: Vec<u32>,
    /// The pid namespace in which processes of it may still run: they could not be seen when its end was recorded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub out_of_sight: Option<String>,
    /// Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

/// The state of a job, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StateWord {
    /// The job is being launched.
    Starting,
    /// The job runs.
    Running,
    /// The job has ended with exit code 0.
    Done,
    /// The job has ended in any other way.
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

    /// Whether the job has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Ended)
    }
}

/// The follow-up that notifies the owner of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowUpView {
    /// When the owner wants to be notified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<NotifyPolicy>,
    /// The state of the follow-up.
    pub state: FollowUpState,
    /// The id of its delivery, which never changes; absent when no follow-up is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// The sinks that it goes to, in the order in which they are tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<String>,
    /// The sink of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// How many attempts were made to deliver it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// When the next attempt is due (RFC 3339); absent if none was made yet, and where none will be made by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The output of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputView {
    /// The size of all output, in bytes.
    pub bytes: u64,
    /// The path of the log, until the job is pruned. Where the file system has no second names for files, it changes
    /// when the job moves to the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<OsText>,
    /// How many of these bytes were dropped.
    #[serde(default)]
    pub dropped: u64,
    /// The dropped parts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// The last line that is not blank, cut to 200 characters; only where a preview is asked for, as by
    /// `list --preview`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
}

impl OutputView {
    fn new(recorded: Option<&Output>, seen: &Output, path: OsText) -> Self {
        // Processes that were kept may write more output after the end.
        let output = recorded.filter(|recorded| recorded.bytes >= seen.bytes).unwrap_or(seen);
        let Output { bytes, dropped, gaps, .. } = output.clone();
        Self { bytes, path: Some(path), dropped, gaps, last_line: None }
    }
}

impl JobView {
    /// Builds the view from what was observed; `log` is the path of the log.
    ///
    /// Returns `None` when there is no job.
    pub fn new(seen: &Observed, here: &Here, log: OsText) -> Option<Self> {
        let facts = &seen.facts;
        let folded = seen.fold();
        let mut notes = notes(seen);
        // Said of a job of a newer build as well: both are true of it.
        let foreign = here.is_foreign(facts);
        if foreign {
            notes.push("launched on another machine: this one only reads it".into());
        }
        let lost = |reason| (StateWord::Failed, Some(Outcome::Lost { reason }));
        let (state, outcome) = match &folded.state {
            JobState::Nothing => return None,
            JobState::Starting => (StateWord::Starting, None),
            JobState::Running => (StateWord::Running, None),
            // Locks of another machine are not visible here, so its state is not known to have changed.
            JobState::Unclaimed | JobState::Orphaned if foreign => (StateWord::Running, None),
            JobState::Unclaimed | JobState::Orphaned => lost(match here.lost_reason(facts) {
                // No process has swept it, or the loss would be recorded.
                LostReason::SupervisorDied => LostReason::Unswept,
                reason => reason,
            }),
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
        let end = seen.end();
        let wanted = folded.follow_up.state != FollowUpState::NotWanted;
        Some(Self {
            format: DOCUMENT_FORMAT,
            id: seen.id.clone(),
            state,
            // Not recorded: the caller looks at the process, and sets it.
            paused: false,
            session: spec.and_then(|spec| spec.session.clone()),
            agent: spec.and_then(|spec| spec.agent.clone()),
            mcp: spec.is_some_and(|spec| spec.mcp),
            label: spec.and_then(|spec| spec.label.clone()),
            key: spec.and_then(|spec| spec.key.as_ref().map(ToString::to_string)),
            command: spec.map(|spec| spec.command.clone()),
            prompt: spec.and_then(|spec| spec.prompt.clone()),
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
                sinks: spec.filter(|_| wanted).map(|spec| spec.sinks.clone()).unwrap_or_default(),
                sink: last_sink(facts).filter(|_| wanted),
                attempts: seen.attempts(),
                next_attempt_at: next_attempt(facts, folded.follow_up.state).map(|at| at.to_string()),
                error: last_error(facts, folded.follow_up.state),
            },
            output: OutputView::new(end.map(|end| &end.output), &seen.output, log),
            survives: target.map(|target| target.survives.clone()).unwrap_or_default(),
            bound_to: target.and_then(|target| target.bound_to.clone()),
            bound: spec.is_some_and(|spec| spec.bound),
            takes_input: spec.is_some_and(|spec| spec.takes_input),
            survivors: match (end, facts.swept.is_absent()) {
                (Some(end), true) => end.survivors.iter().map(|who| who.pid).collect(),
                _ => Vec::new(),
            },
            out_of_sight: seen.out_of_sight().map(str::to_owned),
            notes,
        })
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The answer. One that cannot be read is shown as failed, so that the caller does not wait for it.
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

/// When the pause after the last attempt is over, if another attempt will be made.
fn next_attempt(facts: &Facts, state: FollowUpState) -> Option<Timestamp> {
    let (n, lease) = facts.leases.iter().max_by_key(|(n, _)| n)?;
    let has_sink = facts.spec.present().is_some_and(|spec| !spec.sinks.is_empty());
    let (lease, result) = (lease.present()?, facts.result(*n));
    // A retry by hand is due at once.
    let is_due = state == FollowUpState::Pending && has_sink && lease.attempts_used > 0;
    is_due.then(|| match result {
        Some(result) => result.at.wall_ms.after(result.next_ms),
        None => lease.at.wall_ms.after(lease.next_ms),
    })
}

/// The sink of the last attempt.
fn last_sink(facts: &Facts) -> Option<String> {
    let (_, lease) = facts.leases.iter().max_by_key(|(n, _)| n)?;
    let place = usize::try_from(lease.present()?.sink).ok()?;
    facts.spec.present()?.sinks.get(place).cloned()
}

fn notes(seen: &Observed) -> Vec<String> {
    let facts = &seen.facts;
    let flaws = facts.flaws().into_iter().map(|(kind, flaw)| match flaw {
        Flaw::Unreadable(why) => format!("{kind} cannot be read: {why}"),
        Flaw::Newer(format) => {
            format!("{kind} has format {format}, written by a newer hearback: read only")
        }
    });
    let mut notes: Vec<_> = flaws.collect();
    if let Some(words) = seen.end().and_then(|end| end.note.clone()) {
        notes.push(words);
    }
    if let Some(place) = seen.out_of_sight() {
        notes.push(format!(
            "its processes belong to {place}, and could not be seen from where its end was recorded; \
             `kill` from there kills them"
        ));
    }
    notes
}

/// A command in one shape, whatever it is: an object whose fields say what it has. On disk, argv is a list.
mod command_document {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::{CommandLine, Extra, OsText, json};

    /// A program with its arguments, or text for a shell.
    #[derive(Serialize)]
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "schema", schemars(rename = "Command"))]
    pub(super) enum CommandDocument<'a> {
        /// Run as given, without a shell.
        Argv {
            /// The program, and its arguments.
            argv: &'a [OsText],
        },
        /// Run by a shell.
        Shell {
            /// The text.
            shell: &'a str,
            /// The shell that runs it, if one was chosen.
            #[serde(skip_serializing_if = "Option::is_none")]
            program: Option<&'a str>,
        },
        /// Of a kind that only a newer hearback knows.
        Unknown(&'a Extra),
    }

    #[derive(Deserialize)]
    struct Argv {
        argv: Vec<OsText>,
    }

    pub(super) fn serialize<S: Serializer>(
        command: &Option<CommandLine>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let document = command.as_ref().map(|command| match command {
            CommandLine::Argv(argv) => CommandDocument::Argv { argv },
            CommandLine::Shell { shell, program } => {
                CommandDocument::Shell { shell, program: program.as_deref() }
            }
            CommandLine::Unknown(fields) => CommandDocument::Unknown(fields),
        });
        document.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<CommandLine>, D::Error> {
        json::first_of(
            deserializer,
            &[
                |value| json::from_value(value).map(|Argv { argv }| Some(CommandLine::Argv(argv))),
                |value| json::from_value(value).map(Some),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use crate::{Extra, Lease, LeaseResult, LockView, Place};
    use serde_json::{Value, json};

    fn seen(change: impl FnOnce(&mut Facts)) -> Observed {
        let mut spec = sample::spec("s");
        spec.sinks = vec!["wake".into()];
        let mut facts = Facts {
            spec: Read::Present(spec),
            begin: Read::Present(sample::begin()),
            end: Read::Present(sample::end(0)),
            ..Facts::default()
        };
        change(&mut facts);
        let (locks, place, output) = (LockView::FREE, Place::Open, Output::default());
        Observed { id: sample::id(1), facts, locks, place, output }
    }

    fn shown(seen: &Observed) -> Value {
        let view = JobView::new(seen, &Here::default(), "".into()).unwrap();
        let value = serde_json::to_value(&view).unwrap();
        assert_eq!(
            serde_json::from_value::<JobView>(value.clone()).unwrap(),
            view,
            "it is read as it is written"
        );
        value
    }

    #[test]
    fn a_command_is_an_object_of_whatever_kind_it_is() {
        let command = |command: CommandLine| {
            let seen = seen(|facts| {
                let Read::Present(spec) = &mut facts.spec else { return };
                spec.command = command;
            });
            shown(&seen)["command"].clone()
        };
        let bytes = OsText::Bytes { bytes: vec![0xff] };
        assert_eq!(
            command(CommandLine::Argv(vec!["make".into(), bytes])),
            json!({"argv": ["make", {"bytes": [255]}]})
        );
        let (shell, program) = ("make | tail".to_owned(), Some("bash".to_owned()));
        let text = CommandLine::Shell { shell: shell.clone(), program: None };
        assert_eq!(command(text), json!({"shell": "make | tail"}));
        let text = CommandLine::Shell { shell, program };
        assert_eq!(command(text), json!({"shell": "make | tail", "program": "bash"}));
        let newer: Extra = [("image".to_owned(), json!("x"))].into_iter().collect();
        assert_eq!(command(CommandLine::Unknown(newer)), json!({"image": "x"}));
    }

    #[test]
    fn the_next_attempt_is_named_while_one_will_be_made() {
        let next = |lease: Lease, result: Option<LeaseResult>| {
            let seen = seen(|facts| {
                facts.leases.push((1, Read::Present(lease)));
                facts.results.extend(result.map(|result| (1, Read::Present(result))));
            });
            shown(&seen)["follow_up"].get("next_attempt_at").cloned()
        };
        let failed = LeaseResult { next_ms: 5_000, ..sample::lease_result(false) };
        let at = failed.at.wall_ms.after(5_000).to_string();
        assert_eq!(next(sample::lease(), Some(failed)), Some(json!(at)));
        assert_eq!(next(sample::lease(), None), None, "an attempt is being made");
        assert_eq!(next(sample::lease(), Some(sample::lease_result(true))), None, "it was given up");
        assert_eq!(next(Lease::at(sample::stamp()), None), None, "a retry by hand is due at once");
        let mut pulled = seen(|facts| {
            facts.leases.push((1, Read::Present(sample::lease())));
            facts.results.push((1, Read::Present(sample::lease_result(false))));
        });
        if let Read::Present(spec) = &mut pulled.facts.spec {
            spec.sinks.clear();
        }
        assert_eq!(shown(&pulled)["follow_up"].get("next_attempt_at"), None, "no process makes it by itself");
    }
}
