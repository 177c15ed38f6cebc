//! Delivering the messages of a session until none waits, in a process of its own while no monitor runs.

use std::time::Duration;

use hearback_core::Session;
use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionLock;
use tracing::warn;

use super::due::Due;
use super::inbox::Inbox;

/// How long to rest after an error of the store; longer each time.
const AFTER_AN_ERROR: Duration = Duration::from_secs(2);
/// A process that waits for the next attempt looks this often whether something else is next.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(30);

impl Inbox<'_> {
    /// Delivers the messages of a session until none waits, and sleeps between attempts. Returns early if another
    /// process does this, or if a monitor runs, which does it from then on.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn deliver_until_empty(&self, session: &Session) -> Result<(), StoreError> {
        let ports = self.turns.ports;
        loop {
            let (lock, mode) = (SessionLock::Messenger, LockMode::Exclusive);
            let Some(mine) = ports.sessions.lock_session(session, lock, mode, Wait::Try)? else {
                return Ok(()); // The process that holds the lock looks again after it has released it.
            };
            let mut errors = 0;
            loop {
                let pause = match self.hand_over_when_free(session, Wait::Block) {
                    Ok(None) => break,
                    Ok(Some(pause)) => pause,
                    // For instance a full disk. The messages still have to be delivered.
                    Err(error) => {
                        errors += 1;
                        if errors == 1 {
                            warn!(%session, %error, "messages not handed over, trying again");
                        }
                        AFTER_AN_ERROR * errors
                    }
                };
                if ports.is_monitored() {
                    return Ok(());
                }
                // Not longer: the message in front, which the others wait for, may be dropped meanwhile.
                std::thread::sleep(pause.min(LOOK_AT_LEAST_EVERY));
            }
            drop(mine);
            let facts = ports.sessions.session(session)?;
            if self.due(&facts) == Due::Never {
                return Ok(());
            }
        }
    }

    /// Hands over what is due for a session when it is not in a turn; returns when to come back, if ever.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn hand_over_when_free(&self, session: &Session, wait: Wait) -> Result<Option<Duration>, StoreError> {
        let Some(_lock) = self.turns.ports.lock_turn(session, wait)? else { return Ok(None) };
        Ok(match self.hand_over(session)? {
            Due::In(pause) => Some(pause),
            // A process that is about to end leaves the rest to the next one.
            Due::Never | Due::Now(_) | Due::GiveUp { .. } | Due::Expired => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::Durability;
    use hearback_core::port::session::SessionStore;
    use hearback_core::port::sink::SinkReply;
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeSink, FakeStore, sample};

    use crate::Ports;
    use crate::delivery::Retry;
    use crate::session::{ActiveTurns, Turns};

    /// Delivers the messages of session `s` in this store to this sink; returns how many the sink got.
    fn deliver_until_empty(store: &FakeStore, sink: &FakeSink) -> usize {
        let ports = Ports::new(
            store.clone(),
            FakeProcesses::default(),
            FakeClock::default(),
            FakeExecutor::default(),
        );
        let (window, durability, active_turns) =
            (Duration::ZERO, Durability::Process, &ActiveTurns::default());
        let turns = Turns { ports: &ports, active_turns, window, durability };
        let inbox = Inbox { turns, sinks: sink, retry: Retry::default() };
        inbox.deliver_until_empty(&Session::parse("s").unwrap()).unwrap();
        sink.payloads().len()
    }

    fn store() -> FakeStore {
        let store = FakeStore::default();
        store.queue(&sample::message("s", "one"), Durability::Process).unwrap();
        store.queue(&sample::message("s", "two"), Durability::Process).unwrap();
        store
    }

    #[test]
    fn everything_that_waits_is_handed_over_unless_another_process_does_it() {
        let (store, session) = (store(), Session::parse("s").unwrap());
        let lock = || store.lock_session(&session, SessionLock::Messenger, LockMode::Exclusive, Wait::Try);
        let other = lock().unwrap();
        assert_eq!(deliver_until_empty(&store, &FakeSink::default()), 0);
        drop(other);
        assert_eq!(deliver_until_empty(&store, &FakeSink::default()), 2);
        assert_eq!(deliver_until_empty(&store, &FakeSink::default()), 0, "nothing waits any more");
    }

    #[test]
    fn the_next_attempt_is_left_to_a_monitor_that_runs() {
        let store = store();
        let _monitor = store.lock_monitor(LockMode::Exclusive, Wait::Try).unwrap();
        let later = FakeSink::answering([SinkReply::RetryAfter { millis: 3_600_000 }]);
        assert_eq!(deliver_until_empty(&store, &later), 1);
    }
}
