//! What follows from one look at a job: whether it may be changed from here, its durability, its attempts.
//!
//! Each rule is here once, so that every command and the monitor decide in the same way.

use crate::fold::{Fold, Here, Observed, fold};
use crate::{Durability, End, JobState, Lease, Read};

/// Why a job is only shown and must not be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandsOff {
    /// A newer build wrote a part of it. This build does not know what a change would do.
    Newer,
    /// It was launched on another machine, and this is a copy of its store. Locks and processes here prove nothing.
    OtherMachine,
    /// Its supervisor is alive although the lock here is free: it uses another store, of which this is a copy.
    OtherStore,
}

impl Observed {
    /// What its facts and locks mean.
    pub fn fold(&self) -> Fold<'_> {
        fold(&self.facts, self.locks)
    }

    /// The record of its end, if it has ended and the record can be read.
    pub fn end(&self) -> Option<&End> {
        match self.fold().state {
            JobState::Ended { end, .. } => end,
            _ => None,
        }
    }

    /// Why the job must not be changed, killed or delivered from here; none if it may be.
    ///
    /// Only facts decide. [`HandsOff::OtherStore`] needs a look at processes, so this never returns it: for a job
    /// without supervisor and without end, the caller has to check that, too.
    pub fn hands_off(&self, here: &Here) -> Option<HandsOff> {
        if self.facts.any_newer() {
            Some(HandsOff::Newer)
        } else if here.is_foreign(&self.facts) {
            Some(HandsOff::OtherMachine)
        } else {
            None
        }
    }

    /// Where processes of the job may still run that could not be seen when its end was recorded, and that no sweep has
    /// seen since.
    pub fn out_of_sight(&self) -> Option<&str> {
        self.end()?.out_of_sight.as_deref().filter(|_| self.facts.swept.is_absent())
    }

    /// What has to survive a power cut, as the spec says; the default if the spec cannot be read.
    pub fn durability(&self) -> Durability {
        self.facts.spec.present().map(crate::Spec::durability).unwrap_or_default()
    }

    /// The number of the newest lease; zero before the first.
    pub fn last_lease(&self) -> u32 {
        self.facts.leases.iter().map(|(n, _)| *n).max().unwrap_or(0)
    }

    /// How often it was handed to a sink. A sink gets this number, so it grows with every attempt, also if the session
    /// was busy, and after a retry by hand. The limit of attempts applies to [`Lease::attempts_used`], which a busy
    /// session does not raise and a retry resets.
    ///
    /// A retry takes a lease number and is no attempt itself. A lease that cannot be read counts as an attempt.
    pub fn attempts(&self) -> u32 {
        let is_retry = |lease: &Read<Lease>| lease.present().is_some_and(|lease| lease.attempts_used == 0);
        let tried = self.facts.leases.iter().filter(|(_, lease)| !is_retry(lease));
        u32::try_from(tried.count()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use crate::{Facts, LeaseResult, LockView, MachineId, Output, Place, Spec};

    fn seen(facts: Facts) -> Observed {
        let (locks, place, output) = (LockView::FREE, Place::Open, Output::default());
        Observed { id: sample::id(1), facts, locks, place, output }
    }

    #[test]
    fn every_hand_over_is_an_attempt_and_a_retry_by_hand_is_none() {
        let lease = |n, attempts_used| (n, Read::Present(Lease { attempts_used, ..sample::lease() }));
        let busy = |n| (n, Read::Present(LeaseResult { busy: true, ..sample::lease_result(false) }));
        for (leases, results, attempts) in [
            (vec![], vec![], 0),
            (vec![lease(1, 1)], vec![], 1),
            (vec![lease(1, 1), lease(2, 2)], vec![], 2),
            (vec![lease(1, 1), lease(2, 1)], vec![busy(1)], 2),
            (vec![lease(1, 1), lease(2, 0)], vec![], 1),
            (vec![lease(1, 1), lease(2, 0), lease(3, 1)], vec![], 2),
            (vec![(1, Read::Unreadable("torn".into()))], vec![], 1),
        ] {
            let seen = seen(Facts { leases, results, ..Facts::default() });
            assert_eq!(seen.attempts(), attempts, "{:?}", seen.facts);
        }
    }

    #[test]
    fn hands_are_kept_off_what_is_newer_and_what_is_of_another_machine() {
        let here = Here { machine: Some(MachineId::new("here")), ..Here::default() };
        let of = |machine: &str| Spec { machine: Some(MachineId::new(machine)), ..sample::spec("s") };
        let facts = |machine| Facts { spec: Read::Present(of(machine)), ..Facts::default() };
        assert_eq!(seen(facts("here")).hands_off(&here), None);
        assert_eq!(seen(facts("there")).hands_off(&here), Some(HandsOff::OtherMachine));
        let newer = Facts { begin: Read::Newer(2), ..facts("here") };
        assert_eq!(seen(newer).hands_off(&here), Some(HandsOff::Newer));
    }
}
