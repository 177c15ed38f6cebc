//! Launching: record first, spawn second, confirm third.

use std::path::PathBuf;
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::executor::UnknownExecutor;
use hearback_core::port::process::{LaunchAnswer, LaunchSignal, SupervisorReply, SupervisorRequest};
use hearback_core::port::record::{JobLock, KeyClaim, StoreError};
use hearback_core::{
    Begin, BegunBy, Durability, Fact, JobId, JobState, Key, Outcome, Read, Receipt, ReceiptHow, Spec,
    StartError, fold,
};
use tracing::{debug, info, warn};

use adopt::{Adopted, adopt};

use crate::{Ports, reconcile};

mod adopt;

pub use crate::request::Request;

/// How long a launcher waits for the answer that the target has started.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);
/// How often a launcher tries to remove the folder of a job that never ran, and the pause in between.
const CLEAN_UP_TRIES: usize = 20;
const CLEAN_UP_PAUSE: Duration = Duration::from_millis(2);
/// How often a launch starts over because another process pruned its folder meanwhile.
const TRIES: usize = 16;

/// The launching program, and the program that becomes the supervisor.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The program that is executed as the supervisor.
    pub program: PathBuf,
    /// The store's folder.
    pub home: PathBuf,
    /// The version that is written into every spec.
    pub version: String,
    /// What has to survive a power cut, unless the request says otherwise.
    pub durability: Durability,
}

/// The result of a successful launch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// An earlier launch with the same key made it.
    Known {
        /// The job.
        id: JobId,
    },
    /// It was killed before its target started. That is recorded as its outcome.
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

/// Why a launch failed.
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
    /// The supervisor could not prepare the job. Nothing runs, and nothing is left behind.
    #[error("the job could not be recorded, so nothing was run: {0}")]
    Refused(String),
    /// The key already names a different job.
    #[error("key `{key}` already names job `{id}`, which has another command, directory, executor or kind")]
    KeyTaken {
        /// The key.
        key: Key,
        /// Its job.
        id: JobId,
    },
    /// Another launcher launches the job that the key names, and does not finish. Nothing was run by this one.
    #[error("job `{id}`, which key `{key}` names, is still being launched by {by}")]
    BeingLaunched {
        /// The key.
        key: Key,
        /// Its job.
        id: JobId,
        /// The process that launches it.
        by: String,
    },
    /// The command could not be started. The job is recorded, and has ended.
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
    /// The supervisor died without an answer. The job is recorded as lost.
    #[error("job `{id}` is lost: its supervisor died before it answered")]
    SupervisorDied {
        /// The job.
        id: JobId,
    },
}

/// A job whose launch lock this launcher holds.
struct HeldJob {
    id: JobId,
    launching: Lock,
    /// Whether an earlier launcher has published the spec.
    recorded: bool,
}

/// Launches a job. Returns when the target runs, or when the launch has failed.
///
/// # Errors
///
/// The error says whether anything is left behind: see [`LaunchError`].
pub fn launch(ports: &Ports, launcher: &Launcher, request: &Request) -> Result<Launched, LaunchError> {
    launch_and(ports, launcher, request, &mut |_| {})
}

/// Does the same, and calls `recorded` when the job is recorded and nothing of it runs yet.
///
/// # Errors
///
/// The error says whether anything is left behind: see [`LaunchError`].
pub fn launch_and(
    ports: &Ports,
    launcher: &Launcher,
    request: &Request,
    recorded: &mut dyn FnMut(&JobId),
) -> Result<Launched, LaunchError> {
    ports.executors.find(&request.executor)?;
    let held = fresh(ports)?;
    let Some(key) = &request.key else { return start(ports, launcher, request, held, recorded) };
    match ports.store.claim_key(request.session.as_ref(), key, &held.id) {
        Err(error) => {
            clean_up(ports, held);
            Err(error.into())
        }
        Ok(KeyClaim::Ours) => start(ports, launcher, request, held, recorded),
        Ok(KeyClaim::Taken(other)) => {
            clean_up(ports, held);
            match adopt(ports, request, key, other)? {
                Adopted::Known(id) => Ok(Launched::Known { id }),
                Adopted::Unfinished(held) => start(ports, launcher, request, held, recorded),
            }
        }
    }
}

