//! A store, and everything that can be done with it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hearback_core::message::Excerpt;
use hearback_core::port::clock::Clock;
use hearback_core::port::disk::{ReadError, ReadSeek};
use hearback_core::port::record::{RecordStore, StoreError};
use hearback_core::{
    CommandLine, Durability, JobId, JobView, Key, NotifyPolicy, Observed, OsText, Session, StateWord,
    Timestamp,
};
use hearback_monitor::launch::{self, LaunchError, Launched, Launcher};
use hearback_monitor::wait::{Until, WaitError, Waits};
use hearback_monitor::{Ports, prune, reconcile};
use hearback_platform::Native;
use hearback_store::Store;

use crate::lookup::{self, FindError};
use crate::settings::Settings;
use crate::{home, supervisor};

/// How to open a store.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where it is; by default `$HEARBACK_HOME`, else the platform's directory for state.
    pub home: Option<PathBuf>,
    /// The program that becomes the supervisor of a job: this one by default, which then has to call
    /// [`supervise_if_asked`](crate::supervise_if_asked) first thing; or the path of an installed `hearback`.
    pub supervisor: Option<PathBuf>,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system names no directory for state.
    #[error("there is no directory to keep jobs in: neither HEARBACK_HOME nor a home directory is set")]
    NoHome,
    /// The directory is there, but not to be used.
    #[error("the store cannot be opened")]
    Store(#[from] StoreError),
}

/// What to launch. [`Request::argv`] and [`Request::shell`] fill in what most callers want.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to run.
    pub command: CommandLine,
    /// Where to run it.
    pub cwd: OsText,
    /// Its owner.
    pub session: Option<Session>,
    /// A name for people.
    pub label: Option<String>,
    /// Makes the launch repeatable: the same key of the same session names the same job.
    pub key: Option<Key>,
    /// When the owner is told.
    pub notify: NotifyPolicy,
    /// Where the follow-up goes.
    pub sinks: Vec<String>,
    /// Changes to the environment that the command inherits; no value removes a variable.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// What has to survive a power cut; by default what the settings say.
    pub durability: Option<Durability>,
}

/// Why a request could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is nothing to run.
    #[error("there is nothing to run")]
    Empty,
    /// The working directory is unknown.
    #[error("the working directory is gone")]
    NoDirectory(#[source] io::Error),
}

impl Request {
    /// Runs a program as given, without a shell, in this process's working directory.
    ///
    /// # Errors
    ///
    /// When there is no program, or the working directory has been removed.
    pub fn argv<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Result<Self, RequestError> {
        let argv: Vec<_> = argv.into_iter().map(|word| hearback_platform::from_os(&word.into())).collect();
        if argv.is_empty() {
            return Err(RequestError::Empty);
        }
        Self::here(CommandLine::Argv(argv))
    }

    /// Runs text in a shell, in this process's working directory.
    ///
    /// # Errors
    ///
    /// When the working directory has been removed.
    pub fn shell(text: impl Into<String>) -> Result<Self, RequestError> {
        Self::here(CommandLine::Shell(text.into()))
    }

    fn here(command: CommandLine) -> Result<Self, RequestError> {
        let cwd = std::env::current_dir().map_err(RequestError::NoDirectory)?;
        Ok(Self::new(command, &cwd))
    }

    /// Runs a command in a directory that has to be absolute: the supervisor is somewhere else.
    pub fn new(command: CommandLine, directory: &Path) -> Self {
        Self {
            command,
            cwd: hearback_platform::from_os(directory.as_os_str()),
            session: None,
            label: None,
            key: None,
            notify: NotifyPolicy::default(),
            sinks: Vec::new(),
            env: Vec::new(),
            durability: None,
        }
    }

    /// Runs it in `directory`, seen from this process's working directory.
    #[must_use]
    pub fn in_directory(mut self, directory: &Path) -> Self {
        let base = PathBuf::from(hearback_platform::to_os(&self.cwd));
        self.cwd = hearback_platform::from_os(base.join(directory).as_os_str());
        self
    }
}

/// A launch that went well.
pub type Launch = Launched;

/// One job as it was seen.
#[derive(Debug, Clone)]
pub struct Job {
    /// How it is shown to programs.
    pub view: JobView,
    /// Everything that was seen of it.
    pub seen: Observed,
}

impl Job {
    /// When it was asked for.
    pub fn launched_at(&self) -> Option<Timestamp> {
        self.seen.facts.spec.present().map(|spec| spec.launched_at_ms)
    }

