//! The arguments of every command. The doc comments are the help text.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
#[cfg(feature = "events")]
use hearback::EventsSince;
use hearback::Predecessor;
#[cfg(feature = "agents")]
use hearback::core::Reader;
use hearback::core::note::HistoryEnd;
#[cfg(feature = "events")]
use hearback::core::port::events::EventCursor;
use hearback::core::{Key, Leftovers, LogCap, NotifyPolicy, OutcomeKind, OverCap, Session, StateWord};
use hearback::parse_size;

use crate::complete;

/// Run it in the background. Always hear back.
#[derive(Debug, Parser)]
#[command(name = "hearback", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print JSON for programs instead of text for people.
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,

    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 901)]
    pub(crate) color: Color,

    /// Say on standard error what hearback does; repeat it for more.
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 902)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a job that outlives this terminal, and print its id.
    #[command(alias = "run", alias = "start")]
    Launch(Box<LaunchArgs>),
    /// Ask an agent a question in the background. Prints the id of its job.
    #[cfg(feature = "agents")]
    Ask(Box<AskArgs>),
    /// Print the answers that have arrived, oldest first. They stay unread until --ack; exits 1 if there is none.
    #[cfg(feature = "agents")]
    Results(ResultsArgs),
    /// List jobs, newest first.
    #[command(visible_alias = "ls", alias = "ps", alias = "status")]
    List(ListArgs),
    /// Show jobs: how each ended, its output, and what to type next.
    #[command(alias = "info", alias = "inspect")]
    Show(ShowArgs),
    /// Show a job's output.
    #[command(alias = "log", alias = "tail")]
    Logs(LogsArgs),
    /// Show jobs and the output of one on the whole screen; kill, retry and filter by keys.
    #[cfg(feature = "top")]
    Top(TopArgs),
    /// Show jobs over time, as bars or as a page: which ran when, and when their owners were told.
    #[cfg(feature = "timeline")]
    Timeline(TimelineArgs),
    /// Print what happens to jobs and sessions, as it happens.
    #[cfg(feature = "events")]
    Events(EventsArgs),
    /// Wait until jobs have ended, and exit with their code.
    Wait(WaitArgs),
    /// Kill jobs and every process they started.
    #[command(alias = "stop")]
    Kill(KillArgs),
    /// Write to the input of a job, and end it with --eof. The job has to be launched with --stdin.
    #[cfg(feature = "input")]
    #[command(alias = "input")]
    Write(WriteArgs),
    /// List the follow-ups of ended jobs; print, acknowledge, retry or discard them.
    #[command(visible_alias = "followup")]
    Followups(FollowupsArgs),
    /// Run an agent as a turn of a session. Then deliver the messages and follow-ups that arrived meanwhile.
    #[cfg(feature = "agents")]
    Turn(TurnArgs),
    /// Send a message to a session. It is on disk when this returns; each message gets a turn of its own, in order.
    #[cfg(feature = "agents")]
    Send(SendArgs),
    /// List sessions: which are in a turn, which were interrupted, and how many messages wait.
    #[cfg(feature = "control")]
    Sessions(SessionsArgs),
    /// List the messages that wait for sessions; retry or discard one.
    #[cfg(feature = "agents")]
    Inbox(InboxArgs),
    /// Run and control the monitor: the service that delivers, retries and cleans up.
    #[command(subcommand)]
    Monitor(MonitorCommand),
    /// List the agents that hearback can wake; test one, or set one up.
    #[cfg(feature = "setup")]
    #[command(subcommand)]
    Agent(AgentCommand),
    /// List and test sinks.
    ///
    /// A sink gets the follow-up of a job that has ended. Define one in config.toml, whose
    /// place `hearback settings` shows, and name it with `launch --sink NAME`:
    ///
    ///   [sink.NAME]
    ///   command = ["/path/to/program", "argument"]
    ///
    /// The program gets the follow-up on its standard input, as JSON, or as text with
    /// `stdin = "text"`. Exit code 0 means that it has it, 75 that it is busy and 69 that
    /// nobody is there; any other is a failure, and it is tried again. In place of
    /// `command` there can be `file` (an absolute path), `url` with `secret_env`, or
    /// `preset` (an agent).
    #[command(verbatim_doc_comment)]
    #[cfg(feature = "setup")]
    #[command(subcommand)]
    Sink(SinkCommand),
    /// Check third-party sink plugins.
    #[cfg(feature = "plugin-check")]
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Serve agents over the Model Context Protocol. It is spoken on standard input and output.
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Serve a host on standard input and output: turns, messages, follow-ups, jobs and events, as lines of JSON.
    #[cfg(feature = "serve")]
    Serve,
    /// Update the records after a crash. Every other command does this for the jobs it reads.
    #[cfg(feature = "upkeep")]
    Reconcile(DryRunArgs),
    /// Remove old settled jobs.
    #[cfg(feature = "upkeep")]
    #[command(alias = "clean")]
    Prune(PruneArgs),
    /// Show each setting and its source: the environment, the file or the default.
    #[cfg(feature = "setup")]
    Settings,
    /// Check what this machine and the store can do. Tries what a job launched here survives.
    #[cfg(feature = "doctor")]
    Doctor,
    /// Print the JSON Schema of all --json output.
    #[cfg(feature = "schema")]
    Schema,
    /// Print a completion script for a shell.
    #[cfg(feature = "completions")]
    Completions(CompletionsArgs),
    /// Explain the exit codes.
    #[command(hide = true)]
    ExitCodes,
    /// Internal: write the man pages into a folder.
    #[cfg(feature = "man")]
    #[command(name = "__man", hide = true)]
    Man { folder: PathBuf },
}

