//! The open jobs of a store, each brought up to date: what a monitor looks at.

use hearback_core::port::record::StoreError;
use hearback_core::{HandsOff, JobId, JobView, LockState, Observed, Session};

use crate::{Ports, reconcile};

/// An open job as a monitor sees it.
#[derive(Debug)]
pub(super) struct OpenJob {
    pub(super) seen: Observed,
    pub(super) has_ended: bool,
}

impl OpenJob {
    pub(super) fn id(&self) -> &JobId {
        &self.seen.id
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.seen.facts.spec.present()?.session.as_ref()
    }

    /// Whether it runs and is to end with the host.
    pub(super) fn is_bound_and_runs(&self) -> bool {
        !self.has_ended && self.seen.facts.spec.present().is_some_and(|spec| spec.bound)
    }
}

/// The open jobs of a store.
#[derive(Debug, Default)]
pub(super) struct OpenJobs {
    /// Newest first.
    pub(super) jobs: Vec<OpenJob>,
    /// Folders that do not say what they are: a launch has only begun, or a record cannot be read.
    pub(super) blank: Vec<JobId>,
}

impl OpenJobs {
    /// Brings every open job up to date, and looks at it. A job that cannot be looked at hides no other.
    pub(super) fn look(ports: &Ports) -> Result<Self, StoreError> {
        let mut open = Self::default();
        for id in ports.store.open_jobs()? {
            match look(ports, &id) {
                Ok(Looked::Job(job)) => open.jobs.push(*job),
                Ok(Looked::Gone) => {}
                Ok(Looked::Blank) | Err(_) => open.blank.push(id),
            }
        }
        open.jobs.sort_by(|a, b| b.id().cmp(a.id()));
        Ok(open)
    }
}

enum Looked {
    Job(Box<OpenJob>),
    Blank,
    /// It was moved to history, or removed.
    Gone,
}

fn look(ports: &Ports, id: &JobId) -> Result<Looked, StoreError> {
    match reconcile::job(ports, id) {
        // What a store that cannot be written says is true all the same.
        Err(error) if !error.is_unwritable() => return Err(error),
        _ => {}
    }
    let Some(mut seen) = ports.store.observe(id)? else { return Ok(Looked::Gone) };
    if ports.hands_off(&seen) == Some(HandsOff::OtherStore) {
        seen.locks.alive = LockState::Held;
    }
    let Some(view) = JobView::new(&seen, &ports.here, "".into()) else { return Ok(Looked::Blank) };
    Ok(Looked::Job(Box::new(OpenJob { seen, has_ended: view.state.has_ended() })))
}
