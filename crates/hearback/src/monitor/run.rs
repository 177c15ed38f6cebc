//! Looking after a whole store: deliver, try again, hand messages over, find what died, prune.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Wait, Watch};
use hearback_core::port::record::{JobLock, RecordStore, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::session::fold_session;
use hearback_core::{
    Extra, FORMAT, HostBegin, HostFact, JobId, LockState, Session, Stamp, StopDone, StopKind, StopRequest,
};
use hearback_monitor::delivery::{Due, Turn, message_due};
use hearback_platform::{Native, StopWatch};
use hearback_store::Store;

use super::Predecessor;
use crate::permissions::{Capability, Guarded};
use crate::{Hearback, Job, Select};

/// So many deliveries go out at the same time, each to another session.
const AT_ONCE: usize = 64;
/// A monitor looks at everything at least this often, whatever it heard.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
/// How soon a launcher holds the lock of the folder that it has made.
const LAUNCH_LOCKED_WITHIN: Duration = Duration::from_millis(50);
/// When to look again after a failure of the store itself, such as a full disk.
const AFTER_AN_ERROR: Duration = Duration::from_secs(2);
/// How often settled jobs are pruned.
const PRUNE_EVERY: Duration = Duration::from_secs(60 * 60);
/// How many looks in a row may fail before a monitor gives up.
const ERRORS_MAX: u32 = 30;

/// How to look after a store.
#[derive(Debug, Clone, Default)]
pub struct MonitorOptions {
    /// Do what is due now, and return.
    pub once: bool,
    /// A service manager starts this program again when it exits with
    /// [`RESTART_EXIT_CODE`](hearback_core::service::RESTART_EXIT_CODE).
    pub service: bool,
    /// On a restart, start `monitor run` of this program, which begins when this process is gone. Otherwise whoever
    /// called has to.
    pub succeed: bool,
    /// Begin when this process is gone.
    pub after: Option<Predecessor>,
}

/// Why a monitor returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorEnd {
    /// Everything that was due is done.
    Done,
    /// It was asked to end.
    Stopped(StopKind),
}

/// A way to hear of changes in the store.
type WatchOf = fn(&Store<Native>) -> Result<Box<dyn Watch>, StoreError>;

/// What a monitor hears.
enum News {
    Attempted(JobId, Result<(), StoreError>),
    Ended(JobId),
    Messages(Session, Option<Duration>),
    /// Nobody else is the host any more.
    Host(Lock, Stamp),
    Woken,
    /// The system, or a person at a terminal, asks this process to end.
    Stop,
}

impl Hearback {
    /// Looks after the whole store: finds ends whose supervisor died, delivers, tries again, hands messages over,
    /// prunes, and sleeps until the next thing is due. Any number may run at once; one of them is the host, which
    /// does what it is asked by [`Hearback::ask_monitor`] and by signals.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn run_monitor(
        self: &Arc<Self>,
        options: &MonitorOptions,
    ) -> Result<MonitorEnd, Guarded<StoreError>> {
        self.permissions().check(Capability::Monitor)?;
        self.look_after(options).map_err(Guarded::Failed)
    }

    fn look_after(self: &Arc<Self>, options: &MonitorOptions) -> Result<MonitorEnd, StoreError> {
        self.active_turns.start();
        if let Some(before) = &options.after {
            self.await_end_of(before)?;
        }
        let (sender, heard) = channel();
        Monitor {
            hearback: self,
            options,
            sender,
            host: None,
            out: Vec::new(),
            awaited: HashSet::new(),
            launching: HashSet::new(),
            tried: HashSet::new(),
            not_before: HashMap::new(),
            messages: HashMap::new(),
            pruned: None,
        }
        .run(&heard)
    }
}

