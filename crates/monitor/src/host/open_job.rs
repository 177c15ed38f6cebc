//! An open job as a monitor sees it.

use std::time::Duration;

use hearback_core::port::record::StoreError;
use hearback_core::{HandsOff, JobId, JobView, LockState, Observed, Place, Session};

use crate::Ports;
use crate::reconcile::{self, Step};

/// An open job as a monitor sees it.
#[derive(Debug)]
pub(super) struct OpenJob {
    pub(super) seen: Observed,
    pub(super) has_ended: bool,
    /// Whether its folder does not say what it is: a launch has only begun.
    pub(super) is_blank: bool,
    /// What its records lack.
    pub(super) step: Option<Step>,
}

impl OpenJob {
    /// Looks at a job and changes nothing; none if it was moved to history, or removed.
    pub(super) fn see(ports: &Ports, id: &JobId) -> Result<Option<Self>, StoreError> {
        let Some(mut seen) = ports.store.observe(id)?.filter(|seen| seen.place == Place::Open) else {
            return Ok(None);
        };
        let step = reconcile::plan_here(ports, &seen);
        if ports.hands_off(&seen) == Some(HandsOff::OtherStore) {
            seen.locks.alive = LockState::Held;
        }
        let view = JobView::new(&seen, &ports.here, "".into());
        let has_ended = view.as_ref().is_some_and(|view| view.state.has_ended());
        Ok(Some(Self { seen, has_ended, is_blank: view.is_none(), step }))
    }

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

    /// The time between terminating it and killing it, as its launch chose.
    pub(super) fn grace(&self) -> Duration {
        let limits = self.seen.facts.spec.present().map(|spec| spec.limits).unwrap_or_default();
        Duration::from_millis(limits.grace_ms)
    }
}
