//! Launching: record first, spawn second, confirm third.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::executor::UnknownExecutor;
use hearback_core::port::process::{LaunchAnswer, LaunchSignal, SupervisorReply, SupervisorRequest};
use hearback_core::port::record::{JobLock, KeyClaim, StoreError};
use hearback_core::{
    Begin, BegunBy, CommandLine, Durability, ExecutorName, Extra, FORMAT, Fact, JobId, JobState, Key, Limits,
    LockState, LockView, LogCap, NotifyPolicy, Observed, OsText, Outcome, Read, Receipt, ReceiptHow, Session,
    Spec, StartError, Timestamp, fold,
};
use tracing::{debug, info, warn};

use crate::{Ports, reconcile};

/// How long a launcher waits for word that the target has started.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);
/// How often a launch begins anew because somebody pruned its folder under it.
const TRIES: usize = 16;

/// How long a job may run when nothing else is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// What to launch.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to run.
    pub command: CommandLine,
    /// Where to run it.
    pub cwd: OsText,
    /// Which executor runs it.
    pub executor: ExecutorName,
    /// Its owner.
    pub session: Option<Session>,
    /// A name for people.
    pub label: Option<String>,
    /// Makes the launch repeatable.
    pub key: Option<Key>,
    /// When the owner is told.
    pub notify: NotifyPolicy,
    /// Where the follow-up goes.
    pub sinks: Vec<String>,
    /// How many follow-ups led to this launch.
    pub depth: u32,
    /// Whether it ends with the host: a monitor that restarts or stops ends it first.
    pub bound: bool,
    /// It has an answer, which is worked out when it is over.
    pub answer: bool,
    /// Names of variables that hold secrets, which the target does not inherit.
    pub withhold: Vec<String>,
    /// Changes to the environment that the target inherits.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// When and how it is ended; by default after [`DEFAULT_TIMEOUT`].
    pub limits: Limits,
    /// What has to survive a power cut; by default what the launcher says.
    pub durability: Option<Durability>,
}

impl Request {
    /// Asks to run `command` in `cwd`, which has to be absolute, and for nothing else.
    pub fn new(command: CommandLine, cwd: OsText) -> Self {
        Self {
            command,
            cwd,
            executor: ExecutorName::default(),
            session: None,
            label: None,
            key: None,
            notify: NotifyPolicy::default(),
            sinks: Vec::new(),
            depth: 0,
            bound: false,
            answer: false,
            withhold: Vec::new(),
            env: Vec::new(),
            limits: Limits {
                timeout_ms: Some(DEFAULT_TIMEOUT.as_secs() * 1000),
                log_cap: Some(LogCap::DEFAULT),
                ..Limits::default()
            },
            durability: None,
        }
    }
}

