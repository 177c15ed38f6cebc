//! Files that are ours alone: never behind a link, never in the place of another.
//!
//! What keeps others out are the access rights that a directory hands down to what is made in it. So a store is
//! made with rights of its own, and one that is there is refused if others own it or may write it. Nothing here changes
//! rights.

use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions, ReadDir};
use std::io;
use std::ops::Range;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::Duration;

use fs_err::File;
use hearback_core::port::disk::{Publish, ReadError};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_CALL_NOT_IMPLEMENTED, ERROR_FILE_EXISTS,
    ERROR_INVALID_FUNCTION, ERROR_LOCK_VIOLATION, ERROR_MORE_DATA, ERROR_NOT_SUPPORTED,
    ERROR_OPERATION_ABORTED, ERROR_SHARING_VIOLATION,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, GetFileInformationByHandle, MOVEFILE_WRITE_THROUGH, MoveFileExW,
    READ_CONTROL,
};

use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::{
    FILE_ALLOCATED_RANGE_BUFFER, FILE_ZERO_DATA_INFORMATION, FSCTL_QUERY_ALLOCATED_RANGES, FSCTL_SET_SPARSE,
    FSCTL_SET_ZERO_DATA,
};

use super::process::plain;
use super::{call, clock, rights};
use crate::native::Naming;

/// How long to try to name a file that another process has open for a moment, as virus scanners and indexers do.
const NAMING_WITHIN: Duration = Duration::from_secs(2);
/// How long to try to move a directory. One that has an open file in it cannot be moved at all, and is moved
/// later.
const MOVING_WITHIN: Duration = Duration::from_millis(200);
/// How long to try to remove a directory in which another process has a file open: mostly it is just ending.
const REMOVING_WITHIN: Duration = Duration::from_millis(500);
/// From here on a path is taken only in its long spelling: the limit is 260, and 248 for a directory.
const LONG: usize = 240;
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Where what belongs to one user on one machine is kept. What roams between machines is no place for locks.
pub fn state_directory() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("LOCALAPPDATA").or_else(|| Some(named("USERPROFILE")?.join("AppData").join("Local")))
}

pub(crate) fn secure_home(path: &Path) -> io::Result<PathBuf> {
    let path: &Path = &without_slash(path);
    match fs_err::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_private_dirs(path)?,
        Err(error) => return Err(error),
    }
    check_home(path)
}

/// Makes nothing: returns the real name of a directory that can be a store, or why it cannot.
pub(crate) fn check_home(path: &Path) -> io::Result<PathBuf> {
    let path: &Path = &without_slash(path);
    // Looked at through handles, so that what was checked is what is there.
    let look = |path: &Path| {
        let mut options = OpenOptions::new();
        options.access_mode(READ_CONTROL).custom_flags(LINK | FILE_FLAG_BACKUP_SEMANTICS);
        fs_err::OpenOptions::from_options(options).open(path)
    };
    let mut found = look(path)?;
    let home = fs_err::canonicalize(path)?;
    if is_link(&found.metadata()?) {
        // A user that may write a link can make it lead elsewhere.
        if let Some(why) = rights::trouble(&found)? {
            return Err(denied(path, &format!("is a link that {why}")));
        }
        found = look(&home)?;
    }
    if !found.metadata()?.is_dir() {
        let why = format!("`{}` is not a directory", path.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
    }
    if let Some(why) = rights::trouble(&found)? {
        return Err(denied(path, &why));
    }
    refuse_shares(&home)?;
    // Shells and people are shown paths in it, and few of either know the long spelling.
    Ok(plain(&home))
}

/// With a separator at its end, a path may name what a link leads to, and the link would not be seen.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn denied(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("`{}` {why}", path.display()))
}

/// Locks on a network share do not mean what hearback needs them to mean: that they are released when their holder
/// dies.
fn refuse_shares(home: &Path) -> io::Result<()> {
    let Some(Component::Prefix(prefix)) = home.components().next() else { return Ok(()) };
    if matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)) {
        let why = format!("`{}` is on a network share, where locks cannot be relied on", home.display());
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Ok(())
}