pub(super) struct Monitor<'a> {
    pub(super) hearback: &'a Arc<Hearback>,
    pub(super) options: &'a MonitorOptions,
    sender: Sender<News>,
    /// Held by one of us; it tells supervisors that they need not stay for the next attempt.
    pub(super) host: Option<Lock>,
    /// Deliveries that are on their way.
    out: Vec<(JobId, Option<Session>)>,
    /// Jobs whose end, or whose next attempt, somebody waits for.
    awaited: HashSet<JobId>,
    /// Folders that are no jobs yet.
    launching: HashSet<JobId>,
    tried: HashSet<JobId>,
    /// Jobs with which something went wrong that has nothing to do with them, and when to look again.
    not_before: HashMap<JobId, Duration>,
    /// Sessions whose messages somebody sees to: nothing when that is just now, else not before this.
    messages: HashMap<Session, Option<Duration>>,
    pruned: Option<Duration>,
}

impl Monitor<'_> {
    fn run(mut self, heard: &Receiver<News>) -> Result<MonitorEnd, StoreError> {
        let once = self.options.once;
        if !once {
            self.watch(Store::watch_jobs);
            self.watch(Store::watch_host);
            self.watch_for_signals();
            self.wait_to_be_host();
        }
        let mut errors = 0;
        loop {
            if let Some(kind) = self.do_as_asked()? {
                return Ok(MonitorEnd::Stopped(kind));
            }
            let next = match self.look() {
                Ok(next) => {
                    errors = 0;
                    next
                }
                // Something that passes, such as too many open files, is no reason to cut turns short.
                Err(error) if !once && errors < ERRORS_MAX => {
                    errors += 1;
                    self.hearback.note_host(&format!("the store cannot be looked at: {error}"));
                    AFTER_AN_ERROR
                }
                Err(error) => return Err(error),
            };
            if once && self.out.is_empty() && self.messages.values().all(Option::is_some) {
                return Ok(MonitorEnd::Done);
            }
            match heard.recv_timeout(next) {
                Ok(News::Attempted(id, done)) => {
                    self.out.retain(|(other, _)| *other != id);
                    if done.is_err() {
                        self.not_before.insert(id, self.now() + AFTER_AN_ERROR);
                    }
                }
                Ok(News::Host(lock, since)) => {
                    // On a full disk it looks after the store all the same.
                    if let Err(error) = self.begin_as_host(lock, &since) {
                        self.hearback.note_host(&format!("what the host before has left stays: {error}"));
                    }
                }
                Ok(News::Ended(id)) => drop(self.awaited.remove(&id)),
                Ok(News::Messages(session, next)) => {
                    match next {
                        Some(pause) => self.messages.insert(session, Some(self.now().saturating_add(pause))),
                        // Whoever looks once has looked.
                        None if once => self.messages.insert(session, Some(Duration::MAX)),
                        None => self.messages.remove(&session),
                    };
                }
                Ok(News::Stop) => {
                    // What a signal asks for goes the way of every request, so that there is one way. Whoever is not
                    // the host, or cannot record it, does the same unrecorded.
                    if self.host.is_none() || self.ask_ourselves().is_err() {
                        let request = self.hearback.stop_request(StopKind::Stop);
                        self.drain(None, &request);
                        return Ok(MonitorEnd::Stopped(StopKind::Stop));
                    }
                }
                Ok(News::Woken) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.hearback.ports.clock.awake()
    }

    /// How long to leave a job alone with which something went wrong.
    fn left(&self, id: &JobId) -> Option<Duration> {
        self.not_before.get(id)?.checked_sub(self.now()).filter(|left| !left.is_zero())
    }

    /// Looks at everything, sends out what is due, and tells when to look again.
    fn look(&mut self) -> Result<Duration, StoreError> {
        let (hearback, now) = (Arc::clone(self.hearback), self.now());
        if self.pruned.is_none_or(|at| now - at >= PRUNE_EVERY) {
            hearback_monitor::prune::all(&hearback.ports, hearback.settings().retention)?;
            self.pruned = Some(now);
        }
        let jobs = self.look_at_jobs(&hearback)?;
        Ok(jobs.min(self.look_at_sessions(&hearback)?))
    }

    fn look_at_jobs(&mut self, hearback: &Hearback) -> Result<Duration, StoreError> {
        let once = self.options.once;
        let turn = if once { Turn::Try } else { Turn::Wait };
        let mut next = LOOK_AT_LEAST_EVERY;
        let (jobs, now) =
            (hearback.jobs(&Select { history_max: Some(0), ..Select::default() })?.jobs, self.now());
        self.not_before.retain(|_, until| *until > now);
        if !once {
            self.await_launches(hearback, &jobs)?;
        }
        for job in jobs {
            let (id, session) = (job.view.id.clone(), job.view.session.clone());
            if !job.view.state.is_over() {
                if !once && self.awaited.insert(id.clone()) {
                    self.spawn(move |hearback| {
                        let _ = hearback.wait(&id);
                        News::Ended(id)
                    });
                }
                continue;
            }
            match hearback.deliverer().due(&job.seen)? {
                Due::In(pause) => {
                    next = next.min(pause);
                    // Whoever is at it leaves the next attempt to us, and may be done, or dead, any moment.
                    match hearback.deliverer().under_way(&job.seen)? {
                        Some(n) if !once && self.awaited.insert(id.clone()) => self.spawn(move |hearback| {
                            drop(hearback.store.lock(&id, JobLock::Lease(n), LockMode::Shared, Wait::Block));
                            News::Ended(id)
                        }),
                        Some(_) => {}
                        // Or has been since: then the next one is due sooner.
                        None => match hearback.deliverer().due(&job.seen)? {
                            Due::In(pause) => next = next.min(pause),
                            _ => next = Duration::ZERO,
                        },
                    }
                }
                Due::Never => {}
                Due::Now(_) | Due::GiveUp { .. } | Due::Expired => {
                    // One at a time for a session: a second would only wait for its turn.
                    let taken =
                        self.out.iter().any(|(other, of)| *other == id || (of.is_some() && *of == session));
                    if let Some(left) = self.left(&id) {
                        next = next.min(left);
                    } else if !taken && self.out.len() < AT_ONCE && (!once || self.tried.insert(id.clone())) {
                        self.out.push((id.clone(), session));
                        self.spawn(move |hearback| {
                            // What failed is due again later, and is seen then.
                            let attempt = hearback.deliverer().attempt(&id, turn);
                            News::Attempted(id, attempt.map(drop))
                        });
                    }
                }
            }
        }
        Ok(next)
    }

    /// Hears of jobs that are being launched: they have a folder, and nothing in it yet that says what they are.
    fn await_launches(&mut self, hearback: &Hearback, known: &[Job]) -> Result<(), StoreError> {
        let mut blank: HashSet<_> = hearback.store.open_jobs()?.into_iter().collect();
        for job in known {
            blank.remove(&job.view.id);
        }
        self.launching.retain(|id| blank.contains(id));
        for id in blank {
            if self.launching.insert(id.clone()) {
                self.spawn(move |hearback| {
                    // A launcher makes the folder, and then takes its lock.
                    std::thread::sleep(LAUNCH_LOCKED_WITHIN);
                    drop(hearback.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Block));
                    News::Woken
                });
            }
        }
        Ok(())
    }

    /// Sends somebody out with the messages of each session that has some.
    fn look_at_sessions(&mut self, hearback: &Hearback) -> Result<Duration, StoreError> {
        let mut next = LOOK_AT_LEAST_EVERY;
        for session in hearback.store.sessions()? {
            let facts = hearback.store.session(&session)?;
            let due = message_due(&facts, &hearback.ports.clock.stamp(), &hearback.settings().retry);
            match due {
                Due::Never => continue,
                Due::In(pause) => {
                    next = next.min(pause);
                    continue;
                }
                Due::Now(_) | Due::GiveUp { .. } | Due::Expired => {}
            }
            match self.messages.get(&session) {
                Some(None) => continue,
                Some(Some(until)) => {
                    if let Some(left) = until.checked_sub(self.now()).filter(|left| !left.is_zero()) {
                        next = next.min(left);
                        continue;
                    }
                }
                None => {}
            }
            let wait = if self.options.once { Wait::Try } else { Wait::Block };
            self.messages.insert(session.clone(), None);
            self.spawn(move |hearback| {
                // When the next attempt is due is seen by looking; only an error is worth a rest.
                let failed = hearback.take_messages(&session, wait).err();
                if let Some(error) = &failed {
                    hearback
                        .note_host(&format!("messages of session {session} cannot be handed over: {error}"));
                }
                News::Messages(session, failed.map(|_| AFTER_AN_ERROR))
            });
        }
        Ok(next)
    }

    fn spawn(&self, work: impl FnOnce(&Hearback) -> News + Send + 'static) {
        let (hearback, news) = (Arc::clone(self.hearback), self.sender.clone());
        std::thread::spawn(move || drop(news.send(work(&hearback))));
    }

    /// Hears of jobs and of requests. What came before there was a watch is not heard of; so there is a look as soon
    /// as there is one.
    fn watch(&self, watch: WatchOf) {
        let (hearback, news) = (Arc::clone(self.hearback), self.sender.clone());
        std::thread::spawn(move || {
            let Ok(mut watch) = watch(&hearback.store) else { return };
            while news.send(News::Woken).is_ok() {
                watch.wait(LOOK_AT_LEAST_EVERY);
            }
        });
    }

    /// Hears one request. The next one finds nobody who listens, and ends this process at once.
    fn watch_for_signals(&self) {
        let Ok(stop) = StopWatch::new() else { return };
        let news = self.sender.clone();
        std::thread::spawn(move || {
            while !stop.wait(LOOK_AT_LEAST_EVERY) {}
            let _ = news.send(News::Stop);
        });
    }

    /// Waits for the lock of the host. Asleep and not by trying: whoever only looks at it can refuse a try.
    fn wait_to_be_host(&self) {
        let (hearback, news) = (Arc::clone(self.hearback), self.sender.clone());
        std::thread::spawn(move || {
            if let Ok(Some(lock)) = hearback.store.lock_monitor(LockMode::Exclusive, Wait::Block) {
                let _ = news.send(News::Host(lock, hearback.ports.clock.stamp()));
            }
        });
    }

    /// Puts in order what the host before has left.
    fn begin_as_host(&mut self, lock: Lock, since: &Stamp) -> Result<(), StoreError> {
        let hearback = self.hearback;
        self.host = Some(lock);
        let (facts, durability) = (hearback.store.host()?, hearback.settings().durability);
        // Whoever was asked is gone, and has left the answer to us. What came since is for us.
        let now = hearback.ports.clock.stamp();
        let is_ours = |request: &StopRequest| request.at.age_ms(&now) <= since.age_ms(&now);
        let open = facts.requests.iter().filter(|(_, facts)| facts.done.is_absent());
        for (n, _) in open.filter(|(_, facts)| !facts.request.present().is_some_and(is_ours)) {
            let done = HostFact::Done(StopDone { interrupted: None, ..self.done() });
            let _ = hearback.store.publish_host(*n, &done, durability)?;
        }
        let begin = HostBegin {
            format: FORMAT,
            process: hearback.ports.processes.me()?,
            at: hearback.ports.clock.stamp(),
            service: self.options.service,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            extra: Extra::new(),
        };
        let n = facts.begins.last().map_or(0, |(n, _)| *n) + 1;
        let _ = hearback.store.publish_host(n, &HostFact::Begin(begin), durability)?;
        // Turns that were cut short go on, each at most once for each time that somebody begins here.
        for session in hearback.store.sessions()? {
            let facts = hearback.store.session(&session)?;
            if fold_session(&facts, LockState::Free).interrupted.is_none() {
                continue;
            }
            self.spawn(move |hearback| {
                if let Err(error) = hearback.resume(&session) {
                    hearback.note_host(&format!("session {session} cannot be continued: {error}"));
                }
                News::Woken
            });
        }
        Ok(())
    }
}

impl Hearback {
    /// Adds a line to what the host has to say about itself. Best effort.
    pub(crate) fn note_host(&self, line: &str) {
        let _ = self.store.note_host(&format!("{} {line}", self.now()));
    }

    /// Lets a session go on whose last turn was cut short, once nobody is in a turn of it.
    fn resume(&self, session: &Session) -> Result<(), StoreError> {
        let Some(_lock) = self.ports.lock_turn(session, Wait::Block)? else { return Ok(()) };
        self.inbox().resume(session, self.settings().default_sink.as_deref())?;
        Ok(())
    }
}
