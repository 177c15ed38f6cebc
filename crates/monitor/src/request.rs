//! A launch request, and filling it in one choice at a time.

use std::ffi::OsString;
use std::time::Duration;

use hearback_core::agents::LaunchingAgent;
use hearback_core::{
    CommandLine, Durability, ExecutorName, Extra, FORMAT, JobId, Key, Leftovers, Limits, LogCap,
    NotifyPolicy, OsText, OverCap, Session, Spec, Timestamp,
};

/// What to launch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// What to run.
    pub command: CommandLine,
    /// The same without secrets, if there are any in it. This is recorded instead.
    pub masked_command: Option<CommandLine>,
    /// Whether records about the job keep text that looks like a credential. Otherwise it is masked in them.
    pub keeps_credentials: bool,
    /// Where to run it.
    pub cwd: OsText,
    /// Which executor runs it.
    pub executor: ExecutorName,
    /// Its owner.
    pub session: Option<Session>,
    /// The agent whose session launches it.
    pub agent: Option<LaunchingAgent>,
    /// Whether it comes through the MCP server.
    pub mcp: bool,
    /// A name for people.
    pub label: Option<String>,
    /// Makes the launch repeatable.
    pub key: Option<Key>,
    /// When the owner is notified.
    pub notify: NotifyPolicy,
    /// Where the follow-up goes.
    pub sinks: Vec<String>,
    /// How many follow-ups led to this launch.
    pub depth: u32,
    /// Whether it ends with the host: a monitor that restarts or stops kills it first.
    pub bound: bool,
    /// Whether other processes can write to its input. Otherwise its input is empty.
    pub takes_input: bool,
    /// Whether it is a prompt job: its answer is worked out when it has ended.
    pub answer: bool,
    /// The prompt of a prompt job, to show. The command has it already.
    pub prompt: Option<String>,
    /// Names of variables that hold secrets, which the target does not inherit.
    pub withhold: Vec<String>,
    /// Changes to the environment that the target inherits.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Its limits.
    pub limits: Limits,
    /// Whether the caller has left the time limit open: then it is what the settings of the store say.
    pub timeout_is_open: bool,
    /// What has to survive a power cut; by default what [`Launcher::durability`](crate::launch::Launcher::durability)
    /// says.
    pub durability: Option<Durability>,
}

impl Request {
    /// A request to run `command` in `cwd`, which has to be absolute. Everything else has its default.
    pub fn new(command: CommandLine, cwd: OsText) -> Self {
        Self {
            command,
            masked_command: None,
            keeps_credentials: false,
            cwd,
            executor: ExecutorName::default(),
            session: None,
            agent: None,
            mcp: false,
            label: None,
            key: None,
            notify: NotifyPolicy::default(),
            sinks: Vec::new(),
            depth: 0,
            bound: false,
            takes_input: false,
            answer: false,
            prompt: None,
            withhold: Vec::new(),
            env: Vec::new(),
            limits: Limits { log_cap: Some(LogCap::DEFAULT), ..Limits::default() },
            timeout_is_open: true,
            durability: None,
        }
    }
}

impl Request {
    /// The command as it is recorded.
    pub fn recorded_command(&self) -> &CommandLine {
        self.masked_command.as_ref().unwrap_or(&self.command)
    }

    /// The spec of the job, as far as the request determines it.
    pub fn spec(&self, id: &JobId, session: Option<Session>, now: Timestamp) -> Spec {
        Spec {
            format: FORMAT,
            id: id.clone(),
            command: self.recorded_command().clone(),
            command_is_masked: self.masked_command.is_some(),
            keeps_credentials: self.keeps_credentials,
            cwd: self.cwd.clone(),
            executor: self.executor.clone(),
            session,
            agent: self.agent.clone(),
            mcp: self.mcp,
            label: self.label.clone(),
            key: self.key.clone(),
            notify: self.notify,
            sinks: self.sinks.clone(),
            withhold: self.withhold.clone(),
            depth: self.depth,
            bound: self.bound,
            takes_input: self.takes_input,
            answer: self.answer,
            prompt: self.prompt.clone(),
            limits: self.limits,
            durability: self.durability.unwrap_or_default(),
            launched_at_ms: now,
            boot: None,
            machine: None,
            version: String::new(),
            extra: Extra::new(),
        }
    }
}

/// Each method changes one choice and returns the request, so that they chain:
///
/// ```
/// use std::time::Duration;
/// use hearback_core::{CommandLine, NotifyPolicy};
/// use hearback_monitor::launch::Request;
///
/// let request = Request::new(CommandLine::Argv(vec!["make".into(), "all".into()]), "/src".into())
///     .label("nightly build")
///     .timeout(Some(Duration::from_secs(600)))
///     .notify(NotifyPolicy::Failure);
/// assert_eq!(request.limits.timeout_ms, Some(600_000));
/// ```
impl Request {
    /// Its owner, who is notified when it has ended.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// A name for people.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Makes the launch repeatable: the same key finds the same job.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// When the owner is notified.
    #[must_use]
    pub fn notify(mut self, policy: NotifyPolicy) -> Self {
        self.notify = policy;
        self
    }

    /// Adds a sink to the route of the follow-up. Later ones are tried when the session is gone from the earlier.
    #[must_use]
    pub fn sink(mut self, name: impl Into<String>) -> Self {
        self.sinks.push(name.into());
        self
    }

    /// Sets a variable for the target, which inherits the rest from the launcher.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Keeps a variable of the launcher from the target.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// What happens to processes that outlive the main one.
    #[must_use]
    pub fn leftovers(mut self, leftovers: Leftovers) -> Self {
        self.limits.leftovers = leftovers;
        self
    }

    /// The most of its output that is kept; `None` for all of it.
    #[must_use]
    pub fn log_cap(mut self, cap: Option<LogCap>) -> Self {
        self.limits.log_cap = cap;
        self
    }

    /// What happens when its output exceeds the cap.
    #[must_use]
    pub fn over_cap(mut self, over_cap: OverCap) -> Self {
        self.limits.over_cap = over_cap;
        self
    }

    /// Makes it end with the host: a monitor that restarts or stops kills it first.
    #[must_use]
    pub fn bound(mut self) -> Self {
        self.bound = true;
        self
    }

    /// Where to run it: an absolute path.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<OsText>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// The shell that runs the text; by default that of the system. Nothing changes for a program that runs without a
    /// shell.
    #[must_use]
    pub fn shell_program(mut self, shell: impl Into<String>) -> Self {
        if let CommandLine::Shell { program, .. } = &mut self.command {
            *program = Some(shell.into());
        }
        self
    }

    /// How long it may run; `None` for as long as it takes.
    #[must_use]
    pub fn timeout(mut self, limit: Option<Duration>) -> Self {
        self.limits.timeout_ms = limit.map(millis);
        self.timeout_is_open = false;
        self
    }

    /// How long it may be silent; `None` for as long as it likes.
    #[must_use]
    pub fn idle_timeout(mut self, limit: Option<Duration>) -> Self {
        self.limits.idle_timeout_ms = limit.map(millis);
        self
    }

    /// How long its processes have between being terminated and being killed.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace_ms = millis(grace);
        self
    }

    /// Keeps its input open for other processes to write to. By default its input is empty.
    #[must_use]
    pub fn takes_input(mut self) -> Self {
        self.takes_input = true;
        self
    }

    /// What has to survive a power cut.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
