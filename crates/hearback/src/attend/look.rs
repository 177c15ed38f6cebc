//! Looking at what has changed for a host: what is due is handed over, in a turn or into one that runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::Builder;
use std::time::Duration;

use hearback_core::port::disk::Wait;
use hearback_core::port::record::{FactStore, Housekeeping, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::HOST_SINK;
use hearback_core::session::fold_session;
use hearback_core::{JobId, LockState, Session, StopKind};
use hearback_monitor::delivery::{Due, Turn};
use hearback_monitor::host::Agenda;
use hearback_monitor::reconcile;
use tracing::{debug, warn};

use super::host::{Attend, Host};
use super::sink::HostSinks;
use super::turns::HostNews;

/// A host looks at everything at least this often, whatever it heard.
const LOOK_AT_ALL_EVERY: Duration = Duration::from_secs(60);
/// So many turns are handed to a host at the same time.
const AT_ONCE: usize = 256;
/// When to look again at a session whose turn has another holder: its file is closed before its lock is released.
const LOOK_AFTER_MS: [u64; 7] = [1, 5, 25, 100, 500, 2_500, 10_000];

/// What the thread that looks hears.
#[derive(Debug)]
pub(super) enum Heard {
    /// Perhaps anything has changed.
    Everything,
    Changed {
        jobs: Vec<JobId>,
        sessions: BTreeSet<Session>,
        /// Whether the monitor may be about to end, or has ended.
        monitor: bool,
    },
    Attend(Attend),
    /// Something happened to a session in this process.
    Look(Session),
    /// Another thread waits until the session is in no turn.
    Await(Session, Sender<()>),
    /// A thread is back that handed over.
    Finished(Session, Result<HandedOver, StoreError>),
    Close,
}

/// Whether a thread handed anything over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandedOver {
    Something,
    Nothing,
}

/// The loop, with what it remembers.
pub(super) struct Loop {
    host: Arc<Host>,
    jobs: Agenda<JobId>,
    sessions: Agenda<Session>,
    /// The jobs of sessions that it attends whose follow-ups are open.
    pending: HashMap<Session, BTreeSet<JobId>>,
    /// Sessions to which a thread hands over.
    out: HashSet<Session>,
    /// Sessions whose last turn may have to be continued.
    to_resume: BTreeSet<Session>,
    /// Threads that wait for the end of a turn.
    waiting: HashMap<Session, Vec<Sender<()>>>,
    /// How often a session was looked at in vain.
    looks: HashMap<Session, usize>,
    draining: Option<StopKind>,
    look_at_all_at: Duration,
}

impl Loop {
    pub(super) fn new(host: &Arc<Host>) -> Self {
        Self {
            host: Arc::clone(host),
            jobs: Agenda::default(),
            sessions: Agenda::default(),
            pending: HashMap::new(),
            out: HashSet::new(),
            to_resume: BTreeSet::new(),
            waiting: HashMap::new(),
            looks: HashMap::new(),
            draining: None,
            look_at_all_at: Duration::ZERO,
        }
    }

    pub(super) fn run(mut self, heard: &Receiver<Heard>) {
        loop {
            let now = self.now();
            if now >= self.look_at_all_at {
                self.add_all();
                self.look_at_all_at = now.saturating_add(LOOK_AT_ALL_EVERY);
            }
            self.jobs.advance(now);
            while let Some(id) = self.jobs.take_next() {
                self.look_at_job(&id);
            }
            self.sessions.advance(now);
            while let Some(session) = self.sessions.take_next() {
                if let Err(error) = self.look_at_session(&session) {
                    debug!(%session, %error, "session cannot be looked at, trying again");
                    self.look_later(&session);
                }
            }
            let now = self.now();
            let pauses = self.jobs.pause(now).into_iter().chain(self.sessions.pause(now));
            let pause = pauses.fold(self.look_at_all_at.saturating_sub(now), Duration::min);
            // All that was heard comes before the next look.
            let first = heard.recv_timeout(pause).ok();
            for heard in first.into_iter().chain(heard.try_iter().collect::<Vec<_>>()) {
                if matches!(heard, Heard::Close) {
                    return;
                }
                self.take(heard);
            }
        }
    }

    fn take(&mut self, heard: Heard) {
        match heard {
            Heard::Everything => self.look_at_all_at = Duration::ZERO,
            Heard::Changed { jobs, sessions, monitor } => {
                jobs.into_iter().for_each(|id| self.jobs.add(id));
                sessions.into_iter().for_each(|session| self.changed(session));
                if monitor {
                    self.look_at_monitor();
                }
            }
            Heard::Attend(what) => {
                if let Attend::Session(session) = what {
                    self.to_resume.insert(session);
                } else {
                    self.to_resume.extend(self.host.hearback.session_names());
                }
                self.look_at_all_at = Duration::ZERO;
            }
            Heard::Look(session) => self.changed(session),
            Heard::Await(session, sender) => {
                self.waiting.entry(session.clone()).or_default().push(sender);
                self.changed(session);
            }
            Heard::Finished(session, result) => {
                self.out.remove(&session);
                match result {
                    Ok(HandedOver::Something) => drop(self.looks.remove(&session)),
                    Ok(HandedOver::Nothing) => return self.look_later(&session),
                    Err(error) => {
                        warn!(%session, %error, "not handed over, trying again");
                        return self.look_later(&session);
                    }
                }
                self.sessions.add(session);
            }
            Heard::Close => {}
        }
    }