impl Request {
    /// What is recorded of it, as far as it says so itself.
    pub fn spec(&self, id: &JobId, session: Option<Session>, now: Timestamp) -> Spec {
        Spec {
            format: FORMAT,
            id: id.clone(),
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            executor: self.executor.clone(),
            session,
            label: self.label.clone(),
            key: self.key.clone(),
            notify: self.notify,
            sinks: self.sinks.clone(),
            withhold: self.withhold.clone(),
            depth: self.depth,
            bound: self.bound,
            answer: self.answer,
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

/// Who launches, and what becomes the supervisor.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The program that, executed again, supervises.
    pub program: PathBuf,
    /// The store's folder.
    pub home: PathBuf,
    /// The version that is written into every spec.
    pub version: String,
    /// What has to survive a power cut, when a request does not say.
    pub durability: Durability,
}

/// A launch that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launched {
    /// It runs.
    Started {
        /// The job.
        id: JobId,
        /// The target's pid, for people, if it runs on this machine.
        pid: Option<u32>,
        /// What it ends with, if it is not wholly on its own: see [`Target`](hearback_core::Target).
        bound_to: Option<String>,
    },
    /// It was launched before, under the same key.
    Known {
        /// The job.
        id: JobId,
    },
    /// It was killed before its target was started, which is recorded as its outcome.
    Killed {
        /// The job.
        id: JobId,
    },
}

impl Launched {
    /// The job, new or known.
    pub fn id(&self) -> &JobId {
        match self {
            Self::Started { id, .. } | Self::Known { id } | Self::Killed { id } => id,
        }
    }
}

/// A launch that did not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// It could not be recorded. Nothing runs, and nothing is left behind.
    #[error("the job could not be recorded, so nothing was run")]
    Store(#[from] StoreError),
    /// This program cannot run the job. Nothing runs, and nothing is recorded.
    #[error(transparent)]
    UnknownExecutor(#[from] UnknownExecutor),
    /// The supervisor could not be started. Nothing runs, and nothing is left behind.
    #[error("the supervisor could not be started, so nothing was run")]
    Spawn(#[source] std::io::Error),
    /// The supervisor could not do its part. Nothing runs, and nothing is left behind.
    #[error("the job could not be recorded, so nothing was run: {0}")]
    Refused(String),
    /// The key names a job that does something else.
    #[error(
        "key `{key}` already names job `{id}`, which is another command, elsewhere, or another kind of job"
    )]
    KeyTaken {
        /// The key.
        key: Key,
        /// Its job.
        id: JobId,
    },
    /// The command could not be started. The job is recorded, and over.
    #[error("job `{id}` could not be started")]
    FailedToStart {
        /// The job.
        id: JobId,
        /// Why.
        #[source]
        error: StartError,
    },
    /// The supervisor has not answered in time. The job is recorded, and may run.
    #[error("job `{id}` is recorded, but its start was not confirmed within {} s", CONFIRM_WITHIN.as_secs())]
    Unconfirmed {
        /// The job.
        id: JobId,
    },
    /// The supervisor ended without an answer. The job is recorded as lost.
    #[error("job `{id}` is lost: its supervisor ended before it answered")]
    SupervisorDied {
        /// The job.
        id: JobId,
    },
}

/// A job under its own id, held by its launcher.
struct Claim {
    id: JobId,
    launching: Lock,
    /// Whether an earlier launcher has said what to run already.
    recorded: bool,
}

/// Launches a job, and returns when its target runs or it is known why not.
///
/// # Errors
///
/// The error says whether anything is left: see [`LaunchError`].
pub fn launch(ports: &Ports, launcher: &Launcher, request: &Request) -> Result<Launched, LaunchError> {
    launch_and(ports, launcher, request, &mut |_| {})
}

/// The same, with something to be done when the job is recorded and nothing of it runs yet.
///
/// # Errors
///
/// The error says whether anything is left: see [`LaunchError`].
pub fn launch_and(
    ports: &Ports,
    launcher: &Launcher,
    request: &Request,
    recorded: &mut dyn FnMut(&JobId),
) -> Result<Launched, LaunchError> {
    ports.executors.find(&request.executor)?;
    let claim = fresh(ports)?;
    let Some(key) = &request.key else { return start(ports, launcher, request, claim, recorded) };
    match ports.store.claim_key(request.session.as_ref(), key, &claim.id) {
        Err(error) => {
            clean_up(ports, claim);
            Err(error.into())
        }
        Ok(KeyClaim::Ours) => start(ports, launcher, request, claim, recorded),
        Ok(KeyClaim::Taken(other)) => {
            clean_up(ports, claim);
            match adopt(ports, request, key, other)? {
                Adopted::Known(id) => Ok(Launched::Known { id }),
                Adopted::Unfinished(claim) => start(ports, launcher, request, claim, recorded),
            }
        }
    }
}

fn fresh(ports: &Ports) -> Result<Claim, LaunchError> {
    for _ in 0..TRIES {
        let id = ports.store.create(ports.clock.wall())?;
        match hold(ports, &id) {
            Ok(launching) => return Ok(Claim { id, launching, recorded: false }),
            // Somebody took the empty folder for a leftover before we had locked it.
            Err(error) if error.is_gone() => {}
            Err(error) => {
                forgive(&id, "empty folder not removed", ports.store.discard(&id));
                return Err(error.into());
            }
        }
    }
    Err(LaunchError::Refused("its folder was removed again and again".into()))
}

fn hold(ports: &Ports, id: &JobId) -> Result<Lock, StoreError> {
    let lock = ports.store.lock(id, JobLock::Launch, LockMode::Exclusive, Wait::Block)?;
    Ok(lock.expect("a lock that was waited for is held"))
}

enum Adopted {
    /// The job is there.
    Known(JobId),
    /// Its launcher died before anybody had begun: it is finished under the same id.
    Unfinished(Claim),
}

/// How far the launch of a job came that a key names.
#[derive(PartialEq, Eq)]
enum Reached {
    /// Nobody said what to run.
    Nothing,
    /// It was said, and then nobody was left to begin.
    Recorded,
    /// Somebody has begun, or will.
    Begun,
}

/// Finds the job that a key names, and waits for whoever is launching it at this moment.
fn adopt(ports: &Ports, request: &Request, key: &Key, mut id: JobId) -> Result<Adopted, LaunchError> {
    for _ in 0..TRIES {
        let waited = ports.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Block)?;
        drop(waited);
        match reached(ports, request, key, &id)? {
            Reached::Begun => return Ok(Adopted::Known(id)),
            Reached::Recorded => {}
            Reached::Nothing => ports.store.recreate(&id)?,
        }
        let launching = match hold(ports, &id) {
            Ok(launching) => launching,
            Err(error) if error.is_gone() => continue,
            Err(error) => return Err(error.into()),
        };
        // Somebody else may have finished it while we waited for the lock.
        let recorded = match reached(ports, request, key, &id)? {
            Reached::Begun => return Ok(Adopted::Known(id)),
            reached => reached == Reached::Recorded,
        };
        let claim = Claim { id: id.clone(), launching, recorded };
        // The job may have been pruned, and its key given to another, since we read what the key says. Who prunes
        // gives the key back under the lock that we hold now.
        match ports.store.claim_key(request.session.as_ref(), key, &id)? {
            KeyClaim::Ours => return Ok(Adopted::Unfinished(claim)),
            KeyClaim::Taken(other) => {
                clean_up(ports, claim);
                id = other;
            }
        }
    }
    Err(LaunchError::Refused("its folder was removed again and again".into()))
}

