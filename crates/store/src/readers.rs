//! Readers of answers: which of them has the answer of a job, and the lock under which a reader gets it.
//!
//! An acknowledgement is written in history as well, so the folder of the job may move at any moment.

use hearback_core::port::disk::{Disk, Lock, LockMode, Publish, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::{Durability, FORMAT, JobId, Read, Reader, Stamp};
use serde::{Deserialize, Serialize};

use crate::{Store, hash, layout, store};

/// The fact that a reader has the answer of a job.
#[derive(Debug, Serialize, Deserialize)]
struct ReaderNote {
    format: u32,
    /// Absent for the parent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reader: Option<Reader>,
    at: Stamp,
}

impl<D: Disk> Store<D> {
    pub(crate) fn note_reader(
        &self,
        id: &JobId,
        reader: Option<&Reader>,
        at: &Stamp,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        let name = hash::reader_name(reader);
        let note = ReaderNote { format: FORMAT, reader: reader.cloned(), at: at.clone() };
        let flush = store::flush(durability);
        self.in_folder(id, |folder| {
            self.records.publish_new(layout::reader_note(folder, &name), &note, flush)
        })
    }

    pub(crate) fn is_reader_noted(&self, id: &JobId, reader: Option<&Reader>) -> Result<bool, StoreError> {
        let name = hash::reader_name(reader);
        let noted = self.in_folder(id, |folder| {
            let note: Read<ReaderNote> = self.records.read(layout::reader_note(folder, &name))?;
            // If the file is missing while its folder moves, it may be in the other place.
            match note {
                Read::Absent if !self.disk().is_dir(folder)? => Err(store::gone()),
                // A file that cannot be read exists, too.
                note => Ok(!note.is_absent()),
            }
        });
        match noted {
            Err(error) if error.is_gone() => Ok(false),
            noted => noted,
        }
    }

    pub(crate) fn take_reader_lock(
        &self,
        id: &JobId,
        reader: Option<&Reader>,
    ) -> Result<Option<Lock>, StoreError> {
        let name = hash::reader_name(reader);
        self.in_folder(id, |folder| {
            self.records.lock(layout::reader_lock(folder, &name), LockMode::Exclusive, Wait::Try)
        })
    }
}