#[derive(Debug, Args)]
#[command(
    override_usage = "hearback launch [OPTIONS] [--] PROG [ARG…]\n       hearback launch [OPTIONS] --shell TEXT"
)]
pub(crate) struct LaunchArgs {
    /// The program and its arguments, run without a shell.
    #[arg(trailing_var_arg = true, value_name = "PROG [ARG…]", required_unless_present = "shell")]
    pub(crate) argv: Vec<OsString>,

    /// Run shell text instead of a program; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", conflicts_with = "argv", allow_hyphen_values = true)]
    pub(crate) shell: Option<String>,

    /// Which shell runs the text, such as `bash`, `sh`, `powershell` or `cmd` [default: bash or sh; on Windows
    /// PowerShell or cmd].
    #[arg(long, value_name = "PROG", requires = "shell", conflicts_with = "argv")]
    pub(crate) shell_program: Option<String>,

    /// The session that owns the job [default: $HEARBACK_SESSION, else the agent's own variable, else none].
    #[arg(short, long, value_name = "S", add = complete::sessions(), value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// Keep the input of the job open, for `hearback write`; without it the input is empty.
    #[cfg(feature = "input")]
    #[arg(long, visible_alias = "input")]
    pub(crate) stdin: bool,

    #[command(flatten)]
    pub(crate) options: LaunchOptions,

    /// Wait until the job has ended, and exit with its code. With a time, such as `--wait=10m`, wait at most so long,
    /// then exit with 75; the job continues.
    #[arg(short, long, value_name = "TIME", num_args = 0..=1, require_equals = true, value_parser = parse_duration)]
    pub(crate) wait: Option<Option<Duration>>,

    /// Show the output of the job as it comes, and exit with its code. Ctrl-C leaves the job running.
    #[arg(short, long, conflicts_with_all = ["wait", "quiet"])]
    pub(crate) follow: bool,

    /// Print the id and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[cfg(feature = "agents")]
#[derive(Debug, Args)]
#[command(override_usage = "hearback ask [OPTIONS] [--prompt TEXT] [--] AGENT [ARG…]")]
pub(crate) struct AskArgs {
    /// The agent and its arguments, run without a shell.
    #[arg(trailing_var_arg = true, value_name = "AGENT [ARG…]")]
    pub(crate) argv: Vec<OsString>,

    /// What to ask; `-` reads it from standard input. It replaces `{prompt}` in the agent's arguments, or is added
    /// after them.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,

    /// The session that asks and gets the answer [default: $HEARBACK_SESSION, else the agent's own variable].
    #[arg(short, long, value_name = "PARENT", add = complete::sessions(), value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// Allow a parent session that hearback does not know yet.
    #[arg(long)]
    pub(crate) new: bool,

    #[command(flatten)]
    pub(crate) options: LaunchOptions,

    /// Wait until the job has ended, print the answer and exit with the job's code, or with 1 if the job succeeded
    /// without an answer.
    #[arg(short, long)]
    pub(crate) wait: bool,

    /// Print the id, or the answer, and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[cfg(feature = "agents")]
#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    /// Only the answers of these jobs.
    #[arg(value_name = "JOB", add = complete::jobs())]
    pub(crate) jobs: Vec<String>,

    /// The session that asked [default: $HEARBACK_SESSION, else the agent's own variable].
    #[arg(short, long, value_name = "PARENT", add = complete::sessions(), value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// Mark the printed answers as read, so that they are not printed again; if the parent reads, this settles the job.
    #[arg(long)]
    pub(crate) ack: bool,

    /// Read under this name instead of as the parent; hearback tracks what each reader has read.
    #[arg(long, value_name = "NAME", value_parser = parse_reader)]
    pub(crate) reader: Option<Reader>,

    /// Wait at most this long for an answer, such as `30s`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) wait: Option<Duration>,
}

/// The options of a job, for `launch` and `ask`.
#[derive(Debug, Args)]
pub(crate) struct LaunchOptions {
    /// Kill the job after this long, such as `90m`, or `none`. Time while the machine sleeps does not count [default:
    /// the setting `timeout`, else 1h for a job of a session, and none without a session].
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    #[arg(value_parser = parse_limit)]
    pub(crate) timeout: Option<Limit>,