fn reached(ports: &Ports, request: &Request, key: &Key, id: &JobId) -> Result<Reached, LaunchError> {
    let Some(seen) = ports.store.observe(id)? else { return Ok(Reached::Nothing) };
    match &seen.facts.spec {
        Read::Absent => Ok(Reached::Nothing),
        Read::Present(spec)
            if (&spec.command, &spec.cwd, &spec.executor, spec.answer)
                == (&request.command, &request.cwd, &request.executor, request.answer) =>
        {
            // The launch lock may be ours, and says nothing then.
            let locks = LockView { launch: LockState::Free, ..seen.locks };
            let step = reconcile::plan(&Observed { locks, ..seen }, &ports.here);
            Ok(if step == Some(reconcile::Step::Abandon) { Reached::Recorded } else { Reached::Begun })
        }
        // One that cannot be read cannot be shown to be the same either.
        _ => Err(LaunchError::KeyTaken { key: key.clone(), id: id.clone() }),
    }
}

fn start(
    ports: &Ports,
    launcher: &Launcher,
    request: &Request,
    claim: Claim,
    when_recorded: &mut dyn FnMut(&JobId),
) -> Result<Launched, LaunchError> {
    let id = claim.id.clone();
    let durability = request.durability.unwrap_or(launcher.durability);
    let supervisor = SupervisorRequest {
        job: id.clone(),
        program: launcher.program.clone(),
        home: launcher.home.clone(),
        env: request.env.clone(),
    };
    debug!(job = %id, ?durability, "starting the supervisor");
    // The supervisor gets ready while the spec is flushed, and waits for the word.
    let mut link = match ports.processes.spawn_supervisor(&supervisor) {
        Ok(link) => link,
        Err(error) => {
            clean_up(ports, claim);
            return Err(LaunchError::Spawn(error));
        }
    };
    let recorded = if claim.recorded {
        // Whoever recorded it may have died before it was flushed.
        let flushed = if durability == Durability::Power { ports.store.flush_spec(&id) } else { Ok(()) };
        flushed.map(|()| Publish::New)
    } else {
        let spec = Fact::Spec(Box::new(spec(ports, launcher, request, &id)));
        ports.store.publish(&id, &spec, durability)
    };
    match recorded {
        Ok(Publish::New) => {}
        Ok(Publish::Exists) => {
            let _ = link.tell(LaunchSignal::Failed); // Gone is as good as told.
            return Err(LaunchError::Refused(format!("job `{id}` was recorded by somebody else")));
        }
        Err(error) => {
            let _ = link.tell(LaunchSignal::Failed); // Gone is as good as told.
            // It may be making room for the end at this moment, in a folder that could then not be removed.
            let _ = link.hear(CONFIRM_WITHIN);
            clean_up(ports, claim);
            return Err(error.into());
        }
    }
    info!(job = %id, session = request.session.as_ref().map(display), "job recorded");
    when_recorded(&id);
    // A supervisor that cannot be told is dead, and that is heard below.
    let _ = link.tell(LaunchSignal::Durable);
    match link.hear(CONFIRM_WITHIN) {
        SupervisorReply::Answer(LaunchAnswer::Started { pid, bound_to }) => {
            info!(job = %id, pid, bound_to, "target started");
            Ok(Launched::Started { id, pid, bound_to })
        }
        SupervisorReply::Answer(LaunchAnswer::FailedToStart { error }) => {
            settle_failed_start(ports, claim, durability);
            Err(LaunchError::FailedToStart { id, error })
        }
        SupervisorReply::Answer(LaunchAnswer::Refused { message }) => {
            clean_up(ports, claim);
            Err(LaunchError::Refused(message))
        }
        SupervisorReply::Answer(LaunchAnswer::Killed) => Ok(Launched::Killed { id }),
        SupervisorReply::Silence => Err(LaunchError::Unconfirmed { id }),
        SupervisorReply::Gone | SupervisorReply::Answer(LaunchAnswer::Taken) => {
            unanswered(ports, claim, durability)
        }
    }
}

