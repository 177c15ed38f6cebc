//! What can go wrong, with what to try next and how to exit.

use std::io;

use hearback::core::port::disk::ReadError;
use hearback::core::port::record::StoreError;
use hearback::core::port::sink::SinkError;
use hearback::core::{JobId, Session, StartErrorKind, StopKind};
use hearback::{
    Denied, DoctorError, FindError, FollowError, Guarded, InstallError, KillError, LaunchError,
    LaunchFailure, OpenError, RequestError, SendError, SessionError, WaitError,
};

/// Every error that a command can end with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error(transparent)]
    Kill(#[from] KillError),
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error(transparent)]
    Doctor(#[from] DoctorError),
    #[error("nobody asks: no session is named, and the answer would be for nobody")]
    NoParent,
    #[error("nothing is known here of a session `{0}`: it has no job, no turn and no message")]
    UnknownParent(Session),
    #[error("job `{0}` has no answer to give: it was launched, and not asked")]
    NotAsked(JobId),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("no monitor runs here")]
    NoMonitor,
    #[error("a {0} of the monitor is under way already")]
    UnderWay(StopKind),
    #[error("the monitor does not answer")]
    MonitorSilent,
    #[error("this is a turn of session `{0}` already")]
    InTurn(Session),
    #[error("the service manager did not do all that it was told")]
    Manager(Vec<String>),
    #[error("the agent could not be run")]
    Agent(#[source] io::Error),
    #[error("the log of job `{id}` cannot be read")]
    Log { id: JobId, source: ReadError },
    #[error("standard input cannot be read")]
    Stdin(#[source] io::Error),
    #[error("{0}")]
    Usage(String),
    #[error("some jobs could not be handled")]
    Partly,
    /// Whoever read our output has had enough.
    #[error("the output was closed")]
    Closed,
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    #[error("job `{id}` was launched, but its id cannot be printed")]
    Untold { id: JobId, source: io::Error },
}

impl<E: std::error::Error + Into<CliError>> From<Guarded<E>> for CliError {
    fn from(error: Guarded<E>) -> Self {
        match error {
            Guarded::Failed(error) => error.into(),
            Guarded::Denied(denied) => denied.into(),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl CliError {
    /// The documented exit codes, all in one place.
    pub(crate) fn exit_code(&self) -> u32 {
        match self {
            Self::Closed => 0,
            Self::Find(FindError::Store(_)) => 125,
            Self::Find(_) | Self::Kill(_) => 1,
            Self::Wait(WaitError::Gone(_)) | Self::Follow(FollowError::Gone(_)) => 1,
            Self::Session(_) | Self::Usage(_) | Self::NoParent | Self::UnknownParent(_) => 2,
            Self::Request(RequestError::Empty | RequestError::BlankPrompt | RequestError::NoPrompt) => 2,
            Self::NotAsked(_) => 1,
            Self::Denied(_)
            | Self::Launch(LaunchError::Denied(_) | LaunchError::NoSink(_))
            | Self::Install(InstallError::Denied(_))
            | Self::Open(OpenError::Permissions(_))
            | Self::Sink(SinkError::Missing(_)) => 2,
            Self::Launch(LaunchError::Failed(LaunchFailure::KeyTaken { .. })) => 2,
            // Another time it may work.
            Self::Send(SendError::Refused(_)) | Self::UnderWay(_) | Self::InTurn(_) => 75,
            Self::Send(SendError::Store(_)) => 125,
            Self::Send(_) => 2,
            Self::NoMonitor => 1,
            Self::Agent(error) if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Agent(error) if error.kind() == io::ErrorKind::PermissionDenied => 126,
            Self::Launch(LaunchError::Failed(LaunchFailure::FailedToStart { error, .. })) => {
                error.kind.exit_code()
            }
            // As if the request had ended us.
            Self::Doctor(DoctorError::Interrupted) => 130,
            Self::Open(_)
            | Self::Launch(_)
            | Self::Request(_)
            | Self::Store(_)
            | Self::Wait(_)
            | Self::Follow(_)
            | Self::Doctor(_)
            | Self::Sink(_)
            | Self::Agent(_)
            | Self::MonitorSilent
            | Self::Install(_)
            | Self::Manager(_)
            | Self::Log { .. }
            | Self::Stdin(_)
            | Self::Partly
            | Self::Output(_)
            | Self::Untold { .. } => 125,
        }
    }

    /// Says which job was launched, when what could not be printed is all that names it.
    pub(crate) fn about(self, id: &JobId) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Output(source) => Self::Untold { id: id.clone(), source },
            other => Self::Untold { id: id.clone(), source: io::Error::other(other) },
        }
    }

    /// What to try next, where there is something.
    pub(crate) fn tip(&self) -> Option<String> {
        Some(match self {
            Self::Open(OpenError::NoHome) => "set HEARBACK_HOME to a directory of yours".into(),
            Self::Open(OpenError::Store(StoreError::Unsafe(_))) => {
                "the store must be a directory that you own and others cannot write; \
                 point HEARBACK_HOME at one, or if it is yours, take that right from others with `chmod go-w` \
                 or `icacls`"
                    .into()
            }
            Self::Find(FindError::NotFound(_)) => {
                "`hearback list --all` shows every job of this session, `--all-sessions` those of all".into()
            }
            Self::Find(FindError::NotAnId(_)) => "`hearback list` shows the jobs and their ids".into(),
            Self::Sink(SinkError::Missing(name)) | Self::Launch(LaunchError::NoSink(name)) => sink_tip(name),
            Self::Launch(LaunchError::TooDeep { .. }) => {
                "launch it with `--notify never`, or raise `max_depth` in config.toml if the chain is meant"
                    .into()
            }
            Self::Launch(LaunchError::TooFast { .. }) => {
                "launch it with `--notify never`, or raise `max_rate` in config.toml if that many are meant"
                    .into()
            }
            Self::Send(SendError::NoRoute(_)) => {
                "name a sink with `--sink NAME`, or set `default_sink` in config.toml".into()
            }
            Self::Send(SendError::NoSink(name)) => sink_tip(name),
            Self::Send(SendError::Refused(_)) => {
                "try again when `hearback monitor status` says that it runs".into()
            }
            Self::Send(SendError::TooLong) => "put it into a file, and let the message name that".into(),
            Self::NoMonitor => {
                "`hearback monitor run` starts one in front, `hearback monitor install` one that \
                                comes back by itself"
                    .into()
            }
            Self::UnderWay(_) => "`hearback monitor status` shows what it waits for".into(),
            Self::MonitorSilent => "`hearback monitor status` shows its process; it may be stopped".into(),
            Self::InTurn(_) => "run the agent as it is, or take another session".into(),
            Self::Install(InstallError::NoManager | InstallError::NoManagerProgram(_)) => {
                "start `hearback monitor run` from whatever starts programs at your login".into()
            }
            Self::Manager(failed) => format!("run by hand what failed: {}", failed.join("; ")),
            Self::NoParent => "name it with `--session PARENT`, or set HEARBACK_SESSION".into(),
            Self::UnknownParent(_) => {
                "look for a slip in the name; if this session is meant, add `--new`".into()
            }
            Self::NotAsked(id) => format!("hearback show {id}"),
            Self::Request(RequestError::Empty) => {
                "name the agent after two dashes: hearback ask --session PARENT --prompt TEXT -- AGENT ARG…"
                    .into()
            }
            Self::Request(RequestError::BlankPrompt) => {
                "give it as `--prompt TEXT`, or with `--prompt -` on standard input".into()
            }
            Self::Request(RequestError::NoPrompt) => "say what to ask with `--prompt TEXT`".into(),
            Self::Denied(_)
            | Self::Launch(LaunchError::Denied(_))
            | Self::Send(SendError::Denied(_))
            | Self::Install(InstallError::Denied(_))
            | Self::Open(OpenError::Permissions(_)) => {
                "the program that started this one sets HEARBACK_DENY; it can allow more".into()
            }
            Self::Untold { id, .. } => format!("hearback show {id}"),
            Self::Find(FindError::Ambiguous { .. }) => "give more characters of the id".into(),
            Self::Launch(LaunchError::Failed(LaunchFailure::KeyTaken { id, .. })) => {
                format!("use another key, or look at that job: hearback show {id}")
            }
            Self::Launch(LaunchError::Failed(
                LaunchFailure::Unconfirmed { id } | LaunchFailure::SupervisorDied { id },
            )) => {
                format!("hearback show {id}")
            }
            Self::Launch(LaunchError::Failed(LaunchFailure::FailedToStart { error, .. })) => match error.kind {
                StartErrorKind::NotFound => {
                    "for shell syntax such as pipes or built-ins, use `--shell 'TEXT'`".into()
                }
                StartErrorKind::NotExecutable => "make it executable, or name its interpreter first".into(),
                StartErrorKind::BadDirectory => "choose another directory with `--cwd DIR`".into(),
                _ => return None,
            },
            Self::Launch(LaunchError::Failed(LaunchFailure::Store(error))) | Self::Store(error) => {
                storage_tip(error)?.into()
            }
            Self::Kill(KillError::Unanswered(id)) => format!("hearback kill --force {id}"),
            Self::Wait(WaitError::Elsewhere(id)) => format!("hearback show {id}"),
            Self::Request(RequestError::NoDirectory(_)) => "choose another directory with `--cwd DIR`".into(),
            _ => return None,
        })
    }
}

fn sink_tip(name: &str) -> String {
    format!(
        "`hearback sink list` shows those that there are; define [sink.{name}] in config.toml, or put a program \
         `hearback-sink-{name}` on the PATH"
    )
}

fn storage_tip(error: &StoreError) -> Option<&'static str> {
    let StoreError::Io(error) = error else { return None };
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("make room: `hearback prune --older-than 1d` removes jobs that are over")
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            Some("point HEARBACK_HOME at a directory that can be written")
        }
        _ => None,
    }
}