    /// Kill the job after this long without output, such as `5m`.
    #[arg(long, value_name = "TIME", default_value = "none", allow_hyphen_values = true)]
    #[arg(value_parser = parse_limit)]
    pub(crate) idle_timeout: Limit,

    /// The time between terminating processes and killing them.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_grace, allow_hyphen_values = true)]
    pub(crate) grace: Duration,

    /// What to do with processes that outlive the main process.
    #[arg(long, value_name = "WHAT", default_value = "kill")]
    pub(crate) leftovers: LeftoversArg,

    /// The log cap: keep at most this much output, its beginning and its end, such as `8MiB`, or `none`.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", allow_hyphen_values = true)]
    #[arg(value_parser = parse_cap)]
    pub(crate) log_cap: Cap,

    /// What to do when the output exceeds the log cap.
    #[arg(long, value_name = "WHAT", default_value = "trim")]
    pub(crate) over_cap: OverCapArg,

    /// When to notify the owner that the job has ended.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) notify: Notify,

    /// The sink that gets the follow-up; repeat to name others to try if it is gone.
    #[arg(long = "sink", value_name = "NAME", add = complete::sinks())]
    pub(crate) sinks: Vec<String>,

    /// Bind the job to the monitor: a monitor that restarts or stops kills the job first, and its owner is notified.
    #[arg(long)]
    pub(crate) bound: bool,

    /// A name for the job. Wherever a job is named, a label means the newest job that has it.
    #[arg(short, long, value_name = "TEXT", value_parser = parse_label)]
    pub(crate) label: Option<String>,

    /// Make the launch repeatable: a second launch with the same key returns the same job.
    #[arg(short, long, value_name = "K", value_parser = parse_key)]
    pub(crate) key: Option<Key>,

    /// The working directory of the job [default: the current directory].
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Set an environment variable for the job; without a value, pass on the one of the caller, even if it is a secret.
    /// Values are never stored.
    #[arg(short, long, value_name = "K[=V]")]
    pub(crate) env: Vec<OsString>,

    /// Remove an environment variable for the job.
    #[arg(long, value_name = "K")]
    pub(crate) unset: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Notify {
    /// Always, except when the session itself killed the job.
    Auto,
    /// Always.
    Always,
    /// Only if the job failed.
    Failure,
    /// Only if the job succeeded.
    Success,
    /// Never.
    Never,
}

impl From<Notify> for NotifyPolicy {
    fn from(notify: Notify) -> Self {
        match notify {
            Notify::Auto => Self::Auto,
            Notify::Always => Self::Always,
            Notify::Failure => Self::Failure,
            Notify::Success => Self::Success,
            Notify::Never => Self::Never,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LeftoversArg {
    /// Kill them when the job ends.
    Kill,
    /// Let them run, and keep their output.
    Keep,
}

impl From<LeftoversArg> for Leftovers {
    fn from(leftovers: LeftoversArg) -> Self {
        match leftovers {
            LeftoversArg::Kill => Self::Kill,
            LeftoversArg::Keep => Self::Keep,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverCapArg {
    /// Let the job run, and drop the middle of its output.
    Trim,
    /// Kill the job.
    Kill,
}

impl From<OverCapArg> for OverCap {
    fn from(over_cap: OverCapArg) -> Self {
        match over_cap {
            OverCapArg::Trim => Self::Trim,
            OverCapArg::Kill => Self::Kill,
        }
    }
}

/// A cap, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cap(pub(crate) Option<LogCap>);

fn parse_cap(text: &str) -> Result<Cap, String> {
    if text == "none" {
        return Ok(Cap(None));
    }
    let bytes = parse_size(text).map_err(|error| format!("{error}, or `none`"))?;
    let cap = LogCap::new(bytes).ok_or("the smallest log cap is 1MiB; use `none` for no cap")?;
    Ok(Cap(Some(cap)))
}

/// A limit, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

fn parse_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => match humantime::parse_duration(text) {
            Ok(limit) if !limit.is_zero() => Ok(Limit(Some(limit))),
            Ok(_) => Err("a limit cannot be zero; use `none` for no limit".into()),
            Err(_) => Err("not a time: use `90s`, `10m`, `2h` or `none`".into()),
        },
    }
}

/// A number of things to show, of which none is not worth asking for.
fn parse_count(text: &str) -> Result<usize, String> {
    match parse_number(text)? {
        0 => Err("the smallest number is 1".into()),
        n => Ok(n),
    }
}

/// A number for people who type: the parser says that a digit is invalid.
fn parse_number<N: FromStr>(text: &str) -> Result<N, String> {
    let is_digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    text.parse().map_err(|_| match text.strip_prefix('-') {
        Some(rest) if is_digits(rest) => "the number cannot be negative".to_owned(),
        None if is_digits(text) => "the number is too large".to_owned(),
        _ => "not a number: use digits, such as `20`".to_owned(),
    })
}

fn parse_grace(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "not a time: use one such as `5s` or `1m`".to_owned())
}

/// A time for people who type: `humantime` lists every unit that it knows.
fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "not a time: use `90s`, `10m` or `2h`".to_owned())
}

/// The jobs that a command is about.
#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// The jobs, by id, label or `@last` [default: the only one that is running, else the only one there is].
    #[arg(value_name = "JOB", add = complete::running_jobs(), conflicts_with_all = ["all", "label"])]
    pub(crate) jobs: Vec<String>,

