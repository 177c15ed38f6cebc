//! The port for processes: their identity, the start of a supervisor, and the sweep of what a dead one left.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fold::Here;
use crate::{CommandLine, Exit, JobId, OsText, StartError, TreeUsage, json};

/// Names one run of an operating system. Opaque; compared for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootId(String);

/// Names one installation of an operating system. Opaque; compared for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineId(String);

impl BootId {
    /// Takes the system's own name for this boot.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl MachineId {
    /// Takes the system's own name for this machine.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

/// One process and no other: a pid is reused, a pid with the kernel's start token is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessIdentity {
    /// The number by which the system signals it.
    pub pid: u32,
    /// When the kernel says it was started, in the kernel's own units.
    pub started: u64,
    /// The boot in which it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// Its pid namespace, where a system has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// Whether a process that was identified before still exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It exists, and is the same process.
    Same,
    /// It is gone: its pid is free, or belongs to another process.
    Gone,
    /// Unknown, so it must not be signalled.
    Unproved,
}

/// What the launcher tells its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchSignal {
    /// The spec is on disk: start the target.
    Durable,
    /// The launch has failed: run nothing.
    Failed,
    /// The launcher is gone.
    Gone,
}

/// What the supervisor answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LaunchAnswer {
    /// The target runs.
    Started {
        /// Its pid, for people, if it runs on this machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// The unit or Job Object with which it ends, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound_to: Option<String>,
    },
    /// The target could not be started; that is recorded.
    FailedToStart {
        /// Why.
        error: StartError,
    },
    /// hearback could not do its part; nothing runs and nothing is recorded.
    Refused {
        /// Why.
        message: String,
    },
    /// The job was killed before its target was started; that is recorded.
    Killed,
    /// Another process was first: the job is abandoned, or has another supervisor. This one runs nothing.
    Taken,
}

impl LaunchAnswer {
    /// The answer as one line of JSON, without its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("an answer has no map with keys that are not text")
    }

    /// Parses a line; `None` when it is not an answer.
    pub fn from_line(line: &str) -> Option<Self> {
        json::from_slice(line.as_bytes()).ok()
    }
}

/// What a launcher received from its supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorReply {
    /// An answer.
    Answer(LaunchAnswer),
    /// Nothing yet.
    Silence,
    /// It ended without an answer.
    Gone,
}

/// The launcher's end of the wire to its supervisor.
pub trait SupervisorLink {
    /// Hands over what runs, before the signal, because the spec does not hold it. Returns when it is with the system,
    /// which keeps it for the supervisor even if this process dies; or after `within`.
    fn hand_over(&mut self, command: &CommandLine, within: Duration) -> io::Result<()>;
    /// Sends the signal.
    fn tell(&mut self, word: LaunchSignal) -> io::Result<()>;
    /// Waits for the answer, but not longer than `within`.
    fn hear(&mut self, within: Duration) -> SupervisorReply;
}

/// The supervisor's end of the wire to its launcher.
pub trait LauncherLink {
    /// Waits for the signal of the launcher, or its death.
    fn word(&mut self) -> LaunchSignal;
    /// What the launcher handed over before its signal; none if the spec holds it.
    fn command(&mut self) -> Option<CommandLine> {
        None
    }
    /// Sends the answer, and closes the wire. A dead launcher is no error.
    fn answer(&mut self, answer: &LaunchAnswer);
}

/// How to start a program that outlives this process and reports nothing to it.
#[derive(Debug, Clone)]
pub struct DetachedRequest {
    /// The program, by its path.
    pub program: PathBuf,
    /// Its arguments. Every user of the machine can see them.
    pub args: Vec<OsString>,
    /// The store, which becomes its working directory, so that no variable can lead it elsewhere.
    pub home: PathBuf,
    /// Changes to the environment that it inherits.
    pub env: Vec<(OsString, Option<OsString>)>,
}

/// How to start a supervisor.
#[derive(Debug, Clone)]
pub struct SupervisorRequest {
    /// The job that it will own: its only argument.
    pub job: JobId,
    /// The program that becomes the supervisor.
    pub program: PathBuf,
    /// The store, which becomes its working directory, so that no variable can lead it elsewhere.
    pub home: PathBuf,
    /// Changes to the environment that it inherits and hands on to the target.
    pub env: Vec<(OsString, Option<OsString>)>,
}

/// A program to run to its end, within a time limit.
#[derive(Debug, Clone)]
pub struct BoundedRun {
    /// The program and its arguments, run without a shell.
    pub argv: Vec<OsText>,
    /// Its working directory, if it needs a certain one.
    pub cwd: Option<PathBuf>,
    /// Changes to the environment that it inherits.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// Whether it writes a line before it gets its input.
    pub speaks_first: bool,
    /// How long it may take.
    pub within: Duration,
    /// How much of each output stream is kept.
    pub output_max: usize,
    /// The mark of all its processes, and of no others.
    pub mark: JobId,
    /// If one of these files exists, the program is not started. This is looked at last, right before it begins.
    pub unless: Vec<PathBuf>,
}