    /// A session has changed: what was in vain may not be any more.
    fn changed(&mut self, session: Session) {
        // Its own thread makes changes, too: it is looked at when that is back.
        if !self.out.contains(&session) || self.host.turns.of(&session).is_some() {
            self.looks.remove(&session);
            self.sessions.add(session);
        }
    }

    /// Looks again, later each time. What happens meanwhile is heard of.
    fn look_later(&mut self, session: &Session) {
        let looks = self.looks.entry(session.clone()).or_default();
        let pause = LOOK_AFTER_MS.get(*looks).map(|millis| Duration::from_millis(*millis));
        *looks += 1;
        if let Some(pause) = pause {
            let now = self.now();
            self.sessions.add_at(session.clone(), now.saturating_add(pause));
        }
    }

    /// Every open job and every session is to be looked at.
    fn add_all(&mut self) {
        self.look_at_monitor();
        let hearback = Arc::clone(&self.host.hearback);
        match hearback.store.open_jobs() {
            Ok(jobs) => {
                self.pending.clear();
                jobs.into_iter().for_each(|id| self.jobs.add(id));
            }
            Err(error) => warn!(%error, "jobs cannot be listed"),
        }
        let sessions = hearback.session_names().into_iter().filter(|session| self.host.attends(session));
        let waiting: Vec<_> = sessions.chain(self.waiting.keys().cloned()).collect();
        waiting.into_iter().for_each(|session| self.sessions.add(session));
    }

    fn look_at_monitor(&mut self) {
        let Ok(draining) = self.host.draining() else { return };
        let before = std::mem::replace(&mut self.draining, draining);
        match (before, draining) {
            (None, Some(kind)) => self.host.tell(HostNews::Draining { kind, over: false }),
            (Some(kind), None) => {
                self.host.tell(HostNews::Draining { kind, over: true });
                // What it interrupted is continued, and what had to wait comes now.
                let sessions = self.host.hearback.session_names().into_iter();
                let sessions: Vec<_> = sessions.filter(|session| self.host.attends(session)).collect();
                self.to_resume.extend(sessions.iter().cloned());
                sessions.into_iter().for_each(|session| self.sessions.add(session));
                self.look_at_all_at = Duration::ZERO;
            }
            _ => {}
        }
    }

    fn look_at_job(&mut self, id: &JobId) {
        let hearback = &self.host.hearback;
        let spec = hearback.store.spec(id).ok();
        let session = spec.as_ref().and_then(|spec| spec.present()?.session.clone());
        let Some(session) = session.filter(|session| self.host.attends(session)) else { return };
        let sinks = HostSinks::new(&self.host);
        let seen = reconcile::seen(&hearback.ports, id).ok().flatten();
        let due = seen.as_ref().map_or(Ok(Due::Never), |seen| self.host.deliverer(&sinks).due(seen));
        match due {
            Ok(Due::Never) => {
                if let Some(pending) = self.pending.get_mut(&session) {
                    pending.remove(id);
                }
                // The next sink of its chain may be another process's.
                if let Some(seen) = &seen {
                    hearback.start_deliverer_if_needed(seen);
                }
            }
            Ok(_) => {
                self.pending.entry(session.clone()).or_default().insert(id.clone());
                self.changed(session);
            }
            Err(error) => debug!(job = %id, %error, "job cannot be looked at"),
        }
    }

