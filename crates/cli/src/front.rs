//! A store, and everything that can be done with it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hearback_core::message::Excerpt;
use hearback_core::port::disk::{Lock, ReadError};
use hearback_core::port::record::{RecordStore, StoreError};
use hearback_core::{
    CommandLine, Gap, HandsOff, JobId, JobView, LockState, Observed, OsText, Output, ProcessIdentity,
    Session, StateWord, Timestamp,
};
use hearback_monitor::kill::{self, KillError, Request as KillRequest};
use hearback_monitor::launch::{self, LaunchError, Launched, Launcher, Request};
use hearback_monitor::session::ActiveTurns;
use hearback_monitor::wait::{Until, WaitError, Waits};
use hearback_monitor::{Ports, answer, prune, reconcile};
use hearback_platform::Native;
use hearback_store::{Log, Piece, Store};

use crate::doctor::{Diagnosis, DoctorError};
use crate::lookup::{self, FindError};
use crate::settings::Settings;
use crate::sinks::Registry;
use crate::{doctor, home, supervisor};

const FOLLOW_BLOCK: usize = 64 * 1024;
/// That a supervisor was killed is heard a moment before its lock is free, and then perhaps not again.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

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

/// Why a request could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is nothing to run.
    #[error("there is nothing to run")]
    Empty,
    /// There is nothing to ask.
    #[error("the prompt is blank: there is nothing to ask")]
    BlankPrompt,
    /// The agent's arguments have a place for a prompt, and there is none.
    #[error("there is a place for the prompt, and no prompt")]
    NoPrompt,
    /// The working directory is unknown.
    #[error("the working directory is gone")]
    NoDirectory(#[source] io::Error),
}

/// Asks to run a program as given, without a shell, in this process's working directory.
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

/// Asks to run text in a shell, in this process's working directory.
///
/// # Errors
///
/// When the working directory has been removed.
pub fn shell(text: impl Into<String>) -> Result<Request, RequestError> {
    Ok(Request::new(CommandLine::Shell { shell: text.into(), program: None }, here()?))
}

fn here() -> Result<OsText, RequestError> {
    let cwd = std::env::current_dir().map_err(RequestError::NoDirectory)?;
    Ok(hearback_platform::from_os(cwd.as_os_str()))
}

/// One job as it was seen.
#[derive(Debug, Clone)]
pub struct Job {
    /// How it is shown to programs.
    pub view: JobView,
    /// Everything that was seen of it.
    pub seen: Observed,
}

impl Job {
    /// What its end says about its output, once there is one.
    fn printed(&self) -> Option<&Output> {
        self.seen.facts.end.present().map(|end| &end.output)
    }

    /// Whether it is one that has an answer when it is over.
    pub fn is_asked(&self) -> bool {
        self.seen.facts.spec.present().is_some_and(|spec| spec.answer)
    }

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

/// A part of what a job printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed<'a> {
    /// It is there.
    Bytes {
        /// Where it begins, counting every byte that was ever printed.
        at: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// It is not kept.
    Gap(Gap),
}

/// Why a job could not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// It has been removed meanwhile.
    #[error("job `{0}` is gone")]
    Gone(JobId),
    /// Its records cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What it printed cannot be read.
    #[error("what it printed cannot be read")]
    Log(#[from] ReadError),
}

/// What became of a job that was to be ended.
#[derive(Debug, Clone)]
pub struct Killed {
    /// The job as it is now: over.
    pub job: Job,
    /// It was over before anybody asked.
    pub was_over: bool,
    /// Who would not end.
    pub survivors: Vec<ProcessIdentity>,
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

impl Listing {
    /// Adds what was seen, if it is wanted; tells whether it was.
    fn add(&mut self, id: &JobId, select: &Select, seen: Result<Option<Job>, StoreError>) -> bool {
        let job = match seen {
            Ok(Some(job)) => job,
            Ok(None) => return false,
            Err(error) => {
                self.problems.push((id.clone(), error));
                return false;
            }
        };
        let wanted = select.session.as_ref().is_none_or(|session| job.view.session.as_ref() == Some(session))
            && select.state.is_none_or(|state| job.view.state == state);
        if wanted {
            self.jobs.push(job);
        }
        wanted
    }
}

/// A store, and everything that can be done with it.
#[derive(Debug)]
pub struct Hearback {
    pub(crate) store: Store<Native>,
    pub(crate) ports: Arc<Ports>,
    pub(crate) registry: Registry,
    /// The turns that this process runs.
    pub(crate) active_turns: ActiveTurns,
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
        let (path, read) = store.read_config();
        let settings = load_settings(&path, read);
        let registry = Registry {
            native,
            store: Some(store.clone()),
            configured: settings.sinks.clone(),
            secrets: settings.secrets_here(),
            program: options.supervisor.clone(),
        };
        Ok(Self {
            store,
            ports: Arc::new(ports),
            registry,
            active_turns: ActiveTurns::default(),
            waits: Waits::default(),
            settings,
            supervisor: options.supervisor,
        })
    }

