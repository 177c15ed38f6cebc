//! Executors, which run targets: `local` is built in, others implement the same port.
//!
//! The supervisor owns what surrounds a target (see [`surroundings`](super::surroundings)), from before the target
//! starts. An executor starts the target, reports what happens to it, and terminates or kills it.

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
    /// The job. Every process of the target carries its mark.
    pub job: &'a JobId,
    /// What to run.
    pub command: &'a CommandLine,
    /// Where to run it.
    pub cwd: &'a OsText,
    /// Variables that the target does not inherit.
    pub withhold: &'a [String],
    /// The file into which a prompt job may write its answer. [`ANSWER_VARIABLE`] names it to the target only.
    pub answer: Option<&'a Path>,
    /// The file with the text of a shell command.
    pub script: Option<&'a Path>,
    /// Where other processes hand it input, if it takes any: the executor makes this name, and removes it when the
    /// input has ended. An executor whose targets take no input refuses to start.
    pub input: Option<&'a Path>,
    /// Where its output goes.
    pub output: &'a Arc<dyn OutputLog>,
    /// Where samples of what it uses go, if the executor takes any. It never wakes up for that.
    pub samples: &'a Path,
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
    /// The recorded handle of the target. None if the supervisor died before it recorded the target: then the executor
    /// finds the target by the job.
    pub handle: Option<&'a TargetHandle>,
    /// Where its output goes.
    pub output: &'a Arc<dyn OutputLog>,
}

impl std::fmt::Debug for AttachRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachRequest").field("job", self.job).finish_non_exhaustive()
    }
}

/// The variable that names the answer file to a prompt job.
pub const ANSWER_VARIABLE: &str = "HEARBACK_ANSWER";

/// Stands in the list of what a job survives, if the job ends with something around its launcher.
pub const BOUND_TO_CALLER: &str = "bound to the caller's job";

/// Text for a shell, in the form that the shell needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The extension of its file, without a dot; may be empty.
    pub extension: &'static str,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// The result of attaching to a target.
pub enum Attached {
    /// The target, which runs or has ended. If it has ended, its end is its first event.
    Found(Box<dyn Running>),
    /// The target was never started.
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
    /// Nothing is known about the target now. A later attempt may succeed. This never counts as an end.
    #[error("the target cannot be reached: {0}")]
    Unreachable(String),
}

/// Runs targets.
pub trait Executor: Send + Sync {
    /// Prepares text for a shell: for `program`, or for the default shell.
    fn script(&self, text: &str, _program: Option<&str>, _cwd: &OsText) -> Result<Script, StartError> {
        Ok(Script { extension: "", bytes: text.into() })
    }

    /// Starts the target. Output is kept from its first byte on.
    ///
    /// It returns when the executor has accepted the target, which has a handle from then on. The start of the target
    /// is its first event.
    ///
    /// Idempotent by job id, if the executor can attach: after a crash in between, a second start finds the same
    /// target. `local` starts a target at most once, because only the process that has published the `begin` of a job
    /// calls this.
    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError>;

    /// Finds the target of a dead supervisor again. `local` cannot: its targets end with their supervisor.
    fn attach(&self, _request: &AttachRequest<'_>) -> Result<Attached, AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Kills what is left of a job whose supervisor died, and reports processes that survived, or that could not be
    /// proved to belong to the job. Processes that are still dying after `within` get the same time again.
    ///
    /// If the processes of the job can run where this process cannot see them, the report says where that is.
    ///
    /// # Errors
    ///
    /// When the executor cannot look. Then nothing is known about the target, and the job must not be recorded as lost.
    fn sweep(&self, job: &JobId, handle: Option<&TargetHandle>, within: Duration) -> io::Result<SweepReport>;
}

/// What happened to a target. Output is no event: it goes directly to the [`OutputLog`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// It runs. Reported once, before all others; limits count from here. A target that was accepted, and waits in the
    /// queue of its executor, has not started.
    Started,
    /// The main process exited. Reported once.
    Exited {
        /// How.
        exit: Exit,
        /// What it used.
        usage: Option<Usage>,
    },
    /// After the main process exited: no process of its tree is left. Reported once.
    Emptied,
}

/// How far a target is detached from its launcher. Only what is listed is promised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detachment {
    /// What it survives: `parent`, `terminal`, `process_group`.
    pub survives: Vec<String>,
    /// What it still ends with: a unit of the service manager, or a Job Object of another program.
    pub bound_to: Option<String>,
}

/// A target and everything that it started.
pub trait Running {
    /// How this executor finds the target again.
    fn handle(&self) -> &TargetHandle;

    /// How far it is detached.
    fn detachment(&self) -> Detachment;

    /// What to wait for: when one of these is ready, [`poll`](Self::poll) may have an event or output.
    fn sources(&self) -> Sources<'_>;

    /// Checks what has happened, passes output to the log, and returns the next event; never waits.
    ///
    /// `ready` names the [`sources`](Self::sources) that the last wait found ready. An exit is reported even if it
    /// names none.
    fn poll(&mut self, ready: Ready) -> Option<RunEvent>;

    /// Requests every process of the tree to terminate.
    fn terminate(&mut self);

    /// Kills every process of the tree, and returns those that survive `within`. A tree that is still dying gets the
    /// same time again.
    fn kill(&mut self, within: Duration) -> Vec<ProcessIdentity>;

    /// The processes of the tree that are left.
    fn members(&mut self) -> Vec<ProcessIdentity>;

    /// What may have killed the main process, if no request did; none if there is no sign of it.
    fn suspicion(&self) -> Option<String>;

    /// Passes all output so far to the log, without waiting for more.
    fn drain(&mut self);

    /// Ends the input of the target if another process has removed the name of the input. By default the target has
    /// none.
    fn check_input(&mut self) {}
}

/// The executors that this program has, by name.
#[derive(Clone)]
pub struct Executors(BTreeMap<ExecutorName, Arc<dyn Executor>>);

impl Executors {
    /// Only `local`.
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
    /// When there is none of that name. Then nothing is known about its targets.
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
