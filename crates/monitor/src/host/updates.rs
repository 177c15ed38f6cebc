//! Jobs whose records are being brought up to date by threads: how many at once, and which have to wait.

use std::collections::{BTreeSet, HashMap, HashSet};

use hearback_core::JobId;

use crate::reconcile::Step;

/// So many jobs are brought up to date at the same time. To record a loss takes up to a few seconds each, and losses
/// that are recorded at the same time share the looks at all processes, which cost most.
pub(super) const AT_ONCE: usize = 64;

/// Jobs that are being brought up to date.
#[derive(Debug, Default)]
pub(super) struct Updates {
    out: HashSet<JobId>,
    /// Jobs for which there was no room.
    waiting: BTreeSet<JobId>,
    /// The last step that was tried for a job. If it is planned again, it could not be done then: another process uses
    /// the folder.
    tried: HashMap<JobId, Step>,
}

impl Updates {
    /// Whether a step was tried, and has to wait for the next look at everything.
    pub(super) fn has_tried(&self, id: &JobId, step: Step) -> bool {
        self.tried.get(id) == Some(&step)
    }

    /// Takes note of a job that is to be brought up to date now; tells whether there is room.
    pub(super) fn begin(&mut self, id: &JobId, step: Step) -> bool {
        if self.out.len() >= AT_ONCE {
            self.waiting.insert(id.clone());
            return false;
        }
        self.tried.insert(id.clone(), step);
        self.out.insert(id.clone())
    }

    /// Takes note that a job was brought up to date; returns one that waits for the room.
    pub(super) fn end(&mut self, id: &JobId) -> Option<JobId> {
        self.out.remove(id);
        self.waiting.pop_first()
    }

    /// Every step may be tried again, of every job or of one.
    pub(super) fn forget_tries(&mut self, of: Option<&JobId>) {
        match of {
            Some(id) => drop(self.tried.remove(id)),
            None => self.tried.clear(),
        }
    }

    /// Whether this job is being brought up to date.
    pub(super) fn has(&self, id: &JobId) -> bool {
        self.out.contains(id)
    }

    /// Whether none is.
    pub(super) fn is_idle(&self) -> bool {
        self.out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;

    #[test]
    fn so_many_go_out_at_once_and_each_that_comes_back_makes_room_for_one() {
        let mut updates = Updates::default();
        let ids: Vec<_> = (0..AT_ONCE as u64 + 2).map(sample::id).collect();
        let begun = ids.iter().filter(|id| updates.begin(id, Step::Settle)).count();
        assert_eq!((begun, updates.is_idle()), (AT_ONCE, false));
        assert_eq!(updates.end(&ids[0]), Some(ids[AT_ONCE].clone()));
        assert!(updates.begin(&ids[AT_ONCE], Step::Settle) && !updates.has(&ids[0]));
        assert_eq!(updates.end(&ids[1]), Some(ids[AT_ONCE + 1].clone()));
        assert_eq!(updates.end(&ids[2]), None);
    }

    #[test]
    fn a_step_that_could_not_be_done_is_not_tried_again_at_once() {
        let mut updates = Updates::default();
        let id = sample::id(1);
        assert!(updates.begin(&id, Step::Archive));
        updates.end(&id);
        assert!(updates.has_tried(&id, Step::Archive) && !updates.has_tried(&id, Step::Settle));
        updates.forget_tries(Some(&id));
        assert!(!updates.has_tried(&id, Step::Archive));
    }
}