/// The result of a bounded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedRunReport {
    /// How it ended; `None` when its time ran out and its whole tree was killed.
    pub exit: Option<Exit>,
    /// Its processes that could not be killed when its time ran out. The run does not wait for them.
    pub survivors: Vec<ProcessIdentity>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// The result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// How many processes ended.
    pub ended: usize,
    /// How many processes were terminated before any was killed. None where a system cannot terminate.
    pub terminated: usize,
    /// Processes that did not end, or could not be proved to belong to the job.
    pub survivors: Vec<ProcessIdentity>,
    /// Where the processes of the job are, if they cannot be seen from here: nothing is known about those.
    pub out_of_sight: Option<String>,
}

/// What hearback needs from the operating system about processes.
pub trait ProcessControl: Send + Sync {
    /// The current boot and machine.
    fn here(&self) -> Here;

    /// A path as text of this system, with every unit of it: what is no Unicode is not replaced.
    fn path_text(&self, path: &Path) -> OsText;

    /// The identity of this process.
    fn me(&self) -> io::Result<ProcessIdentity>;

    /// The process with this pid now; `None` if the pid is free or its process is a zombie.
    fn identify(&self, pid: u32) -> io::Result<Option<ProcessIdentity>>;

    /// Whether that process is still there. Never signals and never disturbs.
    fn presence(&self, who: &ProcessIdentity) -> Presence;

    /// Whether that process stays alive. Waits for one that is ending and has already released its locks.
    fn lives_on(&self, who: &ProcessIdentity) -> bool;

    /// Sleeps until that process has ended, but not longer than `within`, and tells whether it has. One that is not
    /// there has ended; one that cannot be seen from here has not.
    fn await_end(&self, who: &ProcessIdentity, within: Duration) -> bool;

    /// Whether that process exists and is paused, by a signal or by suspending all its threads. False where a system
    /// cannot tell.
    fn is_stopped(&self, who: &ProcessIdentity) -> bool;

    /// What that process and those below it have used; none if it is not there, or where a system cannot tell cheaply.
    fn usage(&self, _who: &ProcessIdentity) -> Option<TreeUsage> {
        None
    }

    /// Starts a supervisor that outlives this process, and inherits no descriptor except the wire.
    fn spawn_supervisor(&self, request: &SupervisorRequest) -> io::Result<Box<dyn SupervisorLink>>;

    /// Starts a program that outlives this process: in a session or with a hidden console of its own, with null
    /// streams, and without inherited descriptors.
    ///
    /// It belongs to no job and to no bounded run, even if one of these started it: it survives when that is killed.
    /// On Windows, inside another program's Job Object without breakaway, it stays in that and ends with it.
    fn spawn_detached(&self, request: &DetachedRequest) -> io::Result<()>;

    /// Runs a program to its end. It dies with this process where the system supports that.
    fn run_bounded(&self, bounded_run: &BoundedRun) -> Result<BoundedRunReport, StartError>;

    /// Rings the bell of a supervisor; tells whether a process listened.
    fn ring(&self, bell: &Path) -> io::Result<bool>;

    /// Opens the input of a target for writing. By default no target takes input.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] when the input has ended, or its supervisor has; [`io::ErrorKind::BrokenPipe`] when
    /// no process reads it any more.
    fn open_input(&self, _input: &Path) -> io::Result<Box<dyn InputPipe>> {
        Err(io::ErrorKind::NotFound.into())
    }

    /// Kills one process, after it has verified its identity.
    fn end_by_force(&self, who: &ProcessIdentity) -> io::Result<()>;

    /// Ends every process of this machine that carries a mark in its environment: what is left of a turn or of a
    /// bounded run.
    ///
    /// What is left of a job is swept by its [`Executor`](super::executor::Executor) instead, since only that knows
    /// where the job runs. Turns and bounded runs belong to no executor: the process that starts them runs them on this
    /// machine, and records nothing about them but the mark.
    ///
    /// Terminates all processes first, unless `grace` is zero, and waits until `grace` has passed or none is left. Then
    /// kills the rest within `within`; processes that are still dying get as long again.
    ///
    /// On Windows only processes on the console of the caller can be terminated, and swept processes are never there:
    /// they are killed at once, and the report says that none was terminated.
    fn sweep_marked(&self, mark: &JobId, grace: Duration, within: Duration) -> io::Result<SweepReport>;

    /// Kills every supervisor and detached program that will never begin, of any store, and returns how many.
    ///
    /// On Windows a process is created suspended, and its creator then resumes it. If the creator is killed in between,
    /// the process would stay for ever. Other systems have no such processes.
    fn end_unbegun(&self) -> io::Result<usize>;
}

/// The input of a target, opened for writing.
pub trait InputPipe: Send {
    /// Hands over the first of these bytes, and returns how many; waits while the target does not read, at most
    /// `within`. What was handed over cannot be taken back, and is read only if the target reads it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] when the target took nothing `within` that time; [`io::ErrorKind::BrokenPipe`] when
    /// no process reads the input any more.
    fn write(&mut self, bytes: &[u8], within: Option<Duration>) -> io::Result<usize>;
}