    /// The job that was launched with this key; a key belongs to the session that launched it.
    #[cfg_attr(feature = "one-call", arg(short, long, value_name = "K", value_parser = parse_key))]
    #[cfg_attr(feature = "one-call", arg(conflicts_with_all = ["jobs", "all", "label"]))]
    #[cfg_attr(not(feature = "one-call"), arg(skip))]
    pub(crate) key: Option<Key>,

    /// All jobs that are running.
    #[arg(long)]
    pub(crate) all: bool,

    /// All jobs that are running and have this label.
    #[arg(short, long, value_name = "TEXT", add = complete::labels())]
    pub(crate) label: Option<String>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// The reason; it becomes part of the outcome.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// The time between terminating and killing [default: the grace that the job was launched with].
    #[arg(long, value_name = "TIME", value_parser = parse_grace, allow_hyphen_values = true, conflicts_with = "force")]
    pub(crate) grace: Option<Duration>,

    /// Kill at once, without terminating first; also kill a supervisor that does not answer.
    #[arg(long)]
    pub(crate) force: bool,

    /// With --json: add the end of the output, at most this much, such as `16KB`.
    #[cfg_attr(feature = "one-call", arg(long, value_name = "SIZE", value_parser = parse_size, requires = "json"))]
    #[cfg_attr(not(feature = "one-call"), arg(skip))]
    pub(crate) output: Option<u64>,
}

#[cfg(feature = "input")]
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// The job, by id, label or `@last`.
    #[arg(value_name = "JOB", add = complete::jobs())]
    pub(crate) job: String,

    /// What to write; `-` writes what standard input has.
    #[arg(value_name = "TEXT", allow_hyphen_values = true, required_unless_present_any = ["eof", "newline"])]
    pub(crate) text: Option<String>,

    /// Write a line end behind it.
    #[arg(long)]
    pub(crate) newline: bool,

    /// End the input of the job behind it.
    #[arg(long, visible_alias = "close")]
    pub(crate) eof: bool,

    /// Give up when the job has read nothing for this long, with exit code 75 [default: wait until it reads].
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// The sessions whose jobs a command reads.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScopeArgs {
    /// Only the jobs of this session [default: the session of the environment, else all].
    #[arg(short, long, value_name = "S", add = complete::sessions(), value_parser = parse_session)]
    #[arg(conflicts_with = "all_sessions")]
    pub(crate) session: Option<Session>,

    /// The jobs of all sessions.
    #[arg(long)]
    pub(crate) all_sessions: bool,
}

#[cfg(feature = "events")]
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// Read on behind an event, by its cursor, which is shown when this command ends, and with --json; or from the
    /// `beginning`, or from `now` on [default: now].
    #[arg(long, value_name = "CURSOR", value_parser = parse_events_since)]
    pub(crate) since: Option<EventsSince>,

    /// Print what has happened, and do not wait for more. Without --since, from the beginning.
    #[arg(long)]
    pub(crate) once: bool,

    /// Also print the last line of new output, at most once a second for each job.
    #[arg(long, conflicts_with = "once")]
    pub(crate) output: bool,
}

/// The cursor before everything.
#[cfg(feature = "events")]
pub(crate) const BEGINNING: &str = "beginning";

#[cfg(feature = "events")]
fn parse_events_since(text: &str) -> Result<EventsSince, String> {
    match text {
        BEGINNING => Ok(EventsSince::Beginning),
        "now" => Ok(EventsSince::Now),
        other => EventCursor::parse(other)
            .map(EventsSince::Cursor)
            .ok_or_else(|| "expected the `cursor` of an event, `beginning` or `now`".to_owned()),
    }
}

/// Which jobs a command shows.
#[derive(Debug, Args)]
pub(crate) struct SelectArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// Only jobs in this state; repeat it for several.
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<State>,

    /// Only jobs that ended in this way; repeat it for several.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) outcome: Vec<OutcomeArg>,

    /// Only jobs with this label.
    #[arg(short, long, value_name = "TEXT", add = complete::labels())]
    pub(crate) label: Option<String>,

    /// Only jobs that were launched within this time, such as `2h` or `7d`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) since: Option<Duration>,

    /// Only the newest N jobs [default: all open ones, and 20 of history].
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "all", value_parser = parse_count)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) limit: Option<usize>,

    /// Show the whole history, not only the newest jobs.
    #[arg(short, long)]
    pub(crate) all: bool,
}

