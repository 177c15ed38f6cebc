//! Leftovers of crashes: what they are, and how each is removed without disturbing other processes.
//!
//! Nothing is decided here. For each leftover, the protocol proves that no process can need it: it is in the trash
//! under a name of hearback, or it contains no fact and its locks could be taken. One kind of leftover cannot be
//! proved, an unfinished file: it is removed by the age that the caller gives.

use std::path::Path;

use hearback_core::port::disk::{Disk, Lock, LockMode, Publish, Wait};
use hearback_core::port::record::{FactStore, Housekeeping, JobLock, StoreError};
use hearback_core::port::session::SessionLock;
use hearback_core::{FactKind, JobId, Key, Read, Session, Timestamp};

use crate::{Store, key, layout};

impl<D: Disk> Store<D> {
    /// Removes every leftover, and returns how many there were. One that cannot be removed does not stop the rest.
    pub(crate) fn remove_leftovers(&self, unfinished_before: Timestamp) -> Result<usize, StoreError> {
        Ok(self.empty_trash()?
            + self.remove_unfinished(unfinished_before)?
            + self.remove_empty_sessions()?
            + self.remove_old_events()?
            + self.discard_blanks()?
            + self.remove_logs()?
            + self.release_keys()?)
    }

    fn empty_trash(&self) -> Result<usize, StoreError> {
        let trash = self.layout.trash();
        // Files that hearback did not put there stay.
        let ours = self.disk().list(&trash)?.into_iter().filter(|name| layout::is_trash(name));
        // A file that a process holds open does not stop the removal of others.
        Ok(ours.filter(|name| self.disk().remove(&trash.join(name)).is_ok()).count())
    }

    /// Removes unfinished key files, and temporary folders of `doctor`.
    fn remove_unfinished(&self, before: Timestamp) -> Result<usize, StoreError> {
        let mut removed = 0;
        let is_old =
            |name: &str| layout::unfinished_since(name).is_some_and(|since| since < before.as_millis());
        for folder in [self.layout.keys(), self.home().to_owned()] {
            for name in self.disk().list(&folder)?.iter().filter(|name| is_old(name)) {
                removed += usize::from(self.disk().remove(&folder.join(name)).is_ok());
            }
        }
        Ok(removed)
    }

    fn remove_empty_sessions(&self) -> Result<usize, StoreError> {
        let mut removed = 0;
        for name in self.disk().list(&self.layout.sessions())? {
            let folder = self.layout.sessions().join(name);
            // A folder that is in use, or that cannot be looked at, stays.
            removed += usize::from(
                self.disk().is_dir(&folder)? && self.remove_empty_session(&folder).unwrap_or(false),
            );
        }
        Ok(removed)
    }

    /// Removes second names of logs whose job a person has removed.
    fn remove_logs(&self) -> Result<usize, StoreError> {
        let mut removed = 0;
        for name in self.disk().list(&self.layout.logs())? {
            if let Some(id) = layout::job_of_shared_log(&name)
                && self.locate(&id)?.is_none()
            {
                removed += usize::from(self.disk().remove(&self.layout.shared_log(&id)).is_ok());
            }
        }
        Ok(removed)
    }

    /// Removes folders whose launcher died before it published a spec.
    fn discard_blanks(&self) -> Result<usize, StoreError> {
        let mut removed = 0;
        for id in self.open_jobs()? {
            if matches!(self.spec(&id), Ok(Read::Absent)) && self.disk().is_dir(&self.layout.job(&id))? {
                removed += usize::from(self.discard_blank(&id).unwrap_or(false));
            }
        }
        Ok(removed)
    }

    /// Releases keys of such launches whose folder is gone already.
    fn release_keys(&self) -> Result<usize, StoreError> {
        let mut released = 0;
        for (session, key, id) in key::all(&self.records, &self.layout)? {
            if self.locate(&id)?.is_none() {
                released += usize::from(self.release_key(session.as_ref(), &key, &id).unwrap_or(false));
            }
        }
        Ok(released)
    }

