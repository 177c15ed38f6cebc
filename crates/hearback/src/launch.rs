//! Launching: what to run, and the rules that every launch obeys.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use hearback_core::port::record::StoreError;
use hearback_core::port::sink::HOST_SINK;
use hearback_core::{CommandLine, JobId, NotifyPolicy, OsText};
use hearback_monitor::launch::{self, LaunchError as LaunchFailure, Launched, Launcher, Request};
use tracing::debug;

use crate::Hearback;
use crate::permissions::{Capability, Denied};
use crate::sinks::NoSink;
use crate::wait::Reading;

/// Why a request could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is nothing to run.
    #[error("there is nothing to run")]
    Empty,
    /// The prompt is blank.
    #[error("the prompt is blank")]
    BlankPrompt,
    /// The agent's arguments contain `{prompt}`, but there is no prompt.
    #[error("the arguments contain `{{prompt}}`, but there is no prompt")]
    NoPrompt,
    /// The working directory is unknown.
    #[error("the current directory no longer exists")]
    NoDirectory(#[source] io::Error),
    /// There is no such directory to run in.
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
}

/// Why a job was not launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The route names a sink that does not exist.
    #[error(transparent)]
    NoSink(#[from] NoSink),
    /// The chain of follow-ups that launch jobs is too long.
    #[error(
        "this launch is number {depth} of a chain in which each follow-up launches the next; the limit is {most}"
    )]
    TooDeep {
        /// How many follow-ups led to this launch.
        depth: u32,
        /// The limit.
        most: u32,
    },
    /// A session launches too many jobs from follow-ups.
    #[error("this session has launched {most} jobs from follow-ups in the last hour, which is the limit")]
    TooFast {
        /// How many it may launch in an hour.
        most: usize,
    },
    /// The recent launches of the session cannot be counted.
    #[error("the jobs of this session cannot be counted")]
    Uncounted(#[source] StoreError),
    /// The launch failed. The error says whether anything is left of the job.
    #[error(transparent)]
    Failed(#[from] LaunchFailure),
}

/// A request to run a program as given, without a shell, in this process's working directory.
///
/// # Errors
///
/// When there is no program, or the working directory has been removed.
pub fn argv<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Result<Request, RequestError> {
    let argv: Vec<_> = argv.into_iter().map(|word| hearback_platform::from_os(&word.into())).collect();
    if argv.is_empty() {
        return Err(RequestError::Empty);
    }
    Ok(Request::new(CommandLine::Argv(argv), here()?))
}

/// A request to run text in a shell, in this process's working directory.
///
/// # Errors
///
/// When the working directory has been removed.
pub fn shell(text: impl Into<String>) -> Result<Request, RequestError> {
    Ok(Request::new(CommandLine::Shell { shell: text.into(), program: None }, here()?))
}

/// A directory for [`Request::cwd`]. A relative path counts from this process's working directory.
///
/// ```no_run
/// use hearback::{argv, directory};
///
/// let request = argv(["make", "all"])?.cwd(directory("build")?);
/// # Ok::<(), hearback::RequestError>(())
/// ```
///
/// # Errors
///
/// When it is not a directory, or the working directory has been removed.
pub fn directory(path: impl AsRef<Path>) -> Result<OsText, RequestError> {
    let path = std::path::absolute(path.as_ref()).map_err(RequestError::NoDirectory)?;
    match fs_err::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(hearback_platform::from_os(path.as_os_str())),
        _ => Err(RequestError::NotADirectory(path)),
    }
}

fn here() -> Result<OsText, RequestError> {
    let cwd = std::env::current_dir().map_err(RequestError::NoDirectory)?;
    Ok(hearback_platform::from_os(cwd.as_os_str()))
}

impl Hearback {
    /// Launches a job. Returns when the target runs, or when the launch has failed.
    ///
    /// # Errors
    ///
    /// The error says whether anything is left of the job: see [`LaunchError`].
    pub fn launch(&self, request: &Request) -> Result<Launched, LaunchError> {
        self.launch_and(request, &mut |_| {})
    }

