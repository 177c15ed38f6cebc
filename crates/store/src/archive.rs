//! Which jobs there are, and moving them: settled ones to history, pruned ones to the trash.
//!
//! The caller decides what is moved. A job that a process still uses stays where it is.

use std::io::ErrorKind;
use std::path::Path;

use hearback_core::port::disk::{Disk, LockMode, Publish, Wait};
use hearback_core::port::record::{Housekeeping, JobLock, StoreError};
use hearback_core::{FactKind, JobId, LockState, Place, Read, SmallSort, Spec, Timestamp};

use crate::store::MOVES;
use crate::{Store, key, layout};

impl<D: Disk> Housekeeping for Store<D> {
    fn open_jobs(&self) -> Result<Vec<JobId>, StoreError> {
        self.ids_in(&self.layout.jobs())
    }

    fn past_jobs(&self, most: usize) -> Result<Vec<JobId>, StoreError> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let mut eras = self.disk().list(&self.layout.history())?;
        eras.small_sort();
        let mut newest = Vec::new();
        for era in eras.iter().rev() {
            if newest.len() >= most {
                break;
            }
            // File managers leave files of their own in the folders that they show.
            if !self.disk().is_dir(&self.layout.era(era))? {
                continue;
            }
            newest.extend(self.ids_in(&self.layout.era(era))?.into_iter().rev());
        }
        newest.truncate(most);
        Ok(newest)
    }

    fn archive(&self, id: &JobId) -> Result<bool, StoreError> {
        let (folder, past) = (self.layout.job(id), self.layout.past_job(id));
        if !self.disk().is_dir(&folder)? {
            return Ok(self.disk().is_dir(&past)?);
        }
        if !self.is_quiet(&folder)? || !self.remove_spent(&folder)? {
            return Ok(false);
        }
        self.move_to_history(id, &folder, &past)
    }

    fn prune(&self, id: &JobId) -> Result<bool, StoreError> {
        let Some((folder, place)) = self.locate(id)? else { return Ok(true) };
        if !self.is_quiet(&folder)? {
            return Ok(false);
        }
        let spec: Read<Spec> = self.records.read(layout::fact(&folder, FactKind::Spec))?;
        if let Read::Present(Spec { session, key: Some(key), .. }) = spec {
            // A process that is launching under this key holds the lock: then key and job stay.
            let launch = layout::lock(&folder, JobLock::Launch);
            let Some(_launching) = self.records.lock(launch, LockMode::Exclusive, Wait::Try)? else {
                return Ok(false);
            };
            key::release(&self.records, &self.layout, session.as_ref(), &key, id)?;
        }
        // Before the job, so that no name is left of a log that no job has.
        self.disk().remove(&self.layout.shared_log(id))?;
        match self.to_trash(&folder, id) {
            // Another process pruned it.
            Err(error) if error.is_gone() => {}
            other => other?,
        }
        if place == Place::History {
            self.disk().remove_if_empty(&self.layout.era(id.era()))?;
        }
        Ok(true)
    }

    fn discard(&self, id: &JobId) -> Result<bool, StoreError> {
        self.discard_blank(id)
    }

    fn tidy(&self, unfinished_before: Timestamp) -> Result<usize, StoreError> {
        self.remove_leftovers(unfinished_before)
    }
}

impl<D: Disk> Store<D> {
    fn ids_in(&self, folder: &Path) -> Result<Vec<JobId>, StoreError> {
        let mut ids: Vec<_> =
            self.disk().list(folder)?.iter().filter_map(|name| JobId::parse(name).ok()).collect();
        ids.small_sort();
        Ok(ids)
    }

    /// Whether no process needs the folder where it is.
    fn is_quiet(&self, folder: &Path) -> Result<bool, StoreError> {
        for lock in [JobLock::Launch, JobLock::Alive] {
            if self.records.probe(layout::lock(folder, lock))? != LockState::Free {
                return Ok(false);
            }
        }
        // Processes that need the folder hold this lock shared, so only an exclusive lock proves that there are none.
        let keeper = layout::lock(folder, JobLock::Keeper);
        let kept = self.disk().list(folder)?.iter().any(|name| keeper.ends_with(name));
        Ok(!kept || self.records.lock(keeper, LockMode::Exclusive, Wait::Try)?.is_some())
    }