/// Makes a directory in one that is ours, which hands its rights down.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    fs_err::create_dir(path)
}

/// Makes a directory with all that lead to it, closed to other users: a user that can rename one of those can put
/// another store in our place. Otherwise, the rights of others in a shared folder are handed down to what is made
/// there.
fn make_private_dirs(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), make_private_dirs)?;
    match rights::make_private_dir(&for_the_system(path)?) {
        Err(error) if !path.is_dir() => {
            let why = format!("failed to create directory `{}`: {error}", path.display());
            Err(io::Error::new(error.kind(), why))
        }
        // Or another process has just made it, and it is looked at like any other.
        _ => Ok(()),
    }
}

/// Begins to list a directory. A process that moves one keeps others out for a moment, which is waited for.
pub(crate) fn read_dir(path: &Path) -> io::Result<ReadDir> {
    let deadline = clock::awake() + NAMING_WITHIN;
    let mut pause = Duration::from_millis(1);
    loop {
        match std::fs::read_dir(path) {
            Err(error) if call::is(&error, ERROR_SHARING_VIOLATION) && clock::awake() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => {
                let why = format!("failed to read directory `{}`: {error}", path.display());
                return Err(io::Error::new(error.kind(), why));
            }
            listed => return listed,
        }
    }
}

/// Opens what has the name itself, and not what it may be a link to.
const LINK: u32 = FILE_FLAG_OPEN_REPARSE_POINT;

pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().write(true).create_new(true).custom_flags(LINK), path)
}

pub(crate) fn open_to_overwrite(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().write(true).custom_flags(LINK), path)
}

pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().append(true).create(true).custom_flags(LINK), path)
}

/// Opens a log to write at chosen places, and to read what was written.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    open_lock(path)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
    uncancelled(std::os::windows::fs::FileExt::seek_write(file.file(), bytes, at))
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    uncancelled(std::os::windows::fs::FileExt::seek_read(file.file(), bytes, at))
}

/// A thread that interrupts the reader of a pipe may hit a write to the log instead, which is then to be done again.
fn uncancelled(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(error) if call::is(&error, ERROR_OPERATION_ABORTED) => Err(io::ErrorKind::Interrupted.into()),
        done => done,
    }
}

pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true).write(true).create(true).truncate(false).custom_flags(LINK), path)
}