    /// Finds out by trying what a store there could rely on, and what a job launched here would live through.
    ///
    /// Works where no store can be opened, and says why. Launches real jobs, in a store of their own that is gone
    /// afterwards, so this program has to call [`supervise_if_asked`](crate::supervise_if_asked) first thing, as it
    /// has to for every launch. Requests to end this process are heard meanwhile, and answered with an error.
    ///
    /// # Errors
    ///
    /// When this process was asked to end; nothing is left behind then, either.
    pub fn doctor(options: &Options) -> Result<Diagnosis, DoctorError> {
        doctor::examine(options)
    }

    /// Where the store is.
    pub fn home(&self) -> &Path {
        self.store.home()
    }

    /// Where the settings file is, or would be.
    pub fn settings_file(&self) -> PathBuf {
        hearback_store::config_path(self.home())
    }

    /// The settings in force, with what was passed over.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the wall clock says.
    pub fn now(&self) -> Timestamp {
        self.ports.clock.wall()
    }

    /// Launches a job, and returns when its target runs or it is known why not.
    ///
    /// # Errors
    ///
    /// The error says whether anything is left of the job: see [`LaunchError`].
    pub fn launch(&self, request: &Request) -> Result<Launched, LaunchError> {
        self.launch_and(request, &mut |_| {})
    }

    /// Launches a job for an owner who is going to wait for it: as long as the lock lives, nobody wakes the owner.
    /// See [`Hearback::reading`].
    ///
    /// # Errors
    ///
    /// The error says whether anything is left of the job: see [`LaunchError`].
    pub fn launch_to_wait(&self, request: &Request) -> Result<(Launched, Option<Lock>), LaunchError> {
        let mut reading = None;
        // Before anything runs: a job can be over, and its owner woken, before its launch has returned.
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
            program: self.supervisor_program().map_err(LaunchError::Spawn)?,
            home: self.home().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: self.settings.durability,
        };
        let mut request = request.clone();
        // The route is fixed now, whatever the settings say later.
        if request.sinks.is_empty() && request.session.is_some() {
            request.sinks.extend(self.settings.default_sink.clone());
        }
        request.withhold.extend(self.settings.secrets.iter().cloned());
        // A job that is launched in a turn is not part of it.
        for name in [crate::session::TURN_VARIABLE, crate::session::NOTE_VARIABLE] {
            request.env.insert(0, (name.into(), None));
        }
        // A relative path would name another store where the job runs.
        if let Some(set) = std::env::var_os(home::HOME_VARIABLE)
            && Path::new(&set).is_relative()
        {
            request.env.insert(0, (home::HOME_VARIABLE.into(), Some(self.home().into())));
        }
        launch::launch_and(&self.ports, &launcher, &request, recorded)
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

    /// Finds the job that `text` names among those that still run; one that is over only if none of them is meant.
    ///
    /// # Errors
    ///
    /// When there is none, or more than one.
    pub fn find_to_kill(&self, text: &str, session: Option<&Session>) -> Result<JobId, FindError> {
        lookup::find_open_first(&self.store, text, session)
    }

    /// Ends a job and everything that it started. Safe to repeat: a job that is over is only looked at.
    ///
    /// # Errors
    ///
    /// When it cannot be shown that the job is over.
    pub fn kill(&self, id: &JobId, request: &KillRequest) -> Result<Killed, KillError> {
        let report = kill::kill(&self.ports, &self.waits, id, request)?;
        let job = self.shown(report.seen).ok_or_else(|| WaitError::Gone(id.clone()))?;
        Ok(Killed { job, was_over: report.was_over, survivors: report.survivors })
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
        let job = self.look(id)?;
        if let Some(job) = &job {
            self.nudge(&job.seen);
        }
        Ok(job)
    }

    pub(crate) fn supervisor_program(&self) -> io::Result<PathBuf> {
        supervisor::program(self.supervisor.as_deref())
    }

    /// Shows one job as it is recorded, and changes nothing; nothing when there is no such job.
    ///
    /// # Errors
    ///
    /// When the job cannot be read.
    pub fn look(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.store.observe(id)?.and_then(|seen| self.shown(seen)))
    }