    /// How long it has run, or ran; a running job's time is the wall's.
    pub fn ran(&self, now: Timestamp) -> Option<Duration> {
        if self.view.state.is_over() {
            return self.view.ran_ms.map(Duration::from_millis);
        }
        let started = self.seen.facts.target.present()?.at_ms;
        Some(Duration::from_millis(now.millis_since(started)))
    }
}

/// Which jobs to list.
#[derive(Debug, Clone, Default)]
pub struct Select {
    /// Only those of this session.
    pub session: Option<Session>,
    /// Only those in this state.
    pub state: Option<StateWord>,
    /// At most this many of history; all when nothing is said.
    pub history_max: Option<usize>,
}

/// What a listing found. A job that cannot be read hides no other.
#[derive(Debug, Default)]
pub struct Listing {
    /// Newest first.
    pub jobs: Vec<Job>,
    /// Jobs that could not be shown, and what could not be brought up to date.
    pub problems: Vec<(JobId, StoreError)>,
}

/// A store, and everything that can be done with it.
#[derive(Debug)]
pub struct Hearback {
    store: Store<Native>,
    ports: Arc<Ports>,
    waits: Waits,
    settings: Settings,
    supervisor: Option<PathBuf>,
}

impl Hearback {
    /// Opens a store, creating it if there is none.
    ///
    /// # Errors
    ///
    /// When the directory belongs to somebody else, may be written by others, or cannot be made.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let home = options.home.or_else(home::default_home).ok_or(OpenError::NoHome)?;
        let native = Native::default();
        let store = Store::open(native, &home)?;
        let ports = Ports::new(store.clone(), native, native);
        let settings = load_settings(&store);
        Ok(Self {
            store,
            ports: Arc::new(ports),
            waits: Waits::default(),
            settings,
            supervisor: options.supervisor,
        })
    }

    /// Where the store is.
    pub fn home(&self) -> &Path {
        self.store.home()
    }

    /// The settings in force, with what was passed over.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the wall clock says.
    pub fn now(&self) -> Timestamp {
        Native::default().wall()
    }

    /// Launches a job, and returns when its target runs or it is known why not.
    ///
    /// # Errors
    ///
    /// The error says whether anything is left of the job: see [`LaunchError`].
    pub fn launch(&self, request: &Request) -> Result<Launch, LaunchError> {
        let launcher = Launcher {
            program: self.supervisor_program().map_err(LaunchError::Spawn)?,
            home: self.home().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let request = launch::Request {
            command: request.command.clone(),
            cwd: request.cwd.clone(),
            session: request.session.clone(),
            label: request.label.clone(),
            key: request.key.clone(),
            notify: request.notify,
            sinks: request.sinks.clone(),
            env: request.env.clone(),
            durability: request.durability.unwrap_or(self.settings.durability),
        };
        launch::launch(&self.ports, &launcher, &request)
    }

    fn supervisor_program(&self) -> io::Result<PathBuf> {
        match &self.supervisor {
            Some(program) => Ok(program.clone()),
            // Executed again, a program that does not know the command would be started a second time instead.
            None if !supervisor::would_answer() => Err(io::Error::other(
                "this program would not supervise: call `hearback::supervise_if_asked` first thing in `main`",
            )),
            None => std::env::current_exe(),
        }
    }

    /// Finds the one job that `text`, an id or at least four characters of either end of it, names among those that
    /// `session` may see; without a session, among all.
    ///
    /// # Errors
    ///
    /// When there is none, or more than one.
    pub fn find(&self, text: &str, session: Option<&Session>) -> Result<JobId, FindError> {
        lookup::find(&self.store, text, session)
    }

    /// Brings one job up to date and shows it; nothing when there is no such job.
    ///
    /// # Errors
    ///
    /// When the job cannot be read. That it cannot be brought up to date, on a store that cannot be written, is no
    /// error: what is shown is true all the same.
    pub fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        match reconcile::job(&self.ports, id) {
            Err(error) if !error.is_unwritable() => return Err(error),
            _ => {}
        }
        Ok(self.store.observe(id)?.and_then(|seen| self.shown(seen)))
    }

    fn shown(&self, seen: Observed) -> Option<Job> {
        let log = hearback_platform::from_os(self.store.log_path(&seen.id).as_os_str());
        let view = JobView::new(&seen, &self.ports.processes.here(), log)?;
        Some(Job { view, seen })
    }

    /// Lists what is open, and the newest of history.
    ///
    /// # Errors
    ///
    /// When the store cannot be listed.
    pub fn jobs(&self, select: &Select) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        for id in self.store.open_jobs()?.iter().rev() {
            self.add(id, select, &mut listing);
        }
        let wanted = select.history_max.unwrap_or(usize::MAX);
        // History is read from its newest end, and further back only while too few of it were wanted.
        let (mut found, mut read, mut most) = (0, 0, wanted);
        while found < wanted {
            let past = self.store.past_jobs(most)?;
            for id in &past[read.min(past.len())..] {
                let is_new = listing.jobs.iter().all(|job| job.view.id != *id);
                found += usize::from(is_new && found < wanted && self.add(id, select, &mut listing));
            }
            if past.len() < most {
                break;
            }
            read = past.len();
            most = most.saturating_mul(2);
        }
        listing.jobs.sort_by(|a, b| b.view.id.cmp(&a.view.id));
        Ok(listing)
    }

    fn add(&self, id: &JobId, select: &Select, listing: &mut Listing) -> bool {
        let job = match self.job(id) {
            Ok(Some(job)) => job,
            Ok(None) => return false,
            Err(error) => {
                listing.problems.push((id.clone(), error));
                return false;
            }
        };
        let wanted = select.session.as_ref().is_none_or(|session| job.view.session.as_ref() == Some(session))
            && select.state.is_none_or(|state| job.view.state == state);
        if wanted {
            listing.jobs.push(job);
        }
        wanted
    }

    /// Opens what a job printed; nothing when it printed nothing yet.
    ///
    /// # Errors
    ///
    /// When the log is not a file of ours, or the system would not.
    pub fn log(&self, id: &JobId) -> Result<Option<Box<dyn ReadSeek>>, ReadError> {
        self.store.open_log(id)
    }

    /// Cuts what a job printed to a budget.
    ///
    /// # Errors
    ///
    /// When the log is not a file of ours, or the system would not.
    pub fn excerpt(&self, id: &JobId, head: u64, tail: u64) -> Result<Excerpt, ReadError> {
        match self.log(id)? {
            Some(mut log) => Ok(hearback_store::excerpt(&mut *log, head, tail)?),
            None => Ok(Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 }),
        }
    }

    /// Sleeps until a job is over.
    ///
    /// # Errors
    ///
    /// When the job is gone, or cannot be watched from here.
    pub fn wait(&self, id: &JobId) -> Result<Job, WaitError> {
        let seen = hearback_monitor::wait::until_over(&self.ports, id)?;
        self.shown(seen).ok_or_else(|| WaitError::Gone(id.clone()))
    }

    /// Waits for several jobs, but not longer than `within`, and calls `each` as they end. Tells whether the wait
    /// was over before its deadline.
    pub fn wait_for(
        &self,
        ids: &[JobId],
        until: Until,
        within: Option<Duration>,
        mut each: impl FnMut(&JobId, Result<Job, WaitError>),
    ) -> bool {
        self.waits.wait(&self.ports, ids, until, within, |id, answer| {
            each(id, answer.and_then(|seen| self.shown(seen).ok_or_else(|| WaitError::Gone(id.clone()))));
        })
    }

    /// Brings every open job up to date, or tells what would be done.
    ///
    /// # Errors
    ///
    /// When the open jobs cannot be listed.
    pub fn reconcile(&self, dry_run: bool) -> Result<reconcile::Report, StoreError> {
        if dry_run { reconcile::plan_all(&self.ports) } else { reconcile::all(&self.ports) }
    }

    /// Removes what was settled long enough ago, or tells what would be removed.
    ///
    /// # Errors
    ///
    /// When history cannot be listed.
    pub fn prune(&self, retention: prune::Retention, dry_run: bool) -> Result<prune::Report, StoreError> {
        if dry_run {
            let pruned = prune::plan_all(&self.ports, retention)?;
            return Ok(prune::Report { pruned, ..prune::Report::default() });
        }
        prune::all(&self.ports, retention)
    }
}

fn load_settings(store: &Store<Native>) -> Settings {
    let (path, read) = store.read_config();
    let env = |name: &str| std::env::var(name).ok();
    let (text, problem) = match read {
        Ok(bytes) => (String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned(), None),
        Err(error) => (String::new(), Some(format!("`{}` was ignored: {error}", path.display()))),
    };
    let mut settings = Settings::merge(&path, &text, env);
    settings.warnings.extend(problem);
    settings
}