/// Opens a file that only hearback can have written; nothing when there is none.
pub(crate) fn open_checked(path: &Path) -> Result<Option<File>, ReadError> {
    // The standard library shares reading, writing and deleting, so that no process waits for us.
    match fs_err::OpenOptions::from_options(OpenOptions::new().read(true).custom_flags(LINK).clone())
        .open(path)
    {
        Ok(file) => match refusal(&file.metadata()?) {
            Some(why) => Err(ReadError::Refused(why.into())),
            None => match rights::stranger(&file)? {
                Some(owner) => Err(ReadError::Refused(format!("owned by user {owner}"))),
                None => Ok(Some(file)),
            },
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // A directory cannot be opened like this.
        Err(error) => match fs_err::symlink_metadata(path).ok().as_ref().and_then(refusal) {
            Some(why) => Err(ReadError::Refused(why.into())),
            None => Err(error.into()),
        },
    }
}

/// Why other users may change a file of ours; nothing when they may not.
pub(crate) fn trouble(file: &File) -> io::Result<Option<String>> {
    rights::trouble(file)
}

/// Opens a file of the user to add to it. If there is none, makes one with the rights that its folder hands down.
pub fn open_to_add(path: &Path) -> io::Result<File> {
    fs_err::OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Why this is nothing that hearback wrote; nothing when it may be.
fn refusal(found: &Metadata) -> Option<&'static str> {
    if is_link(found) {
        Some("a link or another reparse point")
    } else if !found.is_file() {
        Some("not a regular file")
    } else {
        None
    }
}

fn is_link(found: &Metadata) -> bool {
    found.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

/// Opens what is no link.
fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let file = fs_err::OpenOptions::from_options(options.clone()).open(path)?;
    if is_link(&file.metadata()?) {
        let why = format!("`{}` is a link or another reparse point", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(file)
}

/// Tells whether `path` still names the file that `file` is.
pub(crate) fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let opened = information(file)?;
    // Another process has removed it, and it is only there because we have it open.
    if opened.nNumberOfLinks == 0 {
        return Ok(false);
    }
    let mut options = OpenOptions::new();
    options.access_mode(0).custom_flags(LINK | FILE_FLAG_BACKUP_SEMANTICS);
    let named = match fs_err::OpenOptions::from_options(options).open(path) {
        Ok(named) => information(&named)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let which =
        |of: &BY_HANDLE_FILE_INFORMATION| (of.dwVolumeSerialNumber, of.nFileIndexHigh, of.nFileIndexLow);
    Ok(which(&opened) == which(&named))
}

fn information(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut information = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as `file`, and the pointer is to memory of ours.
    call::done(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) })?;
    Ok(information)
}

/// Windows does not tell who holds a lock.
pub(crate) fn holder(_path: &Path) -> Option<u32> {
    None
}

/// A handle that can only read cannot be flushed here.
pub(crate) fn flush_file(path: &Path) -> io::Result<()> {
    open_to_overwrite(path)?.sync_all()
}

/// Does nothing, because nothing is left to do: a name that has to last is given by [`name_without_replacing`], which
/// returns when the change is written through. NTFS logs changes in their order, so the directories that were made
/// before it are there as well.
pub(crate) fn flush_dir(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Gives the file `from` the name `to`, unless that name is taken.
fn name_without_replacing(from: &Path, to: &Path, naming: Naming) -> io::Result<Publish> {
    match naming {
        Naming::Best => rename_without_replacing(from, to, NAMING_WITHIN),
        #[cfg(test)]
        Naming::Link => match std::fs::hard_link(from, to) {
            Ok(()) => fs_err::remove_file(from).map(|()| Publish::New),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Publish::Exists),
            Err(error) => Err(error),
        },
    }
}

/// A folder, by its name: one that has an open file in it cannot be moved away under us.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn create_new(&self, name: &str) -> io::Result<File> {
        create_new(&self.0.join(name))
    }

    pub(crate) fn open_to_overwrite(&self, name: &str) -> io::Result<File> {
        open_to_overwrite(&self.0.join(name))
    }

    pub(crate) fn name_without_replacing(&self, from: &str, to: &str, naming: Naming) -> io::Result<Publish> {
        name_without_replacing(&self.0.join(from), &self.0.join(to), naming)
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        fs_err::remove_file(self.0.join(name))
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        flush_dir(&self.0)
    }
}

/// Gives the room of a range back to the disk: from now on there are zeroes, and what is around stays where it is.
///
/// The file must be open for writing; one that can only be appended to is refused.
///
/// # Errors
///
/// [`io::ErrorKind::Unsupported`] where the file system has no holes.
pub(crate) fn punch(file: &File, range: Range<u64>) -> io::Result<()> {
    let [from, to] = [range.start, range.end].map(|at| i64::try_from(at).unwrap_or(i64::MAX));
    let zeroes = FILE_ZERO_DATA_INFORMATION { FileOffset: from, BeyondFinalZero: to };
    loop {
        match allow_holes(file).and_then(|()| control(file, FSCTL_SET_ZERO_DATA, &zeroes, &mut [(); 0])) {
            // Meant for a read of the pipe, by the thread that wants everything kept.
            Err(error) if call::is(&error, ERROR_OPERATION_ABORTED) => {}
            done => return done.map(|_| ()),
        }
    }
}

/// Makes what is never written take no room, also if something is written behind it. A second call changes nothing.
pub(crate) fn allow_holes(file: &File) -> io::Result<()> {
    control(file, FSCTL_SET_SPARSE, &(), &mut [(); 0]).map(|_| ())
}

