//! What a monitor, or a host of sessions, has to look at, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Jobs or sessions that are to be looked at. Times are those of
/// [`Clock::awake`](hearback_core::port::clock::Clock::awake).
#[derive(Debug)]
pub struct Agenda<K> {
    now: BTreeSet<K>,
    later: BTreeMap<K, Duration>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self { now: BTreeSet::new(), later: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Agenda<K> {
    /// An item is to be looked at as soon as possible, however often this is said.
    pub fn add(&mut self, item: K) {
        self.now.insert(item);
    }

    /// An item is to be looked at then, and not at the time that was said before.
    pub fn add_at(&mut self, item: K, when: Duration) {
        self.later.insert(item, when);
    }

    /// An item is looked at now: the next one of those whose time has come, in order.
    pub fn take_next(&mut self) -> Option<K> {
        let item = self.now.pop_first()?;
        self.later.remove(&item);
        Some(item)
    }

    /// Takes note of the time.
    pub fn advance(&mut self, now: Duration) {
        let due = self.later.iter().filter(|(_, when)| **when <= now).map(|(item, _)| item.clone());
        self.now.extend(due);
    }

    /// How long nothing has to be looked at; none if there is nothing at any time.
    pub fn pause(&self, now: Duration) -> Option<Duration> {
        if !self.now.is_empty() {
            return Some(Duration::ZERO);
        }
        self.later.values().min().map(|when| when.saturating_sub(now))
    }

    /// Whether nothing has to be looked at now.
    pub fn is_done(&self) -> bool {
        self.now.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_once_and_in_order_and_the_rest_when_its_time_has_come() {
        let mut agenda = Agenda::default();
        let second = Duration::from_secs(1);
        assert_eq!(agenda.pause(second), None);
        for item in ["b", "a", "b"] {
            agenda.add(item);
        }
        agenda.add_at("c", second * 9);
        agenda.add_at("c", second * 5);
        agenda.add_at("a", second * 2);
        assert_eq!(agenda.pause(second), Some(Duration::ZERO));
        agenda.advance(second);
        assert_eq!(
            (agenda.take_next(), agenda.take_next(), agenda.take_next()),
            (Some("a"), Some("b"), None)
        );
        assert_eq!(agenda.pause(second), Some(second * 4), "what was looked at has no time any more");
        agenda.advance(second * 5);
        assert_eq!((agenda.take_next(), agenda.take_next(), agenda.is_done()), (Some("c"), None, true));
    }
}
