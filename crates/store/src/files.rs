//! The folder of a job, and what is in it besides facts: locks, room for the end, the script, the output.

use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;

use hearback_core::message::Excerpt;
use hearback_core::port::disk::{Disk, Flush, Lock, LockMode, Publish, ReadError, Wait, Watch};
use hearback_core::port::executor::Script;
use hearback_core::port::record::{JobFiles, JobLock, KeyClaim, StoreError};
use hearback_core::{
    FactKind, JobId, Key, Observed, Output, Remains, SAMPLES_BYTES, Sample, Samples, Session, Timestamp,
};

use crate::log::Log;
use crate::{Store, key, layout};

/// Room for an end, and for a kill request: one block of every known file system.
pub(crate) const RESERVE_BYTES: usize = 4096;
/// How often to try to open the log of a job that moves to history at the same moment.
const LOOKS: usize = 3;

impl<D: Disk> Store<D> {
    /// Opens the output of a job; none if there is no output yet. `recorded` is what the end of the job says about it.
    ///
    /// # Errors
    ///
    /// When the log is not a safe file, or cannot be opened.
    pub fn open_log(&self, id: &JobId, recorded: Option<Output>) -> Result<Option<Log>, ReadError> {
        for _ in 0..LOOKS {
            let Some((folder, _)) = self.locate(id).map_err(io_error)? else { break };
            let file = self.disk().open(&layout::log(&folder))?;
            // If the log is missing while its folder moves, it may be in the other place.
            if file.is_some() || self.disk().is_dir(&folder)? {
                let tail = self.disk().open(&layout::log_tail(&folder))?;
                return Ok(file.map(|file| Log::new(file, tail, recorded)));
            }
        }
        Ok(None)
    }

    /// The samples of what a job used, oldest first; none if there are none that can be read.
    pub fn samples(&self, id: &JobId) -> Vec<Sample> {
        let folder = self.locate(id).ok().flatten().map(|(folder, _)| folder);
        let file = folder.and_then(|folder| self.disk().open(&layout::samples(&folder)).ok().flatten());
        let mut bytes = Vec::new();
        // The job itself may write there.
        if let Some(file) = file
            && file.take(SAMPLES_BYTES as u64).read_to_end(&mut bytes).is_err()
        {
            return Vec::new();
        }
        Samples::from_bytes(&bytes)
    }
}

impl<D: Disk> JobFiles for Store<D> {
    fn create(&self, now: Timestamp) -> Result<JobId, StoreError> {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        loop {
            let id = JobId::mint(millis, self.disk().nonce());
            if self.disk().make_dir(&self.layout.job(&id))? == Publish::New {
                return Ok(id);
            }
        }
    }

    fn recreate(&self, id: &JobId) -> Result<(), StoreError> {
        let _ = self.disk().make_dir(&self.layout.job(id))?;
        Ok(())
    }

    fn claim_key(&self, session: Option<&Session>, key: &Key, id: &JobId) -> Result<KeyClaim, StoreError> {
        key::claim(&self.records, &self.layout, session, key, id)
    }

    fn job_of_key(&self, session: Option<&Session>, key: &Key) -> Result<Option<JobId>, StoreError> {
        key::job(&self.records, &self.layout, session, key)
    }

    fn lock(
        &self,
        id: &JobId,
        lock: JobLock,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        self.records.lock(layout::lock(&self.layout.job(id), lock), mode, wait)
    }

    fn lock_holder(&self, id: &JobId, lock: JobLock) -> Option<u32> {
        self.disk().holder(&layout::lock(&self.layout.job(id), lock))
    }

    fn reserve(&self, id: &JobId) -> Result<(), StoreError> {
        let folder = self.layout.job(id);
        // An earlier launch under the same key may have reserved the room already.
        self.records.reserve(layout::end_reserve(&folder), RESERVE_BYTES)?;
        self.records.reserve(layout::kill_reserve(&folder), RESERVE_BYTES)
    }

    fn write_script(&self, id: &JobId, script: &Script) -> Result<PathBuf, StoreError> {
        let path = layout::script(&self.layout.job(id), script.extension);
        let _ = self.records.publish_bytes(&path, &script.bytes, Flush::No)?;
        Ok(path)
    }

    fn remove_script(&self, id: &JobId) -> Result<(), StoreError> {
        let folder = self.layout.job(id);
        for name in self.disk().list(&folder)?.iter().filter(|name| layout::is_script(&folder, name)) {
            self.disk().remove(&folder.join(name))?;
        }
        Ok(())
    }

    fn log_path(&self, id: &JobId) -> PathBuf {
        let place = self.locate(id).ok().flatten();
        layout::log(&place.map_or_else(|| self.layout.job(id), |(folder, _)| folder))
    }

