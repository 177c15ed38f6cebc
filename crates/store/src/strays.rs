//! Entries that hearback did not make, where only its own belong: what a file manager or a backup leaves behind.
//!
//! Nothing depends on them, and nothing removes them. They are found so that a person can be told.

use std::path::PathBuf;

use hearback_core::JobId;
use hearback_core::port::disk::Disk;
use hearback_core::port::record::StoreError;

use crate::Store;
use crate::layout;

impl<D: Disk> Store<D> {
    /// The entries of the folders of jobs, of history and of sessions that are none of hearback's.
    ///
    /// # Errors
    ///
    /// When these folders cannot be listed.
    pub fn strays(&self) -> Result<Vec<PathBuf>, StoreError> {
        type Ours = fn(&str) -> bool;
        let folders: [(PathBuf, Ours); 3] = [
            (self.layout.jobs(), |name| JobId::parse(name).is_ok()),
            (self.layout.history(), layout::is_era),
            (self.layout.sessions(), layout::is_session),
        ];
        let mut strays = Vec::new();
        for (folder, is_ours) in folders {
            for name in self.disk().list(&folder)? {
                let path = folder.join(&name);
                if layout::unfinished_since(&name).is_none()
                    && !(is_ours(&name) && self.disk().is_dir(&path)?)
                {
                    strays.push(path);
                }
            }
        }
        Ok(strays)
    }
}
