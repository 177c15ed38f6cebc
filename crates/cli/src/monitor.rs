//! Looking after a whole store: deliver, try again, hand messages over, find what died, prune; and end in good order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait, Watch};
use hearback_core::port::process::DetachedRequest;
use hearback_core::port::record::{JobLock, RecordStore, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::{Answer, Sinks};
use hearback_core::session::{Interruption, TurnFact, fold_session};
use hearback_core::{
    Extra, FORMAT, HostBegin, HostFact, HostFacts, JobId, KilledBy, LockState, Notice, ProcessIdentity, Read,
    Session, Stamp, StopDone, StopKind, StopRequest, StopTaken, Verdict,
};
use hearback_monitor::follow_up::{Due, Turn};
use hearback_monitor::session::{self, NextMessage, next_message};
use hearback_platform::{Native, StopWatch};
use hearback_store::Store;

use crate::{Hearback, Job, KillRequest, Select};

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
/// How long notices may take, whatever the sink that takes them may.
const NOTICES_WITHIN: Duration = Duration::from_secs(5);
/// How long the turn that asked for its own end has, so that whoever asked in it hears the answer.
const ASKER_WITHIN: Duration = Duration::from_secs(1);
/// How long turns that were cut short may take to notice.
const CUT_WITHIN: Duration = Duration::from_secs(10);
/// How many looks in a row may fail before a monitor gives up.
const ERRORS_MAX: u32 = 30;
/// How often to look whether a predecessor is gone.
const LOOK_FOR_PREDECESSOR: Duration = Duration::from_millis(10);

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

/// A process that is to be gone first: a number alone could be somebody else's by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecessor {
    /// Its number.
    pub pid: u32,
    /// When the kernel says it was started.
    pub started: u64,
}

impl From<&ProcessIdentity> for Predecessor {
    fn from(who: &ProcessIdentity) -> Self {
        Self { pid: who.pid, started: who.started }
    }
}

/// Why a monitor returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorEnd {
    /// Everything that was due is done.
    Done,
    /// It was asked to end.
    Stopped(StopKind),
}

/// The monitor of a store as it was seen.
#[derive(Debug, Clone)]
pub struct SeenMonitor {
    /// What is recorded of it.
    pub facts: HostFacts,
    /// Whether it runs.
    pub lock: LockState,
}

/// What became of a wish for the end of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It heard it, and waits for so many turns.
    Taken {
        /// How many.
        awaited: u32,
    },
    /// It has not answered.
    Unanswered,
    /// It ended before it answered.
    Gone,
    /// There is none.
    NoMonitor,
    /// One is under way.
    UnderWay(StopKind),
    /// It is an old one that came again, and has been done.
    Redelivered,
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
    pub fn run_monitor(self: &Arc<Self>, options: &MonitorOptions) -> Result<MonitorEnd, StoreError> {
        self.running.start();
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

    /// Asks the monitor of this store to end, and waits until it has heard that, but not longer than `within`.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn ask_monitor(&self, request: &StopRequest, within: Duration) -> Result<Asked, StoreError> {
        let n = loop {
            let facts = self.store.host()?;
            let n = match facts.judge(self.host_lock()?, request.sequence, &self.ports.clock.stamp()) {
                Verdict::Ask(n) => n,
                Verdict::NoHost => return Ok(Asked::NoMonitor),
                Verdict::UnderWay(kind) => return Ok(Asked::UnderWay(kind)),
                Verdict::Redelivered => return Ok(Asked::Redelivered),
            };
            let fact = HostFact::Request(request.clone());
            if self.store.publish_host(n, &fact, self.settings().durability)? == Publish::New {
                break n;
            }
            // Somebody else has asked at the same moment, and is judged first.
        };
        let deadline = self.ports.clock.awake().saturating_add(within);
        let mut watch = self.store.watch_host()?;
        loop {
            let lock = self.host_lock()?;
            let facts = self.store.host()?;
            let ours = facts.requests.iter().find(|(number, _)| *number == n).map(|(_, facts)| facts);
            if let Some(taken) = ours.and_then(|facts| facts.taken.present()) {
                return Ok(Asked::Taken { awaited: taken.awaited });
            }
            // Somebody else has closed it: whoever was asked is gone.
            if ours.is_none_or(|facts| !facts.done.is_absent()) {
                return Ok(Asked::Gone);
            }
            if lock == LockState::Free {
                return Ok(Asked::Gone);
            }
            let left = deadline.saturating_sub(self.ports.clock.awake());
            if left.is_zero() {
                return Ok(Asked::Unanswered);
            }
            watch.wait(left.min(Duration::from_secs(1)));
        }
    }

    /// A request of this moment, by nobody in particular.
    pub fn stop_request(&self, kind: StopKind) -> StopRequest {
        StopRequest::new(kind, self.ports.clock.stamp())
    }

    /// What is recorded of the monitor of this store, and whether it runs.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn monitor(&self) -> Result<SeenMonitor, StoreError> {
        // The facts first: whoever is gone after that has said everything that it had to say.
        let facts = self.store.host()?;
        Ok(SeenMonitor { facts, lock: self.host_lock()? })
    }

    /// The number of the newest monitor that was the host; it grows with each.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn monitor_number(&self) -> Result<u32, StoreError> {
        Ok(self.store.host()?.begins.last().map_or(0, |(n, _)| *n))
    }

    /// Sleeps until a monitor with a higher number than this is the host, but not longer than `within`; tells whether
    /// there is one.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn await_monitor_after(&self, number: u32, within: Duration) -> Result<bool, StoreError> {
        let deadline = self.ports.clock.awake().saturating_add(within);
        let mut watch = self.store.watch_host()?;
        while self.monitor_number()? <= number {
            let left = deadline.saturating_sub(self.ports.clock.awake());
            if left.is_zero() {
                return Ok(false);
            }
            watch.wait(left.min(Duration::from_secs(1)));
        }
        Ok(true)
    }

    /// Starts a monitor that begins when this process is gone, detached from it.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn spawn_successor(&self) -> Result<(), StoreError> {
        let me = Predecessor::from(&self.ports.processes.me()?);
        let after = format!("{}:{}", me.pid, me.started);
        let args = ["monitor", "run", "--after", &after].map(Into::into).to_vec();
        // The environment may name another store; this one is the working directory of the successor.
        let env = vec![(crate::home::HOME_VARIABLE.into(), Some(self.home().into()))];
        let program = hearback_platform::next_program()?;
        let home = self.home().to_owned();
        Ok(self.ports.processes.spawn_detached(&DetachedRequest { program, args, home, env })?)
    }

    /// Sleeps until this process is gone, by its identity. Another monitor may be the host by then.
    ///
    /// # Errors
    ///
    /// When the processes cannot be seen.
    pub fn await_end_of(&self, before: &Predecessor) -> Result<(), StoreError> {
        while self.ports.processes.identify(before.pid)?.is_some_and(|who| who.started == before.started) {
            std::thread::sleep(LOOK_FOR_PREDECESSOR);
        }
        Ok(())
    }
}

