//! What is left alone for a while after an error, and nothing else with it.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// When to try again after a failure of the store itself, such as a full disk.
pub(super) const AFTER_AN_ERROR: Duration = Duration::from_secs(2);

/// Items with which something went wrong, and when to look at each of them again. Times are those of
/// [`Clock::awake`](hearback_core::port::clock::Clock::awake).
#[derive(Debug)]
pub(super) struct Pauses<K>(HashMap<K, Duration>);

impl<K> Default for Pauses<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Pauses<K> {
    /// Leaves an item alone from now on; tells whether this is its first failure in a row.
    pub(super) fn fail(&mut self, item: K, now: Duration) -> bool {
        self.0.insert(item, now.saturating_add(AFTER_AN_ERROR)).is_none()
    }

    /// Forgets the failures of an item.
    pub(super) fn succeed(&mut self, item: &K) {
        self.0.remove(item);
    }

    /// How much longer to leave an item alone; nothing when it may be looked at.
    pub(super) fn left(&self, item: &K, now: Duration) -> Option<Duration> {
        self.0.get(item)?.checked_sub(now).filter(|left| !left.is_zero())
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
    fn a_failure_pauses_one_item_and_is_new_once_in_a_row() {
        let (mut pauses, now) = (Pauses::default(), Duration::from_secs(900));
        assert!(pauses.fail("a", now));
        assert_eq!((pauses.left(&"a", now), pauses.left(&"b", now)), (Some(AFTER_AN_ERROR), None));
        let later = now + AFTER_AN_ERROR;
        assert_eq!(pauses.left(&"a", later), None);
        assert!(!pauses.fail("a", later), "it failed before");
        pauses.succeed(&"a");
        assert!(pauses.fail("a", later));
        pauses.retain(|item| *item != "a");
        assert_eq!(pauses.left(&"a", later), None);
    }
}
