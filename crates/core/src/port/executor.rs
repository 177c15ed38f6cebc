//! Where targets run, and nothing else: `local` is built in, other executors stand behind the same port.
//!
//! The supervisor owns what surrounds a target (see [`surroundings`](super::surroundings)) and has it before the target
//! exists. An executor starts the target, reports what happens to it, and ends it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::process::SweepReport;
use super::surroundings::{OutputLog, Ready, Sources};
use crate::{
    CommandLine, ExecutorName, Exit, JobId, OsText, ProcessIdentity, StartError, StartErrorKind,
    TargetHandle, Usage,
};

/// What to start, and where its output goes.
#[derive(Clone, Copy)]
pub struct StartRequest<'a> {
    /// The job, with which every process of it is marked.
    pub job: &'a JobId,
    /// What to run.
    pub command: &'a CommandLine,
    /// Where to run it.
    pub cwd: &'a OsText,
    /// Variables that it does not inherit.
    pub withhold: &'a [String],
    /// Where it may write its answer, if it has one: told in [`ANSWER_VARIABLE`], which nothing else inherits.
    pub answer: Option<&'a Path>,
    /// Where the text of a shell command has been written.
    pub script: Option<&'a Path>,
    /// Where its output goes.
    pub output: &'a Arc<dyn OutputLog>,
}

impl std::fmt::Debug for StartRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartRequest").field("job", self.job).finish_non_exhaustive()
    }
}

/// Which target to find again, and where its output goes from now on.
#[derive(Clone, Copy)]
pub struct AttachRequest<'a> {
    /// The job.
    pub job: &'a JobId,
    /// What was recorded about the target. Nothing when the supervisor died before it recorded the target: then the
    /// executor looks it up by the job.
    pub handle: Option<&'a TargetHandle>,
    /// Where its output goes.
    pub output: &'a Arc<dyn OutputLog>,
}

impl std::fmt::Debug for AttachRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachRequest").field("job", self.job).finish_non_exhaustive()
    }
}

/// Names the file of its answer to a job that has one.
pub const ANSWER_VARIABLE: &str = "HEARBACK_ANSWER";

/// Listed among what a job survives, where it lives no longer than its launcher's surroundings let it.
pub const BOUND_TO_CALLER: &str = "bound to the caller's job";

/// Text for a shell, as that shell wants to find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What the name of its file ends in, without a dot; may be nothing.
    pub extension: &'static str,
    /// What is in the file.
    pub bytes: Vec<u8>,
}

/// What an executor found when it was to attach to a target.
pub enum Attached {
    /// The target, which runs or has ended. If it has ended, that is its first event.
    Found(Box<dyn Running>),
    /// The job was never submitted.
    NeverStarted,
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Found(_) => "Found",
            Self::NeverStarted => "NeverStarted",
        })
    }
}

/// Why an executor could not attach to a target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// Targets of this executor end with their supervisor.
    #[error("targets of this executor end with their supervisor")]
    Unsupported,
    /// Nothing is known about the target now; a later attempt may succeed. Never taken for an end.
    #[error("the target cannot be reached: {0}")]
    Unreachable(String),
}

/// Something that can run a target.
pub trait Executor: Send + Sync {
    /// How to write text for a shell down: for `program`, or for the default shell.
    fn script(&self, text: &str, _program: Option<&str>, _cwd: &OsText) -> Result<Script, StartError> {
        Ok(Script { extension: "", bytes: text.into() })
    }

    /// Starts the target. Output is kept from its first byte on.
    ///
    /// It returns when the executor has accepted the target, which has a handle from then on. That it runs is its
    /// first event.
    ///
    /// Idempotent by job id, where an executor can attach: after a crash in between, starting again finds what was
    /// started. `local` starts a target at most once, because only the process that has published the `begin` of a job
    /// calls this.
    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError>;