/// The supervisor has nothing to say: it died, or somebody else's has the job. The record tells which.
fn unanswered(ports: &Ports, claim: Claim, durability: Durability) -> Result<Launched, LaunchError> {
    let id = claim.id.clone();
    let abandoned = Fact::Begin(Begin::new(BegunBy::Abandoned, ports.clock.wall()));
    // If somebody had begun, that stands. What cannot be recorded now, the next look records.
    forgive(&id, "abandoned launch not recorded", ports.store.publish(&id, &abandoned, durability));
    let seen = ports.store.observe(&id).ok().flatten();
    let outcome = seen.as_ref().map(|seen| fold(&seen.facts, seen.locks).state);
    match outcome {
        Some(JobState::Ended { outcome: Outcome::FailedToStart { error }, .. }) => {
            settle_failed_start(ports, claim, durability);
            Err(LaunchError::FailedToStart { id, error })
        }
        Some(JobState::Running) => Ok(Launched::Known { id }),
        Some(JobState::Ended { outcome, .. }) if !matches!(outcome, Outcome::Lost { .. }) => {
            Ok(Launched::Known { id })
        }
        _ => {
            drop(claim);
            forgive(&id, "job not settled", reconcile::job(ports, &id));
            Err(LaunchError::SupervisorDied { id })
        }
    }
}

fn spec(ports: &Ports, launcher: &Launcher, request: &Request, id: &JobId) -> Spec {
    let here = ports.here.clone();
    Spec {
        durability: request.durability.unwrap_or(launcher.durability),
        boot: here.boot,
        machine: here.machine,
        version: launcher.version.clone(),
        ..request.spec(id, request.session.clone(), ports.clock.wall())
    }
}

