//! Deliveries that are on their way: how many go out at once, and to whom.

use std::collections::HashSet;

use hearback_core::{JobId, Session};

/// So many deliveries go out at the same time, each to another session.
pub(super) const AT_ONCE: usize = 64;

/// Deliveries that are on their way.
#[derive(Debug)]
pub(super) struct Deliveries {
    out: Vec<(JobId, Option<Session>)>,
    /// Deliveries for which there was no room, or whose session is being notified, in the order in which they came.
    waiting: Vec<(JobId, Option<Session>)>,
    /// Jobs that were tried, for a monitor that tries each once.
    tried: Option<HashSet<JobId>>,
}

impl Deliveries {
    /// None yet. A monitor that does not stay tries each job once.
    pub(super) fn new(once: bool) -> Self {
        Self { out: Vec::new(), waiting: Vec::new(), tried: once.then(HashSet::new) }
    }

    /// Takes note of a delivery that is to go out now; tells whether it may. One that may not yet waits.
    pub(super) fn begin(&mut self, id: &JobId, session: Option<&Session>) -> bool {
        if self.has(id) || self.tried.as_ref().is_some_and(|tried| tried.contains(id)) {
            return false;
        }
        if !self.has_room_for(session) {
            if !self.waiting.iter().any(|(other, _)| other == id) {
                self.waiting.push((id.clone(), session.cloned()));
            }
            return false;
        }
        if let Some(tried) = &mut self.tried {
            tried.insert(id.clone());
        }
        self.out.push((id.clone(), session.cloned()));
        true
    }

    /// One at a time for a session: a second would only wait for its turn.
    fn has_room_for(&self, session: Option<&Session>) -> bool {
        let is_taken = |(_, of): &(JobId, Option<Session>)| session.is_some() && of.as_ref() == session;
        self.out.len() < AT_ONCE && !self.out.iter().any(is_taken)
    }

    /// The next job for which there is room now, and which had to wait.
    pub(super) fn next_waiting(&mut self) -> Option<JobId> {
        let at = self.waiting.iter().position(|(_, session)| self.has_room_for(session.as_ref()))?;
        Some(self.waiting.remove(at).0)
    }

    /// Whether the follow-up of this job is on its way.
    pub(super) fn has(&self, id: &JobId) -> bool {
        self.out.iter().any(|(other, _)| other == id)
    }

    /// Takes note that a delivery is back.
    pub(super) fn end(&mut self, id: &JobId) {
        self.out.retain(|(other, _)| other != id);
    }

    /// Whether none is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;

    fn session(n: u64) -> Session {
        Session::parse(format!("s{n}")).unwrap()
    }

    #[test]
    fn so_many_go_out_at_once_and_one_to_a_session() {
        let mut deliveries = Deliveries::new(false);
        let most = AT_ONCE as u64;
        assert!(deliveries.begin(&sample::id(0), Some(&session(0))));
        assert!(!deliveries.begin(&sample::id(0), Some(&session(0))), "it is on its way");
        assert!(!deliveries.begin(&sample::id(9999), Some(&session(0))), "its session is being notified");
        let out = (1..2 * most).filter(|n| deliveries.begin(&sample::id(*n), Some(&session(*n)))).count();
        assert_eq!(out + 1, AT_ONCE);
        assert_eq!(deliveries.next_waiting(), None);
        deliveries.end(&sample::id(0));
        assert_eq!(deliveries.next_waiting(), Some(sample::id(9999)), "the first that had to wait");
        assert!(deliveries.begin(&sample::id(9999), Some(&session(0))), "there is room again");
        assert!(!deliveries.is_idle());
    }

    #[test]
    fn deliveries_without_a_session_do_not_wait_for_each_other() {
        let mut deliveries = Deliveries::new(false);
        assert!(deliveries.begin(&sample::id(1), None) && deliveries.begin(&sample::id(2), None));
    }

    #[test]
    fn a_monitor_that_does_not_stay_tries_each_once() {
        let mut deliveries = Deliveries::new(true);
        assert!(deliveries.begin(&sample::id(1), None));
        deliveries.end(&sample::id(1));
        assert!(deliveries.is_idle() && !deliveries.begin(&sample::id(1), None));
        // One that had to wait for its session has not been tried.
        assert!(deliveries.begin(&sample::id(2), Some(&session(1))));
        assert!(!deliveries.begin(&sample::id(3), Some(&session(1))));
        deliveries.end(&sample::id(2));
        assert!(deliveries.begin(&sample::id(3), Some(&session(1))));
    }
}
