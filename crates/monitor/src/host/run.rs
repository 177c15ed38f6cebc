//! The loop of a monitor: hear what happened, take requests, look at what has changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hearback_core::port::record::StoreError;
use hearback_core::port::watch::Changes;
use hearback_core::{JobId, Session};
use tracing::warn;

use super::agenda::Agenda;
use super::begin::Host;
use super::closing::Closing;
use super::deliveries::Deliveries;
use super::hand_overs::HandOvers;
use super::listen;
use super::monitor::{Monitor, MonitorEnd, MonitorOptions};
use super::news::{News, Task, hear};
use super::pauses::{AFTER_AN_ERROR, Pauses};
use super::pruning::Pruning;
use super::updates::Updates;
use super::workers::Workers;

/// How many looks at everything may fail in a row, for a reason that does not pass by itself, before a monitor gives
/// up.
const ERRORS_MAX: u32 = 30;
/// A monitor looks at everything at least this often, whatever it heard.
pub(super) const LOOK_AT_ALL_EVERY: Duration = Duration::from_secs(60);

/// The loop of a monitor, with everything that it remembers from one round to the next.
pub(super) struct Loop {
    pub(super) monitor: Arc<Monitor>,
    pub(super) options: MonitorOptions,
    pub(super) workers: Workers,
    heard: Receiver<News>,
    /// One monitor of the store is the host.
    pub(super) host: Option<Host>,
    /// Whether there may be a request to the host.
    pub(super) is_asked: bool,
    /// What has to be looked at.
    pub(super) jobs: Agenda<JobId>,
    pub(super) sessions: Agenda<Session>,
    /// Sessions whose last turn may have to be continued.
    pub(super) to_resume: BTreeSet<Session>,
    /// When to look at everything.
    look_at_all_at: Duration,
    pub(super) closing: Closing,
    pub(super) updates: Updates,
    pub(super) deliveries: Deliveries,
    pub(super) hand_overs: HandOvers,
    pub(super) job_pauses: Pauses<JobId>,
    pub(super) session_pauses: Pauses<Session>,
    /// Folders of sessions that cannot be read, and were named.
    pub(super) unreadable: BTreeSet<String>,
    pub(super) pruning: Pruning,
    /// Looks at everything in a row that failed.
    errors: u32,
    /// The first failure with a single job or session, for a monitor that does not stay.
    failure: Option<StoreError>,
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
            is_asked: false,
            jobs: Agenda::default(),
            sessions: Agenda::default(),
            to_resume: BTreeSet::new(),
            look_at_all_at: Duration::ZERO,
            closing: Closing::default(),
            updates: Updates::default(),
            deliveries: Deliveries::new(options.once),
            hand_overs: HandOvers::new(options.once),
            job_pauses: Pauses::default(),
            session_pauses: Pauses::default(),
            unreadable: BTreeSet::new(),
            pruning: Pruning::default(),
            errors: 0,
            failure: None,
        }
    }

    pub(super) fn run(mut self) -> Result<MonitorEnd, StoreError> {
        if !self.options.once {
            self.listen()?;
        }
        loop {
            let pause = match self.round() {
                Ok(Round::End(end)) => return Ok(end),
                Ok(Round::LookAgainIn(pause)) => pause,
                Err(error) => {
                    self.rest_after(error)?;
                    Duration::ZERO
                }
            };
            if let Some(end) = self.hear(pause) {
                return Ok(end);
            }
        }
    }

    /// Starts the threads that listen. If there is none to be had, it tries again for a while.
    fn listen(&self) -> Result<(), StoreError> {
        for start in listen::ALL {
            let mut tries = 0;
            while let Err(error) = start(&self.monitor, &self.workers) {
                tries += 1;
                if tries >= ERRORS_MAX {
                    return Err(error.into());
                }
                warn!(%error, "no thread to listen with, trying again");
                std::thread::sleep(AFTER_AN_ERROR);
            }
        }
        Ok(())
    }

    /// Takes requests first, and then looks at what has changed.
    pub(super) fn round(&mut self) -> Result<Round, StoreError> {
        let now = self.now();
        let is_time = now >= self.look_at_all_at;
        // After an error the store as a whole is left alone for a while, whatever is heard.
        if is_time || (self.is_asked && self.errors == 0) {
            if let Some(kind) = self.obey()? {
                return Ok(Round::End(MonitorEnd::Stopped(kind)));
            }
            self.is_asked = false;
        }
        if is_time {
            self.add_all()?;
            self.look_at_all_at = now.saturating_add(LOOK_AT_ALL_EVERY);
            self.errors = 0;
        }
        self.begin_as_host();
        let pause = self.look();
        if self.options.once && self.is_done() {
            return self.failure.take().map_or(Ok(Round::End(MonitorEnd::Done)), Err);
        }
        let now = self.now();
        let host = self.host.as_ref().and_then(|host| host.pause(now));
        let all = self.look_at_all_at.saturating_sub(now);
        Ok(Round::LookAgainIn(pause.into_iter().chain(host).fold(all, Duration::min)))
    }

    /// Whether nothing is left to do now.
    fn is_done(&self) -> bool {
        let is_idle = self.deliveries.is_idle() && self.hand_overs.is_idle() && self.updates.is_idle();
        is_idle && self.pruning.is_idle() && self.jobs.is_done() && self.sessions.is_done()
    }

    /// A failure is no reason to interrupt turns: too many open files pass, and so does a disk that does not answer.
    /// What does not pass by itself is waited for, too, and then this monitor ends in good order.
    fn rest_after(&mut self, error: StoreError) -> Result<(), StoreError> {
        if self.options.once {
            return Err(error);
        }
        let is_first = self.errors == 0;
        self.errors += u32::from(is_first || !may_pass(&error));
        if self.errors > ERRORS_MAX {
            self.drain(None, &self.stop_request());
            return Err(error);
        }
        if is_first {
            warn!(%error, "store cannot be read, trying again");
        }
        self.look_at_all_at = self.now().saturating_add(AFTER_AN_ERROR);
        Ok(())
    }

    /// Sleeps until something happens, and takes note of it.
    pub(super) fn hear(&mut self, within: Duration) -> Option<MonitorEnd> {
        for news in hear(&self.heard, within) {
            match news {
                News::Stop => return Some(self.stop_by_signal()),
                News::Host(lock, since) => self.become_host(lock, &since),
                News::Finished(task, result) => self.finish(task, result),
                News::Changed(changes) => self.add_changes(changes),
            }
        }
        None
    }

    fn add_changes(&mut self, changes: Changes) {
        self.is_asked |= changes.host;
        if changes.everything && self.errors == 0 {
            self.look_at_all_at = self.now();
        }
        for (id, lock) in changes.closed {
            self.closing.add(id.clone(), lock);
            self.jobs.add(id);
        }
        changes.jobs.into_iter().for_each(|id| self.jobs.add(id));
        changes.sessions.into_iter().for_each(|session| self.sessions.add(session));
    }

    fn finish(&mut self, task: Task, result: Result<(), StoreError>) {
        match task {
            Task::Deliver(id) => {
                self.deliveries.end(&id);
                match result {
                    // When the next attempt is due is seen by looking.
                    Ok(()) => self.job_pauses.succeed(&id),
                    Err(error) => self.fail_job(&id, "follow-up not attempted", error),
                }
                self.jobs.add(id);
            }
            Task::Update(id) => {
                if let Some(next) = self.updates.end(&id) {
                    self.jobs.add(next);
                }
                if let Err(error) = result {
                    self.fail_update(&id, error);
                }
                self.jobs.add(id);
            }
            Task::HandOver(session) => {
                self.hand_overs.end(&session);
                match result {
                    Ok(()) => self.session_pauses.succeed(&session),
                    Err(error) => self.fail_session(&session, "messages not handed over", error),
                }
                self.sessions.add(session);
            }
            Task::Resume(session) => {
                if let Err(error) = result {
                    self.fail_session(&session, "session not continued", error);
                    self.to_resume.insert(session);
                }
            }
            Task::Prune => {
                self.pruning.end();
                if let Err(error) = result {
                    warn!(%error, "store not pruned");
                    self.keep_for_the_end(error);
                }
            }
        }
    }

    /// A monitor that does not stay returns the first failure when it is done.
    pub(super) fn keep_for_the_end(&mut self, error: StoreError) {
        if self.options.once {
            self.failure.get_or_insert(error);
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.monitor.ports.clock.awake()
    }
}