struct Monitor<'a> {
    hearback: &'a Arc<Hearback>,
    options: &'a MonitorOptions,
    sender: Sender<News>,
    /// Held by one of us; it tells supervisors that they need not stay for the next attempt.
    host: Option<Lock>,
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
                Ok(News::Host(lock, since)) => self.begin_as_host(lock, &since)?,
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

    fn now(&self) -> Duration {
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
            hearback.prune(hearback.settings().retention, false)?;
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
            let due = next_message(&facts, &hearback.ports.clock.stamp(), &hearback.settings().retry);
            match due {
                NextMessage::Nothing => continue,
                NextMessage::In(pause) => {
                    next = next.min(pause);
                    continue;
                }
                NextMessage::Now { .. } | NextMessage::Expired { .. } => {}
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

    fn done(&self) -> StopDone {
        let at = self.hearback.ports.clock.stamp();
        StopDone { format: FORMAT, at, interrupted: Some(0), extra: Extra::new() }
    }

    fn ask_ourselves(&self) -> Result<(), StoreError> {
        let facts = self.hearback.store.host()?;
        let now = self.hearback.ports.clock.stamp();
        let Verdict::Ask(n) = facts.judge(LockState::Held, None, &now) else { return Ok(()) };
        let request = HostFact::Request(StopRequest::new(StopKind::Stop, now));
        let _ = self.hearback.store.publish_host(n, &request, self.hearback.settings().durability)?;
        Ok(())
    }

    /// Does what the host was asked to, if it was; tells what that was when it is done.
    fn do_as_asked(&self) -> Result<Option<StopKind>, StoreError> {
        if self.host.is_none() {
            return Ok(None);
        }
        let facts = self.hearback.store.host()?;
        let Some((n, open)) = facts.open_request() else { return Ok(None) };
        let now = self.hearback.ports.clock.stamp();
        let request = match &open.request {
            Read::Present(request) => request.clone(),
            _ => StopRequest::new(StopKind::Stop, now),
        };
        self.drain(Some(n), &request);
        Ok(Some(request.kind))
    }

    /// Marks who is busy, tells where they are shown, waits, and cuts short whoever is left. What cannot be recorded on
    /// the way is logged, if that is possible, and keeps nobody from ending in order.
    fn drain(&self, n: Option<u32>, request: &StopRequest) {
        let hearback = self.hearback;
        let (store, durability) = (&hearback.store, hearback.settings().durability);
        let reason = match request.kind {
            StopKind::Restart => Interruption::Restart,
            StopKind::Stop | StopKind::Drain => Interruption::Shutdown,
        };
        let turns = hearback.running.stop();
        let plan = session::plan(n.unwrap_or(0), request, &turns);
        let record = |what: &str, published: Result<Publish, StoreError>| {
            if let Err(error) = published {
                hearback.note_host(&format!("{what} cannot be recorded: {error}"));
            }
        };
        let answer = |fact: HostFact| {
            if let Some(n) = n {
                record("the answer to a request", store.publish_host(n, &fact, durability));
            }
        };
        for (turn, asked) in &plan.marks {
            let mark = TurnFact::resumable(hearback.ports.clock.stamp(), reason, *asked);
            record("a mark", store.publish_turn(&turn.session, turn.turn, &mark, durability));
        }
        let awaited = u32::try_from(plan.awaited.len()).unwrap_or(u32::MAX);
        let at = hearback.ports.clock.stamp();
        answer(HostFact::Taken(StopTaken { format: FORMAT, at, awaited, extra: Extra::new() }));
        let told = self.tell(plan.notices);
        let limit = match request.kind {
            StopKind::Drain => request.within_ms.map(Duration::from_millis),
            StopKind::Restart | StopKind::Stop => {
                let asked = request.within_ms.map(Duration::from_millis);
                Some(asked.unwrap_or(hearback.settings().drain_timeout))
            }
        };
        let mut left = hearback.running.wait(limit, |turn| plan.awaited.contains(turn));
        if left.iter().any(|turn| !plan.awaited.contains(turn)) {
            left = hearback.running.wait(Some(ASKER_WITHIN), |turn| !plan.awaited.contains(turn));
        }
        std::thread::scope(|scope| {
            for turn in &left {
                scope.spawn(move || {
                    let (ports, session) = (&hearback.ports, &turn.session);
                    let cut = session::interrupt(ports, session, turn.turn, &turn.mark, reason, durability);
                    if let Err(error) = cut {
                        hearback.note_host(&format!(
                            "a turn of session {session} could not be cut short: {error}"
                        ));
                    }
                });
            }
        });
        hearback.running.wait(Some(CUT_WITHIN), |_| true);
        hearback.running.wait_for_records(CUT_WITHIN);
        self.end_bound_jobs(request.kind);
        told.finish(hearback);
        // Before the last word: whoever is killed after it has a successor. It begins when this process is gone.
        if request.kind == StopKind::Restart
            && self.options.succeed
            && let Err(error) = hearback.spawn_successor()
        {
            hearback.note_host(&format!("the successor cannot be started: {error}"));
        }
        let interrupted = Some(u32::try_from(left.len()).unwrap_or(u32::MAX));
        answer(HostFact::Done(StopDone { interrupted, ..self.done() }));
    }

    /// Sends notices out. None of them is waited for now.
    fn tell(&self, notices: Vec<Notice>) -> Told {
        let (sender, heard) = channel();
        let began = self.now();
        let mut open = HashSet::new();
        let Some(name) = self.hearback.settings().notice_sink.clone() else {
            return Told { heard, open, began };
        };
        for notice in notices {
            open.insert(notice.destination.clone());
            let (hearback, name, sender) = (Arc::clone(self.hearback), name.clone(), sender.clone());
            std::thread::spawn(move || {
                let destination = notice.destination.clone();
                let answer = hearback
                    .registry
                    .find(&name)
                    .and_then(|sink| sink.deliver(&notice.into(), &hearback.trip()));
                let answer = match answer {
                    Ok(Answer::Delivered) => Ok(()),
                    Ok(other) => Err(format!("{other:?}")),
                    Err(error) => Err(error.to_string()),
                };
                let _ = sender.send((destination, answer));
            });
        }
        Told { heard, open, began }
    }

    /// Jobs that were launched as the host's own end with it, and their owners hear of that as of any end.
    fn end_bound_jobs(&self, kind: StopKind) {
        let hearback = self.hearback;
        let Ok(listing) = hearback.jobs(&Select { history_max: Some(0), ..Select::default() }) else {
            return;
        };
        let bound = listing.jobs.iter().filter(|job| {
            let spec = job.seen.facts.spec.present();
            !job.view.state.is_over() && spec.is_some_and(|spec| spec.bound)
        });
        std::thread::scope(|scope| {
            for job in bound {
                scope.spawn(move || {
                    let reason = Some(format!("bound to the host, which was to {kind}"));
                    let request = KillRequest { by: KilledBy::Host, reason, grace: None, force: false };
                    if let Err(error) = hearback.kill(&job.view.id, &request) {
                        hearback.note_host(&format!("job {} could not be ended: {error}", job.view.id));
                    }
                });
            }
        });
    }
}

/// Notices that are on their way.
struct Told {
    heard: Receiver<(String, Result<(), String>)>,
    open: HashSet<String>,
    began: Duration,
}

impl Told {
    /// Waits for what is left of their time, and says which did not arrive.
    fn finish(mut self, hearback: &Hearback) {
        while !self.open.is_empty() {
            let passed = hearback.ports.clock.awake().saturating_sub(self.began);
            let Ok((destination, answer)) = self.heard.recv_timeout(NOTICES_WITHIN.saturating_sub(passed))
            else {
                break;
            };
            self.open.remove(&destination);
            if let Err(error) = answer {
                hearback.note_host(&format!("{destination} could not be told: {error}"));
            }
        }
        for destination in self.open {
            hearback.note_host(&format!("{destination} could not be told: no answer in time"));
        }
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