/// Removes a job that never ran. Its supervisor was told so, or is dead.
fn clean_up(ports: &Ports, claim: Claim) {
    let Claim { id, launching, recorded } = claim;
    drop(launching);
    // One that an earlier launcher recorded is not ours to remove: somebody may have been told of it. The next look
    // finds that nobody began.
    if recorded {
        return;
    }
    // A supervisor that could not be executed was a copy of this process for a moment, with the lock open as well.
    drop(ports.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Block));
    // The caller learns why the launch failed; a folder that cannot be removed as well is found by tidying.
    forgive(&id, "folder of a job that never ran not removed", ports.store.prune(&id));
}

/// The caller is told at once, so nobody has to be told later.
fn settle_failed_start(ports: &Ports, claim: Claim, durability: Durability) {
    let receipt = Fact::Receipt(Receipt::new(ReceiptHow::Read, ports.clock.stamp()));
    // If it cannot be written, the owner hears of it once more: better than never.
    forgive(&claim.id, "receipt not recorded", ports.store.publish(&claim.id, &receipt, durability));
    drop(claim.launching);
    forgive(&claim.id, "job not settled", reconcile::job(ports, &claim.id));
}

/// Says what could not be done and does not change what the caller hears.
fn forgive<T>(id: &JobId, what: &str, done: Result<T, StoreError>) {
    if let Err(error) = done {
        warn!(job = %id, %error, "{what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::StartErrorKind;
    use hearback_core::port::record::{FactStore, Housekeeping, JobFiles};
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};

    struct World {
        store: FakeStore,
        processes: FakeProcesses,
        ports: Ports,
    }

    fn world(heard: SupervisorReply) -> World {
        let (store, processes) = (FakeStore::default(), FakeProcesses::default());
        processes.next_supervisor_says(heard);
        let ports =
            Ports::new(store.clone(), processes.clone(), FakeClock::default(), FakeExecutor::default());
        World { store, processes, ports }
    }

    fn request(key: Option<&str>) -> Request {
        Request {
            command: CommandLine::Argv(vec!["make".into()]),
            cwd: "/".into(),
            executor: ExecutorName::default(),
            session: Some(Session::parse("s").unwrap()),
            label: None,
            key: key.map(|key| Key::parse(key).unwrap()),
            notify: NotifyPolicy::Auto,
            sinks: vec![],
            depth: 0,
            bound: false,
            answer: false,
            withhold: vec![],
            env: vec![],
            limits: Limits::default(),
            durability: None,
        }
    }

    fn launcher() -> Launcher {
        Launcher {
            program: "hearback".into(),
            home: "/home".into(),
            version: "0".into(),
            durability: Durability::Power,
        }
    }

    const STARTED: SupervisorReply =
        SupervisorReply::Answer(LaunchAnswer::Started { pid: Some(7), bound_to: None });

    #[test]
    fn an_unknown_executor_is_refused_and_nothing_is_recorded() {
        let world = world(SupervisorReply::Gone);
        let request = Request { executor: ExecutorName::parse("elsewhere").unwrap(), ..request(None) };
        let error = launch(&world.ports, &launcher(), &request).unwrap_err();
        assert_eq!(error.to_string(), "there is no executor named `elsewhere`");
        assert!(world.store.open_jobs().unwrap().is_empty());
    }

    #[test]
    fn a_launch_records_before_it_gives_the_word() {
        let world = world(STARTED);
        let Launched::Started { id, pid: Some(7), bound_to: None } =
            launch(&world.ports, &launcher(), &request(None)).unwrap()
        else {
            panic!("not started")
        };
        assert_eq!(world.processes.told(), [LaunchSignal::Durable]);
        assert!(world.store.facts(&id).spec.present().is_some());
    }

    #[test]
    fn a_launch_that_cannot_be_recorded_leaves_nothing() {
        let world = world(SupervisorReply::Answer(LaunchAnswer::Refused { message: "no room".into() }));
        assert!(matches!(
            launch(&world.ports, &launcher(), &request(None)),
            Err(LaunchError::Refused(why)) if why == "no room"
        ));
        assert!(world.store.open_jobs().unwrap().is_empty());
        world.store.refuse_writes(true);
        assert!(matches!(launch(&world.ports, &launcher(), &request(None)), Err(LaunchError::Store(_))));
    }

    #[test]
    fn a_failed_start_is_settled_as_consumed() {
        let error = StartError { kind: StartErrorKind::NotFound, message: "no".into() };
        let world = world(SupervisorReply::Answer(LaunchAnswer::FailedToStart { error: error.clone() }));
        let Err(LaunchError::FailedToStart { id, error: told }) =
            launch(&world.ports, &launcher(), &request(None))
        else {
            panic!("started")
        };
        assert_eq!(told, error);
        assert_eq!(world.store.facts(&id).receipt.present().unwrap().how, ReceiptHow::Read);
    }

    #[test]
    fn a_supervisor_that_dies_without_a_word_leaves_an_abandoned_job() {
        let world = world(SupervisorReply::Gone);
        let Err(LaunchError::SupervisorDied { id }) = launch(&world.ports, &launcher(), &request(None))
        else {
            panic!("started")
        };
        let facts = world.store.facts(&id);
        assert!(matches!(fold(&facts, LockView::FREE).state, JobState::Ended { .. }));
    }

    #[test]
    fn silence_is_not_taken_for_death() {
        let world = world(SupervisorReply::Silence);
        let Err(LaunchError::Unconfirmed { id }) = launch(&world.ports, &launcher(), &request(None)) else {
            panic!("started")
        };
        assert!(world.store.facts(&id).begin.is_absent());
    }

    #[test]
    fn the_same_key_names_the_same_job() {
        let world = world(STARTED);
        let Launched::Started { id, .. } = launch(&world.ports, &launcher(), &request(Some("k"))).unwrap()
        else {
            panic!("not started")
        };
        let _ = world.store.publish(&id, &Fact::Begin(sample::begin()), Durability::Power).unwrap();
        let again = launch(&world.ports, &launcher(), &request(Some("k"))).unwrap();
        assert_eq!(again, Launched::Known { id: id.clone() });
        let different = Request {
            command: CommandLine::Shell { shell: "make".into(), program: None },
            ..request(Some("k"))
        };
        assert!(matches!(
            launch(&world.ports, &launcher(), &different),
            Err(LaunchError::KeyTaken { id: taken, .. }) if taken == id
        ));
        assert_eq!(world.store.open_jobs().unwrap(), [id], "no folder is left behind");
    }

    #[test]
    fn a_key_whose_launch_died_is_finished_under_the_same_id() {
        let world = world(STARTED);
        let id = world.store.create(sample::at()).unwrap();
        let session = Session::parse("s").unwrap();
        let _ = world.store.claim_key(Some(&session), &Key::parse("k").unwrap(), &id).unwrap();
        let launched = launch(&world.ports, &launcher(), &request(Some("k"))).unwrap();
        assert_eq!(launched, Launched::Started { id, pid: Some(7), bound_to: None });
    }

    #[test]
    fn a_key_whose_launch_died_before_anybody_began_is_finished_under_the_same_id() {
        let world = world(STARTED);
        let id = world.store.create(sample::at()).unwrap();
        let request = request(Some("k"));
        let key = request.key.as_ref().unwrap();
        let _ = world.store.claim_key(request.session.as_ref(), key, &id).unwrap();
        let recorded = Fact::Spec(Box::new(spec(&world.ports, &launcher(), &request, &id)));
        let _ = world.store.publish(&id, &recorded, Durability::Power).unwrap();
        let launched = launch(&world.ports, &launcher(), &request).unwrap();
        assert_eq!(launched, Launched::Started { id: id.clone(), pid: Some(7), bound_to: None });
        assert_eq!(world.processes.told(), [LaunchSignal::Durable]);

        // Nobody finishes what was declared abandoned: its owner may have been told so.
        let _ = world.store.publish(&id, &Fact::Begin(sample::abandoned()), Durability::Power).unwrap();
        assert_eq!(launch(&world.ports, &launcher(), &request).unwrap(), Launched::Known { id });
    }
}
