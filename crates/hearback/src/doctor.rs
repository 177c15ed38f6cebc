//! Finding out what this machine can do, by trying it in a temporary folder.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::agents::AGENTS;
use hearback_core::finding::{
    AgentFindings, DiskFindings, Home, LauncherEnd, MachineFindings, NamedBy, StoreFindings, Tried,
};
use hearback_core::port::clock::Clock;
use hearback_core::port::disk::{Disk, Flush, Lock, LockMode, Publish, Wait};
use hearback_core::port::process::{Presence, ProcessControl};
use hearback_core::port::record::{Housekeeping, JobLock, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::{
    BegunBy, FollowUpState, JobId, KilledBy, LockState, Outcome, ProcessIdentity, delivery_id,
};
use hearback_monitor::HostState;
use hearback_monitor::delivery::Due;
use hearback_monitor::doctor::{self, Check};
use hearback_platform::Native;
use hearback_platform::StopWatch;
use hearback_platform::probe::{self, Rehearsal, RehearsalRequest};

use crate::open::load_settings;
use crate::rehearsal::{self, TrialPaths};
use crate::setup::{Setup, SetupError, SetupScope, SetupState};
use crate::sinks::{Registry, SinksInCode};
use crate::{Hearback, Job, KillRequest, Options, Settings, home, supervisor};

/// How long to wait for the launcher: longer than a launch waits for its supervisor.
const HEAR_WITHIN: Duration = Duration::from_secs(15);
/// How long to wait for what takes moments, except on an overloaded machine.
const SOON: Duration = Duration::from_secs(5);
/// The grace of a job that needs no time to clean up.
const GRACE: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// One block of every known file system.
const BLOCK: [u8; 4096] = [b'x'; 4096];

/// The result of `doctor`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Where the store is, or would be.
    pub home: Option<PathBuf>,
    /// The settings in force there, with warnings about invalid ones.
    pub settings: Settings,
    /// All checks, always in the same order.
    pub checks: Vec<Check>,
}

/// Why there is no diagnosis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// This process was requested to terminate.
    #[error("interrupted; nothing was left behind")]
    Interrupted,
}

pub(crate) fn examine(options: &Options) -> Result<Diagnosis, DoctorError> {
    // Without it, an interruption leaves a folder behind, which prune removes.
    let stop = StopWatch::new().ok();
    let path = match &options.home {
        Some(path) => Ok(Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()))),
        None => home::default_home(),
    };
    let (path, home) = match path {
        Ok(Some(path)) => (Some(path.clone()), probe::home(&path)),
        Ok(None) => (None, Home::Unnamed),
        Err(relative) => {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "HEARBACK_HOME has to be an absolute path");
            (Some(relative.0.clone()), Home::Refused(relative.0, why))
        }
    };
    let settings = settings(&home);
    let ground = match &home {
        Home::Ours(path) => Some(path.as_path()),
        // What works in this folder works in a store that is created there.
        Home::Missing(path) => path.ancestors().skip(1).find(|above| above.is_dir()),
        Home::Unnamed | Home::Refused(..) => None,
    };
    let trial_folder = match ground {
        Some(ground) => Tried::from(TrialFolder::make(ground)),
        None => Tried::untried("there is no usable store"),
    };
    let written = match &trial_folder {
        Tried::Worked(_) => Tried::Worked(()),
        Tried::Failed(error) => Tried::Failed(io::Error::new(error.kind(), error.to_string())),
        Tried::Untried(why) => Tried::untried(why),
    };
    let mut checks = vec![doctor::judge_store(&home, &written)];
    let trial_folder = if let Tried::Worked(trial_folder) = trial_folder { Some(trial_folder) } else { None };

    let (ends, locks) = try_detachment(trial_folder.as_ref(), options.supervisor.as_deref(), stop.as_ref())?;
    let disk = try_disk(ground, trial_folder.as_ref(), locks);
    checks.extend(doctor::judge_disk(&disk, settings.durability));
    checks.extend(doctor::judge_machine(&MachineFindings {
        launcher_ends: ends,
        units: probe::units(),
        logout: probe::logout(),
        identity: Native::default().me().into(),
        pids_are_the_machines: probe::pids_are_the_machines(),
        oom_score: probe::oom_score(),
        descriptors: probe::descriptors(),
    }));
    checks.extend(doctor::judge_delivery(host(&home, options), &obstacles(&settings)));
    let (agents, unreadable) = agents(options);
    checks.push(doctor::judge_agents(&agents, &unreadable));
    checks.extend(doctor::judge_content(&settings.warnings, &look_around(&home, options)));
    drop(trial_folder);
    match stop.is_some_and(|stop| stop.was_asked()) {
        true => Err(DoctorError::Interrupted),
        false => Ok(Diagnosis { home: path, settings, checks }),
    }
}