fn fresh(ports: &Ports) -> Result<HeldJob, LaunchError> {
    for _ in 0..TRIES {
        let id = ports.store.create(ports.clock.wall())?;
        match lock_launch(ports, &id) {
            Ok(launching) => return Ok(HeldJob { id, launching, recorded: false }),
            // Another process took the empty folder for a leftover before it was locked.
            Err(error) if error.is_gone() => {}
            Err(error) => {
                warn_of_failure(&id, "empty folder not removed", ports.store.discard(&id));
                return Err(error.into());
            }
        }
    }
    Err(LaunchError::Refused("other processes kept removing its folder".into()))
}

fn lock_launch(ports: &Ports, id: &JobId) -> Result<Lock, StoreError> {
    let lock = ports.store.lock(id, JobLock::Launch, LockMode::Exclusive, Wait::Block)?;
    Ok(lock.expect("a lock that was waited for is held"))
}

/// Starts the supervisor, records the job, and waits for the supervisor's answer.
fn start(
    ports: &Ports,
    launcher: &Launcher,
    request: &Request,
    held: HeldJob,
    when_recorded: &mut dyn FnMut(&JobId),
) -> Result<Launched, LaunchError> {
    let supervisor = SupervisorRequest {
        job: held.id.clone(),
        program: launcher.program.clone(),
        home: launcher.home.clone(),
        env: request.env.clone(),
    };
    debug!(job = %held.id, "starting the supervisor");
    // The supervisor gets ready while the spec is flushed, and waits for the signal.
    let mut link = match ports.processes.spawn_supervisor(&supervisor) {
        Ok(link) => link,
        Err(error) => {
            clean_up(ports, held);
            return Err(LaunchError::Spawn(error));
        }
    };
    // Before the job is recorded: from then on it runs even if this process dies. What an earlier launcher recorded may
    // be masked, whatever this one would do.
    if (request.masked_command.is_some() || held.recorded)
        && let Err(error) = link.hand_over(&request.command, CONFIRM_WITHIN)
    {
        // A supervisor that could not do its part says so, and is gone.
        let is_gone = error.kind() != std::io::ErrorKind::TimedOut;
        let reply = link.hear(if is_gone { CONFIRM_WITHIN } else { Duration::ZERO });
        clean_up(ports, held);
        return Err(match reply {
            SupervisorReply::Answer(LaunchAnswer::Refused { message }) => LaunchError::Refused(message),
            _ => LaunchError::Spawn(error),
        });
    }
    match record(ports, launcher, request, &held) {
        Ok(Publish::New) => {}
        Ok(Publish::Exists) => {
            let _ = link.tell(LaunchSignal::Failed);
            return Err(LaunchError::Refused(format!("another process recorded job `{}`", held.id)));
        }
        Err(error) => {
            let _ = link.tell(LaunchSignal::Failed); // A supervisor that has died needs no signal.
            // It may be reserving room for the end at this moment, in a folder that could then not be removed.
            let _ = link.hear(CONFIRM_WITHIN);
            clean_up(ports, held);
            return Err(error.into());
        }
    }
    info!(job = %held.id, session = request.session.as_ref().map(display), "job recorded");
    when_recorded(&held.id);
    // A supervisor that cannot be signalled has died; its missing answer shows that.
    let _ = link.tell(LaunchSignal::Durable);
    let reply = link.hear(CONFIRM_WITHIN);
    conclude(ports, held, request.durability.unwrap_or(launcher.durability), reply)
}

/// Publishes the spec, or flushes the spec that an earlier launcher published.
fn record(
    ports: &Ports,
    launcher: &Launcher,
    request: &Request,
    held: &HeldJob,
) -> Result<Publish, StoreError> {
    let durability = request.durability.unwrap_or(launcher.durability);
    if !held.recorded {
        let spec = Fact::Spec(Box::new(spec(ports, launcher, request, &held.id)));
        return ports.store.publish(&held.id, &spec, durability);
    }
    // The launcher that recorded it may have died before it was flushed.
    if durability == Durability::Power {
        ports.store.flush_spec(&held.id)?;
    }
    Ok(Publish::New)
}

