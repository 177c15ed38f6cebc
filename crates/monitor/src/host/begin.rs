//! Becoming the host: closing what the host before left open, and continuing sessions that it interrupted.

use std::time::Duration;

use hearback_core::port::disk::{Lock, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::session::fold_session;
use hearback_core::{
    Extra, FORMAT, HostBegin, HostFact, HostFacts, LockState, Session, Stamp, StopDone, StopRequest,
};
use tracing::{debug, info, warn};

use super::monitor::Monitor;
use super::news::Task;
use super::pauses::{AFTER_AN_ERROR, AFTER_ERRORS_MAX};
use super::run::Loop;

/// How many hosts and requests to them are remembered.
const HOSTS_KEPT: usize = 8;

/// What this monitor is as the host.
#[derive(Debug)]
pub(super) struct Host {
    /// It tells supervisors that they need not stay for the next attempt.
    _lock: Lock,
    since: Stamp,
    is_recorded: bool,
    /// Whether it is known which sessions have to be continued.
    has_looked: bool,
    /// When to try again what failed; none if nothing is left to do.
    again_at: Option<Duration>,
}

impl Host {
    /// How long nothing has to be tried again.
    pub(super) fn pause(&self, now: Duration) -> Option<Duration> {
        Some(self.again_at?.saturating_sub(now))
    }
}

impl Loop {
    /// Begins as the host, whose lock this monitor holds since `since`. On a full disk it looks after the store all the
    /// same.
    pub(super) fn become_host(&mut self, lock: Lock, since: &Stamp) {
        info!(service = self.options.service, "this monitor is the host");
        let (since, again_at) = (since.clone(), Some(Duration::ZERO));
        self.host = Some(Host { _lock: lock, since, is_recorded: false, has_looked: false, again_at });
        self.is_asked = true;
        self.begin_as_host();
    }

    /// Does what is left to do when this monitor has become the host.
    pub(super) fn begin_as_host(&mut self) {
        let now = self.now();
        let Some(host) = &mut self.host else { return };
        if host.again_at.is_none_or(|again_at| now < again_at) {
            return;
        }
        host.again_at = None;
        if let Err(error) = begin(&self.monitor, host, self.options.service) {
            warn!(%error, "what the host before left open stays open, trying again");
            host.again_at = Some(now.saturating_add(AFTER_ERRORS_MAX));
        }
        if !host.has_looked {
            match self.monitor.ports.sessions.sessions() {
                Ok(sessions) => {
                    host.has_looked = true;
                    self.to_resume.extend(sessions.iter().cloned());
                    sessions.into_iter().for_each(|session| self.sessions.add(session));
                }
                Err(error) => {
                    warn!(%error, "interrupted sessions not continued, trying again");
                    host.again_at = Some(now.saturating_add(AFTER_AN_ERROR));
                }
            }
        }
    }

    /// Continues a session whose last turn was interrupted, as soon as it is not in a turn: at most once for each host
    /// that begins.
    pub(super) fn resume(&mut self, session: &Session) -> Result<(), StoreError> {
        if !self.to_resume.contains(session) {
            return Ok(());
        }
        let is_interrupted = is_interrupted(&self.monitor, session)?;
        self.to_resume.remove(session);
        if is_interrupted {
            let session = session.clone();
            self.workers.spawn(Task::Resume(session.clone()), move |monitor| {
                let Some(_lock) = monitor.ports.lock_turn(&session, Wait::Block)? else { return Ok(()) };
                monitor.inbox().resume(&session, monitor.policy.default_sink.as_deref()).map(drop)
            });
        }
        Ok(())
    }
}

fn is_interrupted(monitor: &Monitor, session: &Session) -> Result<bool, StoreError> {
    let facts = monitor.ports.sessions.session(session)?;
    Ok(fold_session(&facts, LockState::Free).interrupted.is_some())
}

/// Closes requests that the host before has left open, and records that another has begun.
fn begin(monitor: &Monitor, host: &mut Host, service: bool) -> Result<(), StoreError> {
    if host.is_recorded {
        return Ok(());
    }
    let (ports, durability) = (&monitor.ports, monitor.policy.durability);
    let facts = ports.sessions.host()?;
    for n in left_open(&facts, &host.since, &ports.clock.stamp()) {
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
    host.is_recorded = true;
    if let Err(error) = ports.sessions.forget_host(HOSTS_KEPT) {
        debug!(%error, "earlier hosts not forgotten");
    }
    Ok(())
}

/// The requests that the host before did not close. What was requested since this one holds the lock is for this one.
fn left_open(facts: &HostFacts, since: &Stamp, now: &Stamp) -> Vec<u32> {
    let is_ours = |request: &StopRequest| request.at.age_ms(now) <= since.age_ms(now);
    let open = facts.requests.iter().filter(|(_, facts)| facts.done.is_absent());
    open.filter(|(_, facts)| !facts.request.present().is_some_and(is_ours)).map(|(n, _)| *n).collect()
}
