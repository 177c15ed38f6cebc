//! Campaigns: the same thing many times, because one time may be luck.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Whether the campaigns are run in full, as `HEARBACK_TEST_FULL` asks for it.
pub fn is_full() -> bool {
    std::env::var_os("HEARBACK_TEST_FULL").is_some()
}

/// Does this many rounds, so many of them at once. What the rounds return comes in the order of their numbers.
///
/// # Panics
///
/// As the first round that fails. The rounds that run at that moment are finished, and no more are begun.
pub fn rounds<T: Send>(count: usize, at_once: usize, round: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let _stop = StopOnPanic { next: &next, count };
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return done;
            }
            done.push((n, round(n)));
        }
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let joined =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.flatten().collect()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, returned)| returned).collect()
}

/// Begins no more rounds once one has failed.
struct StopOnPanic<'a> {
    next: &'a AtomicUsize,
    count: usize,
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.next.fetch_max(self.count, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_done_once_and_returned_in_order() {
        assert_eq!(rounds(100, 4, |n| n), (0..100).collect::<Vec<_>>());
        assert_eq!(rounds(0, 4, |n| n), [0; 0]);
        assert_eq!(rounds(1, 4, |n| n), [0]);
    }

    #[test]
    fn a_round_that_fails_ends_the_campaign_with_its_own_message() {
        let begun = AtomicUsize::new(0);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            rounds(1000, 1, |n| {
                begun.fetch_add(1, Ordering::Relaxed);
                assert!(n < 3, "round {n} failed");
            })
        }));
        assert_eq!(failed.unwrap_err().downcast_ref::<String>().unwrap(), "round 3 failed");
        assert_eq!(begun.into_inner(), 4);
    }
}
