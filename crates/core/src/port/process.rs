//! Processes as a port: who they are, how a supervisor comes to be, and how what it left behind is ended.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fold::Here;
use crate::{Exit, JobId, OsText, StartError};

/// Names one run of an operating system. Opaque; compared for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
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
pub struct ProcessIdentity {
    /// The number by which the system signals it.
    pub pid: u32,
    /// When the kernel says it was started, in the kernel's own units.
    pub started: u64,
    /// In which boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// In which space of pids, where a system has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// What can be said about a process that was once identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is there, and it is that one.
    Same,
    /// It is gone: nobody has its pid, or somebody else does.
    Gone,
    /// It cannot be told from here, so it must not be signalled.
    Unproved,
}

/// What the launcher tells its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchSignal {
    /// The spec is on disk: go on.
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
        /// What it ends with, if it is not wholly on its own.
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
    /// Somebody else had decided already: the job is abandoned, or another supervisor's. This one runs nothing.
    Taken,
}

impl LaunchAnswer {
    /// The answer as one line of JSON, without its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("an answer has no map with keys that are not text")
    }

    /// Reads a line back; nothing when it is none of ours.
    pub fn from_line(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// What a launcher heard of its supervisor.
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
    /// Says the word.
    fn tell(&mut self, word: LaunchSignal) -> io::Result<()>;
    /// Waits for the answer, but not longer than `within`.
    fn hear(&mut self, within: Duration) -> SupervisorReply;
}

/// The supervisor's end of the wire to its launcher.
pub trait LauncherLink {
    /// Waits for the word. It comes, or the launcher dies.
    fn word(&mut self) -> LaunchSignal;
    /// Answers, and lets go of the wire. A launcher that is gone is no error.
    fn answer(&mut self, answer: &LaunchAnswer);
}

/// How to start a program that outlives us and has nothing to tell us.
#[derive(Debug, Clone)]
pub struct DetachedRequest {
    /// The program, by its path.
    pub program: PathBuf,
    /// Its arguments. Anybody on the machine can see them.
    pub args: Vec<OsString>,
    /// The store, which becomes its working directory, so that no variable can lead it elsewhere.
    pub home: PathBuf,
    /// Changes to the environment that it inherits.
    pub env: Vec<(OsString, Option<OsString>)>,
}

/// How to start a supervisor.
#[derive(Debug, Clone)]
pub struct SupervisorRequest {
    /// Which job it will own: the only thing on its command line.
    pub job: JobId,
    /// The program that becomes the supervisor.
    pub program: PathBuf,
    /// The store, which becomes its working directory, so that no variable can lead it elsewhere.
    pub home: PathBuf,
    /// Changes to the environment that it inherits and hands on to the target.
    pub env: Vec<(OsString, Option<OsString>)>,
}

/// A program to be run to its end, within a time.
#[derive(Debug, Clone)]
pub struct BoundedRun {
    /// The program and its arguments, run as given, without a shell.
    pub argv: Vec<OsText>,
    /// Where; by default nowhere in particular.
    pub cwd: Option<PathBuf>,
    /// Changes to the environment that it inherits.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// What it is told.
    pub stdin: Vec<u8>,
    /// Whether it speaks first: it is told nothing before it has said a line.
    pub speaks_first: bool,
    /// How long it may take.
    pub within: Duration,
    /// How much is kept of what it says, of each stream.
    pub output_max: usize,
    /// By which all of its processes are known: nobody else's.
    pub mark: JobId,
}

/// What became of an bounded_run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedRunReport {
    /// How it ended; nothing when it was out of time, and was ended with everything that it started.
    pub exit: Option<Exit>,
    /// What it said.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
}

/// What a sweep found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// How many processes were ended.
    pub ended: usize,
    /// How many processes were asked before any was forced. Nobody where a system has no way to ask.
    pub asked: usize,
    /// Those that would not end, or could not be proved to belong to the job.
    pub survivors: Vec<ProcessIdentity>,
}

/// What hearback asks of the operating system about processes.
pub trait ProcessControl: Send + Sync {
    /// This boot and this machine.
    fn here(&self) -> Here;

    /// A path as text of this system, with every unit of it: what is no Unicode is not replaced.
    fn path_text(&self, path: &Path) -> OsText;

    /// Who we are.
    fn me(&self) -> io::Result<ProcessIdentity>;

    /// Who has this pid now; nobody if it is free or its process is only waiting to be reaped.
    fn identify(&self, pid: u32) -> io::Result<Option<ProcessIdentity>>;

    /// Whether that process is still there. Never signals and never disturbs.
    fn presence(&self, who: &ProcessIdentity) -> Presence;

    /// Whether that process lives on. One that is just ending, and has let go of its locks already, is waited for.
    fn lives_on(&self, who: &ProcessIdentity) -> bool;

    /// Whether that process is there and stands still, because somebody stopped it: with a signal, or by suspending
    /// all its threads. Where a system cannot tell, the answer is no.
    fn is_stopped(&self, who: &ProcessIdentity) -> bool;

    /// Starts a supervisor that outlives us, holding no descriptor of ours but the wire.
    fn spawn_supervisor(&self, request: &SupervisorRequest) -> io::Result<Box<dyn SupervisorLink>>;

    /// Starts a program that outlives us: in a session or with a hidden console of its own, without anything of ours
    /// to read from or to write to, and holding no descriptor of ours.
    ///
    /// It belongs to no job and to no bounded_run, whoever asked for it from inside of one: it lives on when that is
    /// ended. On Windows, inside somebody else's Job Object that does not let go, it stays in that and ends with it.
    fn spawn_detached(&self, request: &DetachedRequest) -> io::Result<()>;

    /// Runs a program to its end. It dies with us where the system can arrange that.
    fn run_bounded(&self, bounded_run: &BoundedRun) -> Result<BoundedRunReport, StartError>;

    /// Rings the bell of a supervisor; tells whether anybody was there to hear it.
    fn ring(&self, bell: &Path) -> io::Result<bool>;

    /// Ends one process by force. Nothing happens to a process that is not the one meant.
    fn end_by_force(&self, who: &ProcessIdentity) -> io::Result<()>;

    /// Ends every process of this machine that carries a mark in its environment: what is left of a turn or of a
    /// bounded run.
    ///
    /// What is left of a job is swept by its [`Executor`](super::executor::Executor) instead, since only that knows
    /// where the job runs. Turns and bounded runs belong to no executor: the process that starts them runs them on this
    /// machine, and records nothing about them but the mark.
    ///
    /// All of them are requested to terminate, and have until `grace` has passed, unless that is zero; it returns as
    /// soon as none is left. Then those that are left are killed within `within`; what is still dying gets as long
    /// again.
    ///
    /// On Windows only processes that share a console with us can be requested, and what is swept never does: there all
    /// are killed at once, and the report says that none was asked.
    fn sweep_marked(&self, mark: &JobId, grace: Duration, within: Duration) -> io::Result<SweepReport>;

    /// Ends every supervisor and detached program that will never begin, of this store or another, and tells how many.
    ///
    /// On Windows a process is created at rest, and then let go by its creator. One whose creator was ended in between
    /// would stay for ever. Elsewhere there is nobody like that.
    fn end_unbegun(&self) -> io::Result<usize>;
}
