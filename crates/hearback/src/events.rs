//! What happens to jobs and sessions, told from their facts, in one order for all readers.
//!
//! Facts have no order among different jobs, and clocks jump. So the readers keep an index: whoever finds a new fact
//! adds its key, and the place of a key in the index is the cursor. A reader that comes back reads on from there, and
//! finds first what happened while nobody read.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use hearback_core::event::{EventKey, EventSubject, Happened, Happening, LAST_FACT};
use hearback_core::port::disk::{Lock, Wait};
use hearback_core::port::events::{EventCursor, EventIndex};
use hearback_core::port::record::{FactStore, Housekeeping, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::{JobId, JobState, Observed, Session, Timestamp};
use hearback_monitor::host::{Changed, JobChanges};
use hearback_monitor::reconcile;
use hearback_monitor::wait::WaitLimit;

use crate::{Hearback, Job, Scope};

/// From where on events are read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventsSince {
    /// From the first that is known.
    Beginning,
    /// From now on.
    Now,
    /// From what a reader saw last. A cursor of an index that is gone means the beginning.
    Cursor(EventCursor),
}

/// One thing that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// Its identity, which stays the same if it is read again.
    pub key: EventKey,
    /// The place behind it.
    pub cursor: EventCursor,
    /// When it happened, as its fact says.
    pub at: Timestamp,
    /// What happened.
    pub what: Happened,
    /// Whose job or session it is.
    pub session: Option<Session>,
    /// The job, as it is now.
    pub job: Option<Box<Job>>,
}

/// Reads events, one after the other.
pub struct Events<'a> {
    hearback: &'a Hearback,
    scope: Scope,
    changes: JobChanges<'a>,
    /// Everything before it was read.
    cursor: Option<EventCursor>,
    /// Keys that were read from the index and not returned yet.
    next: VecDeque<(EventKey, EventCursor)>,
    known: Known,
    /// The subject that was looked at last, since most events of a subject stand side by side.
    last: Option<(EventSubject, Seen)>,
    /// Whether the holder of the lock of the index seems to be paused.
    index_is_stuck: bool,
    /// The jobs that run, and what was told of their output, if the reader wants to know.
    outputs: Option<HashMap<JobId, ToldOutput>>,
}

/// What was told of the output of a job.
struct ToldOutput {
    /// How much there was.
    bytes: u64,
    /// When to look again; none if a write will tell.
    look_at: Option<Duration>,
}

/// How often the output of one job is told.
const OUTPUT_EVERY: Duration = Duration::from_secs(1);

/// How long to wait for another reader that adds to the index. One that is paused would hold up all others for ever.
const INDEX_WITHIN: Duration = Duration::from_secs(2);
const INDEX_LOOK: Duration = Duration::from_millis(5);

/// What the index has.
#[derive(Default)]
struct Known {
    /// The facts of each session, and of each job to which something may still happen or happened lately. Of a job that
    /// is settled only that.
    facts: HashMap<EventSubject, HashSet<String>>,
    /// The jobs that are settled, the latest last. News of a job may come when it is settled already, but not as late
    /// as this many others.
    settled: VecDeque<EventSubject>,
    /// The places behind keys that stand in the index a second time: a reader was paused while it added them, and
    /// others did not wait for it.
    repeated: HashSet<EventCursor>,
    /// Up to where the index was read for this.
    until: Option<EventCursor>,
}

const SETTLED_KNOWN: usize = 10_000;

impl Known {
    fn has(&self, subject: &EventSubject, fact: &str) -> bool {
        self.facts.get(subject).is_some_and(|facts| facts.contains(fact) || facts.contains(LAST_FACT))
    }

    fn add(&mut self, EventKey { subject, fact }: EventKey) {
        let facts = self.facts.entry(subject.clone()).or_default();
        if fact == LAST_FACT {
            facts.clear();
            self.settled.push_back(subject);
        }
        facts.insert(fact);
        if self.settled.len() > SETTLED_KNOWN {
            self.settled.pop_front().map(|oldest| self.facts.remove(&oldest));
        }
    }

    /// Reads what was added to the index since, and keeps what is `wanted`.
    fn learn(
        &mut self,
        index: &dyn EventIndex,
        mut wanted: impl FnMut(&EventKey) -> bool,
    ) -> Result<(), StoreError> {
        loop {
            let keys = index.read_events(self.until.as_ref())?;
            let Some((_, last)) = keys.last() else { return Ok(()) };
            self.until = Some(last.clone());
            for (key, cursor) in keys.into_iter().filter(|(key, _)| wanted(key)) {
                if self.has(&key.subject, &key.fact) {
                    self.repeated.insert(cursor);
                } else {
                    self.add(key);
                }
            }
        }
    }
}

