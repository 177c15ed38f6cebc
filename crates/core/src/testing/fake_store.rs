//! Records in memory, for tests of decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::fake_disk::Restless;
use crate::message::Excerpt;
use crate::port::disk::{Lock, LockMode, Publish, Wait, Watch};
use crate::port::executor::Script;
use crate::port::record::{FactStore, Housekeeping, JobFiles, JobLock, KeyClaim, StoreError};
use crate::port::session::{SessionLock, SessionStore};
use crate::port::watch::{Changes, StoreChanges, StoreWatch};
use crate::publish::{put, put_numbered};
use crate::session::{Message, MessageFact, SessionFacts, TurnFact};
use crate::{
    Durability, Fact, Facts, HostFact, HostFacts, JobId, Key, Kill, LockState, LockView, Observed, Output,
    Place, Read, Reader, Remains, Session, Spec, Stamp, Timestamp,
};

/// Jobs by id.
#[derive(Debug, Clone, Default)]
pub struct FakeStore(Arc<(Mutex<Records>, Condvar)>);

#[derive(Debug, Default)]
struct Records {
    jobs: BTreeMap<JobId, Job>,
    keys: BTreeMap<(Option<Session>, Key), JobId>,
    /// How many hold it shared; less than none for one who holds it alone.
    held: BTreeMap<LockName, i32>,
    remains: BTreeMap<JobId, Remains>,
    acknowledged: BTreeSet<(JobId, Option<Reader>)>,
    minted: u64,
    sessions: BTreeMap<Session, SessionFacts>,
    host: HostFacts,
    refuse_writes: bool,
    /// Jobs whose locks cannot be taken or seen.
    unlockable: BTreeSet<JobId>,
    tidied_before: Option<Timestamp>,
    /// How many writes there were.
    writes: u64,
}

impl Records {
    fn is_held(&self, id: &JobId, lock: JobLock) -> bool {
        self.held.get(&LockName::Job(id.clone(), lock)).is_some_and(|held| *held < 0)
    }
}

#[derive(Debug, Default)]
struct Job {
    facts: Facts,
    past: bool,
}

impl FakeStore {
    /// Puts facts under an id, as earlier processes would have left them.
    pub fn put(&self, id: &JobId, facts: Facts) {
        self.records().jobs.insert(id.clone(), Job { facts, past: false });
    }

    /// The facts of a job.
    pub fn facts(&self, id: &JobId) -> Facts {
        self.records().jobs.get(id).map(|job| job.facts.clone()).unwrap_or_default()
    }

    /// Puts what a job left behind where its answer is looked for.
    pub fn leave(&self, id: &JobId, remains: Remains) {
        self.records().remains.insert(id.clone(), remains);
    }

    /// Lets every write fail, as on a full disk, or succeed again.
    pub fn refuse_writes(&self, refuse: bool) {
        self.records().refuse_writes = refuse;
    }

    /// Lets every lock of one job fail, as a damaged file does.
    pub fn refuse_locks(&self, id: &JobId) {
        self.records().unlockable.insert(id.clone());
    }

    /// Whether a process holds a lock of a job alone. Nothing is taken for that.
    pub fn is_held(&self, id: &JobId, lock: JobLock) -> bool {
        self.records().is_held(id, lock)
    }

    /// Before when an unfinished file had to be begun to go, the last time that the store was tidied.
    pub fn tidied_before(&self) -> Option<Timestamp> {
        self.records().tidied_before
    }