/// Whether a failure may pass by itself. Only what has to be changed by a person does not.
fn may_pass(error: &StoreError) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match error {
        StoreError::Io(error) => !matches!(error.kind(), NotADirectory | NotFound | PermissionDenied),
        _ => false,
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
        while !monitor.is_done() {
            assert_eq!(monitor.hear(LONG), None);
            assert!(matches!(monitor.round().unwrap(), Round::LookAgainIn(_)));
        }
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
        assert_eq!(world.relaunch.deliverers(), 1, "a process of its own would make further attempts");
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
    fn a_look_that_fails_is_followed_by_a_rest_and_only_what_does_not_pass_ends_the_monitor() {
        let world = World::new();
        let mut monitor = world.stays();
        let error = |kind: std::io::ErrorKind| StoreError::Io(kind.into());
        let events = Events::default();
        events.of(|| {
            for _ in 0..10 * ERRORS_MAX {
                monitor.rest_after(error(std::io::ErrorKind::Other)).unwrap();
            }
            // The rest is really taken, whatever is heard.
            let changes = || News::Changed(Changes::everything());
            monitor.workers.tell(changes());
            assert_eq!(monitor.hear(LONG), None);
            assert_eq!(monitor.round().unwrap(), Round::LookAgainIn(AFTER_AN_ERROR));
            for _ in 1..ERRORS_MAX {
                monitor.rest_after(error(std::io::ErrorKind::PermissionDenied)).unwrap();
            }
            assert!(monitor.rest_after(error(std::io::ErrorKind::PermissionDenied)).is_err());
        });
        assert_eq!(events.with("store cannot be read").len(), 1, "it is said once");
    }
}