/// A job or a session, as it was seen.
struct Seen {
    happenings: Vec<Happening>,
    session: Option<Session>,
    job: Option<Box<Job>>,
}

impl std::fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Hearback {
    /// Reads what happens to the jobs and sessions of a scope.
    ///
    /// ```standalone_crate
    /// use std::time::Duration;
    /// use hearback::{EventsSince, Hearback, Options, Scope, argv};
    /// use hearback::core::event::Happened;
    ///
    /// hearback::supervise_if_asked();
    /// # let place = std::env::temp_dir().join(format!("hearback-doc-{}", std::process::id()));
    /// let hearback = Hearback::open(Options::default().home(&place))?;
    /// let mut events = hearback.events(&Scope::All, EventsSince::Now)?;
    /// let id = hearback.launch(&argv(["rustc", "--version"])?)?.id().clone();
    ///
    /// let first = events.next(Duration::from_secs(60))?.ok_or("nothing happened")?;
    /// assert!(matches!(first.what, Happened::Launched));
    /// // A reader that comes back with `first.cursor` reads on from here.
    /// # hearback.wait(&id)?;
    /// # // Its supervisor may still move the job.
    /// # while place.exists() {
    /// #     let _ = std::fs::remove_dir_all(&place);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the store cannot be read or watched, or the index cannot be written.
    pub fn events(&self, scope: &Scope, since: EventsSince) -> Result<Events<'_>, StoreError> {
        let mut events = Events {
            hearback: self,
            scope: scope.clone(),
            // Before the first look, so that nothing happens unseen between the two.
            changes: self.job_changes()?.with_sessions(),
            cursor: None,
            next: VecDeque::new(),
            known: Known::default(),
            last: None,
            index_is_stuck: false,
            outputs: None,
        };
        events.index_everything()?;
        events.cursor = match since {
            EventsSince::Beginning => None,
            EventsSince::Now => self.store.last_event()?,
            EventsSince::Cursor(cursor) => Some(cursor),
        };
        Ok(events)
    }
}

impl Hearback {
    /// What the index of events has behind a cursor, for this scope, and the cursor behind that; from the beginning
    /// without one. Returns a part at a time: at the end, the cursor stays the same. It only reads: an [`Events`] of
    /// this or another process adds what happens to the index.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn events_after(
        &self,
        scope: &Scope,
        cursor: Option<&EventCursor>,
    ) -> Result<(Vec<Event>, Option<EventCursor>), StoreError> {
        let (mut events, mut cursor) = (Vec::new(), cursor.cloned());
        let mut last: Option<(EventSubject, Seen)> = None;
        for (key, behind) in self.store.read_events(cursor.as_ref())? {
            if last.as_ref().is_none_or(|(subject, _)| *subject != key.subject) {
                last = Some((key.subject.clone(), self.see_subject(&key.subject)?));
            }
            if let Some((_, seen)) = &last {
                events.extend(seen.event(key, behind.clone(), scope));
            }
            cursor = Some(behind);
        }
        Ok((events, cursor))
    }

    /// The place behind everything that the index of events has; none if it has nothing.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    pub fn last_event(&self) -> Result<Option<EventCursor>, StoreError> {
        EventIndex::last_event(&self.store)
    }

    fn see_subject(&self, subject: &EventSubject) -> Result<Seen, StoreError> {
        Ok(match subject {
            EventSubject::Job(id) => {
                let job = self.store.observe(id)?.and_then(|seen| self.shown(seen));
                let happenings = job.as_ref().map(|job| job.seen.happenings()).unwrap_or_default();
                let session = job.as_ref().and_then(|job| job.view.session.clone());
                Seen { happenings, session, job: job.map(Box::new) }
            }
            EventSubject::Session(session) => {
                let happenings = self.store.session(session)?.happenings();
                Seen { happenings, session: Some(session.clone()), job: None }
            }
        })
    }
}

impl Seen {
    /// An event for a reader; none if it is another's, or its facts are gone.
    fn event(&self, key: EventKey, cursor: EventCursor, scope: &Scope) -> Option<Event> {
        let happening = self.happenings.iter().find(|one| one.fact == key.fact);
        let one = happening.filter(|_| scope.sees(self.session.as_ref()))?;
        let (at, what) = (one.at, one.what.clone());
        Some(Event { key, cursor, at, what, session: self.session.clone(), job: self.job.clone() })
    }
}