    /// Finds a target again whose supervisor is gone. `local` cannot: its targets end with their supervisor.
    fn attach(&self, _request: &AttachRequest<'_>) -> Result<Attached, AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Kills what is left of a job whose supervisor is gone, and names what could not be killed, or could not be proved
    /// to belong to the job. Processes that are still dying after `within` get as long again.
    ///
    /// # Errors
    ///
    /// When the executor cannot look. Then nothing is known about the target, and the job must not be called lost.
    fn sweep(&self, job: &JobId, handle: Option<&TargetHandle>, within: Duration) -> io::Result<SweepReport>;
}

/// What happened to a target. Its output is no event: the target hands it to the [`OutputLog`] by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// It runs. Reported once, before all others; limits count from here. A target that was only accepted, and waits
    /// elsewhere for its turn, has not started.
    Started,
    /// The main process ended. Reported once.
    Exited {
        /// How.
        exit: Exit,
        /// What it used.
        usage: Option<Usage>,
    },
    /// After the main process ended: nothing of its tree is left. Reported once.
    Emptied,
}

/// How far a target is detached from its launcher. What is not claimed is not promised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detachment {
    /// What it survives: `parent`, `terminal`, `process_group`.
    pub survives: Vec<String>,
    /// What it ends with all the same: a unit of the service manager, or a Job Object, that is not ours.
    pub bound_to: Option<String>,
}

/// A target and everything that it started.
pub trait Running {
    /// How this executor finds the target again.
    fn handle(&self) -> &TargetHandle;

    /// How far it is detached.
    fn detachment(&self) -> Detachment;

    /// What to wait for: when one of these is ready, [`poll`](Self::poll) may have an event or hand on output.
    fn sources(&self) -> Sources<'_>;

    /// Takes in what has happened, hands output to the log, and reports the next event; never waits.
    ///
    /// `ready` names the [`sources`](Self::sources) that the last wait found ready. A target that is polled without
    /// any still reports an exit.
    fn poll(&mut self, ready: Ready) -> Option<RunEvent>;

    /// Requests every process of the tree to terminate.
    fn terminate(&mut self);

    /// Kills every process of the tree, and reports what is not gone within `within`. A tree that is still dying gets
    /// as long again.
    fn kill(&mut self, within: Duration) -> Vec<ProcessIdentity>;

    /// What is left of the tree.
    fn members(&mut self) -> Vec<ProcessIdentity>;

    /// What may have ended the main process when no request did; nothing when there is no sign of it.
    fn suspicion(&self) -> Option<String>;

    /// Hands all output so far to the log, without waiting for its end.
    fn drain(&mut self);
}

/// The executors that this program has, by name.
#[derive(Clone)]
pub struct Executors(BTreeMap<ExecutorName, Arc<dyn Executor>>);

impl Executors {
    /// `local`, and no other.
    pub fn local(executor: impl Executor + 'static) -> Self {
        Self(BTreeMap::new()).with(ExecutorName::default(), executor)
    }

    /// Adds an executor, or replaces the one of that name.
    #[must_use]
    pub fn with(mut self, name: ExecutorName, executor: impl Executor + 'static) -> Self {
        self.0.insert(name, Arc::new(executor));
        self
    }

    /// Finds an executor by its name.
    ///
    /// # Errors
    ///
    /// When there is none of that name. Nothing can be said about its targets then.
    pub fn find(&self, name: &ExecutorName) -> Result<Arc<dyn Executor>, UnknownExecutor> {
        self.0.get(name).cloned().ok_or_else(|| UnknownExecutor(name.clone()))
    }
}

impl std::fmt::Debug for Executors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A job names an executor that this program does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no executor named `{0}`")]
pub struct UnknownExecutor(pub ExecutorName);

impl From<UnknownExecutor> for StartError {
    fn from(error: UnknownExecutor) -> Self {
        Self { kind: StartErrorKind::Other, message: error.to_string() }
    }
}

impl From<UnknownExecutor> for io::Error {
    fn from(error: UnknownExecutor) -> Self {
        Self::new(io::ErrorKind::Unsupported, error)
    }
}