/// The first run of stored bytes at or after `at`; nothing when the rest is a hole.
pub(crate) fn stored(file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
    let size = file.metadata()?.len();
    if at >= size {
        return Ok(None);
    }
    let [from, length] = [at, size - at].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let asked = FILE_ALLOCATED_RANGE_BUFFER { FileOffset: from, Length: length };
    let mut first = [FILE_ALLOCATED_RANGE_BUFFER::default()];
    match control(file, FSCTL_QUERY_ALLOCATED_RANGES, &asked, &mut first) {
        Ok(0) => Ok(None),
        Ok(_) => {
            let [from, length] = [first[0].FileOffset, first[0].Length].map(i64::unsigned_abs);
            Ok(Some(from.max(at)..(from + length).min(size)))
        }
        // Where there are no holes, everything is stored.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Some(at..size)),
        Err(error) => Err(error),
    }
}

/// Queries the file system; returns how many bytes it answered. More than fits is cut.
fn control<T, U>(file: &File, what: u32, input: &T, output: &mut [U]) -> io::Result<u32> {
    let mut answered = 0;
    let (told, room) = (size_of::<T>() as u32, size_of_val(output) as u32);
    // SAFETY: the handle is open as long as `file`, and both pointers are to as many bytes as are said, of plain
    // numbers that any bytes are.
    let done = call::done(unsafe {
        DeviceIoControl(
            file.as_raw_handle(),
            what,
            std::ptr::from_ref(input).cast(),
            told,
            output.as_mut_ptr().cast(),
            room,
            &raw mut answered,
            std::ptr::null_mut(),
        )
    });
    let unsupported = [ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED, ERROR_CALL_NOT_IMPLEMENTED];
    match done {
        Err(error) if call::is(&error, ERROR_MORE_DATA) => Ok(answered),
        Err(error) if unsupported.iter().any(|code| call::is(&error, *code)) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, error))
        }
        other => other.map(|()| answered),
    }
}

pub(crate) fn move_dir(from: &Path, to: &Path) -> io::Result<Publish> {
    rename_without_replacing(from, to, MOVING_WITHIN)
}

/// Removes a directory with all that is in it; tries again while another process has a file in there open, but not for
/// long.
pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    let deadline = clock::awake() + REMOVING_WITHIN;
    let mut pause = Duration::from_millis(1);
    loop {
        match fs_err::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound && clock::awake() < deadline => {}
            done => return done,
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A path as the system takes it, however long. The standard library does the same for what it opens.
fn for_the_system(path: &Path) -> io::Result<Vec<u16>> {
    let whole = std::path::absolute(path)?;
    let on_a_disk = match whole.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::Disk(_)),
        _ => false,
    };
    if !on_a_disk || whole.as_os_str().len() < LONG {
        return call::zero_ended(path.as_os_str());
    }
    let mut spelled = OsString::from(r"\\?\");
    spelled.push(whole);
    call::zero_ended(&spelled)
}