/// What is set up for each agent, for this user and for the project in this directory; and what could not be looked at.
fn agents(options: &Options) -> (Vec<AgentFindings>, Vec<String>) {
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    let Ok(program) = supervisor::program(options.supervisor.as_deref()) else { return (found, unreadable) };
    let scopes = [(SetupScope::User, "", ""), (SetupScope::Project, " (this project)", " --project")];
    for (agent, (scope, whose, option)) in AGENTS.iter().flat_map(|agent| scopes.map(|scope| (agent, scope)))
    {
        let setup = match Setup::of(agent.name, scope, &program) {
            Ok(setup) => setup,
            Err(SetupError::Nothing(_)) => continue,
            Err(error) => {
                let why = rehearsal::explain(&error);
                // An unknown home directory is the same for all.
                if !unreadable.contains(&why) {
                    unreadable.push(why);
                }
                continue;
            }
        };
        let of = |state| setup.files.iter().filter(move |file| file.state == state);
        found.push(AgentFindings {
            name: format!("{}{whose}", agent.name),
            arguments: format!("{}{option}", agent.name),
            current: of(SetupState::Current).count(),
            absent: of(SetupState::Absent).count(),
            outdated: of(SetupState::Outdated).map(|file| file.path.clone()).collect(),
        });
    }
    (found, unreadable)
}

/// Whether a host serves the store. What cannot be looked at counts as absent. Creates nothing.
fn host(home: &Home, options: &Options) -> HostState {
    let Home::Ours(home) = home else { return HostState::Absent };
    let lock = Native::default().probe(&hearback_store::monitor_lock_path(home));
    if !lock.is_ok_and(|lock| lock == LockState::Held) {
        return HostState::Absent;
    }
    let open = Hearback::open(options.clone().home(home).unrestricted());
    open.ok().and_then(|hearback| hearback.monitor_state().ok()).unwrap_or(HostState::Answers)
}

/// What is in the store. Changes nothing.
fn look_around(home: &Home, options: &Options) -> Tried<StoreFindings> {
    let home = match home {
        Home::Ours(home) if hearback_store::is_store(&Native::default(), home) => home,
        Home::Ours(_) | Home::Missing(_) => return Tried::Worked(StoreFindings::default()),
        Home::Unnamed | Home::Refused(..) => return Tried::untried("there is no usable store"),
    };
    let open = Hearback::open(options.clone().home(home).unrestricted());
    let found = open.map_err(|error| io::Error::other(rehearsal::explain(&error))).and_then(|hearback| {
        hearback.look_around().map_err(|error| io::Error::other(rehearsal::explain(&error)))
    });
    found.into()
}

impl Hearback {
    fn look_around(&self) -> Result<StoreFindings, StoreError> {
        let mut found = StoreFindings { strays: self.store.strays()?, ..StoreFindings::default() };
        let open = self.store.open_jobs()?;
        found.open_jobs = open.len();
        for id in open {
            let job = match self.look(&id) {
                Ok(Some(job)) => job,
                Ok(None) => continue,
                Err(error) => {
                    found.unreadable.push((id.to_string(), error.to_string()));
                    continue;
                }
            };
            found.unswept.extend(unswept(&job).map(|what| (id.clone(), what)));
            let follow_up = &job.view.follow_up;
            if follow_up.state == FollowUpState::DeadLetter {
                let error = follow_up.error.clone().unwrap_or_else(|| "its record cannot be read".into());
                found.dead_letters.push((format!("follow-up {}", delivery_id(&id)), error));
            } else if self.waits_for_host(&job.seen, &job.view) {
                found.for_hosts.push(format!("follow-up {}", delivery_id(&id)));
            } else if self.is_undelivered(&job).unwrap_or(false) {
                found.undelivered.push(id);
            }
        }
        let sessions = self.store.sessions().unwrap_or_else(|error| {
            found.unreadable.push(("sessions".into(), error.to_string()));
            Vec::new()
        });
        for session in sessions {
            let seen = match self.see_session(&session) {
                Ok(seen) => seen,
                Err(error) => {
                    found.unreadable.push((session.to_string(), error.to_string()));
                    continue;
                }
            };
            if seen.waits_for_host() {
                found.for_hosts.push(format!("messages to session `{session}`"));
            }
            for (n, message) in seen.open_messages().filter(|(_, message)| message.is_dead_letter()) {
                let error = message.last_result().map_or("", |result| &result.error);
                let error = self.secrets().masked(error);
                found.dead_letters.push((format!("message {n} to session `{session}`"), error));
            }
        }
        Ok(found)
    }

