//! The loop of a monitor: take requests, look at the store, hear what happens.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hearback_core::port::disk::Lock;
use hearback_core::port::record::StoreError;
use hearback_core::{JobId, Session};
use tracing::warn;

use super::deliveries::Deliveries;
use super::hand_overs::HandOvers;
use super::listen::listen;
use super::monitor::{Monitor, MonitorEnd, MonitorOptions};
use super::news::{News, Task, hear};
use super::pauses::{AFTER_AN_ERROR, Pauses};
use super::pruning::Pruning;
use super::sleepers::Sleepers;
use super::workers::Workers;

/// How many rounds in a row may fail before a monitor gives up.
const ERRORS_MAX: u32 = 30;

/// The loop of a monitor, with everything that it remembers from one round to the next.
pub(super) struct Loop {
    pub(super) monitor: Arc<Monitor>,
    pub(super) options: MonitorOptions,
    pub(super) workers: Workers,
    heard: Receiver<News>,
    /// Held by one monitor of the store. It tells supervisors that they need not stay for the next attempt.
    pub(super) host: Option<Lock>,
    pub(super) deliveries: Deliveries,
    pub(super) hand_overs: HandOvers,
    pub(super) sleepers: Sleepers,
    pub(super) job_pauses: Pauses<JobId>,
    pub(super) session_pauses: Pauses<Session>,
    pub(super) pruning: Pruning,
    /// Rounds in a row that failed.
    errors: u32,
    /// The first failure with a single job or session, for a monitor that does not stay.
    pub(super) failure: Option<StoreError>,
}

/// What came of one round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// The monitor has ended.
    End(MonitorEnd),
    /// Look again after this long, or when something happens.
    LookAgainIn(Duration),
}

impl Loop {
    pub(super) fn new(monitor: &Arc<Monitor>, options: &MonitorOptions) -> Self {
        let (news, heard) = channel();
        Self {
            monitor: Arc::clone(monitor),
            options: options.clone(),
            workers: Workers::new(monitor, news),
            heard,
            host: None,
            deliveries: Deliveries::new(options.once),
            hand_overs: HandOvers::new(options.once),
            sleepers: Sleepers::default(),
            job_pauses: Pauses::default(),
            session_pauses: Pauses::default(),
            pruning: Pruning::default(),
            errors: 0,
            failure: None,
        }
    }

    pub(super) fn run(mut self) -> Result<MonitorEnd, StoreError> {
        if !self.options.once {
            listen(&self.monitor, &self.workers)?;
        }
        loop {
            let pause = match self.round() {
                Ok(Round::End(end)) => return Ok(end),
                Ok(Round::LookAgainIn(pause)) => {
                    self.errors = 0;
                    pause
                }
                Err(error) => self.rest_after(error)?,
            };
            if let Some(end) = self.hear(pause) {
                return Ok(end);
            }
        }
    }

    /// Takes requests first, and then looks at the store.
    pub(super) fn round(&mut self) -> Result<Round, StoreError> {
        if let Some(kind) = self.obey()? {
            return Ok(Round::End(MonitorEnd::Stopped(kind)));
        }
        let pause = self.look()?;
        if self.options.once && self.deliveries.is_idle() && self.hand_overs.is_idle() {
            return self.failure.take().map_or(Ok(Round::End(MonitorEnd::Done)), Err);
        }
        Ok(Round::LookAgainIn(pause))
    }

    /// A failure that passes, such as too many open files, is no reason to interrupt turns.
    fn rest_after(&mut self, error: StoreError) -> Result<Duration, StoreError> {
        if self.options.once || self.errors >= ERRORS_MAX {
            return Err(error);
        }
        self.errors += 1;
        warn!(%error, round = self.errors, "store cannot be read, trying again");
        Ok(AFTER_AN_ERROR)
    }

    /// Sleeps until something happens, and takes note of it.
    pub(super) fn hear(&mut self, within: Duration) -> Option<MonitorEnd> {
        for news in hear(&self.heard, within) {
            match news {
                News::Stop => {
                    if let Some(end) = self.stop_by_signal() {
                        return Some(end);
                    }
                }
                News::Host(lock, since) => self.become_host(lock, &since),
                News::Finished(task, result) => self.finish(task, result),
                News::Changed => {}
            }
        }
        None
    }

