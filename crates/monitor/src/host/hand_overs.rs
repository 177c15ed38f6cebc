//! Sessions whose messages are being handed over: one thread each.

use std::collections::HashSet;

use hearback_core::Session;

/// Sessions whose messages are being handed over.
#[derive(Debug)]
pub(super) struct HandOvers {
    out: HashSet<Session>,
    /// Sessions that were visited, for a monitor that visits each once.
    visited: Option<HashSet<Session>>,
}

impl HandOvers {
    /// None yet. A monitor that does not stay visits each session once.
    pub(super) fn new(once: bool) -> Self {
        Self { out: HashSet::new(), visited: once.then(HashSet::new) }
    }

    /// Takes note of a session whose messages are to be handed over now; tells whether they may.
    pub(super) fn begin(&mut self, session: &Session) -> bool {
        let is_first = self.visited.as_mut().is_none_or(|visited| visited.insert(session.clone()));
        is_first && self.out.insert(session.clone())
    }

    /// Takes note that a session was visited.
    pub(super) fn end(&mut self, session: &Session) {
        self.out.remove(session);
    }

    /// Whether no messages are being handed over.
    pub(super) fn is_idle(&self) -> bool {
        self.out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_visited_by_one_thread_and_by_a_monitor_that_does_not_stay_once() {
        let session = Session::parse("s").unwrap();
        for once in [false, true] {
            let mut hand_overs = HandOvers::new(once);
            assert!(hand_overs.begin(&session) && !hand_overs.begin(&session) && !hand_overs.is_idle());
            hand_overs.end(&session);
            assert!(hand_overs.is_idle());
            assert_eq!(hand_overs.begin(&session), !once);
        }
    }
}