    /// Whether a follow-up that goes to a sink is due, and neither a monitor, nor its supervisor, nor a deliverer is
    /// there.
    fn is_undelivered(&self, job: &Job) -> Result<bool, StoreError> {
        let seen = &job.seen;
        let is_pushed = seen.facts.spec.present().is_some_and(|spec| !spec.sinks.is_empty());
        // An attempt whose process died leaves a lease behind.
        let is_open = matches!(job.view.follow_up.state, FollowUpState::Pending | FollowUpState::Leased);
        if !is_pushed || !is_open || self.is_monitored() {
            return Ok(false);
        }
        let supervisor = match seen.facts.begin.present().map(|begin| &begin.by) {
            Some(BegunBy::Supervisor(supervisor)) => self.ports.processes.presence(supervisor),
            _ => Presence::Gone,
        };
        // A shared lock makes no file.
        let deliverer = self.ports.store.lock(&seen.id, JobLock::Deliverer, LockMode::Shared, Wait::Try)?;
        let is_due = !matches!(self.deliverer().due(seen)?, Due::Never | Due::In(_));
        Ok(is_due && supervisor != Presence::Same && deliverer.is_some())
    }
}

/// What may still run of a job that is recorded as lost.
fn unswept(job: &Job) -> Option<String> {
    if let Some(place) = job.seen.out_of_sight() {
        return Some(format!("in {place}, which cannot be seen from where its loss was recorded"));
    }
    let is_lost = matches!(job.view.outcome, Some(Outcome::Lost { .. }));
    let pids: Vec<_> = job.view.survivors.iter().map(ToString::to_string).collect();
    (is_lost && !pids.is_empty()).then(|| format!("pid {}", pids.join(", ")))
}

/// The configured sinks, each with why it cannot be run, if so.
fn obstacles(settings: &Settings) -> Vec<(String, Option<String>)> {
    let registry = Registry {
        native: Native::default(),
        store: None,
        in_code: SinksInCode::default(),
        configured: settings.sinks.clone(),
        invalid: settings.invalid_sinks.clone(),
        secrets: settings.secrets_here(),
        program: None,
    };
    let mut names: Vec<_> = settings.sinks.keys().cloned().collect();
    let named = [&settings.default_sink, &settings.notice_sink].into_iter().flatten();
    names.extend(named.filter(|name| !settings.sinks.contains_key(*name)).cloned());
    let obstacle = |name: &str| match registry.settings(name) {
        Some(settings) => settings.check(registry.native),
        None => Some(registry.missing(name).to_string()),
    };
    names.into_iter().map(|name| (name.clone(), obstacle(&name))).collect()
}

fn settings(home: &Home) -> Settings {
    match home {
        Home::Ours(home) => {
            let path = hearback_store::config_path(home);
            let read = Native::default().read_trusted(&path, hearback_store::MAX_CONFIG_BYTES);
            load_settings(&path, read)
        }
        Home::Missing(path) | Home::Refused(path, _) => {
            load_settings(&hearback_store::config_path(path), Ok(None))
        }
        Home::Unnamed => load_settings(Path::new(""), Ok(None)),
    }
}

/// A folder to try things in, removed at the end.
struct TrialFolder(PathBuf);