    /// Removes the files of a settled job that are of no use any more; returns whether all are gone.
    ///
    /// If not, another process has one open, or the disk refused. The job stays among the open ones, and the next
    /// reconcile tries again.
    fn remove_spent(&self, folder: &Path) -> Result<bool, StoreError> {
        let spent = self.spent(folder)?;
        for name in &spent {
            let _ = self.disk().remove(&folder.join(name));
        }
        // If another process removes the same file, the file may stay until that process is done.
        Ok(spent.is_empty() || self.spent(folder)?.is_empty())
    }

    fn spent(&self, folder: &Path) -> Result<Vec<String>, StoreError> {
        let names = self.disk().list(folder)?.into_iter();
        Ok(names.filter(|name| layout::is_spent(folder, name)).collect())
    }

    fn move_to_history(&self, id: &JobId, folder: &Path, past: &Path) -> Result<bool, StoreError> {
        for _ in 0..MOVES {
            let _ = self.disk().make_dir(&self.layout.era(id.era()))?;
            match self.disk().move_dir(folder, past) {
                Ok(published) => return Ok(published == Publish::New),
                // A prune removed the empty era, or another process moved the job.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if self.disk().is_dir(past)? {
                        return Ok(true);
                    }
                }
                // On some systems, an open file keeps its folder in place. A process is reading: the next reconcile
                // moves it.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn to_trash(&self, folder: &Path, id: &JobId) -> Result<(), StoreError> {
        let trash = self.layout.trash().join(layout::trash_name(id, self.disk().nonce()));
        if self.disk().move_dir(folder, &trash)? == Publish::New {
            // The job is gone either way. Tidy removes what cannot be removed now.
            let _ = self.disk().remove(&trash);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hearback_core::Durability;
    use hearback_core::port::record::JobFiles;

    use super::*;
    use crate::testing::{launched, store};

    #[test]
    fn what_is_held_is_neither_moved_nor_pruned() {
        let (_, store) = store();
        let id = launched(&store, Durability::Process);
        for (lock, mode) in [
            (JobLock::Launch, LockMode::Exclusive),
            (JobLock::Alive, LockMode::Exclusive),
            (JobLock::Keeper, LockMode::Exclusive),
        ] {
            let held = store.lock(&id, lock, mode, Wait::Try).unwrap().unwrap();
            assert!(!store.archive(&id).unwrap(), "{lock:?}");
            assert!(!store.prune(&id).unwrap(), "{lock:?}");
            drop(held);
        }
        let held = store.lock(&id, JobLock::Keeper, LockMode::Shared, Wait::Try).unwrap().unwrap();
        assert!(!store.archive(&id).unwrap(), "shared holders count");
        drop(held);
        assert!(store.archive(&id).unwrap());
    }

    #[test]
    fn scenario_55_what_is_spent_goes_with_the_settlement_or_with_a_later_look() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Process);
        let folder = store.layout.job(&id);
        let spent = [layout::answer(&folder), layout::script(&folder, ""), layout::script(&folder, "ps1")];
        for path in &spent {
            disk.plant(path, b"spent");
        }
        // The first removal may stop at any file.
        for n in 0..=spent.len() as u32 {
            disk.fail_after(n.min(1));
            assert!(
                !store.archive(&id).is_ok_and(|archived| archived),
                "it stays where a later look finds it"
            );
            disk.heal();
            assert!(disk.image().contains_key(&layout::fact(&folder, FactKind::Spec)));
        }
        assert!(store.archive(&id).unwrap());
        let past = store.layout.past_job(&id);
        let left: Vec<_> = disk.image().into_keys().filter(|path| path.starts_with(&past)).collect();
        assert_eq!(left, [past.clone(), layout::fact(&past, FactKind::Spec)]);
    }
}
