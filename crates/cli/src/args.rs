//! What can be typed. The doc comments are the help text.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hearback::Predecessor;
use hearback::core::note::HistoryEnd;
use hearback::core::{Key, Leftovers, LogCap, NotifyPolicy, OverCap, Reader, Session, StateWord};
use hearback::parse_size;

const AFTER_HELP: &str = "\
A job may be named by its id, or by at least four characters of either end of it.

Exit codes of `wait`, `launch --wait` and `ask --wait`: the job's own code; 124 its time limit; 75 the wait's own \
deadline (the job runs on); 125 hearback failed or the outcome is lost; 126 not executable; 127 not found; 128+n \
signal n. Elsewhere: 0 fine; 1 no such job, a kill that left somebody, or a check of `doctor` that failed; 2 usage; \
125 hearback failed. With --json the cause is stated.";

/// Run it in the background. Always hear back.
#[derive(Debug, Parser)]
#[command(name = "hearback", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print JSON for programs instead of text for people.
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,

    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 901)]
    pub(crate) color: Color,
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
    Launch(Box<LaunchArgs>),
    /// Run an agent in the background that has something to answer, and print the id of its job.
    Ask(Box<AskArgs>),
    /// Print the answers that have come in, the oldest first. Reading takes nothing away; exits 1 if there is none.
    Results(ResultsArgs),
    /// List jobs, newest first.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show one job: how it ended, what it printed, what to type next.
    Show(JobArgs),
    /// Print what a job printed.
    Logs(LogsArgs),
    /// Sleep until jobs are over, and exit with their code.
    Wait(WaitArgs),
    /// End jobs and every process they started.
    Kill(KillArgs),
    /// See what is owed to the owners of jobs that are over, take it, try it again, or drop it.
    #[command(visible_alias = "followup")]
    Followups(FollowupsArgs),
    /// Run an agent as a turn of a session, and hand over what came for it meanwhile: messages and follow-ups.
    Turn(TurnArgs),
    /// Send a message to a session: it is on disk when this returns, and taken in a turn of its own, in order.
    Send(SendArgs),
    /// List sessions: who is in a turn, who was interrupted, what waits.
    Sessions(SessionsArgs),
    /// See the messages that wait for sessions, or drop one.
    Inbox(InboxArgs),
    /// Look after the whole store.
    #[command(subcommand)]
    Monitor(MonitorCommand),
    /// Try where follow-ups go.
    #[command(subcommand)]
    Sink(SinkCommand),
    /// Try sinks of other people.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Bring the records up to date after anything died. Every other command does so for the jobs it looks at.
    Reconcile(DryRunArgs),
    /// Remove jobs that were settled long enough ago.
    Prune(PruneArgs),
    /// Show each setting, and whether it comes from the environment, the file or the default.
    Settings,
    /// Try what this machine and the store can do, and what a job launched here would live through.
    Doctor,
    /// Print the JSON Schema of what --json prints.
    Schema,
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
#[command(
    override_usage = "hearback launch [OPTIONS] [--] PROG [ARG…]\n       hearback launch [OPTIONS] --shell TEXT"
)]
pub(crate) struct LaunchArgs {
    /// The program and its arguments, run as given, without a shell.
    #[arg(trailing_var_arg = true, value_name = "PROG [ARG…]", required_unless_present = "shell")]
    pub(crate) argv: Vec<OsString>,

    /// Run shell text instead of a program; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", conflicts_with = "argv", allow_hyphen_values = true)]
    pub(crate) shell: Option<String>,

    /// Which shell runs the text, such as `bash`, `sh`, `powershell` or `cmd` [default: bash or sh; on Windows
    /// PowerShell or cmd].
    #[arg(long, value_name = "PROG", requires = "shell", conflicts_with = "argv")]
    pub(crate) shell_program: Option<String>,

    /// Who owns the job [default: $HEARBACK_SESSION, else the agent's own variable, else nobody].
    #[arg(short, long, value_name = "S", value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    #[command(flatten)]
    pub(crate) options: LaunchOptions,

    /// Wait until it is over, and exit with its code.
    #[arg(short, long)]
    pub(crate) wait: bool,

    /// Print the id and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "hearback ask [OPTIONS] [--prompt TEXT] [--] AGENT [ARG…]")]
pub(crate) struct AskArgs {
    /// The agent and its arguments, run as given, without a shell.
    #[arg(trailing_var_arg = true, value_name = "AGENT [ARG…]")]
    pub(crate) argv: Vec<OsString>,