    fn take(&self, name: LockName, mode: LockMode, wait: Wait) -> Option<Lock> {
        let mut records = self.records();
        loop {
            let held = records.held.entry(name.clone()).or_default();
            match mode {
                LockMode::Shared if *held >= 0 => *held += 1,
                LockMode::Exclusive if *held == 0 => *held = -1,
                _ if wait == Wait::Try => return None,
                _ => {
                    records = self.0.1.wait(records).unwrap();
                    continue;
                }
            }
            return Some(Lock::new(Guard(self.clone(), name, mode)));
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.0.lock().unwrap()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum LockName {
    Job(JobId, JobLock),
    Session(Session, SessionLock),
    Reader(JobId, Option<Reader>),
    Deliverer,
    Monitor,
}

struct Guard(FakeStore, LockName, LockMode);

impl Drop for Guard {
    fn drop(&mut self) {
        {
            let mut records = self.0.records();
            records.writes += 1;
            if let Some(held) = records.held.get_mut(&self.1) {
                *held += if self.2 == LockMode::Exclusive { 1 } else { -1 };
            }
        }
        self.0.0.1.notify_all();
    }
}

impl FactStore for FakeStore {
    fn publish(&self, id: &JobId, fact: &Fact, _durability: Durability) -> Result<Publish, StoreError> {
        let mut records = self.records();
        if !matches!(fact, Fact::End(_)) {
            records.writable()?; // An end has room of its own.
        }
        Ok(records.jobs.get_mut(id).ok_or_else(gone)?.facts.publish(fact))
    }

    fn flush_spec(&self, _id: &JobId) -> Result<(), StoreError> {
        Ok(())
    }

    fn spec(&self, id: &JobId) -> Result<Read<Spec>, StoreError> {
        Ok(self.facts(id).spec)
    }

    fn kills(&self, id: &JobId, after: u32) -> Result<Vec<(u32, Read<Kill>)>, StoreError> {
        Ok(self.facts(id).kills.into_iter().filter(|(n, _)| *n > after).collect())
    }

    fn observe(&self, id: &JobId) -> Result<Option<Observed>, StoreError> {
        let records = self.records();
        let state = |lock| if records.is_held(id, lock) { LockState::Held } else { LockState::Free };
        let locks = LockView { launch: state(JobLock::Launch), alive: state(JobLock::Alive) };
        Ok(records.jobs.get(id).map(|job| Observed {
            id: id.clone(),
            facts: job.facts.clone(),
            locks,
            place: if job.past { Place::History } else { Place::Open },
            output: Output::default(),
        }))
    }

    fn acknowledge(
        &self,
        id: &JobId,
        reader: Option<&Reader>,
        _at: &Stamp,
        _durability: Durability,
    ) -> Result<Publish, StoreError> {
        let mut records = self.records();
        records.writable()?;
        if !records.jobs.contains_key(id) {
            return Err(gone());
        }
        let first = records.acknowledged.insert((id.clone(), reader.cloned()));
        Ok(if first { Publish::New } else { Publish::Exists })
    }

    fn is_acknowledged(&self, id: &JobId, reader: Option<&Reader>) -> Result<bool, StoreError> {
        Ok(self.records().acknowledged.contains(&(id.clone(), reader.cloned())))
    }

    fn lock_reader(&self, id: &JobId, reader: Option<&Reader>) -> Result<Option<Lock>, StoreError> {
        Ok(self.take(LockName::Reader(id.clone(), reader.cloned()), LockMode::Exclusive, Wait::Try))
    }
}

impl JobFiles for FakeStore {
    fn create(&self, now: Timestamp) -> Result<JobId, StoreError> {
        let mut records = self.records();
        records.writable()?;
        records.minted += 1;
        let id = JobId::mint(now.as_millis().unsigned_abs(), records.minted);
        records.jobs.insert(id.clone(), Job::default());
        Ok(id)
    }

    fn recreate(&self, id: &JobId) -> Result<(), StoreError> {
        self.records().jobs.entry(id.clone()).or_default();
        Ok(())
    }

    fn claim_key(&self, session: Option<&Session>, key: &Key, id: &JobId) -> Result<KeyClaim, StoreError> {
        let mut records = self.records();
        let owner = records.keys.entry((session.cloned(), key.clone())).or_insert_with(|| id.clone());
        Ok(if owner == id { KeyClaim::Ours } else { KeyClaim::Taken(owner.clone()) })
    }

    fn job_of_key(&self, session: Option<&Session>, key: &Key) -> Result<Option<JobId>, StoreError> {
        Ok(self.records().keys.get(&(session.cloned(), key.clone())).cloned())
    }

    fn lock(
        &self,
        id: &JobId,
        lock: JobLock,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        if self.records().unlockable.contains(id) {
            return Err(std::io::Error::other("this lock is damaged").into());
        }
        Ok(self.take(LockName::Job(id.clone(), lock), mode, wait))
    }

    fn reserve(&self, _id: &JobId) -> Result<(), StoreError> {
        self.records().writable()
    }

    fn write_script(&self, _id: &JobId, _script: &Script) -> Result<PathBuf, StoreError> {
        self.records().writable()?;
        Ok(PathBuf::from("/fake/script"))
    }

    fn log_path(&self, id: &JobId) -> PathBuf {
        PathBuf::from(format!("/fake/{id}/log"))
    }

    fn log_tail_path(&self, id: &JobId) -> PathBuf {
        PathBuf::from(format!("/fake/{id}/output.tail"))
    }

    fn answer_path(&self, id: &JobId) -> PathBuf {
        PathBuf::from(format!("/fake/{id}/answer"))
    }

    fn bell_path(&self, id: &JobId) -> PathBuf {
        PathBuf::from(format!("/fake/{id}/bell"))
    }

    fn excerpt(&self, _seen: &Observed, _head: u64, _tail: u64) -> Result<Excerpt, StoreError> {
        Ok(Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 })
    }

    fn remains(&self, seen: &Observed, _most: u64) -> Result<Remains, StoreError> {
        Ok(self.records().remains.get(&seen.id).cloned().unwrap_or_default())
    }

    fn watch(&self, id: &JobId) -> Result<Option<Box<dyn Watch>>, StoreError> {
        Ok(self.records().jobs.contains_key(id).then(|| Box::new(Restless) as Box<dyn Watch>))
    }
}

impl Housekeeping for FakeStore {
    fn open_jobs(&self) -> Result<Vec<JobId>, StoreError> {
        Ok(self.records().jobs.iter().filter(|(_, job)| !job.past).map(|(id, _)| id.clone()).collect())
    }

    fn past_jobs(&self, most: usize) -> Result<Vec<JobId>, StoreError> {
        let records = self.records();
        let past = records.jobs.iter().rev().filter(|(_, job)| job.past);
        Ok(past.map(|(id, _)| id.clone()).take(most).collect())
    }

    fn archive(&self, id: &JobId) -> Result<bool, StoreError> {
        let mut records = self.records();
        records.writable()?;
        if records
            .held
            .iter()
            .any(|(name, held)| matches!(name, LockName::Job(owner, _) if owner == id) && *held != 0)
        {
            return Ok(false);
        }
        records.jobs.get_mut(id).ok_or_else(gone)?.past = true;
        Ok(true)
    }

    fn prune(&self, id: &JobId) -> Result<bool, StoreError> {
        let mut records = self.records();
        records.writable()?;
        records.keys.retain(|_, owner| owner != id);
        records.acknowledged.retain(|(job, _)| job != id);
        Ok(records.jobs.remove(id).is_some())
    }

    fn discard(&self, id: &JobId) -> Result<bool, StoreError> {
        let mut records = self.records();
        let empty = records.jobs.get(id).is_some_and(|job| job.facts.spec.is_absent());
        let launching =
            records.held.get(&LockName::Job(id.clone(), JobLock::Launch)).is_some_and(|held| *held != 0);
        if empty && !launching {
            records.jobs.remove(id);
            return Ok(true);
        }
        Ok(false)
    }

    fn tidy(&self, unfinished_before: Timestamp) -> Result<usize, StoreError> {
        self.records().tidied_before = Some(unfinished_before);
        Ok(0)
    }
}

impl SessionStore for FakeStore {
    fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        Ok(self.records().sessions.keys().cloned().collect())
    }

    fn session(&self, session: &Session) -> Result<SessionFacts, StoreError> {
        Ok(self.records().sessions.get(session).cloned().unwrap_or_default())
    }

    fn publish_turn(
        &self,
        session: &Session,
        n: u32,
        fact: &TurnFact,
        _durability: Durability,
    ) -> Result<Publish, StoreError> {
        let mut records = self.records();
        records.writable()?;
        let facts = numbered(&mut records.sessions.entry(session.clone()).or_default().turns, n);
        Ok(match fact {
            TurnFact::Begin(fact) => put(&mut facts.begin, fact),
            TurnFact::Resumable(fact) => put(&mut facts.resumable, fact),
            TurnFact::Interrupt(fact) => put(&mut facts.interrupt, fact),
            TurnFact::End(fact) => put(&mut facts.end, fact),
        })
    }

    fn queue(&self, message: &Message, _durability: Durability) -> Result<u32, StoreError> {
        let mut records = self.records();
        records.writable()?;
        let messages = &mut records.sessions.entry(message.session.clone()).or_default().messages;
        let n = messages.last().map_or(0, |(n, _)| *n) + 1;
        numbered(messages, n).message = Read::Present(message.clone());
        Ok(n)
    }

    fn publish_message(
        &self,
        session: &Session,
        n: u32,
        fact: &MessageFact,
        _durability: Durability,
    ) -> Result<Publish, StoreError> {
        let mut records = self.records();
        records.writable()?;
        let facts = numbered(&mut records.sessions.entry(session.clone()).or_default().messages, n);
        Ok(match fact {
            MessageFact::Result(attempt, fact) => put_numbered(&mut facts.results, *attempt, fact),
            MessageFact::Receipt(fact) => put(&mut facts.receipt, fact),
        })
    }

    fn forget(&self, session: &Session, keep: usize) -> Result<(), StoreError> {
        if let Some(facts) = self.records().sessions.get_mut(session) {
            facts.turns.drain(..facts.turns.len().saturating_sub(keep));
            let newest = facts.messages.last().map(|(n, _)| *n).filter(|_| keep > 0);
            facts.messages.retain(|(n, message)| Some(*n) == newest || message.receipt.is_absent());
        }
        Ok(())
    }

    fn mint(&self, now: Timestamp) -> JobId {
        let mut records = self.records();
        records.minted += 1;
        JobId::mint(now.as_millis().unsigned_abs(), records.minted)
    }

    fn lock_session(
        &self,
        session: &Session,
        lock: SessionLock,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        Ok(self.take(LockName::Session(session.clone(), lock), mode, wait))
    }

    fn host(&self) -> Result<HostFacts, StoreError> {
        Ok(self.records().host.clone())
    }

    fn publish_host(&self, n: u32, fact: &HostFact, _durability: Durability) -> Result<Publish, StoreError> {
        let mut records = self.records();
        records.writable()?;
        let host = &mut records.host;
        Ok(match fact {
            HostFact::Begin(fact) => put_numbered(&mut host.begins, n, fact),
            HostFact::Request(fact) => put(&mut numbered(&mut host.requests, n).request, fact),
            HostFact::Taken(fact) => put(&mut numbered(&mut host.requests, n).taken, fact),
            HostFact::Done(fact) => put(&mut numbered(&mut host.requests, n).done, fact),
        })
    }

    fn forget_host(&self, keep: usize) -> Result<(), StoreError> {
        let host = &mut self.records().host;
        host.begins.drain(..host.begins.len().saturating_sub(keep));
        host.requests.drain(..host.requests.len().saturating_sub(keep));
        Ok(())
    }

    fn lock_monitor(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError> {
        Ok(self.take(LockName::Monitor, mode, wait))
    }

    fn lock_deliverer(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError> {
        Ok(self.take(LockName::Deliverer, mode, wait))
    }

    fn wake_host(&self) -> Result<(), StoreError> {
        self.records().writable()
    }
}

impl StoreWatch for FakeStore {
    fn watch_all(&self) -> Result<Box<dyn StoreChanges>, StoreError> {
        Ok(Box::new(FakeWatch::new(self)))
    }

    fn watch_host(&self) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(FakeWatch::new(self)))
    }
}

/// Reports every write and every release of a lock, wherever that is.
struct FakeWatch {
    store: FakeStore,
    seen: u64,
}

impl FakeWatch {
    /// How often to look.
    const EVERY: Duration = Duration::from_millis(2);