    fn look_at_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let host = Arc::clone(&self.host);
        if host.turns.of(session).is_some() {
            return self.look_at_turn(session);
        }
        if self.out.contains(session) {
            return Ok(());
        }
        let is_free = host.hearback.ports.turn_lock(session)? == LockState::Free;
        let waits = self.waiting.contains_key(session);
        if waits && is_free {
            // Each tries; those that come too late wait again.
            for waiting in self.waiting.remove(session).into_iter().flatten() {
                let _ = waiting.send(()); // It may have given up.
            }
            return Ok(());
        }
        if !host.attends(session) {
            if waits {
                self.look_later(session);
            }
            return Ok(());
        }
        let facts = host.hearback.store.session(session)?;
        let sinks = HostSinks::new(&host);
        let mut due = vec![host.inbox(&sinks).due(&facts)];
        for id in self.pending.get(session).into_iter().flatten() {
            let seen = host.hearback.store.observe(id)?;
            due.extend(seen.map(|seen| host.deliverer(&sinks).due(&seen)).transpose()?);
        }
        let is_due = due.iter().any(|due| matches!(due, Due::Now(_) | Due::GiveUp { .. } | Due::Expired));
        let resumes = self.to_resume.contains(session)
            && fold_session(&facts, LockState::Free)
                .interrupted
                .is_some_and(|it| it.begin.is_some_and(|begin| begin.sink.as_deref() == Some(HOST_SINK)));
        if !is_due && !resumes {
            self.to_resume.remove(session);
            let pause =
                due.iter().filter_map(|due| if let Due::In(pause) = due { Some(*pause) } else { None });
            if let Some(pause) = pause.min().filter(|pause| *pause < LOOK_AT_ALL_EVERY) {
                let now = self.now();
                self.sessions.add_at(session.clone(), now.saturating_add(pause));
            }
            return Ok(());
        }
        if self.draining.is_some() {
            return Ok(());
        }
        if !is_free || self.out.len() >= AT_ONCE {
            self.look_later(session);
            return Ok(());
        }
        self.hand_over(session);
        Ok(())
    }

    /// Tells the host what happens to a turn that it runs.
    fn look_at_turn(&mut self, session: &Session) -> Result<(), StoreError> {
        let Some((token, running)) = self.host.turns.of(session) else { return Ok(()) };
        let hearback = &self.host.hearback;
        let facts = hearback.store.session(session)?;
        let turn = facts.turns.iter().find(|(n, _)| *n == running.number).map(|(_, turn)| turn);
        let reason = turn.and_then(|turn| turn.interrupt.present()).map(|interrupt| interrupt.reason);
        let sinks = HostSinks::new(&self.host);
        let mut follow_ups = 0;
        for id in self.pending.get(session).into_iter().flatten() {
            let Some(seen) = hearback.store.observe(id)? else { continue };
            follow_ups += usize::from(matches!(self.host.deliverer(&sinks).due(&seen)?, Due::Now(_)));
        }
        let (mut news, session) = (Vec::new(), session.clone());
        {
            let mut guard = running.open();
            let Some(open) = guard.as_mut() else { return Ok(()) };
            let messages = self.host.inbox(&sinks).steerable(&facts, HOST_SINK, |n| open.has_message(n));
            let count = messages + follow_ups;
            if let Some(reason) = reason.filter(|_| !open.is_interrupt_told) {
                open.is_interrupt_told = true;
                news.push(HostNews::Interrupt { session: session.clone(), turn: token.clone(), reason });
            }
            if count > open.told_due {
                news.push(HostNews::Due { session, turn: token, count });
            }
            open.told_due = count;
        }
        news.into_iter().for_each(|news| self.host.tell(news));
        Ok(())
    }

    /// Hands over what is due for a session, in a thread of its own: each turn takes as long as the host takes.
    fn hand_over(&mut self, session: &Session) {
        self.out.insert(session.clone());
        let resumes = self.to_resume.remove(session);
        let jobs: Vec<_> = self.pending.get(session).into_iter().flatten().cloned().collect();
        let (host, session) = (Arc::clone(&self.host), session.clone());
        let report = Report::new(&host, &session);
        // A thread that cannot be started drops its work, and the report with it.
        let _ = Builder::new().spawn(move || report.finish(hand_over(&host, &session, &jobs, resumes)));
    }

    fn now(&self) -> Duration {
        self.host.hearback.ports.clock.awake()
    }
}

fn hand_over(
    host: &Arc<Host>,
    session: &Session,
    jobs: &[JobId],
    resumes: bool,
) -> Result<HandedOver, StoreError> {
    let sinks = HostSinks::new(host);
    let inbox = host.inbox(&sinks);
    inbox.hand_over_when_free(session, Wait::Try)?;
    for id in jobs {
        host.deliverer(&sinks).attempt(id, Turn::Try)?;
    }
    if resumes && let Some(_lock) = host.hearback.ports.lock_turn(session, Wait::Try)? {
        inbox.resume(session, None)?;
    }
    let has_handed_over = sinks.has_handed_over.load(Ordering::SeqCst);
    Ok(if has_handed_over { HandedOver::Something } else { HandedOver::Nothing })
}

/// Tells the loop what became of a hand-over, when it is dropped.
struct Report {
    host: Arc<Host>,
    session: Session,
    result: Option<Result<HandedOver, StoreError>>,
}

impl Report {
    fn new(host: &Arc<Host>, session: &Session) -> Self {
        Self { host: Arc::clone(host), session: session.clone(), result: None }
    }

    fn finish(mut self, result: Result<HandedOver, StoreError>) {
        self.result = Some(result);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let unfinished = || Err(std::io::Error::other("its thread was not started, or panicked").into());
        let result = self.result.take().unwrap_or_else(unfinished);
        self.host.hear(Heard::Finished(self.session.clone(), result));
    }
}