    fn finish(&mut self, task: Task, result: Result<(), String>) {
        let now = self.now();
        match task {
            Task::Deliver(id) => {
                self.deliveries.end(&id);
                match result {
                    Ok(()) => self.job_pauses.succeed(&id),
                    Err(error) => {
                        if self.job_pauses.fail(id.clone(), now) {
                            warn!(job = %id, error, "follow-up not attempted");
                        }
                    }
                }
            }
            Task::HandOver(session) => {
                self.hand_overs.end(&session);
                match result {
                    // When the next attempt is due is seen by looking.
                    Ok(()) => self.session_pauses.succeed(&session),
                    Err(error) => {
                        self.session_pauses.fail(session.clone(), now);
                        warn!(%session, error, "messages not handed over");
                    }
                }
            }
            Task::AwaitJob(id) => {
                self.sleepers.end(&id);
                if result.is_err() {
                    self.job_pauses.fail(id, now);
                }
            }
            Task::AwaitLaunch(_) => {}
            Task::Resume(session) => {
                if let Err(error) = result {
                    warn!(%session, error, "session not continued");
                }
            }
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.monitor.ports.clock.awake()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{LONG, World};
    use crate::testing::Events;
    use hearback_core::StopKind;
    use hearback_core::port::session::SessionStore;

    #[test]
    fn a_request_is_taken_before_new_work() {
        let world = World::new();
        world.ended(1, "s");
        let mut host = world.host();
        world.request(StopKind::Drain);
        assert_eq!(host.round().unwrap(), Round::End(MonitorEnd::Stopped(StopKind::Drain)));
        assert_eq!(world.delivered(), []);
        let facts = world.store.host().unwrap();
        assert!(facts.open_request().is_none(), "it is answered");
    }

    #[test]
    fn a_monitor_that_is_not_the_host_takes_no_requests() {
        let world = World::new();
        let id = world.ended(1, "s");
        world.request(StopKind::Stop);
        let mut monitor = world.stays();
        assert!(matches!(monitor.round().unwrap(), Round::LookAgainIn(_)));
        assert_eq!(monitor.hear(LONG), None);
        assert_eq!(world.delivered(), [id]);
    }

    #[test]
    fn a_monitor_that_does_not_stay_does_what_is_due_and_says_what_failed() {
        let world = World::new();
        let (broken, fine) = (world.ended(1, "a"), world.ended(2, "b"));
        world.store.refuse_locks(&broken);
        let once = MonitorOptions { once: true, ..MonitorOptions::default() };
        assert!(world.monitor.run(&once).is_err());
        assert_eq!(world.delivered(), std::slice::from_ref(&fine));
        assert_eq!(world.relaunch.deliverers(), [fine], "a process of its own would make further attempts");
        let world = World::new();
        assert_eq!(world.monitor.run(&once).unwrap(), MonitorEnd::Done);
    }

    #[test]
    fn the_host_records_a_signal_as_a_request_and_ends() {
        let world = World::new();
        let id = world.ended(1, "s");
        let (sender, ended) = channel();
        let monitor = Arc::clone(&world.monitor);
        std::thread::spawn(move || sender.send(monitor.run(&MonitorOptions::default())));
        let until = |is_so: &dyn Fn() -> bool| {
            for _ in 0..LONG.as_millis() {
                if is_so() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("it never was so");
        };
        until(&|| world.delivered() == [id.clone()]);
        until(&|| world.store.host().unwrap().last_begin().is_some());
        world.stop.request();
        let end = ended.recv_timeout(LONG).unwrap().unwrap();
        assert_eq!(end, MonitorEnd::Stopped(StopKind::Stop));
        let facts = world.store.host().unwrap();
        assert!(facts.requests.len() == 1 && facts.open_request().is_none(), "{facts:?}");
    }

    #[test]
    fn a_round_that_fails_is_followed_by_a_rest_and_the_last_of_many_ends_the_monitor() {
        let world = World::new();
        let mut monitor = world.stays();
        let error = || StoreError::Io(std::io::ErrorKind::Other.into());
        let events = Events::default();
        events.of(|| {
            for _ in 0..ERRORS_MAX {
                assert_eq!(monitor.rest_after(error()).unwrap(), AFTER_AN_ERROR);
            }
            assert!(monitor.rest_after(error()).is_err());
        });
        assert_eq!(events.with("store cannot be read").len(), ERRORS_MAX as usize);
    }
}
