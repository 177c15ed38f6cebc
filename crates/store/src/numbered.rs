//! Numbered facts of a folder (turns, messages, requests to the host): listing them, publishing one, and keeping the
//! newest.

use std::path::{Path, PathBuf};

use hearback_core::SmallSort;
use hearback_core::port::disk::{Disk, Lock, LockMode, Wait};
use hearback_core::port::record::StoreError;

use crate::Store;
use crate::layout::{self, SessionFactKind as Kind};

impl<D: Disk> Store<D> {
    /// The numbered facts of a folder, in order.
    pub(crate) fn numbered(&self, folder: &Path) -> Result<Vec<(u32, Kind, PathBuf)>, StoreError> {
        let names = self.disk().list(folder)?;
        let mut found: Vec<_> = names
            .iter()
            .filter_map(|name| layout::parse_session_fact(name).map(|(n, kind)| (n, kind, folder.join(name))))
            .collect();
        found.small_sort_by_key(|(n, ..)| *n);
        Ok(found)
    }

    /// Removes the facts whose numbers are not among the newest `keep`, and leftovers of facts that were removed
    /// before.
    pub(crate) fn keep_newest(&self, found: &[(u32, Kind, PathBuf)], keep: usize) -> Result<(), StoreError> {
        let makes =
            |kind: &Kind| matches!(kind, Kind::TurnBegin | Kind::Message | Kind::Request | Kind::HostBegin);
        let made: Vec<_> = found.iter().filter(|(_, kind, _)| makes(kind)).map(|(n, ..)| *n).collect();
        let kept = &made[made.len().saturating_sub(keep)..];
        // A mark can exist before its turn does.
        let is_next = |n: &u32| made.last().is_none_or(|last| n > last);
        let mut gone: Vec<_> = found.iter().filter(|(n, ..)| !kept.contains(n) && !is_next(n)).collect();
        // The fact that begins a turn or a request is removed first: if this process dies here, nothing seems to be in
        // progress. If none is kept, it is removed last, so that its number is not reused before all its facts are
        // gone.
        gone.small_sort_by_key(|(_, kind, _)| makes(kind) == (keep == 0));
        gone.iter().try_for_each(|(_, _, path)| Ok(self.disk().remove(path)?))
    }

    /// Takes a lock in a folder that may be missing. A shared lock in a missing folder is granted: no process can hold
    /// the lock.
    pub(crate) fn lock_in(
        &self,
        folder: &Path,
        lock: &Path,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        loop {
            if mode == LockMode::Exclusive {
                self.make_folders(folder)?;
            }
            match self.records.lock(lock, mode, wait) {
                // Another process has just removed the folder, because it was empty.
                Err(error) if error.is_gone() => match mode {
                    LockMode::Shared => return Ok(Some(Lock::new(()))),
                    LockMode::Exclusive => {}
                },
                lock => return lock,
            }
        }
    }
}

/// The facts of this number, which is not below the last.
pub(crate) fn newest<T: Default>(list: &mut Vec<(u32, T)>, n: u32) -> &mut T {
    if list.last().is_none_or(|(last, _)| *last != n) {
        list.push((n, T::default()));
    }
    let last = list.len() - 1;
    &mut list[last].1
}
