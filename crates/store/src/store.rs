//! The store of hearback over a disk: opening it, and finding the folder of a job. Its operations are in
//! [`jobs`](crate::jobs), [`observe`](crate::observe), [`files`](crate::files), [`readers`](crate::readers),
//! [`archive`](crate::archive), [`own_logs`](crate::own_logs), [`tidy`](crate::tidy), [`session`](crate::session),
//! [`host`](crate::host).

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hearback_core::port::disk::{Disk, Flush, Publish, ReadError};
use hearback_core::port::record::StoreError;
use hearback_core::{Durability, FORMAT, JobId, Place};

use crate::layout::Layout;
use crate::records::{Format, Records, Rules};

/// More than any fact needs: a command line has at most 2 MiB, and JSON may write six bytes for each.
const MAX_FACT_BYTES: u64 = 16 * 1024 * 1024;
/// How often to look for a folder that moves at the same moment: more often than a job ever moves.
pub(crate) const MOVES: usize = 8;
/// More than a person writes by hand.
pub const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Every fact states its format.
const RULES: Rules =
    Rules { max_bytes: MAX_FACT_BYTES, format: Some(Format { field: "format", newest: FORMAT }) };

/// The records of all jobs and sessions, below one folder.
#[derive(Debug, Clone)]
pub struct Store<D> {
    pub(crate) records: Records<D>,
    pub(crate) layout: Layout,
    pub(crate) durable_ends: DurableEnds,
}

/// Jobs whose end this process knows to be on disk. To forget one costs a flush.
#[derive(Debug, Clone, Default)]
pub(crate) struct DurableEnds(Arc<Mutex<HashSet<JobId>>>);

impl DurableEnds {
    /// More than are open at a time; a process that sees more of them begins anew.
    const MOST: usize = 10_000;

    pub(crate) fn contains(&self, id: &JobId) -> bool {
        self.lock().contains(id)
    }

    pub(crate) fn insert(&self, id: &JobId) {
        let mut known = self.lock();
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(id.clone());
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<JobId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Disk> Store<D> {
    /// Opens the store at `home`, creating it if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsafe`] when another user owns the folder or may write it.
    pub fn open(disk: D, home: &Path) -> Result<Self, StoreError> {
        let records = Records::open(disk, home, RULES)?;
        let layout = Layout::new(records.home().to_owned());
        let mut fresh = false;
        for folder in layout.folders() {
            fresh |= records.make_folder(folder)? == Publish::New;
        }
        if fresh {
            records.disk().flush(layout.home())?;
        }
        Ok(Self { records, layout, durable_ends: DurableEnds::default() })
    }

    /// A store that does not exist, to be read: it is empty.
    pub fn absent(disk: D, home: &Path) -> Self {
        let records = Records::none(disk, home, RULES);
        let layout = Layout::new(home.to_owned());
        Self { records, layout, durable_ends: DurableEnds::default() }
    }

    /// The folder of the store, by its real name.
    pub fn home(&self) -> &Path {
        self.layout.home()
    }

    /// The path of the settings file, and its content. Settings name programs to run, so the file is checked as facts
    /// are, and no other user may write it.
    pub fn read_config(&self) -> (PathBuf, Result<Option<Vec<u8>>, ReadError>) {
        let path = self.layout.config();
        let text = self.disk().read_trusted(&path, MAX_CONFIG_BYTES);
        (path, text)
    }

    pub(crate) fn disk(&self) -> &D {
        self.records.disk()
    }

    /// Makes a folder of the store with the one above it. Another process may remove it at any time.
    pub(crate) fn make_folders(&self, folder: &Path) -> Result<(), StoreError> {
        let above = folder.parent().filter(|above| *above != self.home());
        for folder in above.into_iter().chain([folder]) {
            let _ = self.disk().make_dir(folder)?;
        }
        Ok(())
    }

    /// Finds the folder of a job. Looks twice among the open ones, because a job may move between the looks.
    pub(crate) fn locate(&self, id: &JobId) -> Result<Option<(PathBuf, Place)>, StoreError> {
        let (open, past) = (self.layout.job(id), self.layout.past_job(id));
        for (folder, place) in [(&open, Place::Open), (&past, Place::History), (&open, Place::Open)] {
            if self.disk().is_dir(folder)? {
                return Ok(Some((folder.clone(), place)));
            }
        }
        Ok(None)
    }

    /// Does something in the folder of a job, open or in history, and again if the folder moves meanwhile.
    pub(crate) fn in_folder<T>(
        &self,
        id: &JobId,
        act: impl Fn(&Path) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..MOVES {
            let Some((folder, _)) = self.locate(id)? else { break };
            match act(&folder) {
                Err(error) if error.is_gone() => {}
                done => return done,
            }
        }
        Err(gone())
    }
}

pub(crate) fn gone() -> StoreError {
    std::io::Error::from(ErrorKind::NotFound).into()
}

/// How one publish is flushed for a durability.
pub(crate) fn flush(durability: Durability) -> Flush {
    match durability {
        // A newer build may want something else. The safest choice is used.
        Durability::Power | Durability::Unknown => Flush::Power,
        Durability::Process => Flush::No,
    }
}