#[cfg(feature = "top")]
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

#[cfg(feature = "timeline")]
#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,

    /// Write the timeline as one HTML page to this file; `-` prints it. The page loads nothing from elsewhere.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,

    /// Print the ids and nothing else.
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,

    /// With --json: add the last line of each job's output.
    #[cfg_attr(feature = "one-call", arg(long, requires = "json"))]
    #[cfg_attr(not(feature = "one-call"), arg(skip))]
    pub(crate) preview: bool,

    /// Show the list until Ctrl-C, and draw it again every second.
    #[cfg_attr(feature = "live", arg(short = 'W', long, conflicts_with_all = ["json", "quiet"]))]
    #[cfg_attr(not(feature = "live"), arg(skip))]
    pub(crate) watch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutcomeArg {
    /// With an exit code.
    Exited,
    /// By a signal that hearback did not send.
    Signaled,
    /// By its time limit.
    TimedOut,
    /// By its limit on silence.
    IdleTimedOut,
    /// By a kill.
    Killed,
    /// It could not be started.
    FailedToStart,
    /// How it ended is unknown.
    Lost,
}

impl From<OutcomeArg> for OutcomeKind {
    fn from(kind: OutcomeArg) -> Self {
        match kind {
            OutcomeArg::Exited => Self::Exited,
            OutcomeArg::Signaled => Self::Signaled,
            OutcomeArg::TimedOut => Self::TimedOut,
            OutcomeArg::IdleTimedOut => Self::IdleTimedOut,
            OutcomeArg::Killed => Self::Killed,
            OutcomeArg::FailedToStart => Self::FailedToStart,
            OutcomeArg::Lost => Self::Lost,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Not running yet.
    Starting,
    /// Running, or paused.
    Running,
    /// Ended with success.
    Done,
    /// Ended in any other way, which --outcome tells apart.
    Failed,
    /// Ended, with success or without.
    Ended,
}

impl State {
    /// The states of jobs that are meant.
    pub(crate) fn words(self) -> &'static [StateWord] {
        match self {
            Self::Starting => &[StateWord::Starting],
            Self::Running => &[StateWord::Running],
            Self::Done => &[StateWord::Done],
            Self::Failed => &[StateWord::Failed],
            Self::Ended => &[StateWord::Done, StateWord::Failed, StateWord::Ended],
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The jobs, by id, label or `@last` [default: the only one that is running, or the only one there is].
    #[arg(value_name = "JOB", add = complete::jobs())]
    pub(crate) jobs: Vec<String>,

    /// The job that was launched with this key; a key belongs to the session that launched it.
    #[cfg_attr(feature = "one-call", arg(short, long, value_name = "K", value_parser = parse_key))]
    #[cfg_attr(feature = "one-call", arg(conflicts_with = "jobs"))]
    #[cfg_attr(not(feature = "one-call"), arg(skip))]
    pub(crate) key: Option<Key>,

    /// Show this much of the end of the output, such as `16KB` [default: 20 lines; with --json none].
    #[cfg_attr(feature = "one-call", arg(long, value_name = "SIZE", value_parser = parse_size))]
    #[cfg_attr(not(feature = "one-call"), arg(skip))]
    pub(crate) output: Option<u64>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The jobs, by id, label or `@last` [default: the only one that is running, or the only one there is].
    #[arg(value_name = "JOB", add = complete::jobs())]
    pub(crate) jobs: Vec<String>,

    /// The job that was launched with this key; a key belongs to the session that launched it.
    #[cfg_attr(feature = "one-call", arg(short, long, value_name = "K", value_parser = parse_key))]
    #[cfg_attr(feature = "one-call", arg(conflicts_with = "jobs"))]
    #[cfg_attr(not(feature = "one-call"), arg(skip))]
    pub(crate) key: Option<Key>,

    /// Continue to print new output until the job has ended. Ctrl-C leaves the job running.
    #[arg(short, long, conflicts_with_all = ["head", "max_bytes"])]
    pub(crate) follow: bool,

    /// With --follow: exit with the code of the job.
    #[arg(long, requires = "follow")]
    pub(crate) exit_code: bool,

    /// Only the first N lines.
    #[arg(long, value_name = "N", conflicts_with_all = ["tail", "offset"], value_parser = parse_number::<u64>)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) head: Option<u64>,

    /// Only the last N lines.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "offset", value_parser = parse_number::<u64>)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) tail: Option<u64>,

    /// Only the output after this many bytes. Offsets count all output, also what was dropped.
    #[arg(long, value_name = "BYTES", value_parser = parse_number::<u64>)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) offset: Option<u64>,

    /// At most this much, such as `16KB`: the beginning and the end, with a line that says how much is left out.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with_all = ["head", "tail", "offset"])]
    #[arg(allow_hyphen_values = true)]
    pub(crate) max_bytes: Option<u64>,

    /// Do not mark the follow-up as read, even if the owner reads all output.
    #[arg(long)]
    pub(crate) peek: bool,

    /// Print every control character to a terminal. By default colours are shown, of a progress bar its last state,
    /// and the rest is removed. Secrets stay masked.
    #[arg(long)]
    pub(crate) raw: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Wait until the first of the jobs has ended, not all of them.
    #[arg(long)]
    pub(crate) any: bool,

    /// Do not mark the follow-up as read.
    #[arg(long)]
    pub(crate) peek: bool,

    /// Wait at most this long, such as `90s` or `10m`, then exit with 75. The jobs continue.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct FollowupsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FollowupsCommand>,

    #[command(flatten)]
    pub(crate) scope: GlobalScopeArgs,
}

/// The same as [`ScopeArgs`], before or after the name of a subcommand.
#[derive(Debug, Args)]
pub(crate) struct GlobalScopeArgs {
    /// Only the jobs of this session [default: the session of the environment, else all].
    #[arg(short, long, global = true, value_name = "S", add = complete::sessions(), value_parser = parse_session)]
    #[arg(conflicts_with = "all_sessions")]
    session: Option<Session>,

    /// The jobs of all sessions.
    #[arg(long, global = true)]
    all_sessions: bool,
}

impl From<GlobalScopeArgs> for ScopeArgs {
    fn from(args: GlobalScopeArgs) -> Self {
        Self { session: args.session, all_sessions: args.all_sessions }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum FollowupsCommand {
    /// List follow-ups that are pending, leased or dead letters. This changes nothing.
    List,
    /// Print the next pending follow-up as a sink would get it. This changes nothing; exits 1 if there is none.
    Next(NextArgs),
    /// Take the next pending follow-up that no sink gets, and print it with a token. No other caller gets it meanwhile.
    #[cfg(feature = "claims")]
    Claim(ClaimArgs),
    /// Give back a follow-up that was claimed.
    #[cfg(feature = "claims")]
    Release(ReleaseArgs),
    /// Mark follow-ups as delivered: the owner has them, and they are not offered again.
    Ack(DeliveriesArgs),
    /// Retry dead letters.
    Retry(DeliveriesArgs),
    /// Discard follow-ups: the owner does not need them.
    Discard(DeliveriesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// Only the follow-up of this job, by id, label or `@last`.
    #[arg(value_name = "JOB", add = complete::jobs())]
    pub(crate) job: Option<String>,

    /// Wait at most this long for one, such as `30s`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) wait: Option<Duration>,
}

#[cfg(feature = "claims")]
#[derive(Debug, Args)]
pub(crate) struct ClaimArgs {
    #[command(flatten)]
    pub(crate) next: NextArgs,

    /// How long it is the caller's. After that it is free again.
    #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    pub(crate) lasts: Duration,
}

#[cfg(feature = "claims")]
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// What `followups claim` printed.
    #[arg(value_name = "TOKEN")]
    pub(crate) token: String,

    /// The caller cannot take it now: no attempt is spent, and it is offered again after a pause. This is the default.
    #[arg(long, conflicts_with = "failed")]
    pub(crate) busy: bool,

    /// The caller failed: the attempt is spent. After the last one it is a dead letter.
    #[arg(long)]
    pub(crate) failed: bool,

    /// Why.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct DeliveriesArgs {
    /// Delivery ids such as `<job>.end`, their jobs, or for `ack` tokens of `claim`.
    #[arg(required = true, value_name = "DELIVERY", add = complete::jobs())]
    pub(crate) deliveries: Vec<String>,
}

#[cfg(feature = "agents")]
#[derive(Debug, Args)]
pub(crate) struct TurnArgs {
    /// The session [default: the session of the environment].
    #[arg(short, long, value_name = "S", add = complete::sessions(), value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// Exit with 75 if the session is in a turn, instead of waiting for it.
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// Where the host shows the agent's messages, such as a chat or one of its threads.
    #[arg(long, value_name = "D")]
    pub(crate) destination: Option<String>,

    /// What the conversation ends with, if the host knows. It decides whether the agent gets a note in $HEARBACK_NOTE
    /// that its last turn was interrupted.
    #[arg(long, value_name = "WHAT")]
    pub(crate) history: Option<HistoryArg>,

    /// The agent and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "AGENT [ARG…]")]
    pub(crate) argv: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryArg {
    /// Tool results that the agent has not processed.
    ToolResults,
    /// A message of the agent or its user.
    Text,
    /// The conversation is empty.
    Empty,
}

impl From<HistoryArg> for HistoryEnd {
    fn from(history: HistoryArg) -> Self {
        match history {
            HistoryArg::ToolResults => Self::ToolResults,
            HistoryArg::Text => Self::Text,
            HistoryArg::Empty => Self::Empty,
        }
    }
}

#[cfg(feature = "agents")]
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The message; `-` reads it from standard input.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: String,

    /// The session [default: the session of the environment].
    #[arg(short, long, value_name = "S", add = complete::sessions(), value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// The sink that runs the agent [default: the sink of the last turn, else the setting `default_sink`].
    #[arg(long, value_name = "NAME", add = complete::sinks())]
    pub(crate) sink: Option<String>,

    /// Where the host shows the agent's messages, such as a chat or one of its threads.
    #[arg(long, value_name = "D")]
    pub(crate) destination: Option<String>,
}

#[cfg(feature = "control")]
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[cfg(feature = "agents")]
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    pub(crate) command: Option<InboxCommand>,

    #[command(flatten)]
    pub(crate) scope: GlobalScopeArgs,
}

#[cfg(feature = "agents")]
#[derive(Debug, Subcommand)]
pub(crate) enum InboxCommand {
    /// List the messages that wait, and dead letters: those that were given up, or are held for a person. This changes
    /// nothing.
    List,
    /// Retry a dead letter.
    Retry(InboxMessageArgs),
    /// Discard a message.
    Discard(InboxMessageArgs),
}

#[cfg(feature = "agents")]
#[derive(Debug, Args)]
pub(crate) struct InboxMessageArgs {
    /// The number of the message.
    #[arg(value_parser = parse_number::<u32>)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) n: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MonitorCommand {
    /// Run a monitor in the foreground: deliver, retry, reconcile, prune, and sleep until the next event. Several may
    /// run at once.
    Run(MonitorRunArgs),
    /// Show whether a monitor is running, whether it is about to stop, and its settings.
    #[cfg(feature = "control")]
    Status,
    /// Stop the monitor after all its turns have ended; it accepts no new work until then.
    #[cfg(feature = "control")]
    Drain(StopArgs),
    /// Restart the monitor. Turns may run until the limit, and continue afterwards; jobs go on, except bound ones.
    #[cfg(feature = "control")]
    Restart(RestartArgs),
    /// Stop the monitor. Turns may run until the limit; jobs go on, except bound ones.
    #[cfg(feature = "control")]
    Stop(StopArgs),
    /// Install the monitor as a login service of systemd, launchd or the Task Scheduler.
    ///
    /// Shows what will be written and run, and asks for confirmation. A second install changes only what differs.
    #[cfg(feature = "setup")]
    Install(InstallArgs),
}

#[cfg(feature = "setup")]
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Only print what would be written and run.
    #[arg(long, conflicts_with_all = ["remove", "yes"])]
    pub(crate) print: bool,

    /// Remove the service.
    #[arg(long)]
    pub(crate) remove: bool,

    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MonitorRunArgs {
    /// Do what is due now, then exit.
    #[arg(long, conflicts_with_all = ["service", "after"])]
    pub(crate) once: bool,

    /// For service managers: on a restart, exit with 85 so that the manager starts the monitor again.
    #[arg(long)]
    pub(crate) service: bool,

    /// Do not print what the monitor does. It is in the monitor's log all the same.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Begin when this process has exited.
    #[arg(long, hide = true, value_name = "PID:STARTED", value_parser = parse_predecessor)]
    pub(crate) after: Option<Predecessor>,
}

#[cfg(feature = "control")]
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// How long turns may still run [default: the setting `drain_timeout`; for `drain`, no limit].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// Return when the monitor has accepted the request, not when it has exited.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[cfg(feature = "control")]
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// How long turns may still run [default: the setting `drain_timeout`].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// A number that grows with each request. The monitor ignores a request that repeats an old number within five
    /// minutes.
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) sequence: Option<u64>,

    /// Return when the new monitor runs, not when the request was accepted.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[cfg(feature = "setup")]
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents: which are installed, and how each is woken.
    List,
    /// Wake a session of an agent with a sample, and show what it answers. This runs a turn of the agent.
    Test(SinkTestArgs),
    /// Show what teaches an agent about hearback (a skill, a plugin, the MCP server, a hook), or write or remove it.
    Setup(AgentSetupArgs),
    /// What an agent runs as its hook: waits until there is a text for the session that is named on standard input,
    /// prints it on standard error, and exits with code 2, which tells the agent to wake its model.
    #[command(hide = true)]
    Hook {
        /// The agent.
        #[arg(value_parser = ["claude"])]
        name: String,
    },
}

#[cfg(feature = "setup")]
#[derive(Debug, Args)]
pub(crate) struct AgentSetupArgs {
    /// The agent.
    #[arg(add = complete::agents())]
    pub(crate) name: String,

    /// Write the files, and the entry of the MCP server into the agent's own configuration. A file or an entry that
    /// hearback did not write is left alone.
    #[arg(long, conflicts_with = "remove")]
    pub(crate) write: bool,

    /// Remove the files and the entry that hearback wrote.
    #[arg(long)]
    pub(crate) remove: bool,

    /// For the project in the current directory [default: for all projects of this user].
    #[arg(long)]
    pub(crate) project: bool,
}

#[cfg(feature = "setup")]
#[derive(Debug, Subcommand)]
pub(crate) enum SinkCommand {
    /// Send a sample to a sink, and show its reply.
    Test(SinkTestArgs),
    /// List the sinks, and which of them can be used here.
    List,
}

#[cfg(feature = "setup")]
#[derive(Debug, Args)]
pub(crate) struct SinkTestArgs {
    /// Its name.
    #[arg(add = complete::sinks())]
    pub(crate) name: String,

    /// The session to send it to [default: the session of the environment].
    #[arg(short, long, value_name = "S", add = complete::sessions(), value_parser = parse_session)]
    pub(crate) session: Option<Session>,
}

#[cfg(feature = "plugin-check")]
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Check whether a program follows the plugin protocol. The program gets real samples; exits 1 if a check fails.
    Check(PluginCheckArgs),
}

#[cfg(feature = "plugin-check")]
#[derive(Debug, Args)]
pub(crate) struct PluginCheckArgs {
    /// The NAME of a program `hearback-sink-NAME` on the PATH, or the path of a program, such as `./my-sink`.
    #[arg(value_name = "NAME|PATH")]
    pub(crate) plugin: PathBuf,
}

impl Command {
    /// Whether it needs no store to be made: what is not there reads as empty. To wait for something to come takes a
    /// store that can be watched.
    pub(crate) fn needs_no_store(&self) -> bool {
        match self {
            #[cfg(feature = "agents")]
            Self::Results(args) => return args.wait.is_none(),
            #[cfg(feature = "agents")]
            Self::Inbox(_) => return true,
            Self::Followups(FollowupsArgs { command: Some(FollowupsCommand::Next(args)), .. }) => {
                return args.wait.is_none();
            }
            #[cfg(feature = "timeline")]
            Self::Timeline(_) => return true,
            #[cfg(feature = "setup")]
            Self::Settings | Self::Sink(SinkCommand::List) => return true,
            #[cfg(feature = "control")]
            Self::Sessions(_) | Self::Monitor(MonitorCommand::Status) => return true,
            _ => {}
        }
        matches!(
            self,
            Self::List(_)
                | Self::Show(_)
                | Self::Logs(_)
                | Self::Wait(_)
                | Self::Kill(_)
                | Self::Followups(_)
        )
    }

