//! Keys of repeatable launches: a small file a key, named by a hash, that names a job.

use std::path::{Path, PathBuf};

use hearback_core::port::disk::{Disk, Flush, Publish};
use hearback_core::port::record::{KeyClaim, StoreError};
use hearback_core::{FORMAT, JobId, Key, Read, Reader, Session};
use serde::{Deserialize, Serialize};

use crate::layout::Layout;
use crate::read;

#[derive(Debug, Serialize, Deserialize)]
struct KeyRecord {
    format: u32,
    session: Option<Session>,
    key: Key,
    job: JobId,
}

pub(crate) fn claim(
    disk: &dyn Disk,
    layout: &Layout,
    session: Option<&Session>,
    key: &Key,
    id: &JobId,
) -> Result<KeyClaim, StoreError> {
    let path = path(layout, session, key);
    let record = KeyRecord { format: FORMAT, session: session.cloned(), key: key.clone(), job: id.clone() };
    loop {
        if disk.publish_new(&path, &serde_json::to_vec(&record)?, Flush::Power)? == Publish::New {
            return Ok(KeyClaim::Ours);
        }
        return match read::fact::<KeyRecord>(disk, &path)? {
            Read::Present(found) if (&found.session, &found.key) == (&record.session, &record.key) => {
                Ok(if found.job == *id { KeyClaim::Ours } else { KeyClaim::Taken(found.job) })
            }
            // Given back between the two looks: it is free again.
            Read::Absent => continue,
            _ => Err(StoreError::Damaged { name: path.display().to_string() }),
        };
    }
}

/// Gives the key of a job back, if it is still that job's.
pub(crate) fn release(
    disk: &dyn Disk,
    layout: &Layout,
    session: Option<&Session>,
    key: &Key,
    id: &JobId,
) -> Result<(), StoreError> {
    let path = path(layout, session, key);
    match read::fact::<KeyRecord>(disk, &path)? {
        Read::Present(found) if found.job == *id => Ok(disk.remove(&path)?),
        _ => Ok(()),
    }
}

/// Every key that can be read, with the job that it names.
pub(crate) fn all(
    disk: &dyn Disk,
    layout: &Layout,
) -> Result<Vec<(Option<Session>, Key, JobId)>, StoreError> {
    let mut keys = Vec::new();
    for name in disk.list(&layout.keys())? {
        if let Read::Present(found) = read::fact::<KeyRecord>(disk, &layout.keys().join(name))? {
            keys.push((found.session, found.key, found.job));
        }
    }
    Ok(keys)
}

/// The name of a session's folder.
pub(crate) fn session_name(session: &Session) -> String {
    hash(session.as_str().bytes())
}

/// A short name for a store by where it is, for those who keep several apart.
pub fn store_name(home: &Path) -> String {
    hash(home.as_os_str().as_encoded_bytes().iter().copied())[24..].to_owned()
}

/// The name of a reader in the names of files; without one it is the parent.
pub(crate) fn reader_name(reader: Option<&Reader>) -> String {
    let mark = u8::from(reader.is_some());
    hash([mark].into_iter().chain(reader.map_or("", Reader::as_str).bytes()))
}

/// 128 bits of FNV-1a: enough to keep names apart.
fn hash(bytes: impl Iterator<Item = u8>) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    format!("{hash:032x}")
}

/// Named by a hash of session and key; what the file says is checked besides.
fn path(layout: &Layout, session: Option<&Session>, key: &Key) -> PathBuf {
    let (mark, owner) = match session {
        Some(session) => (1_u8, session.as_str()),
        None => (0, ""),
    };
    let parts = [mark].into_iter().chain(owner.bytes()).chain([0]).chain(key.as_str().bytes());
    layout.keys().join(hash(parts))
}