    fn new(store: &FakeStore) -> Self {
        Self { store: store.clone(), seen: store.records().writes }
    }
}

impl StoreChanges for FakeWatch {
    fn wait(&mut self, within: Duration) -> Changes {
        Watch::wait(self, within);
        Changes::everything()
    }
}

impl Watch for FakeWatch {
    fn wait(&mut self, within: Duration) {
        let mut left = within;
        loop {
            let writes = self.store.records().writes;
            if writes != self.seen || left.is_zero() {
                self.seen = writes;
                return;
            }
            std::thread::sleep(Self::EVERY.min(left));
            left = left.saturating_sub(Self::EVERY);
        }
    }
}

/// The facts of this number, made if there are none; in order.
fn numbered<T: Default>(list: &mut Vec<(u32, T)>, n: u32) -> &mut T {
    let at = match list.binary_search_by_key(&n, |(n, _)| *n) {
        Ok(at) => at,
        Err(at) => {
            list.insert(at, (n, T::default()));
            at
        }
    };
    &mut list[at].1
}

impl Records {
    fn writable(&mut self) -> Result<(), StoreError> {
        self.writes += 1;
        if self.refuse_writes {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
        } else {
            Ok(())
        }
    }
}

fn gone() -> StoreError {
    std::io::Error::from(std::io::ErrorKind::NotFound).into()
}
