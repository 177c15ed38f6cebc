//! The errors of all commands, each with its tip and its exit code.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use hearback::core::message::clean_line;
use hearback::core::port::disk::ReadError;
use hearback::core::port::record::StoreError;
use hearback::core::port::sink::SinkError;
use hearback::core::{JobId, Session, StartErrorKind, StopKind};
use hearback::documents::{ErrorDetail, ErrorKind};
use hearback::{
    ClaimError, Denied, DoctorError, FindError, FollowError, Guarded, InstallError, KillError, LaunchError,
    LaunchFailure, NoSink, OpenError, RequestError, SendError, SessionError, SetupError, WaitError,
};

#[cfg(feature = "input")]
use hearback::{InputError, NoInput};

use crate::commands::typed_for_any;

/// Every error that a command can end with.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(
    not(all(feature = "agents", feature = "setup")),
    expect(dead_code, reason = "some errors are those of commands that are left out")
)]
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
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error(transparent)]
    Kill(#[from] KillError),
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error(transparent)]
    Doctor(#[from] DoctorError),
    #[cfg(feature = "input")]
    #[error(transparent)]
    Input(#[from] InputError),
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    Serve(#[from] hearback_mcp::ServeError),
    #[error("no session: an answer needs a session to go to")]
    NoParent,
    #[error("unknown session `{0}`: it has no job, no turn and no message")]
    UnknownParent(Session),
    #[error("job `{0}` has no answer: `launch` started it, not `ask`")]
    NotAsked(JobId),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("the program of hearback is unknown")]
    NoProgram(#[source] io::Error),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    NoSink(#[from] NoSink),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("no monitor is running")]
    NoMonitor,
    #[error("a {0} of the monitor is already in progress")]
    UnderWay(StopKind),
    #[error("the monitor does not answer")]
    MonitorSilent,
    #[error("this command already runs in a turn of session `{0}`")]
    InTurn(Session),
    #[error("a command of the service manager failed")]
    Manager(Vec<String>),
    #[error("the agent could not be started")]
    Agent(#[source] io::Error),
    #[error("the log of job `{id}` cannot be read")]
    Log { id: JobId, source: ReadError },
    #[error("standard input cannot be read")]
    Stdin(#[source] io::Error),
    #[error("the hook cannot wait for its session")]
    Hook(#[source] io::Error),
    #[error("standard input has more than 1 MiB")]
    InputTooLong,
    #[error("`{time}` is a time, and not a program")]
    WaitTime { time: String, rest: String },
    #[error("there is no text to run: `--shell` is empty")]
    NoShellText,
    #[error("{0}")]
    Usage(String),
    #[error("`{}` is not a directory, or does not exist", .0.display())]
    NoSuchDirectory(PathBuf),
    #[error("some jobs could not be processed")]
    Partly,
    /// The reader of our output has closed it.
    #[error("the output was closed")]
    Closed,
    #[cfg(feature = "serve")]
    #[error("the request was cancelled")]
    Cancelled,
    #[cfg(feature = "serve")]
    #[error(transparent)]
    OpenTurn(#[from] hearback::OpenTurnError),
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Token(#[from] hearback::TokenError),
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    #[error("job `{id}` was launched, but its id cannot be printed")]
    IdNotPrinted { id: JobId, source: io::Error },
    #[error("the deadline has passed, and job `{0}` continues")]
    Deadline(JobId),
    /// What is wrong with the arguments.
    #[error("{}", usage_text(.0))]
    Arguments(Box<clap::Error>),
    /// The answer is a no, which the command has told people in its own way.
    #[error("{message}")]
    Answer { kind: ErrorKind, message: String },
    /// An error of one of several jobs or deliveries.
    #[error("{error}")]
    About {
        subject: String,
        #[source]
        error: Box<CliError>,
    },
}

/// The error of the parser without its heading, its usage and its tips, in one line.
fn usage_text(error: &clap::Error) -> String {
    let text = error.to_string();
    let (what, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<_> = what.split_whitespace().collect();
    let words = words.join(" ");
    words.strip_prefix("error: ").map(str::to_owned).unwrap_or(words)
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
    /// The exit code, which follows from the kind.
    pub(crate) fn exit_code(&self) -> u32 {
        match self {
            Self::Closed => 0,
            error => error.kind().exit_code(),
        }
    }

    /// What kind of error it is for programs; `docs/exit-codes.md` describes each.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::About { error, .. } => error.kind(),
            Self::Answer { kind, .. } => *kind,
            Self::Find(FindError::Ambiguous { .. }) => ErrorKind::AmbiguousJob,
            Self::Find(FindError::NotFound(_) | FindError::NoKey(_) | FindError::TooShort(_))
            | Self::Wait(WaitError::Gone(_))
            | Self::Follow(FollowError::Gone(_)) => ErrorKind::UnknownJob,
            Self::Kill(_) => ErrorKind::NotKilled,
            Self::Claim(ClaimError::Overtaken(_) | ClaimError::Unknown(_)) => ErrorKind::ClaimLost,
            Self::Session(_)
            | Self::Open(OpenError::RelativeHome(_))
            | Self::Find(FindError::Unnamed { .. })
            | Self::Usage(_)
            | Self::NoSuchDirectory(_)
            | Self::InputTooLong
            | Self::NoShellText
            | Self::WaitTime { .. }
            | Self::Arguments(_)
            | Self::NoParent
            | Self::Request(RequestError::Empty | RequestError::BlankPrompt | RequestError::NoPrompt)
            | Self::Send(SendError::Empty | SendError::TooLong) => ErrorKind::Usage,
            Self::UnknownParent(_) => ErrorKind::UnknownSession,
            Self::NotAsked(_) => ErrorKind::NoAnswer,
            Self::Denied(_)
            | Self::Launch(LaunchError::Denied(_))
            | Self::Install(InstallError::Denied(_))
            | Self::Send(SendError::Denied(_))
            | Self::Open(OpenError::Permissions(_)) => ErrorKind::Denied,
            Self::Setup(SetupError::NoAgent(_)) => ErrorKind::NoSink,
            Self::Launch(LaunchError::NoSink(_))
            | Self::NoSink(_)
            | Self::Sink(SinkError::Missing(_))
            | Self::Send(SendError::NoRoute(_) | SendError::NoSink(_)) => ErrorKind::NoSink,
            Self::Launch(LaunchError::TooDeep { .. } | LaunchError::TooFast { .. })
            | Self::Send(SendError::TooDeep { .. } | SendError::TooFast { .. }) => ErrorKind::ChainLimit,
            Self::Launch(LaunchError::Failed(LaunchFailure::KeyTaken { .. })) => ErrorKind::KeyTaken,
            Self::Send(SendError::Refused(_)) | Self::UnderWay(_) | Self::InTurn(_) => ErrorKind::Busy,
            Self::Deadline(_) => ErrorKind::Deadline,
            Self::NoMonitor => ErrorKind::NoMonitor,
            Self::MonitorSilent => ErrorKind::MonitorSilent,
            Self::Agent(error) => match error.kind() {
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                io::ErrorKind::PermissionDenied => ErrorKind::NotExecutable,
                _ => ErrorKind::NotStarted,
            },
            Self::Launch(LaunchError::Failed(LaunchFailure::FailedToStart { error, .. })) => {
                match error.kind.exit_code() {
                    127 => ErrorKind::NotFound,
                    126 => ErrorKind::NotExecutable,
                    _ => ErrorKind::NotStarted,
                }
            }
            Self::Launch(LaunchError::Failed(LaunchFailure::Store(_)) | LaunchError::Uncounted(_))
            | Self::Find(_)
            | Self::Open(_)
            | Self::Store(_)
            | Self::Claim(_)
            | Self::Follow(FollowError::Store(_))
            | Self::Wait(WaitError::Store { .. })
            | Self::Send(SendError::Store(_)) => ErrorKind::Store,
            Self::Launch(LaunchError::Failed(_)) => ErrorKind::NotStarted,
            Self::Doctor(DoctorError::Interrupted) => ErrorKind::Interrupted,
            #[cfg(feature = "serve")]
            Self::Cancelled | Self::OpenTurn(hearback::OpenTurnError::Cancelled) => ErrorKind::Cancelled,
            #[cfg(feature = "serve")]
            Self::OpenTurn(hearback::OpenTurnError::Denied(_))
            | Self::Token(hearback::TokenError::Denied(_)) => ErrorKind::Denied,
            #[cfg(feature = "serve")]
            Self::OpenTurn(hearback::OpenTurnError::Store(_))
            | Self::Token(hearback::TokenError::Store(_)) => ErrorKind::Store,
            #[cfg(feature = "serve")]
            Self::OpenTurn(_) => ErrorKind::Busy,
            #[cfg(feature = "serve")]
            Self::Token(_) => ErrorKind::UnknownToken,
            Self::Partly => ErrorKind::Partly,
            #[cfg(feature = "input")]
            Self::Input(error) => match error.why {
                NoInput::Gone => ErrorKind::UnknownJob,
                NoInput::TimedOut => ErrorKind::Deadline,
                NoInput::Store(_) => ErrorKind::Store,
                NoInput::Source(_) | NoInput::Io(_) => ErrorKind::Failed,
                _ => ErrorKind::NoInput,
            },
            #[cfg(feature = "mcp")]
            Self::Serve(_) => ErrorKind::Failed,
            Self::Launch(_)
            | Self::Request(_)
            | Self::Wait(_)
            | Self::Follow(_)
            | Self::Doctor(_)
            | Self::Sink(_)
            | Self::Install(_)
            | Self::Setup(_)
            | Self::NoProgram(_)
            | Self::Send(_)
            | Self::Manager(_)
            | Self::Log { .. }
            | Self::Stdin(_)
            | Self::Hook(_)
            | Self::Closed
            | Self::Output(_)
            | Self::IdNotPrinted { .. } => ErrorKind::Failed,
        }
    }

    /// The error for programs.
    pub(crate) fn detail(&self) -> ErrorDetail {
        let subject = if let Self::About { subject, .. } = self { Some(subject.clone()) } else { None };
        ErrorDetail { kind: self.kind(), message: self.lines().join(": "), tip: self.tip(), subject }
    }

    /// What failed, and its causes, each in one line.
    pub(crate) fn lines(&self) -> Vec<String> {
        // Errors quote arguments and stored text, which may hold control characters.
        let mut lines = vec![clean_line(&self.to_string())];
        let mut cause = self.source();
        while let Some(inner) = cause {
            let line = clean_line(&inner.to_string());
            // A transparent wrapper repeats the message of its source.
            if !lines.iter().any(|before| before.ends_with(&line)) {
                lines.push(line);
            }
            cause = inner.source();
        }
        lines
    }

    /// Adds which of several jobs or deliveries it is about, as the caller named it.
    pub(crate) fn of(self, subject: impl ToString) -> Self {
        match self {
            // These are about the reader of the output.
            Self::Closed | Self::Output(_) | Self::About { .. } => self,
            error => Self::About { subject: subject.to_string(), error: Box::new(error) },
        }
    }

    /// The answer is a no, which the command has told people in its own way.
    pub(crate) fn no(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Answer { kind, message: message.into() }
    }

    /// Adds the id of the launched job to an error of the output: the caller has not seen it.
    pub(crate) fn about(self, id: &JobId) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Output(source) => Self::IdNotPrinted { id: id.clone(), source },
            other => Self::IdNotPrinted { id: id.clone(), source: io::Error::other(other) },
        }
    }

    /// What to try next, if anything helps.
    pub(crate) fn tip(&self) -> Option<String> {
        Some(match self {
            Self::Open(OpenError::RelativeHome(_)) => {
                "a relative path would name another store in each directory; give the whole path".into()
            }
            Self::Open(OpenError::NoHome) => "set HEARBACK_HOME to a directory that you own".into(),
            Self::Open(OpenError::Store(StoreError::Unsafe(_))) => {
                "set HEARBACK_HOME to a directory that you own and others cannot write; if this one is yours, \
                 remove the write permission of others with `chmod go-w` (Windows: `icacls`)"
                    .into()
            }
            Self::Find(FindError::NotFound(_)) => {
                "`hearback list --all` lists the jobs; with a session, add `--all-sessions` for those of others".into()
            }
            Self::Find(FindError::Unnamed { .. }) => {
                "name one by its id, its label or `@last`; `hearback list` shows the jobs".into()
            }
            Self::Claim(ClaimError::Overtaken(_)) => {
                "leave it to that process; claim for longer with `hearback followups claim --for 1h`".into()
            }
            Self::Find(FindError::NoKey(_)) => {
                "a key belongs to the session that launched the job: pass --session, or --all-sessions".into()
            }
            Self::Find(FindError::TooShort(_)) => "`hearback list` shows the jobs and their ids".into(),
            Self::Sink(SinkError::Missing(name)) => sink_tip(name),
            Self::NoSink(sink) | Self::Launch(LaunchError::NoSink(sink)) | Self::Send(SendError::NoSink(sink)) => {
                match sink.invalid {
                    Some(_) => format!("correct it there; `hearback sink test {}` then tries it", sink.name),
                    None => sink_tip(&sink.name),
                }
            }
            Self::Launch(LaunchError::TooDeep { .. }) => {
                "launch it with `--notify never`, or raise `max_depth` in config.toml if the chain is intended"
                    .into()
            }
            Self::Launch(LaunchError::TooFast { .. }) => {
                "launch it with `--notify never`, or raise `max_rate` in config.toml if that many are intended"
                    .into()
            }
            Self::Send(SendError::TooDeep { .. }) => {
                "let the turn end without a message, or raise `max_depth` in config.toml if the chain is intended"
                    .into()
            }
            Self::Send(SendError::TooFast { .. }) => {
                "let the turn end without a message, or raise `max_rate` in config.toml if that many are intended"
                    .into()
            }
            Self::Send(SendError::NoRoute(_)) => {
                "pass `--sink NAME`, or set `default_sink` in config.toml".into()
            }
            Self::Send(SendError::Refused(_)) => {
                "try again when `hearback monitor status` shows a running monitor".into()
            }
            Self::Send(SendError::TooLong) => "put the text into a file, and send the path of the file".into(),
            Self::NoMonitor => {
                "`hearback monitor run` starts one in the foreground, `hearback monitor install` one at every login"
                    .into()
            }
            #[cfg(feature = "input")]
            Self::Input(error) => return crate::commands::write::tip(error),
            Self::UnderWay(_) => "`hearback monitor status` shows what it waits for".into(),
            Self::MonitorSilent => "`hearback monitor status` shows its process; it may be paused".into(),
            Self::InTurn(_) => "run the agent directly, or use another session".into(),
            Self::Setup(SetupError::NoAgent(_) | SetupError::Nothing(_)) => {
                "`hearback agent list` lists the agents".into()
            }
            Self::Setup(SetupError::Foreign(_)) => "move that file away, or keep it and add the text yourself".into(),
            Self::Install(InstallError::NoManager | InstallError::NoManagerProgram(_)) => {
                "add `hearback monitor run` to the programs that start at your login".into()
            }
            Self::Manager(failed) => format!("run the failed commands by hand: {}", failed.join("; ")),
            Self::InputTooLong => {
                "put the text into a file, and pass the path of the file: `hearback launch -- sh FILE`, say".into()
            }
            Self::WaitTime { time, rest } => {
                let rest = clean_line(rest.strip_prefix("-- ").unwrap_or(rest));
                format!("the time of a wait follows an equals sign: `hearback launch --wait={time} -- {rest}`")
            }
            Self::NoShellText => {
                "pass the text, or `--shell -` to read it from standard input; a program needs no `--shell`".into()
            }
            Self::NoParent => "pass `--session PARENT`, or set HEARBACK_SESSION".into(),
            Self::UnknownParent(_) => "check the name; for a new session, add `--new`".into(),
            Self::NotAsked(id) => typed_for_any("show", id),
            Self::Request(RequestError::Empty) => {
                "name the agent after `--`: hearback ask --session PARENT --prompt TEXT -- AGENT ARG…"
                    .into()
            }
            Self::Request(RequestError::BlankPrompt) => {
                "pass `--prompt TEXT`, or `--prompt -` to read it from standard input".into()
            }
            Self::Request(RequestError::NoPrompt) => "pass the prompt with `--prompt TEXT`".into(),
            Self::Denied(_)
            | Self::Launch(LaunchError::Denied(_))
            | Self::Send(SendError::Denied(_))
            | Self::Install(InstallError::Denied(_))
            | Self::Open(OpenError::Permissions(_)) => {
                "HEARBACK_DENY comes from the program that started this one; change it there to allow more".into()
            }
            Self::IdNotPrinted { id, .. } => typed_for_any("show", id),
            Self::Deadline(id) => typed_for_any("wait", id),
            Self::About { error, .. } => return error.tip(),
            Self::Arguments(error) => usage_tip(error),
            Self::Find(FindError::Ambiguous { .. }) => "type more characters of the id".into(),
            Self::Launch(LaunchError::Failed(LaunchFailure::KeyTaken { id, .. })) => {
                format!("use another key, or see the job that has it: {}", typed_for_any("show", id))
            }
            Self::Launch(LaunchError::Failed(
                LaunchFailure::Unconfirmed { id } | LaunchFailure::SupervisorDied { id },
            )) => {
                typed_for_any("show", id)
            }
            Self::Launch(LaunchError::Failed(LaunchFailure::FailedToStart { error, .. })) => match error.kind {
                StartErrorKind::NotFound => {
                    "for shell syntax such as pipes or built-ins, use `--shell 'TEXT'`".into()
                }
                StartErrorKind::NotExecutable => "make it executable, or name its interpreter first".into(),
                StartErrorKind::BadDirectory => "choose another directory with `--cwd DIR`".into(),
                _ => return None,
            },
            Self::Launch(LaunchError::Failed(LaunchFailure::Store(error)))
            | Self::Open(OpenError::Store(error))
            | Self::Store(error) => {
                storage_tip(error)?.into()
            }
            Self::Kill(KillError::Unanswered(id)) => typed_for_any("kill --force", id),
            Self::Wait(WaitError::Elsewhere(id)) => typed_for_any("show", id),
            Self::NoSuchDirectory(_) | Self::Request(RequestError::NoDirectory(_)) => {
                "choose another directory with `--cwd DIR`".into()
            }
            _ => return None,
        })
    }
}

/// The parser's own tip, else how to call the command.
fn usage_tip(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = |start: &str| {
        let found = text.lines().map(str::trim).find_map(|line| line.strip_prefix(start));
        found.map(|line| line.trim().to_owned())
    };
    line("tip:").or_else(|| line("Usage:")).unwrap_or_else(|| "`--help` lists what a command takes".into())
}

fn sink_tip(name: &str) -> String {
    format!(
        "`hearback sink list` lists the sinks; define [sink.{name}] in config.toml, or put a program \
         `hearback-sink-{name}` on the PATH"
    )
}

fn storage_tip(error: &StoreError) -> Option<&'static str> {
    let StoreError::Io(error) = error else { return None };
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("make room: `hearback prune --older-than 1d` removes old settled jobs")
        }
        io::ErrorKind::NotADirectory => Some("set HEARBACK_HOME to a directory; what it names now is a file"),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            Some("set HEARBACK_HOME to a directory that you can write")
        }
        _ => None,
    }
}
