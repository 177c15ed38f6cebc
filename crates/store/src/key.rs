//! Keys of repeatable launches: one small file for each key, named by a hash, that names a job.

use std::path::PathBuf;

use hearback_core::port::disk::{Disk, Flush, Publish};
use hearback_core::port::record::{KeyClaim, StoreError};
use hearback_core::{FORMAT, JobId, Key, Read, Session};
use serde::{Deserialize, Serialize};

use crate::hash;
use crate::layout::Layout;
use crate::records::Records;

#[derive(Debug, Serialize, Deserialize)]
struct KeyRecord {
    format: u32,
    session: Option<Session>,
    key: Key,
    job: JobId,
}

pub(crate) fn claim<D: Disk>(
    records: &Records<D>,
    layout: &Layout,
    session: Option<&Session>,
    key: &Key,
    id: &JobId,
) -> Result<KeyClaim, StoreError> {
    let path = path(layout, session, key);
    let record = KeyRecord { format: FORMAT, session: session.cloned(), key: key.clone(), job: id.clone() };
    loop {
        if records.publish_new(&path, &record, Flush::Power)? == Publish::New {
            return Ok(KeyClaim::Ours);
        }
        return match records.read::<KeyRecord>(&path)? {
            Read::Present(found) if (&found.session, &found.key) == (&record.session, &record.key) => {
                Ok(if found.job == *id { KeyClaim::Ours } else { KeyClaim::Taken(found.job) })
            }
            // Another process released the key in between: it is free again.
            Read::Absent => continue,
            _ => Err(StoreError::Damaged { name: path.display().to_string() }),
        };
    }
}

/// The job that a key names, if it names one.
pub(crate) fn job<D: Disk>(
    records: &Records<D>,
    layout: &Layout,
    session: Option<&Session>,
    key: &Key,
) -> Result<Option<JobId>, StoreError> {
    let path = path(layout, session, key);
    match records.read::<KeyRecord>(&path)? {
        Read::Present(found) if (found.session.as_ref(), &found.key) == (session, key) => Ok(Some(found.job)),
        Read::Absent => Ok(None),
        _ => Err(StoreError::Damaged { name: path.display().to_string() }),
    }
}

/// Releases the key of a job, if it still names that job.
pub(crate) fn release<D: Disk>(
    records: &Records<D>,
    layout: &Layout,
    session: Option<&Session>,
    key: &Key,
    id: &JobId,
) -> Result<(), StoreError> {
    let path = path(layout, session, key);
    match records.read::<KeyRecord>(&path)? {
        Read::Present(found) if found.job == *id => Ok(records.disk().remove(&path)?),
        _ => Ok(()),
    }
}

/// Every key that can be read, with the job that it names.
pub(crate) fn all<D: Disk>(
    records: &Records<D>,
    layout: &Layout,
) -> Result<Vec<(Option<Session>, Key, JobId)>, StoreError> {
    let mut keys = Vec::new();
    for name in records.disk().list(&layout.keys())? {
        if let Read::Present(found) = records.read::<KeyRecord>(layout.keys().join(name))? {
            keys.push((found.session, found.key, found.job));
        }
    }
    Ok(keys)
}

/// The path is a hash of session and key. The content of the file is checked, too.
fn path(layout: &Layout, session: Option<&Session>, key: &Key) -> PathBuf {
    layout.keys().join(hash::key_name(session, key))
}