    /// What to ask; `-` reads it from standard input. It takes the place of `{prompt}` in the agent's arguments, or
    /// comes after them.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,

    /// Who asks: the session that the answer is for [default: $HEARBACK_SESSION, else the agent's own variable].
    #[arg(short, long, value_name = "PARENT", value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// The parent is one of which nothing is known here yet.
    #[arg(long)]
    pub(crate) new: bool,

    #[command(flatten)]
    pub(crate) options: LaunchOptions,

    /// Wait until it is over, print the answer and exit with its code, or with 1 if it ended well and answered nothing.
    #[arg(short, long)]
    pub(crate) wait: bool,

    /// Print the id, or the answer, and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    /// Only of these jobs.
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<String>,

    /// Who asked [default: $HEARBACK_SESSION, else the agent's own variable].
    #[arg(short, long, value_name = "PARENT", value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// Say that what was printed was read, so that it is not printed again; for the parent this settles the job.
    #[arg(long)]
    pub(crate) ack: bool,

    /// Read as somebody else than the parent, with an account of its own of what was read.
    #[arg(long, value_name = "NAME", value_parser = parse_reader)]
    pub(crate) reader: Option<Reader>,

    /// Wait for an answer at most this long, such as `30s`.
    #[arg(short, long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,
}

/// What can be chosen about a job, whatever it runs.
#[derive(Debug, Args)]
pub(crate) struct LaunchOptions {
    /// The longest it may run, such as `90m`, or `none`. Time asleep does not count.
    #[arg(short, long, value_name = "TIME", default_value = "1h", allow_hyphen_values = true)]
    #[arg(value_parser = parse_limit)]
    pub(crate) timeout: Limit,

    /// The longest it may print nothing, such as `5m`.
    #[arg(long, value_name = "TIME", default_value = "none", allow_hyphen_values = true)]
    #[arg(value_parser = parse_limit)]
    pub(crate) idle_timeout: Limit,

    /// Between asking a process to end and forcing it.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_grace, allow_hyphen_values = true)]
    pub(crate) grace: Duration,

    /// What becomes of processes that outlive the main one.
    #[arg(long, value_name = "WHAT", default_value = "kill")]
    pub(crate) leftovers: LeftoversArg,

    /// The most of its output that is kept, such as `8MiB`, or `none`: a head and a tail.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", allow_hyphen_values = true)]
    #[arg(value_parser = parse_cap)]
    pub(crate) log_cap: Cap,

    /// What happens to it when it prints more than that.
    #[arg(long, value_name = "WHAT", default_value = "trim")]
    pub(crate) over_cap: OverCapArg,

    /// When the owner is told that it is over.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) notify: Notify,

    /// Where the follow-up goes; repeat for a chain.
    #[arg(long = "sink", value_name = "NAME")]
    pub(crate) sinks: Vec<String>,

    /// End it with the host: a monitor of this store that restarts or stops ends it first, and its owner is told.
    #[arg(long)]
    pub(crate) bound: bool,

    /// A name for people.
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Make the launch repeatable: the same key names the same job.
    #[arg(short, long, value_name = "K", value_parser = parse_key)]
    pub(crate) key: Option<Key>,

    /// Where to run it [default: here].
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Set a variable for the job; without a value, remove it. Values are never stored.
    #[arg(short, long, value_name = "K[=V]")]
    pub(crate) env: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Notify {
    /// Always, except after a kill that the session itself asked for.
    Auto,
    /// Whatever happened.
    Always,
    /// When it did not succeed.
    Failure,
    /// When it succeeded.
    Success,
    /// Not at all.
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
    /// They are ended with the job.
    Kill,
    /// They live on, and what they print is still kept.
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
    /// It runs on, and the middle of its output is dropped.
    Trim,
    /// It is ended.
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
    let cap = LogCap::new(bytes).ok_or("a log keeps at least 1MiB; say `none` for no cap")?;
    Ok(Cap(Some(cap)))
}

/// A limit, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(Option<Duration>);

impl Limit {
    pub(crate) fn millis(self) -> Option<u64> {
        self.0.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
    }
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => match humantime::parse_duration(text) {
            Ok(limit) if !limit.is_zero() => Ok(Limit(Some(limit))),
            Ok(_) => Err("a limit of no time would run nothing; say `none` for no limit".into()),
            Err(error) => Err(format!("{error}; give a time such as `90m`, or `none`")),
        },
    }
}

fn parse_grace(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; give a time such as `5s`"))
}

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// The jobs.
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,

