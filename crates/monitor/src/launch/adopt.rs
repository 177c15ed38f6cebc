//! Launching under a key that names a job: the job has begun, or its launch is finished under the same id.

use std::time::Duration;

use hearback_core::credentials::mask_command;
use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, KeyClaim};
use hearback_core::{CommandLine, JobId, Key, LockState, LockView, Observed, Read};

use super::{HeldJob, LaunchError, Request, TRIES, clean_up};
use crate::{Ports, reconcile};

/// What a key names.
pub(super) enum Adopted {
    /// The job has begun, or will.
    Known(JobId),
    /// Its launcher died before a supervisor had begun. This launcher finishes it under the same id.
    Unfinished(HeldJob),
}

/// How far the launch came of the job that a key names.
#[derive(PartialEq, Eq)]
enum Reached {
    /// There is no spec.
    Nothing,
    /// There is a spec, and neither a launcher nor a supervisor.
    Recorded,
    /// A supervisor has begun, or will.
    Begun,
}

/// How long to wait for another process that launches the job. It may be stopped, and then it never finishes.
const OTHERS_WITHIN: Duration = Duration::from_secs(5);
const OTHERS_LOOK: Duration = Duration::from_millis(10);

/// Finds the job that a key names. Waits, with a bound, if another process is launching it at this moment.
pub(super) fn adopt(
    ports: &Ports,
    request: &Request,
    key: &Key,
    mut id: JobId,
) -> Result<Adopted, LaunchError> {
    let until = ports.clock.awake() + OTHERS_WITHIN;
    let mut tries = 0;
    while tries < TRIES {
        let reached_before = reached(ports, request, key, &id)?;
        let is_launching = ports.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Try)?.is_none();
        match reached_before {
            // Its launcher has no say any more, however long it holds its lock.
            Reached::Begun => return Ok(Adopted::Known(id)),
            _ if is_launching => {
                wait_for_launcher(ports, key, &id, until)?;
                continue;
            }
            Reached::Recorded => {}
            Reached::Nothing => ports.store.recreate(&id)?,
        }
        tries += 1;
        let launching = match ports.store.lock(&id, JobLock::Launch, LockMode::Exclusive, Wait::Try) {
            Ok(Some(launching)) => launching,
            Ok(None) => {
                wait_for_launcher(ports, key, &id, until)?;
                continue;
            }
            Err(error) if error.is_gone() => continue,
            Err(error) => return Err(error.into()),
        };
        // Another process may have finished the launch while this one waited for the lock.
        let recorded = match reached(ports, request, key, &id)? {
            Reached::Begun => return Ok(Adopted::Known(id)),
            reached => reached == Reached::Recorded,
        };
        let held = HeldJob { id: id.clone(), launching, recorded };
        // Since the key was read, the job may have been pruned, and its key given to another job. Prune releases a key
        // only under the lock that this process holds now.
        match ports.store.claim_key(request.session.as_ref(), key, &id)? {
            KeyClaim::Ours => return Ok(Adopted::Unfinished(held)),
            KeyClaim::Taken(other) => {
                clean_up(ports, held);
                id = other;
            }
        }
    }
    Err(LaunchError::Refused("other processes kept removing its folder".into()))
}

/// Gives another launcher a moment. After the deadline, an error names it.
fn wait_for_launcher(ports: &Ports, key: &Key, id: &JobId, until: Duration) -> Result<(), LaunchError> {
    if ports.clock.awake() < until {
        std::thread::sleep(OTHERS_LOOK);
        return Ok(());
    }
    let holder = ports.store.lock_holder(id, JobLock::Launch);
    let is_stopped = |pid| {
        let found = ports.processes.identify(pid).ok().flatten();
        found.is_some_and(|found| ports.processes.is_stopped(&found))
    };
    let by = match holder {
        Some(pid) if is_stopped(pid) => format!("process {pid}, which is stopped"),
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    };
    Err(LaunchError::BeingLaunched { key: key.clone(), id: id.clone(), by })
}

fn reached(ports: &Ports, request: &Request, key: &Key, id: &JobId) -> Result<Reached, LaunchError> {
    let Some(seen) = ports.store.observe(id)? else { return Ok(Reached::Nothing) };
    match &seen.facts.spec {
        Read::Absent => Ok(Reached::Nothing),
        Read::Present(spec)
            if is_same_command(&spec.command, request.recorded_command())
                && (&spec.cwd, &spec.executor, spec.answer)
                    == (&request.cwd, &request.executor, request.answer) =>
        {
            // This process may hold the launch lock itself, so the lock proves nothing here.
            let locks = LockView { launch: LockState::Free, ..seen.locks };
            let step = reconcile::plan(&Observed { locks, ..seen }, &ports.here);
            Ok(if step == Some(reconcile::Step::Abandon) { Reached::Recorded } else { Reached::Begun })
        }
        // A spec that cannot be read cannot be shown to be the same.
        _ => Err(LaunchError::KeyTaken { key: key.clone(), id: id.clone() }),
    }
}

/// Whether two commands differ in their credentials at most. Those are recorded nowhere, not even as a hash, and a
/// repeated launch may have a fresh one.
fn is_same_command(recorded: &CommandLine, requested: &CommandLine) -> bool {
    recorded == requested || mask_command(recorded) == mask_command(requested)
}
