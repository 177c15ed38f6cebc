//! A store in memory: the eleven methods that are required of one. Bells and logs are files, because the machine's
//! surroundings write them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::record::{FactStore, Housekeeping, JobFiles, JobLock, StoreError};
use hearback_core::{
    Durability, Fact, Facts, JobId, LockState, LockView, Observed, Output, Place, Timestamp,
};

#[derive(Clone)]
pub struct Memory(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Default)]
struct State {
    jobs: BTreeMap<JobId, (Facts, Place)>,
    /// How many hold a lock shared; -1 for one that holds it alone.
    held: BTreeMap<(JobId, JobLock), i32>,
    created: u64,
}

impl Memory {
    pub fn in_folder(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self(Arc::new(Shared { folder, state: Mutex::default(), released: Condvar::new() }))
    }

    /// Takes the lock that a launcher holds.
    pub fn hold_launch(&self, id: &JobId) -> Option<Lock> {
        self.lock(id, JobLock::Launch, LockMode::Exclusive, Wait::Try).expect("it is memory")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn listed(&self, place: Place) -> Vec<JobId> {
        let state = self.state();
        state.jobs.iter().filter(|(_, (_, at))| *at == place).map(|(id, _)| id.clone()).collect()
    }
}

fn gone() -> StoreError {
    std::io::Error::from(std::io::ErrorKind::NotFound).into()
}

impl State {
    fn is_held(&self, id: &JobId, lock: JobLock) -> bool {
        self.held.get(&(id.clone(), lock)).is_some_and(|held| *held != 0)
    }

    fn is_in_use(&self, id: &JobId) -> bool {
        self.held.iter().any(|((job, _), held)| job == id && *held != 0)
    }
}

impl FactStore for Memory {
    fn publish(&self, id: &JobId, fact: &Fact, _: Durability) -> Result<Publish, StoreError> {
        Ok(self.state().jobs.get_mut(id).ok_or_else(gone)?.0.publish(fact))
    }

    fn observe(&self, id: &JobId) -> Result<Option<Observed>, StoreError> {
        // Under one mutex, facts and locks are of one moment.
        let state = self.state();
        let look = |lock| if state.is_held(id, lock) { LockState::Held } else { LockState::Free };
        let locks = LockView { launch: look(JobLock::Launch), alive: look(JobLock::Alive) };
        Ok(state.jobs.get(id).map(|(facts, place)| Observed {
            id: id.clone(),
            facts: facts.clone(),
            locks,
            place: *place,
            output: Output::default(),
        }))
    }
}

impl JobFiles for Memory {
    fn create(&self, now: Timestamp) -> Result<JobId, StoreError> {
        let mut state = self.state();
        state.created += 1;
        let id = JobId::mint(now.as_millis().unsigned_abs(), state.created);
        state.jobs.insert(id.clone(), (Facts::default(), Place::Open));
        Ok(id)
    }

    fn lock(
        &self,
        id: &JobId,
        lock: JobLock,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        let mut state = self.state();
        loop {
            let held = state.held.entry((id.clone(), lock)).or_default();
            match mode {
                LockMode::Shared if *held >= 0 => *held += 1,
                LockMode::Exclusive if *held == 0 => *held = -1,
                _ if wait == Wait::Try => return Ok(None),
                _ => {
                    state = self.0.released.wait(state).unwrap();
                    continue;
                }
            }
            return Ok(Some(Lock::new(Held(self.clone(), (id.clone(), lock), mode))));
        }
    }

    fn log_path(&self, id: &JobId) -> PathBuf {
        self.0.folder.join(id.as_str())
    }

    fn bell_path(&self, id: &JobId) -> PathBuf {
        self.0.folder.join(format!("{id}.bell"))
    }
}

struct Held(Memory, (JobId, JobLock), LockMode);

impl Drop for Held {
    fn drop(&mut self) {
        *self.0.state().held.entry(self.1.clone()).or_default() +=
            if self.2 == LockMode::Exclusive { 1 } else { -1 };
        self.0.0.released.notify_all();
    }
}

impl Housekeeping for Memory {
    fn open_jobs(&self) -> Result<Vec<JobId>, StoreError> {
        Ok(self.listed(Place::Open))
    }

    fn past_jobs(&self, most: usize) -> Result<Vec<JobId>, StoreError> {
        Ok(self.listed(Place::History).into_iter().rev().take(most).collect())
    }

    fn archive(&self, id: &JobId) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.is_in_use(id) {
            return Ok(false);
        }
        state.jobs.get_mut(id).ok_or_else(gone)?.1 = Place::History;
        Ok(true)
    }

    fn prune(&self, id: &JobId) -> Result<bool, StoreError> {
        Ok(self.state().jobs.remove(id).is_some())
    }

    fn discard(&self, id: &JobId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let is_job = state.jobs.get(id).is_some_and(|(facts, _)| !facts.spec.is_absent());
        if is_job || state.is_held(id, JobLock::Launch) {
            return Ok(false);
        }
        Ok(state.jobs.remove(id).is_some())
    }
}