    fn share_log(&self, id: &JobId) -> Result<(), StoreError> {
        let (log, name) = (layout::log(&self.layout.job(id)), self.layout.shared_log(id));
        match self.disk().link(&log, &name) {
            // The first log of this store.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let _ = self.disk().make_dir(&self.layout.logs())?;
                Ok(self.disk().link(&log, &name)?)
            }
            other => Ok(other?),
        }
    }

    fn shared_log_path(&self, id: &JobId) -> PathBuf {
        let name = self.layout.shared_log(id);
        match self.disk().open(&name) {
            Ok(Some(_)) => name,
            _ => self.log_path(id),
        }
    }

    fn log_tail_path(&self, id: &JobId) -> PathBuf {
        layout::log_tail(&self.layout.job(id))
    }

    fn samples_path(&self, id: &JobId) -> PathBuf {
        layout::samples(&self.layout.job(id))
    }

    fn answer_path(&self, id: &JobId) -> PathBuf {
        layout::answer(&self.layout.job(id))
    }

    fn receipt_path(&self, id: &JobId) -> Option<PathBuf> {
        Some(layout::fact(&self.layout.job(id), FactKind::Receipt))
    }

    fn bell_path(&self, id: &JobId) -> PathBuf {
        layout::bell(&self.layout.job(id))
    }

    fn input_path(&self, id: &JobId) -> PathBuf {
        layout::input(&self.layout.job(id))
    }

    fn end_input(&self, id: &JobId) -> Result<(), StoreError> {
        Ok(self.disk().remove(&self.input_path(id))?)
    }

    fn excerpt(&self, seen: &Observed, head: u64, tail: u64) -> Result<Excerpt, StoreError> {
        match self.open_log(&seen.id, recorded(seen)) {
            Ok(Some(mut log)) => Ok(log.excerpt(head, tail)?),
            Ok(None) => Ok(Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 }),
            Err(error) => Err(std::io::Error::other(error).into()),
        }
    }

    fn remains(&self, seen: &Observed, most: u64) -> Result<Remains, StoreError> {
        let log = usable(self.open_log(&seen.id, recorded(seen)))?;
        let excerpt = log.map(|mut log| log.excerpt(0, most)).transpose()?;
        let (output, cut) = excerpt.map_or((Vec::new(), false), |excerpt| {
            // Without a gap the head is everything.
            ([excerpt.head, excerpt.tail].concat(), excerpt.omitted > 0)
        });
        let mut file = Vec::new();
        if let Some((folder, _)) = self.locate(&seen.id)?
            && let Some(answer) = usable(self.disk().open(&layout::answer(&folder)))?
        {
            answer.take(most).read_to_end(&mut file)?;
        }
        Ok(Remains { file, output, cut })
    }

    fn watch(&self, id: &JobId) -> Result<Option<Box<dyn Watch>>, StoreError> {
        match self.locate(id)? {
            Some((folder, _)) => Ok(Some(self.disk().watch(&folder)?)),
            None => Ok(None),
        }
    }
}

fn recorded(seen: &Observed) -> Option<Output> {
    seen.facts.end.present().map(|end| end.output.clone())
}

/// The opened file; none if it is not safe or cannot be read: a job may put anything into its folder.
fn usable<T>(opened: Result<Option<T>, ReadError>) -> Result<Option<T>, StoreError> {
    match opened {
        Err(ReadError::Io(error)) if error.kind() != ErrorKind::PermissionDenied => Err(error.into()),
        Err(_) => Ok(None),
        Ok(opened) => Ok(opened),
    }
}

fn io_error(error: StoreError) -> ReadError {
    match error {
        StoreError::Io(error) => error.into(),
        other => std::io::Error::other(other).into(),
    }
}

#[cfg(test)]
mod tests {
    use hearback_core::Durability;
    use hearback_core::port::record::FactStore;

    use super::*;
    use crate::testing::{launched, store};

    #[test]
    fn what_a_job_left_behind_is_read_within_bounds_and_never_through_a_stranger() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Process);
        let seen = store.observe(&id).unwrap().unwrap();
        assert_eq!(store.remains(&seen, 100).unwrap(), Remains::default());
        let folder = store.layout.job(&id);
        disk.plant(&layout::answer(&folder), "x".repeat(500).as_bytes());
        disk.plant(&layout::log(&folder), "line\n".repeat(100).as_bytes());
        let remains = store.remains(&seen, 100).unwrap();
        assert_eq!((remains.file.len(), remains.output.len(), remains.cut), (100, 100, true));
        let remains = store.remains(&seen, 1000).unwrap();
        assert_eq!((remains.file.len(), remains.output.len(), remains.cut), (500, 500, false));
    }
}
