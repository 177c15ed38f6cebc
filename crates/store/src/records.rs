//! Write-once records of any type over any disk: published whole or not at all, read within bounds, and guarded by
//! locks that are free when their holder dies. This file knows no name, type or format of hearback; the rest of this
//! crate is built on it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hearback_core::port::disk::{Disk, Flush, Lock, LockMode, Publish, ReadError, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::{LockState, Read};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How often to make a folder that another process removes at the same moment.
const FOLDER_TRIES: usize = 3;

/// What the records of one project have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A larger file is not read, because no record has this size.
    pub max_bytes: u64,
    /// How a record states its format; none if records state no format.
    pub format: Option<Format>,
}

/// How a record states the version of its format: a number in a field at its top.
///
/// A record without the number is unreadable. One with a higher number than `newest` was written by a newer build and
/// is [`Read::Newer`]: its other fields are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The field.
    pub field: &'static str,
    /// The highest number that this build understands.
    pub newest: u32,
}

/// The records below one folder.
///
/// A path is taken from that folder; an absolute path is taken as it is. Nothing follows a link at the end of a path,
/// and nothing replaces a file.
#[derive(Debug, Clone)]
pub struct Records<D> {
    disk: D,
    home: PathBuf,
    rules: Rules,
}

impl<D: Disk> Records<D> {
    /// Opens the records at `home`, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsafe`] when another user owns the folder or may write it.
    pub fn open(disk: D, home: &Path, rules: Rules) -> Result<Self, StoreError> {
        let home = disk.secure_home(home).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::Unsupported => StoreError::Unsafe(error),
            _ => error.into(),
        })?;
        Ok(Self { disk, home, rules })
    }

    /// The records at a `home` that does not exist: there are none.
    pub(crate) fn none(disk: D, home: &Path, rules: Rules) -> Self {
        Self { disk, home: home.to_owned(), rules }
    }

    /// The folder of all records, by its real name.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The disk, for other operations: listing, moving, removing.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Makes a private folder; returns whether it is new.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsafe`] when the name exists and is not a folder: a link could lead to files of other users.
    pub fn make_folder(&self, path: impl AsRef<Path>) -> Result<Publish, StoreError> {
        let path = self.home.join(path);
        for _ in 0..FOLDER_TRIES {
            if self.disk.is_dir(&path)? {
                return Ok(Publish::Exists);
            }
            if self.disk.make_dir(&path)? == Publish::New {
                return Ok(Publish::New);
            }
        }
        if self.disk.is_dir(&path)? {
            return Ok(Publish::Exists);
        }
        let why = format!("`{}` is not a directory", path.display());
        Err(StoreError::Unsafe(std::io::Error::new(ErrorKind::NotADirectory, why)))
    }

    /// Publishes a record under a free name. One process gets [`Publish::New`]; every other process gets
    /// [`Publish::Exists`] and obeys the record that is there. A reader sees the whole record or none.
    ///
    /// # Errors
    ///
    /// When the disk refuses. Then nothing of it remains, unless only its last flush failed.
    pub fn publish_new(
        &self,
        path: impl AsRef<Path>,
        record: &(impl Serialize + ?Sized),
        flush: Flush,
    ) -> Result<Publish, StoreError> {
        self.publish_bytes(path, &serde_json::to_vec(record)?, flush)
    }

    /// Publishes bytes as [`Self::publish_new`] publishes a record.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn publish_bytes(
        &self,
        path: impl AsRef<Path>,
        bytes: &[u8],
        flush: Flush,
    ) -> Result<Publish, StoreError> {
        let path = self.home.join(path);
        let published = self.disk.publish_new(&path, bytes, flush)?;
        self.keep(&path, published, flush)
    }

    /// Sets `bytes` bytes aside under the name `reserve`, so that a record of this size can be published on a full
    /// disk. Room that is already reserved stays as it is.
    ///
    /// # Errors
    ///
    /// When there is no room.
    pub fn reserve(&self, reserve: impl AsRef<Path>, bytes: usize) -> Result<(), StoreError> {
        // Written and not only allocated: some file systems notice a lack of room only when data is written.
        let _ = self.disk.publish_new(&self.home.join(reserve), &vec![b' '; bytes], Flush::No)?;
        Ok(())
    }

    /// Publishes bytes as [`Self::publish_bytes`] does, and uses up the reserved room. Without it, or if it is too
    /// small, the bytes take new room.
    ///
    /// Only one process may do this at a time: callers hold a lock.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub fn publish_reserved(
        &self,
        reserve: impl AsRef<Path>,
        path: impl AsRef<Path>,
        bytes: &[u8],
        flush: Flush,
    ) -> Result<Publish, StoreError> {
        let (reserve, path) = (self.home.join(reserve), self.home.join(path));
        let published = self.disk.publish_reserved(&reserve, &path, bytes, flush)?;
        self.keep(&path, published, flush)
    }

    /// Flushes a record that another process has published. A caller that relies on the record needs this: the flush of
    /// that process may have failed.
    fn keep(&self, path: &Path, published: Publish, flush: Flush) -> Result<Publish, StoreError> {
        if let (Publish::Exists, Flush::Power, Some(folder)) = (published, flush, path.parent()) {
            self.disk.flush(folder)?;
        }
        Ok(published)
    }

    /// Reads one record: whole, of at most [`Rules::max_bytes`], and only from a regular file of this user.
    ///
    /// # Errors
    ///
    /// Only when the system failed for a reason that has nothing to do with the file, such as too many open files: that
    /// must not be taken for a damaged record. Damage is [`Read::Unreadable`], and no error.
    pub fn read<T: DeserializeOwned>(&self, path: impl AsRef<Path>) -> Result<Read<T>, StoreError> {
        self.read_value(path.as_ref()).map(typed)
    }

    fn read_value(&self, path: &Path) -> Result<Read<Value>, StoreError> {
        let bytes = match self.disk.read(&self.home.join(path), self.rules.max_bytes) {
            Ok(None) => return Ok(Read::Absent),
            Ok(Some(bytes)) => bytes,
            Err(ReadError::Io(error)) => {
                return match error.kind() {
                    ErrorKind::PermissionDenied => Ok(Read::Unreadable("permission denied".into())),
                    _ => Err(error.into()),
                };
            }
            Err(refused) => return Ok(Read::Unreadable(refused.to_string())),
        };
        Ok(parse(&bytes, self.rules.format))
    }

    /// Reads one record as JSON, even if this build does not understand it; none if it is absent or not JSON.
    ///
    /// # Errors
    ///
    /// As for [`Records::read`].
    pub fn read_json(&self, path: impl AsRef<Path>) -> Result<Option<Value>, StoreError> {
        match self.disk.read(&self.home.join(path), self.rules.max_bytes) {
            Ok(bytes) => Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok())),
            Err(ReadError::Io(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Takes a lock. An exclusive lock creates its file. The lock is held until it is dropped, or until its holder dies
    /// in any way. Returns none if another process has it and `wait` is [`Wait::Try`].
    ///
    /// # Errors
    ///
    /// [`StoreError::is_gone`] when the folder does not exist, or was removed during the wait.
    pub fn lock(
        &self,
        path: impl AsRef<Path>,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        Ok(self.disk.lock(&self.home.join(path), mode, wait)?)
    }

    /// Returns whether a living process holds a lock exclusively. Disturbs no other process and creates nothing.
    ///
    /// # Errors
    ///
    /// When the lock cannot be probed.
    pub fn probe(&self, path: impl AsRef<Path>) -> Result<LockState, StoreError> {
        Ok(self.disk.probe(&self.home.join(path))?)
    }
}

/// Checks everything that does not depend on the type.
fn parse(bytes: &[u8], format: Option<Format>) -> Read<Value> {
    if bytes.is_empty() {
        return Read::Unreadable("empty".into());
    }
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return Read::Unreadable(format!("not valid JSON: {error}")),
    };
    if let Some(Format { field, newest }) = format {
        match value.get(field).and_then(Value::as_u64) {
            None => return Read::Unreadable("it states no format".into()),
            Some(found) if found > u64::from(newest) => {
                return Read::Newer(u32::try_from(found).unwrap_or(u32::MAX));
            }
            Some(_) => {}
        }
    }
    Read::Present(value)
}

