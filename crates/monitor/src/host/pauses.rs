//! What is left alone for a while after an error, and nothing else with it.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// When to try again after a failure, such as a full disk. It doubles with each failure in a row.
pub(super) const AFTER_AN_ERROR: Duration = Duration::from_secs(2);
/// The longest such pause.
pub(super) const AFTER_ERRORS_MAX: Duration = Duration::from_secs(16);

/// Items with which something went wrong, and when to look at each of them again. Times are those of
/// [`Clock::awake`](hearback_core::port::clock::Clock::awake).
#[derive(Debug)]
pub(super) struct Pauses<K>(HashMap<K, Pause>);

#[derive(Debug, Default)]
struct Pause {
    failures: u32,
    until: Duration,
}

impl<K> Default for Pauses<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Pauses<K> {
    /// Leaves an item alone from now on; tells for how long, and whether this is its first failure in a row.
    pub(super) fn fail(&mut self, item: K, now: Duration) -> (Duration, bool) {
        let pause = self.0.entry(item).or_default();
        let doubled = AFTER_AN_ERROR.saturating_mul(2_u32.saturating_pow(pause.failures));
        let left = doubled.min(AFTER_ERRORS_MAX);
        pause.failures += 1;
        pause.until = now.saturating_add(left);
        (left, pause.failures == 1)
    }

    /// Forgets the failures of an item.
    pub(super) fn succeed(&mut self, item: &K) {
        self.0.remove(item);
    }

    /// How much longer to leave an item alone; nothing when it may be looked at.
    pub(super) fn left(&self, item: &K, now: Duration) -> Option<Duration> {
        self.0.get(item)?.until.checked_sub(now).filter(|left| !left.is_zero())
    }

    /// Forgets the items that are no longer there.
    pub(super) fn retain(&mut self, is_there: impl Fn(&K) -> bool) {
        self.0.retain(|item, _| is_there(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_pauses_one_item_for_longer_each_time_and_is_new_once_in_a_row() {
        let (mut pauses, now) = (Pauses::default(), Duration::from_secs(900));
        assert_eq!(pauses.fail("a", now), (AFTER_AN_ERROR, true));
        assert_eq!((pauses.left(&"a", now), pauses.left(&"b", now)), (Some(AFTER_AN_ERROR), None));
        let later = now + AFTER_AN_ERROR;
        assert_eq!(pauses.left(&"a", later), None);
        assert_eq!(pauses.fail("a", later), (AFTER_AN_ERROR * 2, false), "it failed before");
        for _ in 0..40 {
            pauses.fail("a", later);
        }
        assert_eq!(pauses.left(&"a", later), Some(AFTER_ERRORS_MAX));
        pauses.succeed(&"a");
        assert_eq!(pauses.fail("a", later), (AFTER_AN_ERROR, true));
        pauses.retain(|item| *item != "a");
        assert_eq!(pauses.left(&"a", later), None);
    }
}
