//! Becoming the host: closing what the host before left open, and continuing sessions that it interrupted.

use hearback_core::port::disk::{Lock, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::session::fold_session;
use hearback_core::{
    Extra, FORMAT, HostBegin, HostFact, HostFacts, LockState, Session, Stamp, StopDone, StopRequest,
};
use tracing::{info, warn};

use super::monitor::Monitor;
use super::news::Task;
use super::run::Loop;

/// How many hosts and requests to them are remembered.
const HOSTS_KEPT: usize = 8;

impl Loop {
    /// Begins as the host, whose lock this monitor holds since `since`. On a full disk it looks after the store all the
    /// same.
    pub(super) fn become_host(&mut self, lock: Lock, since: &Stamp) {
        self.host = Some(lock);
        info!(service = self.options.service, "this monitor is the host");
        let begun = begin(&self.monitor, since, self.options.service);
        if let Err(error) = begun.and_then(|()| self.resume_sessions()) {
            warn!(%error, "what the host before left open stays open");
        }
    }

    /// Turns that were interrupted go on, each at most once for each host that begins.
    fn resume_sessions(&self) -> Result<(), StoreError> {
        for session in self.monitor.ports.sessions.sessions()? {
            match is_interrupted(&self.monitor, &session) {
                Ok(true) => self.resume(session),
                Ok(false) => {}
                Err(error) => {
                    warn!(%session, %error, "session not continued");
                }
            }
        }
        Ok(())
    }

    /// Continues a session as soon as it is not in a turn.
    fn resume(&self, session: Session) {
        self.workers.spawn(Task::Resume(session.clone()), move |monitor| {
            let Some(_lock) = monitor.ports.lock_turn(&session, Wait::Block)? else { return Ok(()) };
            monitor.inbox().resume(&session, monitor.policy.default_sink.as_deref()).map(drop)
        });
    }
}

fn is_interrupted(monitor: &Monitor, session: &Session) -> Result<bool, StoreError> {
    let facts = monitor.ports.sessions.session(session)?;
    Ok(fold_session(&facts, LockState::Free).interrupted.is_some())
}

/// Closes requests that the host before has left open, and records that another has begun.
fn begin(monitor: &Monitor, since: &Stamp, service: bool) -> Result<(), StoreError> {
    let (ports, durability) = (&monitor.ports, monitor.policy.durability);
    let facts = ports.sessions.host()?;
    for n in left_open(&facts, since, &ports.clock.stamp()) {
        let at = ports.clock.stamp();
        let done = StopDone { format: FORMAT, at, interrupted: None, extra: Extra::new() };
        let _ = ports.sessions.publish_host(n, &HostFact::Done(done), durability)?;
    }
    let begin = HostBegin {
        format: FORMAT,
        process: ports.processes.me()?,
        at: ports.clock.stamp(),
        service,
        version: monitor.policy.version.clone(),
        extra: Extra::new(),
    };
    let n = facts.begins.last().map_or(0, |(n, _)| *n) + 1;
    let _ = ports.sessions.publish_host(n, &HostFact::Begin(begin), durability)?;
    ports.sessions.forget_host(HOSTS_KEPT)?;
    Ok(())
}

/// The requests that the host before did not close. What was requested since this one holds the lock is for this one.
fn left_open(facts: &HostFacts, since: &Stamp, now: &Stamp) -> Vec<u32> {
    let is_ours = |request: &StopRequest| request.at.age_ms(now) <= since.age_ms(now);
    let open = facts.requests.iter().filter(|(_, facts)| facts.done.is_absent());
    open.filter(|(_, facts)| !facts.request.present().is_some_and(is_ours)).map(|(n, _)| *n).collect()
}