impl TrialFolder {
    /// Makes one below `ground`, in which a file can be written.
    fn make(ground: &Path) -> io::Result<Self> {
        let native = Native::default();
        let trial_folder =
            Self(ground.join(hearback_store::trial_folder_name(native.wall(), native.nonce())));
        let made = native.make_dir(&trial_folder.0)?;
        let written = native.publish_new(&trial_folder.0.join("block"), &BLOCK, Flush::No)?;
        match (made, written) {
            (Publish::New, Publish::New) => Ok(trial_folder),
            _ => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        }
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        let native = Native::default();
        let deadline = native.awake() + SOON;
        // A process that is just ending may have a file open in there, and so may a virus scanner. What cannot be
        // removed now, prune removes an hour later.
        let in_the_way = [io::ErrorKind::PermissionDenied, io::ErrorKind::DirectoryNotEmpty];
        while native.remove(&self.0).is_err_and(|error| in_the_way.contains(&error.kind()))
            && native.awake() < deadline
        {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}

fn try_disk(ground: Option<&Path>, trial_folder: Option<&TrialFolder>, locks: Tried) -> DiskFindings {
    fn untried<T>() -> Tried<T> {
        Tried::untried("nothing can be written to the store")
    }
    let (file_system, room) = match ground {
        Some(ground) => (probe::file_system(ground), probe::room(ground)),
        None => (untried(), untried()),
    };
    match trial_folder {
        None => DiskFindings {
            file_system,
            room,
            publish: untried(),
            flush: untried(),
            locks: untried(),
            holes: untried(),
            bell: untried(),
            watch: untried(),
        },
        Some(TrialFolder(folder)) => DiskFindings {
            file_system,
            room,
            publish: try_publish(folder),
            flush: try_flush(folder).into(),
            locks,
            holes: probe::holes(folder),
            bell: probe::bell(folder),
            watch: try_watch(folder),
        },
    }
}

/// Tries what a monitor does: one watch for many folders.
fn try_watch(folder: &Path) -> Tried {
    match Native::default().watch_folders() {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Tried::untried("this system does not report them: a monitor looks from time to time")
        }
        watch => watch.and_then(|mut watch| watch.add(folder)).into(),
    }
}

fn try_publish(folder: &Path) -> Tried<NamedBy> {
    let (native, path) = (Native::default(), folder.join("published"));
    let twice = || -> io::Result<bool> {
        let first = native.publish_new(&path, b"first", Flush::No)?;
        let second = native.publish_new(&path, b"second", Flush::No)?;
        let kept = native.read(&path, 100).map_err(io::Error::other)?;
        Ok((first, second) == (Publish::New, Publish::Exists) && kept.as_deref() == Some(b"first"))
    };
    match twice() {
        Ok(true) => probe::naming(folder),
        Ok(false) => Tried::Failed(io::Error::other("a file was replaced by a second one of its name")),
        Err(error) => Tried::Failed(error),
    }
}

fn try_flush(folder: &Path) -> io::Result<()> {
    let native = Native::default();
    let _ = native.publish_new(&folder.join("flushed"), &BLOCK, Flush::Power)?;
    native.flush(folder)
}

/// The outcome of a job after each end of its launcher, and what the death of the launcher showed about locks.
type Detachment = (Vec<(LauncherEnd, Tried<Outcome>)>, Tried);

/// Launches jobs in a temporary store, ends each launcher in another way, and checks whether its job survived.
fn try_detachment(
    trial_folder: Option<&TrialFolder>,
    program: Option<&Path>,
    stop: Option<&StopWatch>,
) -> Result<Detachment, DoctorError> {
    const LAUNCHER_ENDS: [LauncherEnd; 3] =
        [LauncherEnd::Parent, LauncherEnd::Terminal, LauncherEnd::ProcessGroup];
    // If the store cannot be written, detachment can still be tried in another folder.
    let elsewhere =
        if trial_folder.is_none() { Some(TrialFolder::make(&std::env::temp_dir())) } else { None };
    let folder = match (trial_folder, &elsewhere) {
        (Some(trial_folder), _) | (None, Some(Ok(trial_folder))) => &trial_folder.0,
        (None, Some(Err(error))) => {
            let why = format!("there is no folder to launch a job in: {error}");
            let ends = LAUNCHER_ENDS.map(|how| (how, Tried::untried(&*why)));
            return Ok((ends.into(), Tried::untried(why)));
        }
        (None, None) => unreachable!("without a trial_folder, another one is made"),
    };
    let mut locks = match try_locks(folder) {
        Ok(()) => Tried::untried(
            "they seem to work, but no launcher could be killed to see whether its lock is released",
        ),
        Err(error) => Tried::Failed(error),
    };
    let mut ends = Vec::new();
    match Trial::build(folder, program) {
        Ok(trial) => {
            for how in LAUNCHER_ENDS {
                ends.push((how, trial.rehearse(how, &mut locks)));
                if stop.is_some_and(StopWatch::was_asked) {
                    return Err(DoctorError::Interrupted);
                }
            }
        }
        Err(error) => {
            let again = || io::Error::new(error.kind(), error.to_string());
            ends.extend(LAUNCHER_ENDS.map(|how| (how, Tried::Failed(again()))));
        }
    }
    Ok((ends, locks))
}

/// The store and the locks of the trials.
struct Trial {
    program: PathBuf,
    hearback: Hearback,
    paths: TrialPaths,
    /// While it is held, the jobs of the trials run.
    keep_alive: Option<Lock>,
}

impl Trial {
    fn build(folder: &Path, program: Option<&Path>) -> io::Result<Self> {
        let paths = TrialPaths {
            store: folder.join("store"),
            lock: folder.join("lock"),
            keep_alive: folder.join("keep_alive"),
        };
        let program = supervisor::program(program)?;
        let options = Options::default().home(&paths.store).supervisor(&program).unrestricted();
        let hearback =
            Hearback::open(options).map_err(|error| io::Error::other(rehearsal::explain(&error)))?;
        let keep_alive = Native::default().lock(&paths.keep_alive, LockMode::Exclusive, Wait::Try)?;
        Ok(Self { program, hearback, paths, keep_alive })
    }