    fn shown(&self, mut seen: Observed) -> Option<Job> {
        let elsewhere = self.ports.hands_off(&seen) == Some(HandsOff::OtherStore);
        if elsewhere {
            seen.locks.alive = LockState::Held;
        }
        let log = hearback_platform::from_os(self.store.log_path(&seen.id).as_os_str());
        let mut view = JobView::new(&seen, &self.ports.here, log)?;
        answer::complete(&self.ports, &seen, &mut view);
        view.paused = view.state == StateWord::Running
            && seen.facts.target.present().is_some_and(|t| self.ports.processes.is_stopped(&t.process));
        if elsewhere {
            view.notes
                .push("its supervisor works in another store, of which this is a copy: left alone".into());
        }
        let view = self.registry.masked_view(view);
        Some(Job { view, seen })
    }

    /// Lists what is open, and the newest of history.
    ///
    /// # Errors
    ///
    /// When the store cannot be listed.
    pub fn jobs(&self, select: &Select) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        let mut looked_at = HashSet::new();
        for id in self.store.open_jobs()? {
            listing.add(&id, select, self.job(&id));
            looked_at.insert(id);
        }
        let wanted = select.history_max.unwrap_or(usize::MAX);
        // History is read from its newest end, and further back only while too few of it were wanted.
        let (mut found, mut most) = (0, wanted);
        loop {
            let past = self.store.past_jobs(most)?;
            let all_of_it = past.len() < most;
            for id in past {
                // A job may have moved since it was seen among the open ones. What is in history needs no repair.
                if found < wanted && looked_at.insert(id.clone()) {
                    found += usize::from(listing.add(&id, select, self.look(&id)));
                }
            }
            if all_of_it || found >= wanted {
                break;
            }
            most = most.saturating_mul(2);
        }
        listing.jobs.sort_by(|a, b| b.view.id.cmp(&a.view.id));
        Ok(listing)
    }

    /// Opens what a job printed; nothing when it printed nothing yet.
    ///
    /// # Errors
    ///
    /// When the log is not a file of ours, or the system would not.
    pub fn log(&self, job: &Job) -> Result<Option<Log>, ReadError> {
        self.store.open_log(&job.view.id, job.printed().cloned())
    }

    /// Hands everything that a job prints from `from` on to `each`, and returns when the job is over and all of it
    /// was seen. Sleeps while nothing is printed.
    ///
    /// # Errors
    ///
    /// When the job cannot be read, or `each` fails.
    pub fn follow<E: From<FollowError>>(
        &self,
        id: &JobId,
        from: u64,
        mut each: impl FnMut(Printed<'_>) -> Result<(), E>,
    ) -> Result<Job, E> {
        let mut at = from;
        let mut log: Option<Log> = None;
        let mut block = vec![0; FOLLOW_BLOCK];
        // Watched before it is looked at, so that nothing can happen unseen between the two.
        let mut watch = self.store.watch(id).map_err(FollowError::from)?;
        loop {
            let job = self.job(id).map_err(FollowError::from)?;
            let job = job.ok_or_else(|| FollowError::Gone(id.clone()))?;
            // With the end there is a record of what is missing, and perhaps a file more.
            if log.is_none() || job.printed().is_some() {
                log = self.log(&job).map_err(FollowError::from)?;
            }
            while let Some(log) = &mut log {
                match log.read(at, &mut block).map_err(|error| FollowError::Log(error.into()))? {
                    Piece::Bytes(n) => {
                        each(Printed::Bytes { at, bytes: &block[..n] })?;
                        at += n as u64;
                    }
                    Piece::Gap(gap) => {
                        each(Printed::Gap(gap))?;
                        at = gap.end;
                    }
                    Piece::End => break,
                }
            }
            match &mut watch {
                Some(watch) if !job.view.state.is_over() => watch.wait(LOOK_AT_LEAST_EVERY),
                _ => return Ok(job),
            }
        }
    }

    /// Cuts what a job printed to a budget.
    ///
    /// # Errors
    ///
    /// When the log is not a file of ours, or the system would not.
    pub fn excerpt(&self, job: &Job, head: u64, tail: u64) -> Result<Excerpt, ReadError> {
        match self.log(job)? {
            Some(mut log) => Ok(log.excerpt(head, tail)?),
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

/// What is set by the file at `path`, of which this was read, and by the environment.
pub(crate) fn load_settings(path: &Path, read: Result<Option<Vec<u8>>, ReadError>) -> Settings {
    let env = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let (text, problem) = match read {
        Ok(bytes) => (String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned(), None),
        Err(error) => (String::new(), Some(format!("`{}` was ignored: {error}", path.display()))),
    };
    let mut settings = Settings::merge(path, &text, env);
    settings.warnings.extend(problem);
    settings
}