    /// Whether standard output belongs to a protocol, so that nothing else may be printed there.
    pub(crate) fn speaks_protocol(&self) -> bool {
        match self {
            #[cfg(feature = "mcp")]
            Self::Mcp(_) => true,
            #[cfg(feature = "serve")]
            Self::Serve => true,
            _ => false,
        }
    }
}

#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The session of every call. By default the client or the environment names it.
    #[arg(short, long, value_name = "S", add = complete::sessions(), value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// Where follow-ups go; repeat it for a chain. By default `default_sink` of the settings.
    #[arg(long = "sink", value_name = "NAME", add = complete::sinks())]
    pub(crate) sinks: Vec<String>,
}

#[cfg(feature = "upkeep")]
#[derive(Debug, Args)]
pub(crate) struct DryRunArgs {
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[cfg(feature = "upkeep")]
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Show what would be removed, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Remove jobs that were settled longer ago than this, such as `7d` [default: the setting `retention`].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) older_than: Option<Duration>,

    /// Keep at most this many settled jobs [default: the setting `max_jobs`].
    #[arg(long, value_name = "N", value_parser = parse_number::<usize>)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) max_jobs: Option<usize>,
}

#[cfg(feature = "completions")]
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

fn parse_predecessor(text: &str) -> Result<Predecessor, String> {
    let parsed = text.split_once(':').and_then(|(pid, started)| {
        Some(Predecessor { pid: pid.parse().ok()?, started: started.parse().ok()? })
    });
    parsed.ok_or_else(|| "expected PID:STARTED".to_owned())
}

fn parse_session(text: &str) -> Result<Session, hearback::core::NameError> {
    Session::parse(text)
}

#[cfg(feature = "agents")]
fn parse_reader(text: &str) -> Result<Reader, hearback::core::NameError> {
    Reader::parse(text)
}

/// A label that can name a job where one is typed.
fn parse_label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a label cannot be empty".into()),
        hearback::LAST => Err("`@last` always names the newest job: use another label".into()),
        _ => Ok(text.to_owned()),
    }
}

fn parse_key(text: &str) -> Result<Key, hearback::core::NameError> {
    Key::parse(text)
}
