//! Locks whose file was closed, and which may be held for another moment: the system reports that a file is closed
//! before it releases the locks of the process.

use std::collections::HashMap;
use std::time::Duration;

use hearback_core::JobId;
use hearback_core::port::record::JobLock;

/// When to look again at a lock that is still held. Usually it is free at the first look; a process that the system
/// does not let run right there holds it for longer. If it is held after all these, it has another holder, or the next
/// look at everything finds it free.
const LOOK_AFTER_MS: [u64; 7] = [1, 5, 25, 100, 500, 2_500, 10_000];

/// Locks that were closed.
#[derive(Debug, Default)]
pub(super) struct Closing(HashMap<JobId, Locks>);

/// Those of one job, and how often it was looked at since one of them was closed.
#[derive(Debug, Default)]
struct Locks {
    closed: Vec<JobLock>,
    looks: usize,
}

impl Closing {
    /// Takes note of a lock that was closed.
    pub(super) fn add(&mut self, id: JobId, lock: JobLock) {
        let locks = self.0.entry(id).or_default();
        locks.looks = 0;
        if !locks.closed.contains(&lock) {
            locks.closed.push(lock);
        }
    }

    /// Takes note of what was seen of a job; tells when to look again, because a lock that was closed is still held.
    pub(super) fn look(&mut self, id: &JobId, is_held: impl Fn(JobLock) -> bool) -> Option<Duration> {
        let locks = self.0.get_mut(id)?;
        locks.closed.retain(|lock| is_held(*lock));
        let after = LOOK_AFTER_MS.get(locks.looks).filter(|_| !locks.closed.is_empty());
        locks.looks += 1;
        if after.is_none() {
            self.0.remove(id);
        }
        after.map(|millis| Duration::from_millis(*millis))
    }

    /// Forgets a job that is no longer open.
    pub(super) fn forget(&mut self, id: &JobId) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;

    #[test]
    fn a_lock_that_was_closed_is_looked_at_until_it_is_free_or_has_another_holder() {
        let (mut closing, id) = (Closing::default(), sample::id(1));
        assert_eq!(closing.look(&id, |_| true), None, "it was not closed");
        closing.add(id.clone(), JobLock::Alive);
        for millis in LOOK_AFTER_MS {
            assert_eq!(closing.look(&id, |_| true), Some(Duration::from_millis(millis)));
        }
        assert_eq!(closing.look(&id, |_| true), None);
        closing.add(id.clone(), JobLock::Alive);
        closing.add(id.clone(), JobLock::Launch);
        assert!(closing.look(&id, |lock| lock == JobLock::Alive).is_some());
        assert_eq!(closing.look(&id, |_| false), None);
        assert_eq!(closing.look(&id, |_| true), None, "it was free");
    }
}