impl Events<'_> {
    /// The place behind everything that was returned; none if nothing has ever happened.
    pub fn cursor(&self) -> Option<&EventCursor> {
        self.cursor.as_ref()
    }

    /// Tells of new output as well, from now on: the last line, at most once a second for each job. This has no fact
    /// behind it, so a reader that comes back does not find it, and its cursor is that of the event before it.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn with_output(mut self) -> Result<Self, StoreError> {
        self.outputs = Some(HashMap::new());
        for id in self.hearback.store.open_jobs()? {
            let Ok(Some(seen)) = self.hearback.store.observe(&id) else { continue };
            self.expect_output(&seen, seen.output.bytes);
        }
        Ok(self)
    }

    /// Looks at the output of a job soon, if it runs; `told` is how much of it is no news.
    fn expect_output(&mut self, seen: &Observed, told: u64) {
        let now = self.hearback.ports.clock.awake();
        let Some(outputs) = &mut self.outputs else { return };
        if seen.fold().state == JobState::Running {
            let output = outputs.entry(seen.id.clone()).or_insert(ToldOutput { bytes: told, look_at: None });
            output.look_at = output.look_at.or(Some(now));
        } else {
            outputs.remove(&seen.id);
        }
    }

    /// The next piece of news about output, if it is time for one.
    fn next_output(&mut self) -> Result<Option<Event>, StoreError> {
        let (hearback, now) = (self.hearback, self.hearback.ports.clock.awake());
        loop {
            let Some(outputs) = &mut self.outputs else { return Ok(None) };
            let is_due = |(_, told): &(&JobId, &mut ToldOutput)| told.look_at.is_some_and(|at| at <= now);
            let Some((id, told)) = outputs.iter_mut().find(is_due) else { return Ok(None) };
            // Watch first, look second.
            self.changes.watch_output(id);
            told.look_at = None;
            let id = id.clone();
            let Ok(Some(job)) = hearback.look(&id) else {
                outputs.remove(&id);
                continue;
            };
            let bytes = job.view.output.bytes;
            if bytes <= told.bytes {
                continue;
            }
            (told.bytes, told.look_at) = (bytes, Some(now.saturating_add(OUTPUT_EVERY)));
            let session = job.view.session.clone();
            let Some(cursor) = self.cursor.clone().filter(|_| self.scope.sees(session.as_ref())) else {
                continue;
            };
            let key = EventKey { subject: EventSubject::Job(id), fact: format!("output.{bytes}") };
            let what = Happened::Output { last_line: hearback.last_line(&job) };
            let job = Some(Box::new(job));
            return Ok(Some(Event { key, cursor, at: hearback.now(), what, session, job }));
        }
    }

    /// The next event. Sleeps until there is one, but not longer than `limit` says.
    ///
    /// # Errors
    ///
    /// When the store cannot be read, or the index cannot be written.
    pub fn next(&mut self, limit: impl Into<WaitLimit>) -> Result<Option<Event>, StoreError> {
        let limit = limit.into();
        let _hook = self.hearback.wake_on_cancel(&limit);
        let clock = &self.hearback.ports.clock;
        let deadline = clock.awake().saturating_add(limit.within().unwrap_or(Duration::MAX));
        loop {
            while let Some((key, cursor)) = self.next.pop_front() {
                self.cursor = Some(cursor.clone());
                if self.known.repeated.contains(&cursor) {
                    continue;
                }
                if let Some(event) = self.event(key, cursor)? {
                    return Ok(Some(event));
                }
            }
            // It may have changed since it was looked at.
            self.last = None;
            self.next = self.hearback.store.read_events(self.cursor.as_ref())?.into();
            if !self.next.is_empty() {
                // So that what stands there a second time is known.
                self.known.learn(&self.hearback.store, |_| true)?;
                continue;
            }
            if let Some(event) = self.next_output()? {
                return Ok(Some(event));
            }
            let now = clock.awake();
            let left = deadline.saturating_sub(now);
            if left.is_zero() || limit.is_cancelled() {
                return Ok(None);
            }
            let looks = self.outputs.iter().flat_map(HashMap::values).filter_map(|told| told.look_at);
            let left = looks.min().map_or(left, |at| left.min(at.saturating_sub(now)));
            match self.changes.wait_unless(left, || limit.is_cancelled(), |_| true) {
                Changed::Everything => self.index_everything()?,
                Changed::Jobs(changed) => {
                    let sessions = self.changes.take_sessions();
                    self.index(changed.into_iter().map(|(id, _)| id), sessions)?;
                }
            }
            let (written, now) = (self.changes.take_outputs(), clock.awake());
            for id in &written {
                if let Some(told) = self.outputs.as_mut().and_then(|outputs| outputs.get_mut(id)) {
                    told.look_at = told.look_at.or(Some(now));
                }
            }
        }
    }

    /// An event for this reader; none if it is another's, or its facts are gone.
    fn event(&mut self, key: EventKey, cursor: EventCursor) -> Result<Option<Event>, StoreError> {
        if self.last.as_ref().is_none_or(|(subject, _)| *subject != key.subject) {
            let seen = self.hearback.see_subject(&key.subject)?;
            self.last = Some((key.subject.clone(), seen));
        }
        Ok(self.last.as_ref().and_then(|(_, seen)| seen.event(key, cursor, &self.scope)))
    }

    /// Reads what the index has, and adds everything that it does not have.
    fn index_everything(&mut self) -> Result<(), StoreError> {
        let store = &self.hearback.store;
        let mut jobs: HashSet<JobId> = store.open_jobs()?.into_iter().collect();
        jobs.extend(store.past_jobs(usize::MAX)?);
        let sessions = store.sessions()?;
        let mut settled = HashSet::new();
        self.known = Known::default();
        self.known.learn(store, |key| match &key.subject {
            EventSubject::Job(id) => {
                if key.fact == LAST_FACT {
                    settled.insert(id.clone());
                }
                jobs.contains(id)
            }
            EventSubject::Session(_) => true,
        })?;
        jobs.retain(|id| !settled.contains(id));
        self.index(jobs, sessions)
    }

    /// The lock under which keys are added; none if its holder is paused.
    fn lock_index(&mut self) -> Result<Option<Lock>, StoreError> {
        let (store, clock) = (&self.hearback.store, &self.hearback.ports.clock);
        let within = if self.index_is_stuck { Duration::ZERO } else { INDEX_WITHIN };
        let until = clock.awake().saturating_add(within);
        loop {
            let lock = store.lock_events(Wait::Try)?;
            self.index_is_stuck = lock.is_none();
            if lock.is_some() || clock.awake() >= until {
                return Ok(lock);
            }
            std::thread::sleep(INDEX_LOOK);
        }
    }

    /// Adds to the index what has happened to these and is not in it.
    fn index(
        &mut self,
        jobs: impl IntoIterator<Item = JobId>,
        sessions: impl IntoIterator<Item = Session>,
    ) -> Result<(), StoreError> {
        let hearback = self.hearback;
        let mut found = Vec::new();
        for id in jobs {
            // A job that cannot be read now is looked at again when everything is.
            let Ok(Some(seen)) = reconcile::seen(&hearback.ports, &id) else { continue };
            self.expect_output(&seen, 0);
            found.push((EventSubject::Job(id), seen.happenings()));
        }
        for session in sessions {
            let Ok(facts) = hearback.store.session(&session) else { continue };
            found.push((EventSubject::Session(session), facts.happenings()));
        }
        let is_news = |known: &Known, (subject, all): &(EventSubject, Vec<Happening>)| {
            all.iter().any(|one| !known.has(subject, &one.fact))
        };
        found.retain(|one| is_news(&self.known, one));
        if found.is_empty() {
            return Ok(());
        }
        // Of many readers that hear of it, one adds it.
        self.known.learn(&hearback.store, |_| true)?;
        found.retain(|one| is_news(&self.known, one));
        if found.is_empty() {
            return Ok(());
        }
        let _lock = self.lock_index()?;
        // Another reader may have added them meanwhile.
        self.known.learn(&hearback.store, |_| true)?;
        let mut new = Vec::new();
        for (subject, all) in found {
            // Of one subject they stay in order, whatever the clock said.
            let mut latest = None;
            for one in all {
                latest = latest.max(Some(one.at));
                if !self.known.has(&subject, &one.fact) {
                    new.push((latest, EventKey { subject: subject.clone(), fact: one.fact }));
                }
            }
        }
        new.sort_by_key(|(at, _)| *at);
        let new: Vec<_> = new.into_iter().map(|(_, key)| key).collect();
        hearback.store.append_events(&new)?;
        self.known.learn(&hearback.store, |_| true)
    }
}