    /// Removes the folder of a session that contains only free locks; returns whether it is gone.
    ///
    /// A process that takes a lock or sends a message meanwhile finds that the file or the folder is gone, and creates
    /// both again.
    fn remove_empty_session(&self, folder: &Path) -> Result<bool, StoreError> {
        let locks = SessionLock::ALL.map(|lock| layout::session_lock(folder, lock));
        let inbox = layout::inbox(folder);
        let is_shell = || -> Result<bool, StoreError> {
            let mut paths = self.disk().list(folder)?.into_iter().map(|name| folder.join(name));
            Ok(paths.all(|path| path == inbox || locks.contains(&path))
                && self.disk().list(&inbox)?.is_empty())
        };
        // First without the locks, because taking a lock creates its file.
        if !is_shell()? {
            return Ok(false);
        }
        let mut held = Vec::new();
        for lock in &locks {
            let Some(lock) = self.records.lock(lock, LockMode::Exclusive, Wait::Try)? else {
                return Ok(false);
            };
            held.push(lock);
        }
        // Then again under the locks: a turn may have begun and ended in between. A message needs no lock: it is there
        // by now, or its sender finds that the folder is gone.
        self.disk().remove_if_empty(&inbox)?;
        if !is_shell()? || self.disk().is_dir(&inbox)? {
            return Ok(false);
        }
        locks.iter().try_for_each(|lock| self.disk().remove(lock))?;
        // On some systems, an open file keeps its name until it is closed. The folder is empty only now.
        drop(held);
        self.disk().remove_if_empty(folder)?;
        Ok(!self.disk().is_dir(folder)?)
    }

    /// Removes a folder that never became a job; returns whether it is gone.
    pub(crate) fn discard_blank(&self, id: &JobId) -> Result<bool, StoreError> {
        let folder = self.layout.job(id);
        if !self.disk().is_dir(&folder)? {
            return Ok(true);
        }
        let launch = layout::lock(&folder, JobLock::Launch);
        let launching = match self.records.lock(launch, LockMode::Exclusive, Wait::Try) {
            Ok(Some(launching)) => launching,
            Ok(None) => return Ok(false),
            // On a full disk there may be no room even for the lock. Then the folder is still empty.
            Err(error) => {
                self.disk().remove_if_empty(&folder)?;
                return if self.disk().is_dir(&folder)? { Err(error) } else { Ok(true) };
            }
        };
        if !self.is_blank(&folder)? {
            return Ok(false);
        }
        self.remove_blank(&folder, launching)
    }

    /// Releases the key of a launch whose launcher died before it published a spec; returns whether it did.
    fn release_key(&self, session: Option<&Session>, key: &Key, id: &JobId) -> Result<bool, StoreError> {
        // A process that launches under this key meanwhile needs the lock in the folder, which does not exist.
        let folder = self.layout.job(id);
        if self.disk().make_dir(&folder)? == Publish::Exists {
            return Ok(false);
        }
        let launch = layout::lock(&folder, JobLock::Launch);
        let Some(launching) = self.records.lock(launch, LockMode::Exclusive, Wait::Try)? else {
            return Ok(false);
        };
        if !self.is_blank(&folder)? {
            return Ok(false);
        }
        key::release(&self.records, &self.layout, session, key, id)?;
        self.remove_blank(&folder, launching)
    }

    /// Whether no fact was ever recorded here. A folder whose spec was lost is still a job.
    fn is_blank(&self, folder: &Path) -> Result<bool, StoreError> {
        let facts = FactKind::SINGLE.map(|kind| layout::fact(folder, kind));
        let is_fact =
            |name: &String| facts.iter().any(|fact| fact.ends_with(name)) || layout::numbered(name).is_some();
        Ok(!self.disk().list(folder)?.iter().any(is_fact))
    }