/// Renames; tries again while another process is in the way, but not for longer than `within`.
fn rename_without_replacing(from: &Path, to: &Path, within: Duration) -> io::Result<Publish> {
    let (source, target) = (for_the_system(from)?, for_the_system(to)?);
    let deadline = clock::awake() + within;
    let mut pause = Duration::from_millis(1);
    loop {
        // SAFETY: both names end with a zero and outlive the call.
        let renamed =
            call::done(unsafe { MoveFileExW(source.as_ptr(), target.as_ptr(), MOVEFILE_WRITE_THROUGH) });
        let error = match renamed {
            Ok(()) => return Ok(Publish::New),
            Err(error) => error,
        };
        let is_one_of = |codes: &[u32]| codes.iter().any(|code| call::is(&error, *code));
        if is_one_of(&[ERROR_ALREADY_EXISTS, ERROR_FILE_EXISTS]) {
            return Ok(Publish::Exists);
        }
        let in_the_way = is_one_of(&[ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION]);
        if !in_the_way || clock::awake() >= deadline {
            let (from, to) = (from.display(), to.display());
            let why = format!("failed to rename `{from}` to `{to}`: {error}");
            // Whatever it is called, another process is in the way.
            let kind = if in_the_way { io::ErrorKind::PermissionDenied } else { error.kind() };
            return Err(io::Error::new(kind, why));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_no_file_and_a_file_no_home() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(open_checked(dir.path()), Err(ReadError::Refused(_))));
        let file = dir.path().join("file");
        drop(create_new(&file).unwrap());
        assert_eq!(secure_home(&file).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_link_is_refused_wherever_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        drop(create_new(&file).unwrap());
        // Not every user may make links, and Wine only says that it did; without one there is nothing to see.
        let _ = std::os::windows::fs::symlink_file(&file, &link);
        if !fs_err::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()) {
            return;
        }
        assert!(matches!(open_checked(&link), Err(ReadError::Refused(_))));
        assert_eq!(open_to_append(&link).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_process_that_looks_for_a_moment_does_not_prevent_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        drop(create_new(&from).unwrap());
        let scanner = OpenOptions::new().read(true).share_mode(0).open(&from).unwrap();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(scanner);
        });
        assert_eq!(name_without_replacing(&from, &to, Naming::Best).unwrap(), Publish::New);
        drop(create_new(&from).unwrap());
        assert_eq!(name_without_replacing(&from, &to, Naming::Best).unwrap(), Publish::Exists);
    }

    #[test]
    fn a_process_that_moves_a_directory_does_not_prevent_a_look() {
        let dir = tempfile::tempdir().unwrap();
        let mut alone = OpenOptions::new();
        alone.access_mode(windows_sys::Win32::Storage::FileSystem::DELETE).share_mode(0);
        let mover = alone.custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(dir.path()).unwrap();
        assert!(std::fs::read_dir(dir.path()).is_err(), "this test proves nothing");
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(mover);
        });
        assert_eq!(read_dir(dir.path()).unwrap().count(), 0);
        let missing = read_dir(&dir.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_told_from_another_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let (path, aside) = (dir.path().join("a"), dir.path().join("b"));
        let file = open_lock(&path).unwrap();
        assert!(is_same_file(&file, &path).unwrap());
        assert_eq!(name_without_replacing(&path, &aside, Naming::Best).unwrap(), Publish::New);
        assert!(!is_same_file(&file, &path).unwrap());
        drop(open_lock(&path).unwrap());
        assert!(!is_same_file(&file, &path).unwrap());
        assert!(is_same_file(&file, &aside).unwrap());
    }

    #[test]
    fn a_long_path_is_renamed_like_any_other() {
        let dir = tempfile::tempdir().unwrap();
        let deep = (0..12).fold(dir.path().to_owned(), |path, _| path.join("a folder with a long name"));
        fs_err::create_dir_all(&deep).unwrap();
        let (from, to) = (deep.join("from"), deep.join("to"));
        assert!(from.as_os_str().len() > 300);
        drop(create_new(&from).unwrap());
        assert_eq!(name_without_replacing(&from, &to, Naming::Best).unwrap(), Publish::New);
        assert!(to.is_file() && !from.exists());
    }

    #[test]
    fn a_hole_reads_as_zeroes_and_what_is_stored_behind_it_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs_err::write(&path, vec![b'x'; 1 << 20]).unwrap();
        let file: File = fs_err::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let (from, to) = (1 << 17, 3 << 18);
        assert_eq!(stored(&file, from).unwrap(), Some(from..1 << 20));
        assert_eq!(stored(&file, 1 << 20).unwrap(), None);
        match punch(&file, from..to) {
            Ok(()) => {
                let bytes = fs_err::read(&path).unwrap();
                assert_eq!(bytes.len(), 1 << 20, "nothing moves");
                let hole = from as usize..to as usize;
                assert!(bytes[hole.clone()].iter().all(|byte| *byte == 0));
                assert!(bytes[..hole.start].iter().chain(&bytes[hole.end..]).all(|byte| *byte == b'x'));
                assert_eq!(stored(&file, from).unwrap(), Some(to..1 << 20));
            }
            // Wine has none; what Windows keeps its own files on does.
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
                assert!(crate::sys::system::is_wine());
                assert_eq!(stored(&file, from).unwrap(), Some(from..1 << 20));
            }
        }
    }
}