/// Turns the supervisor's answer into the result of the launch.
fn conclude(
    ports: &Ports,
    held: HeldJob,
    durability: Durability,
    reply: SupervisorReply,
) -> Result<Launched, LaunchError> {
    let id = held.id.clone();
    match reply {
        SupervisorReply::Answer(LaunchAnswer::Started { pid, bound_to }) => {
            info!(job = %id, pid, bound_to, "target started");
            Ok(Launched::Started { id, pid, bound_to })
        }
        SupervisorReply::Answer(LaunchAnswer::FailedToStart { error }) => {
            settle_failed_start(ports, held, durability);
            Err(LaunchError::FailedToStart { id, error })
        }
        SupervisorReply::Answer(LaunchAnswer::Refused { message }) => {
            clean_up(ports, held);
            Err(LaunchError::Refused(message))
        }
        SupervisorReply::Answer(LaunchAnswer::Killed) => Ok(Launched::Killed { id }),
        SupervisorReply::Silence => Err(LaunchError::Unconfirmed { id }),
        SupervisorReply::Gone | SupervisorReply::Answer(LaunchAnswer::Taken) => {
            unanswered(ports, held, durability)
        }
    }
}

/// The supervisor gave no answer: it died, or another supervisor has claimed the job. The facts tell which.
fn unanswered(ports: &Ports, held: HeldJob, durability: Durability) -> Result<Launched, LaunchError> {
    let id = held.id.clone();
    let abandoned = Fact::Begin(Begin::new(BegunBy::Abandoned, ports.clock.wall()));
    // A begin that is already there stands. If this cannot be recorded now, the next reconcile records it.
    warn_of_failure(&id, "abandoned launch not recorded", ports.store.publish(&id, &abandoned, durability));
    let seen = ports.store.observe(&id).ok().flatten();
    let outcome = seen.as_ref().map(|seen| fold(&seen.facts, seen.locks).state);
    match outcome {
        Some(JobState::Ended { outcome: Outcome::FailedToStart { error }, .. }) => {
            settle_failed_start(ports, held, durability);
            Err(LaunchError::FailedToStart { id, error })
        }
        Some(JobState::Running) => Ok(Launched::Known { id }),
        Some(JobState::Ended { outcome, .. }) if !matches!(outcome, Outcome::Lost { .. }) => {
            Ok(Launched::Known { id })
        }
        _ => {
            drop(held);
            warn_of_failure(&id, "job not settled", reconcile::job(ports, &id));
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

/// Removes a job that never ran. Its supervisor was signalled, or has died.
fn clean_up(ports: &Ports, held: HeldJob) {
    let HeldJob { id, launching, recorded } = held;
    drop(launching);
    // A job that an earlier launcher recorded stays: its owner may know it. The next reconcile finds that no
    // supervisor began, and declares it abandoned.
    if recorded {
        return;
    }
    // A supervisor that could not be executed was a copy of this process for a moment, and had the lock open, too.
    drop(ports.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Block));
    // The caller learns why the launch failed. If the folder cannot be removed either, prune removes it later.
    for _ in 0..CLEAN_UP_TRIES {
        match ports.store.prune(&id) {
            // Another process looks at the job, and holds a lock for a moment to see whether it is free.
            Ok(false) => std::thread::sleep(CLEAN_UP_PAUSE),
            removed => return warn_of_failure(&id, "folder of a job that never ran not removed", removed),
        }
    }
}

/// Settles a job that failed to start. The caller learns it at once, so no follow-up is wanted.
fn settle_failed_start(ports: &Ports, held: HeldJob, durability: Durability) {
    // Without an owner there is nothing to close.
    let has_owner = !matches!(ports.store.spec(&held.id), Ok(Read::Present(spec)) if !spec.can_notify());
    if has_owner {
        let receipt = Fact::Receipt(Receipt::new(ReceiptHow::Read, ports.clock.stamp()));
        // If the receipt cannot be written, the owner is notified a second time. That is better than never.
        warn_of_failure(
            &held.id,
            "receipt not recorded",
            ports.store.publish(&held.id, &receipt, durability),
        );
    }
    drop(held.launching);
    warn_of_failure(&held.id, "job not settled", reconcile::job(ports, &held.id));
}

/// Logs a failure that does not change what the caller learns.
fn warn_of_failure<T>(id: &JobId, what: &str, done: Result<T, StoreError>) {
    if let Err(error) = done {
        warn!(job = %id, %error, "{what}");
    }
}

#[cfg(test)]
mod tests;