    fn rehearse(&self, how: LauncherEnd, locks: &mut Tried) -> Tried<Outcome> {
        let request =
            RehearsalRequest { program: self.program.clone(), arguments: self.paths.launcher(), how };
        let mut rehearsal = match Rehearsal::begin(&request) {
            Tried::Worked(rehearsal) => rehearsal,
            Tried::Failed(error) => return Tried::Failed(error),
            Tried::Untried(why) => return Tried::Untried(why),
        };
        let outcome = rehearsal.hear(HEAR_WITHIN).and_then(|line| {
            let before = self.lock_state();
            rehearsal.end_launcher(SOON)?;
            if how == LauncherEnd::Parent {
                *locks = held_then_free(before, self.lock_state()).into();
            }
            self.end(&rehearsal::parse_report(&line).map_err(io::Error::other)?)
        });
        outcome.into()
    }

    fn lock_state(&self) -> io::Result<LockState> {
        Native::default().probe(&self.paths.lock)
    }

    /// Kills the job, and returns how it ended.
    fn end(&self, id: &JobId) -> io::Result<Outcome> {
        let mut request = KillRequest::new(KilledBy::Person);
        request.grace = Some(GRACE);
        let killed = self.hearback.kill(id, &request);
        let killed = killed.map_err(|error| io::Error::other(rehearsal::explain(&error)))?;
        killed.job.view.outcome.ok_or_else(|| io::Error::other("the job did not end when it was terminated"))
    }

    /// The supervisors of the jobs of this trial.
    fn supervisors(&self) -> Vec<ProcessIdentity> {
        let listing = self.hearback.jobs(&crate::Select::default()).unwrap_or_default();
        let supervisor = |job: crate::Job| match job.seen.facts.begin.present().map(|begin| &begin.by) {
            Some(BegunBy::Supervisor(identity)) => Some(identity.clone()),
            _ => None,
        };
        listing.jobs.into_iter().filter_map(supervisor).collect()
    }
}

impl Drop for Trial {
    /// Waits until no supervisor uses the store any more: it moves its job to history after the end was reported.
    fn drop(&mut self) {
        self.keep_alive = None;
        let native = Native::default();
        let deadline = native.awake() + SOON;
        for supervisor in self.supervisors() {
            while native.presence(&supervisor) == Presence::Same && native.awake() < deadline {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
    }
}

/// Takes a lock and releases it, and probes it in between.
fn try_locks(folder: &Path) -> io::Result<()> {
    let (native, path) = (Native::default(), folder.join("locked"));
    let lock = native.lock(&path, LockMode::Exclusive, Wait::Try)?;
    let held = native.probe(&path);
    drop(lock);
    held_then_free(held, native.probe(&path))
}

fn held_then_free(before: io::Result<LockState>, after: io::Result<LockState>) -> io::Result<()> {
    match (before?, after?) {
        (LockState::Held, LockState::Free) => Ok(()),
        (LockState::Free, _) => Err(io::Error::other("a lock that is held is not seen by others")),
        (LockState::Held, LockState::Held) => Err(io::Error::other("a lock outlived its holder")),
    }
}