    /// Launches a job for an owner that is going to wait for it; see [`Hearback::reading`].
    ///
    /// # Errors
    ///
    /// The error says whether anything is left of the job: see [`LaunchError`].
    pub fn launch_to_wait(&self, request: &Request) -> Result<(Launched, Option<Reading>), LaunchError> {
        let mut reading = None;
        // Before anything runs: a job may end, and its owner be notified, before its launch has returned.
        let launched = self.launch_and(request, &mut |id| reading = self.reading(id))?;
        let reading = reading.or_else(|| self.reading(launched.id()));
        Ok((launched, reading))
    }

    fn launch_and(
        &self,
        request: &Request,
        recorded: &mut dyn FnMut(&JobId),
    ) -> Result<Launched, LaunchError> {
        let launcher = Launcher {
            program: self.supervisor_program().map_err(LaunchFailure::Spawn)?,
            home: self.home().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: self.settings().durability,
        };
        let mut request = request.clone();
        // A caller may count a longer chain than its environment shows, never a shorter one.
        request.depth = request.depth.max(crate::session::current_depth());
        // The route is fixed now. Later changes of the settings do not affect it.
        if request.sinks.is_empty()
            && let Some(session) = &request.session
        {
            // What an agent launches in a turn of a host comes back to that host.
            let hosts = self.is_hosted(session).then(|| HOST_SINK.to_owned());
            request.sinks.extend(hosts.or_else(|| self.settings().default_sink.clone()));
        }
        if request.timeout_is_open && request.limits.timeout_ms.is_none() {
            // Not every agent names its session to an MCP server.
            let limit = self.settings().timeout.of(request.session.is_some() || request.mcp);
            request = request.timeout(limit);
        }
        self.check_launch(&request)?;
        if request.agent.is_none() && request.session.is_some() && request.notify != NotifyPolicy::Never {
            request.agent = crate::agent::launching(hearback_platform::Native::default());
        }
        debug!(sinks = ?request.sinks, depth = request.depth, agent = ?request.agent, "launch is allowed");
        // The caller means what it sets, and it gets it from the launcher alone.
        let set = |name: &str| {
            let value = request.env.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.clone());
            value.flatten()
        };
        let withheld = self.settings().secrets.iter().filter(|name| set(name).is_none());
        let withheld: Vec<_> = withheld.cloned().collect();
        // What the launch sets is as secret as what it inherits.
        let secrets = self.settings().secrets_with(|name| match set(name) {
            Some(value) => value.into_string().ok(),
            None => std::env::var(name).ok(),
        });
        request.withhold.extend(withheld);
        request.masked_command = secrets.masked_command(&request.command);
        request.keeps_credentials = !self.settings().mask_credentials;
        request.label = request.label.map(|label| secrets.masked(&label));
        request.prompt = request.prompt.map(|prompt| secrets.masked(&prompt));
        // A job that is launched in a turn is not part of it.
        for name in [crate::session::TURN_VARIABLE, crate::session::NOTE_VARIABLE] {
            request.env.insert(0, (name.into(), None));
        }
        Ok(launch::launch_and(&self.ports, &launcher, &request, recorded)?)
    }

    /// Refuses, before anything runs: what the caller may not do, unknown sinks, and endless chains of follow-ups.
    fn check_launch(&self, request: &Request) -> Result<(), LaunchError> {
        self.permissions().check(Capability::Launch)?;
        if let Some(name) = request.sinks.iter().find(|name| !self.has_sink(name)) {
            return Err(self.registry.missing(name).into());
        }
        let has_owner = request.session.is_some() || !request.sinks.is_empty();
        if request.notify == NotifyPolicy::Never || !has_owner {
            return Ok(());
        }
        self.permissions().check(Capability::Notify)?;
        let most = self.settings().max_depth;
        if request.depth > most {
            return Err(LaunchError::TooDeep { depth: request.depth, most });
        }
        let most = self.settings().max_rate;
        if let Some(session) = request.session.as_ref().filter(|_| request.depth > 0)
            && self.recent_chain(session, most).map_err(LaunchError::Uncounted)? >= most
        {
            return Err(LaunchError::TooFast { most });
        }
        Ok(())
    }
}
