//! Launching under a key that names a job: the job has begun, or its launch is finished under the same id.

use hearback_core::credentials::mask_command;
use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, KeyClaim};
use hearback_core::{CommandLine, JobId, Key, LockState, LockView, Observed, Read};

use super::{HeldJob, LaunchError, Request, TRIES, clean_up, lock_launch};
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

/// Finds the job that a key names. Waits if another process is launching it at this moment.
pub(super) fn adopt(
    ports: &Ports,
    request: &Request,
    key: &Key,
    mut id: JobId,
) -> Result<Adopted, LaunchError> {
    for _ in 0..TRIES {
        let waited = ports.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Block)?;
        drop(waited);
        match reached(ports, request, key, &id)? {
            Reached::Begun => return Ok(Adopted::Known(id)),
            Reached::Recorded => {}
            Reached::Nothing => ports.store.recreate(&id)?,
        }
        let launching = match lock_launch(ports, &id) {
            Ok(launching) => launching,
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