    /// Why, for whoever reads how it ended.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Between asking and forcing [default: what the job was launched with].
    #[arg(long, value_name = "TIME", value_parser = parse_grace, allow_hyphen_values = true, conflicts_with = "force")]
    pub(crate) grace: Option<Duration>,

    /// Do not ask, and end a supervisor that does not answer, too.
    #[arg(short, long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Whose jobs are seen.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// See only the jobs of this session [default: the session of the environment, else all].
    #[arg(short, long, value_name = "S", value_parser = parse_session, conflicts_with = "all_sessions")]
    pub(crate) session: Option<Session>,

    /// See the jobs of all sessions.
    #[arg(long)]
    pub(crate) all_sessions: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// Only jobs in this state.
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<State>,

    /// The whole history, not only the newest of it.
    #[arg(short, long)]
    pub(crate) all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    Starting,
    Running,
    Done,
    Failed,
    Ended,
}

impl From<State> for StateWord {
    fn from(state: State) -> Self {
        match state {
            State::Starting => Self::Starting,
            State::Running => Self::Running,
            State::Done => Self::Done,
            State::Failed => Self::Failed,
            State::Ended => Self::Ended,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job.
    pub(crate) job: String,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The job.
    pub(crate) job: String,

    /// Go on printing until the job is over.
    #[arg(short, long, conflicts_with_all = ["head", "max_bytes"])]
    pub(crate) follow: bool,

    /// Only the first N lines.
    #[arg(long, value_name = "N", conflicts_with_all = ["tail", "offset"])]
    pub(crate) head: Option<u64>,

    /// Only the last N lines.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "offset")]
    pub(crate) tail: Option<u64>,

    /// Only what comes after this many bytes. They count everything that was ever printed.
    #[arg(long, value_name = "BYTES")]
    pub(crate) offset: Option<u64>,

    /// At most this much, such as `16KB`: the beginning and the end, and between them how much was left out.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with_all = ["head", "tail", "offset"])]
    pub(crate) max_bytes: Option<u64>,

    /// Only look: the owner's follow-up is not settled by reading to the end.
    #[arg(long)]
    pub(crate) peek: bool,

    /// Print the bytes as they are to a terminal, too; by default it is spared control characters. Secrets stay masked.
    #[arg(long)]
    pub(crate) raw: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The jobs.
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,

    /// Until the first of them is over, not the last.
    #[arg(long)]
    pub(crate) any: bool,

    /// Only look: the owner's follow-up is not settled by this.
    #[arg(long)]
    pub(crate) peek: bool,

    /// Not longer than this, such as `90s` or `10m`; then exit with 75, and the jobs run on.
    #[arg(short, long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FollowupsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FollowupsCommand>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FollowupsCommand {
    /// List what is owed, on its way, or given up. Reading takes nothing away.
    List(FollowupsListArgs),
    /// Print the next one that is owed, as it would be sent. Reading takes nothing away; exits 1 if there is none.
    Next(NextArgs),
    /// Say that the owner has it: it is never offered again.
    Ack(DeliveriesArgs),
    /// Try again what was given up.
    Retry(DeliveriesArgs),
    /// Drop it: nobody needs to hear it.
    Discard(DeliveriesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FollowupsListArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// Wait for one at most this long, such as `30s`.
    #[arg(short, long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DeliveriesArgs {
    /// Deliveries such as `<job>.end`, or their jobs.
    #[arg(required = true, value_name = "DELIVERY")]
    pub(crate) deliveries: Vec<String>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TurnArgs {
    /// The session [default: the session of the environment].
    #[arg(short, long, value_name = "S", value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// Do not wait for a turn that is under way: exit with 75.
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// Where the host shows what the agent says, such as a chat or a thread of it.
    #[arg(long, value_name = "D")]
    pub(crate) destination: Option<String>,

    /// What the conversation ends with, if the host knows: it decides whether the agent gets a note that its last turn
    /// was interrupted (in $HEARBACK_NOTE).
    #[arg(long, value_name = "WHAT")]
    pub(crate) history: Option<HistoryArg>,

    /// The agent and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "AGENT [ARG…]")]
    pub(crate) argv: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryArg {
    /// Results of tools that the agent has not taken up.
    ToolResults,
    /// What the agent or its user said.
    Text,
    /// Nothing.
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

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The message; `-` reads it from standard input.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: String,

    /// The session [default: the session of the environment].
    #[arg(short, long, value_name = "S", value_parser = parse_session)]
    pub(crate) session: Option<Session>,

    /// The sink that runs the agent [default: where the last turn went, else the setting `default_sink`].
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,

    /// Where the host shows what the agent says, such as a chat or a thread of it.
    #[arg(long, value_name = "D")]
    pub(crate) destination: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    pub(crate) command: Option<InboxCommand>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InboxCommand {
    /// List the messages that wait, and those that nobody could be given. Reading takes nothing away.
    List(SessionsArgs),
    /// Drop a message.
    Discard(InboxDiscardArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InboxDiscardArgs {
    /// The number of the message.
    pub(crate) n: u32,

    /// The session [default: the session of the environment].
    #[arg(short, long, value_name = "S", value_parser = parse_session)]
    pub(crate) session: Option<Session>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MonitorCommand {
    /// Deliver, try again, find what died, prune, and sleep until the next thing is due. Several may run at once.
    Run(MonitorRunArgs),
    /// Say whether a monitor runs, what it is about to do, and which settings are in force.
    Status,
    /// Let the monitor end when every turn that it runs is over, and take nothing new until then.
    Drain(StopArgs),
    /// Restart the monitor: turns have until the limit and go on afterwards; jobs are not touched.
    Restart(RestartArgs),
    /// End the monitor: turns have until the limit; jobs are not touched.
    Stop(StopArgs),
    /// Have a monitor for this store at every login, kept running by systemd, launchd or the Task Scheduler.
    ///
    /// Shows what is going to be written and run, and asks. Installing again changes nothing that is as it should be.
    Install(InstallArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Only print what would be written, and what would be run.
    #[arg(long, conflicts_with_all = ["remove", "yes"])]
    pub(crate) print: bool,

    /// Take it away again.
    #[arg(long)]
    pub(crate) remove: bool,

    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MonitorRunArgs {
    /// Do what is due now, and end.
    #[arg(long, conflicts_with_all = ["service", "after"])]
    pub(crate) once: bool,

    /// A service manager runs this: to restart, exit with 85 and be started again.
    #[arg(long)]
    pub(crate) service: bool,

    /// Begin when this process is gone.
    #[arg(long, hide = true, value_name = "PID:STARTED", value_parser = parse_predecessor)]
    pub(crate) after: Option<Predecessor>,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// How long turns have [default: the setting `drain_timeout`; of `drain`, no limit].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Return when the monitor has heard it, and not when it has ended.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// How long turns have [default: the setting `drain_timeout`].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// A number that grows with each request: one that comes again with an old number within five minutes is ignored.
    #[arg(long, value_name = "N")]
    pub(crate) sequence: Option<u64>,

    /// Return when the successor runs, and not when the request was heard.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SinkCommand {
    /// Send a sample to a sink, and show what happened.
    Test(SinkTestArgs),
    /// List the sinks that there are.
    List,
}

#[derive(Debug, Args)]
pub(crate) struct SinkTestArgs {
    /// The sink.
    pub(crate) name: String,

    /// The session to send it to [default: the session of the environment].
    #[arg(short, long, value_name = "S", value_parser = parse_session)]
    pub(crate) session: Option<Session>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Try whether a program keeps to the protocol of plugins. It is really given samples; exits 1 if a check fails.
    Check(PluginCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PluginCheckArgs {
    /// The NAME of a program `hearback-sink-NAME` on the PATH, or the path of any program, such as `./my-sink`.
    #[arg(value_name = "NAME|PATH")]
    pub(crate) plugin: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DryRunArgs {
    /// Show what would be done, and do nothing.
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Show what would be removed, and remove nothing.
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,

    /// Remove what was settled longer ago than this, such as `7d` [default: the setting `retention`].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Option<Duration>,

    /// Keep at most this many settled jobs [default: the setting `max_jobs`].
    #[arg(long, value_name = "N")]
    pub(crate) max_jobs: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

fn parse_predecessor(text: &str) -> Result<Predecessor, String> {
    let parsed = text.split_once(':').and_then(|(pid, started)| {
        Some(Predecessor { pid: pid.parse().ok()?, started: started.parse().ok()? })
    });
    parsed.ok_or_else(|| "it is PID:STARTED".to_owned())
}

fn parse_session(text: &str) -> Result<Session, hearback::core::NameError> {
    Session::parse(text)
}

fn parse_reader(text: &str) -> Result<Reader, hearback::core::NameError> {
    Reader::parse(text)
}

fn parse_key(text: &str) -> Result<Key, hearback::core::NameError> {
    Key::parse(text)
}