    /// Removes a folder that never became a job, under its lock; returns whether it is gone.
    ///
    /// File by file: on some systems a folder cannot move while a file in it is open, and the lock is open.
    fn remove_blank(&self, folder: &Path, launching: Lock) -> Result<bool, StoreError> {
        let lock = layout::lock(folder, JobLock::Launch);
        let names = self.disk().list(folder)?;
        let others = names.iter().map(|name| folder.join(name)).filter(|path| *path != lock);
        // The lock comes last: until then no other process begins anything here.
        others.chain([lock.clone()]).try_for_each(|path| self.disk().remove(&path))?;
        drop(launching);
        self.disk().remove_if_empty(folder)?;
        Ok(!self.disk().is_dir(folder)?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use hearback_core::port::record::{JobFiles, KeyClaim};
    use hearback_core::testing::sample;
    use hearback_core::{Durability, Fact, Spec};

    use super::*;
    use crate::hash;
    use crate::testing::{launched, store};

    const HOUR_MS: i64 = 60 * 60 * 1000;

    #[test]
    fn tidying_removes_what_crashes_left_and_nothing_else() {
        let (disk, store) = store();
        let job = launched(&store, Durability::Process);
        let empty = store.create(sample::at()).unwrap();
        let launching = store.create(sample::at()).unwrap();
        let held = store.lock(&launching, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap();
        let now = sample::at();
        let hour_ago = Timestamp::from_millis(now.as_millis() - HOUR_MS);
        disk.plant(&PathBuf::from(format!("/home/trash/{}", layout::trash_name(&job, 7))), b"");
        disk.plant(Path::new("/home/trash/photos"), b"");
        disk.plant(&PathBuf::from(format!("/home/keys/tmp.{}.1.2", now.as_millis() - 2 * HOUR_MS)), b"");
        disk.plant(&PathBuf::from(format!("/home/keys/tmp.{}.1.2", now.as_millis())), b"");
        let long_ago = Timestamp::from_millis(now.as_millis() - 2 * HOUR_MS);
        for begun in [long_ago, now] {
            disk.plant(&Path::new("/home").join(layout::trial_folder_name(begun, 7)), b"");
        }
        assert_eq!(store.tidy(hour_ago).unwrap(), 4);
        let mut left = vec![job, launching];
        left.sort();
        assert_eq!(store.open_jobs().unwrap(), left);
        assert!(store.observe(&empty).unwrap().is_none());
        assert_eq!(store.tidy(hour_ago).unwrap(), 0, "tidying again changes nothing");
        drop(held);
    }

    #[test]
    fn the_key_of_a_launch_that_died_early_is_given_back_and_no_other() {
        let (disk, store) = store();
        let (dead, alive, known) = ("dead", "alive", "known");
        let claimed = |name: &str, id: &JobId| {
            let key = Key::parse(name).unwrap();
            assert_eq!(store.claim_key(None, &key, id).unwrap(), KeyClaim::Ours);
        };
        let [died, launching, job] = [(); 3].map(|()| store.create(sample::at()).unwrap());
        for (name, id) in [(dead, &died), (alive, &launching), (known, &job)] {
            claimed(name, id);
        }
        let spec = Spec { key: Key::parse(known).ok(), ..sample::unowned(&job) };
        let _ = store.publish(&job, &Fact::Spec(Box::new(spec)), Durability::Process).unwrap();
        let held = store.lock(&launching, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap();
        let keys = || disk.list(Path::new("/home/keys")).unwrap().len();
        assert_eq!(keys(), 3);
        // The folder goes first, and then its key.
        assert_eq!(store.tidy(sample::at()).unwrap(), 2);
        assert_eq!(keys(), 2);
        let mut left = vec![launching, job];
        left.sort();
        assert_eq!(store.open_jobs().unwrap(), left);
        assert_eq!(store.tidy(sample::at()).unwrap(), 0, "tidying again changes nothing");
        // A new launch under the key gets a new id.
        let again = store.create(sample::at()).unwrap();
        claimed(dead, &again);
        drop(held);
    }

    #[test]
    fn what_a_launch_left_goes_also_where_its_lock_holds_the_folder_in_place() {
        let (disk, store) = store();
        let [blank, keyed] = [(); 2].map(|()| store.create(sample::at()).unwrap());
        assert_eq!(store.claim_key(None, &Key::parse("k").unwrap(), &keyed).unwrap(), KeyClaim::Ours);
        assert!(store.discard(&blank).unwrap());
        assert_eq!(store.open_jobs().unwrap(), [keyed]);
        assert_eq!(store.tidy(sample::at()).unwrap(), 2, "the folder goes first, and then its key");
        for folder in ["jobs", "keys", "trash"] {
            assert_eq!(disk.list(&Path::new("/home").join(folder)).unwrap(), [""; 0], "{folder}");
        }
    }

    #[test]
    fn scenario_46_a_session_of_which_nothing_is_left_leaves_no_shell() {
        use hearback_core::port::session::SessionStore;
        let (disk, store) = store();
        let [mine, yours, sent] = ["mine", "yours", "sent"].map(|name| Session::parse(name).unwrap());
        let enter =
            |session| store.lock_session(session, SessionLock::Turn, LockMode::Exclusive, Wait::Try).unwrap();
        let is_there = |session| disk.is_dir(&store.layout.session(&hash::session_name(session))).unwrap();
        let turn = enter(&mine).unwrap();
        drop(enter(&yours).unwrap());
        store.queue(&sample::message("sent", "hello"), Durability::Power).unwrap();
        assert_eq!(store.tidy(sample::at()).unwrap(), 1);
        assert!(is_there(&mine), "it is in a turn");
        assert!(is_there(&sent), "something was said in it");
        assert!(!is_there(&yours));
        drop(turn);
        assert_eq!(store.tidy(sample::at()).unwrap(), 1);
        assert!(!is_there(&mine) && is_there(&sent));
        assert!(enter(&mine).is_some(), "a process that comes back finds a new one");
    }
}
