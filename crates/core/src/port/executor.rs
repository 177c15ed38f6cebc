//! Where targets run. `local` is built in; others can stand behind the same port.

use std::path::Path;
use std::time::Duration;

use crate::{CommandLine, Exit, JobId, LogCap, OsText, Output, ProcessIdentity, StartError, Usage};

/// What to start, and where its output goes.
#[derive(Debug, Clone, Copy)]
pub struct StartRequest<'a> {
    /// The job, with which every process of it is marked.
    pub job: &'a JobId,
    /// What to run.
    pub command: &'a CommandLine,
    /// Where to run it.
    pub cwd: &'a OsText,
    /// Variables that it does not inherit.
    pub withhold: &'a [String],
    /// Where it may write its answer, if it has one: told in [`ANSWER_VARIABLE`], which nobody else inherits.
    pub answer: Option<&'a Path>,
    /// Where its output goes.
    pub log: &'a Path,
    /// Where the text of a shell command has been written.
    pub script: Option<&'a Path>,
    /// Where the end of it goes if its middle cannot be given up.
    pub log_tail: &'a Path,
    /// The most of it that is kept.
    pub log_cap: Option<LogCap>,
    /// What others ring when they have something to say; made here.
    pub bell: &'a Path,
}

/// Names the file of its answer to a job that has one.
pub const ANSWER_VARIABLE: &str = "HEARBACK_ANSWER";

/// Said of a job among what it survives, where it lives no longer than its launcher's surroundings let it.
pub const BOUND_TO_CALLER: &str = "bound to the caller's job";

/// Text for a shell, as that shell wants to find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What the name of its file ends in, without a dot; may be nothing.
    pub extension: &'static str,
    /// What is in the file.
    pub bytes: Vec<u8>,
}

/// Something that can run a target.
pub trait Executor {
    /// How to write text for a shell down: for `program`, or for the shell that is used where nobody chose one.
    fn script(&self, text: &str, _program: Option<&str>, _cwd: &OsText) -> Result<Script, StartError> {
        Ok(Script { extension: "", bytes: text.into() })
    }

    /// Starts the target. Output is kept from its first byte on.
    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError>;
}

/// What happened to a running target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// The main process ended. Said once.
    Exited {
        /// How.
        exit: Exit,
        /// What it used.
        usage: Option<Usage>,
    },
    /// After the main process ended: nothing of its tree is left. Said once.
    Emptied,
    /// It has printed more than its log keeps. Said once.
    OverCap,
    /// Somebody rang the bell.
    Bell,
    /// The system asks this process to end, as it does on its way down.
    Stop,
    /// The deadline passed.
    Deadline,
}

/// How far a target is detached from whoever launched it. What is not claimed is not promised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detachment {
    /// What it lives through: `parent`, `terminal`, `process_group`.
    pub survives: Vec<String>,
    /// What it ends with all the same: a unit of the service manager, or a Job Object, that is not ours.
    pub bound_to: Option<String>,
}

/// A target and everything that it started.
pub trait Running {
    /// The main process.
    fn process(&self) -> &ProcessIdentity;

    /// How far it is detached.
    fn detachment(&self) -> Detachment;

    /// Sleeps until something happens or `deadline`, on the awake clock, passes; keeps the output meanwhile.
    fn next(&mut self, deadline: Option<Duration>) -> RunEvent;

    /// Asks every process of the tree to end.
    fn ask(&mut self);

    /// Ends every process of the tree by force, and tells who would not end within `within`. A tree that is still dying
    /// gets as long again.
    fn force(&mut self, within: Duration) -> Vec<ProcessIdentity>;

    /// When it last printed anything, on the awake clock; when it was started, if it never did.
    fn last_output(&self) -> Duration;

    /// What is left of the tree.
    fn members(&mut self) -> Vec<ProcessIdentity>;

    /// What may have ended the main process, when nobody asked for it; nothing when there is no sign of it.
    fn suspicion(&self) -> Option<String>;

    /// Keeps what has been printed so far, and tells how much that was.
    fn drain(&mut self) -> Output;
}