fn typed<T: DeserializeOwned>(read: Read<Value>) -> Read<T> {
    match read {
        Read::Absent => Read::Absent,
        Read::Newer(format) => Read::Newer(format),
        Read::Unreadable(why) => Read::Unreadable(why),
        Read::Present(value) => match serde_json::from_value(value) {
            Ok(record) => Read::Present(record),
            Err(error) => Read::Unreadable(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::{FakeDisk, sample};
    use hearback_core::{Begin, End, Spec};

    fn fact<T: DeserializeOwned>(bytes: &[u8]) -> Read<T> {
        typed(parse(bytes, Some(Format { field: "format", newest: 1 })))
    }

    fn records(rules: Rules) -> (FakeDisk, Records<FakeDisk>) {
        let disk = FakeDisk::default();
        (disk.clone(), Records::open(disk, Path::new("/home"), rules).unwrap())
    }

    #[test]
    fn the_rules_are_the_callers() {
        let (disk, plain) = records(Rules { max_bytes: 8, format: None });
        assert_eq!(plain.publish_new("a", "one", Flush::No).unwrap(), Publish::New);
        assert_eq!(plain.publish_new("a", "two", Flush::No).unwrap(), Publish::Exists);
        assert_eq!(plain.read::<String>("a").unwrap(), Read::Present("one".to_owned()));
        assert_eq!(plain.read::<String>("b").unwrap(), Read::Absent);
        disk.plant(Path::new("/home/long"), br#""too long""#);
        assert!(matches!(plain.read::<String>("long").unwrap(), Read::Unreadable(_)));
        let rules = Rules { max_bytes: 100, format: Some(Format { field: "v", newest: 3 }) };
        let (disk, versioned) = records(rules);
        let understood = Read::Present(serde_json::json!({ "v": 3 }));
        for (text, expected) in [(r#"{"v":3}"#, understood), (r#"{"v":4,"x":[]}"#, Read::Newer(4))] {
            disk.plant(Path::new("/home/r"), text.as_bytes());
            assert_eq!(versioned.read::<serde_json::Value>("r").unwrap(), expected);
        }
    }

    #[test]
    fn who_relies_on_the_record_of_another_makes_it_last() {
        let (disk, records) = records(Rules { max_bytes: 100, format: None });
        assert_eq!(records.make_folder("f").unwrap(), Publish::New);
        disk.flush(records.home()).unwrap();
        disk.plant(Path::new("/home/f/a"), b"1");
        assert_eq!(records.publish_new("f/b", &2, Flush::No).unwrap(), Publish::New);
        disk.flush(Path::new("/home/f/b")).unwrap();
        assert_eq!(records.publish_new("f/b", &3, Flush::Power).unwrap(), Publish::Exists);
        disk.cut_power();
        assert_eq!(records.read::<u32>("f/b").unwrap(), Read::Present(2));
    }

    #[test]
    fn a_file_where_a_folder_should_be_is_refused() {
        let (disk, records) = records(Rules { max_bytes: 100, format: None });
        disk.plant(Path::new("/home/f"), b"");
        assert!(matches!(records.make_folder("f"), Err(StoreError::Unsafe(_))));
        assert_eq!(records.make_folder("g").unwrap(), Publish::New);
        assert_eq!(records.make_folder("g").unwrap(), Publish::Exists);
    }

    #[test]
    fn a_damaged_fact_is_never_more_than_damaged() {
        for bytes in [&b""[..], b"{", b"null", b"[]", b"{\"format\":1}", b"\xff\xfe", b"{\"format\":\"1\"}"] {
            assert!(matches!(fact::<End>(bytes), Read::Unreadable(_)), "{bytes:?}");
        }
        let deep = format!("{{\"format\":1,\"x\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(matches!(fact::<End>(deep.as_bytes()), Read::Unreadable(_)));
        assert_eq!(fact::<Begin>(br#"{"format":2,"by":"unheard-of"}"#), Read::Newer(2));
    }

    #[test]
    fn every_prefix_of_a_fact_is_unreadable() {
        let whole = serde_json::to_vec(&sample::end(0)).unwrap();
        for cut in 0..whole.len() {
            assert!(matches!(fact::<End>(&whole[..cut]), Read::Unreadable(_)), "cut at {cut}");
        }
    }

    #[test]
    fn unknown_fields_survive() {
        let mut value = serde_json::to_value(sample::spec("s")).unwrap();
        value["colour"] = "green".into();
        let Read::Present(spec) = fact::<Spec>(value.to_string().as_bytes()) else { panic!("unreadable") };
        assert_eq!(serde_json::to_value(&spec).unwrap(), value);
    }
}
