//! Files that are ours alone: private, never behind a link, never in the place of another.

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use etcetera::base_strategy::BaseStrategy;
use fs_err::File;
#[cfg(target_os = "linux")]
use hearback_core::finding::{FileSystem, Medium};
use hearback_core::port::disk::{Publish, ReadError};
use nix::unistd::geteuid;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::native::Naming;

const PRIVATE_DIR: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
const CHECKED: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;

/// Where what belongs to one user on one machine is kept, as the conventions of this system have it.
pub fn state_directory() -> Option<PathBuf> {
    let strategy = etcetera::base_strategy::choose_native_strategy().ok()?;
    // Systems without a directory for state keep it with the data.
    Some(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()))
}

pub(crate) fn secure_home(path: &Path) -> io::Result<PathBuf> {
    let path: &Path = &without_slash(path);
    match fs_err::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                make_private_dirs(parent)?;
            }
            match make_private_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            // What is flushed inside is no use if the name of the store is lost.
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                flush_dir(parent)?;
            }
        }
        Err(error) => return Err(error),
    }
    check_home(path)
}

/// Makes nothing: returns the real name of a directory that is ours alone, or why it is not.
pub(crate) fn check_home(path: &Path) -> io::Result<PathBuf> {
    let path: &Path = &without_slash(path);
    let found = fs_err::symlink_metadata(path)?;
    if found.is_symlink() && found.uid() != geteuid().as_raw() {
        return Err(denied(path, "is a link that another user made"));
    }
    let home = fs_err::canonicalize(path)?;
    // Looked at through a handle, so that what was checked is what is there.
    let opened = open(OpenOptions::new().read(true).custom_flags(CHECKED | libc::O_DIRECTORY), &home)?;
    let found = opened.metadata()?;
    if found.uid() != geteuid().as_raw() {
        let owner = format!("belongs to user {}, and you are user {}", found.uid(), geteuid());
        return Err(denied(&home, &owner));
    }
    if found.mode() & 0o022 != 0 {
        return Err(denied(&home, &format!("may be written by others (mode {:04o})", found.mode() & 0o7777)));
    }
    refuse_shared_file_systems(&opened, &home)?;
    Ok(home)
}

/// With a slash at its end, a path names what a link leads to, and the link would not be seen.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn denied(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("`{}` {why}", path.display()))
}

/// Locks on a network mount do not mean what hearback needs them to mean: that they are released when their holder
/// dies.
#[cfg(target_os = "linux")]
fn refuse_shared_file_systems(home: &File, path: &Path) -> io::Result<()> {
    if file_system(home.as_fd())?.medium == Medium::Shared {
        let why =
            format!("`{}` is on a network file system, where locks cannot be relied on", path.display());
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Ok(())
}

/// Which file system a handle is on.
#[cfg(target_os = "linux")]
pub(crate) fn file_system(handle: std::os::fd::BorrowedFd<'_>) -> io::Result<FileSystem> {
    // From linux/magic.h; the rest is local, whatever its name.
    const KNOWN: [(u32, &str, Medium); 14] = [
        (0x6969, "NFS", Medium::Shared),
        (0x517b, "SMB", Medium::Shared),
        (0xff53_4d42, "CIFS", Medium::Shared),
        (0xfe53_4d42, "SMB", Medium::Shared),
        (0x0102_1997, "9P", Medium::Shared),
        (0x6573_5546, "FUSE", Medium::Program),
        (0x0102_1994, "tmpfs", Medium::Memory),
        (0x8584_58f6, "ramfs", Medium::Memory),
        (0xef53, "ext4", Medium::Local),
        (0x5846_5342, "XFS", Medium::Local),
        (0x9123_683e, "Btrfs", Medium::Local),
        (0x794c_7630, "overlayfs", Medium::Local),
        (0x2fc1_2fc1, "ZFS", Medium::Local),
        (0x4d44, "FAT", Medium::Local),
    ];
    let kind = rustix::fs::fstatfs(handle)?.f_type as u32;
    let known = KNOWN.iter().find(|(number, ..)| *number == kind);
    Ok(match known {
        Some((_, name, medium)) => FileSystem { name: (*name).to_owned(), medium: *medium },
        None => FileSystem { name: format!("kind {kind:#x}"), medium: Medium::Local },
    })
}

#[cfg(not(target_os = "linux"))]
fn refuse_shared_file_systems(_home: &File, _path: &Path) -> io::Result<()> {
    Ok(())
}

/// Begins to list a directory.
pub(crate) fn read_dir(path: &Path) -> io::Result<fs_err::ReadDir> {
    fs_err::read_dir(path)
}

pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    build_private_dirs(path, false)
}

/// Makes a directory with all that lead to it: a user that can rename one of those can put another store in our place.
fn make_private_dirs(path: &Path) -> io::Result<()> {
    build_private_dirs(path, true)
}

fn build_private_dirs(path: &Path, recursive: bool) -> io::Result<()> {
    // fs-err has no builder that takes a mode.
    let made = std::fs::DirBuilder::new().recursive(recursive).mode(PRIVATE_DIR).create(path);
    made.map_err(|error| {
        io::Error::new(error.kind(), format!("failed to create directory `{}`: {error}", path.display()))
    })
}

pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    fs_err::remove_dir_all(path)
}

pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().append(true).create(true).mode(PRIVATE_FILE).custom_flags(CHECKED), path)
}

/// Opens a log to write at chosen places, and to read what was written.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    open_lock(path)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file.file(), bytes, at)
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file.file(), bytes, at)
}

/// What is never written takes no room here, whatever is written behind it.
pub(crate) fn allow_holes(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Gives the room of a range back; a reader sees zeroes. The size stays.
#[cfg(target_os = "linux")]
pub(crate) fn punch(file: &File, range: Range<u64>) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file.file(), flags, range.start, range.end - range.start)?)
}

/// Gives the room of a range back; a reader sees zeroes. The size stays.
#[cfg(target_os = "macos")]
pub(crate) fn punch(file: &File, range: Range<u64>) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let offset = |at: u64| libc::off_t::try_from(at).map_err(io::Error::other);
    let hole = libc::fpunchhole_t {
        fp_flags: 0,
        reserved: 0,
        fp_offset: offset(range.start)?,
        fp_length: offset(range.end - range.start)?,
    };
    // SAFETY: the descriptor is borrowed for the call, and the structure outlives it.
    nix::errno::Errno::result(unsafe {
        libc::fcntl(file.file().as_raw_fd(), libc::F_PUNCHHOLE, &raw const hole)
    })?;
    Ok(())
}

/// Where no call is known that gives the middle of a file back, none is.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) fn punch(_file: &File, _range: Range<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The first run of stored bytes at or after `from`. Moves the place at which the next read begins.
pub(crate) fn stored(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    let start = match seek(file.file(), SeekFrom::Data(from)) {
        Ok(start) => start,
        // Past the last stored byte.
        Err(Errno::NXIO) => return Ok(None),
        // Not every file system tells; then everything counts as stored.
        Err(_) => {
            let end = file.metadata()?.len();
            return Ok((from < end).then_some(from..end));
        }
    };
    Ok(Some(start..seek(file.file(), SeekFrom::Hole(start))?))
}

pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE).custom_flags(CHECKED);
    open(&options, path)
}

/// Opens a file that only hearback can have written; nothing when there is none.
pub(crate) fn open_checked(path: &Path) -> Result<Option<File>, ReadError> {
    let file = match open(OpenOptions::new().read(true).custom_flags(CHECKED), path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => match fs_err::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => return Err(ReadError::Refused("a symbolic link".into())),
            // A socket cannot even be opened.
            Ok(found) if !found.is_file() => return Err(ReadError::Refused("not a regular file".into())),
            _ => return Err(error.into()),
        },
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(ReadError::Refused("not a regular file".into()));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(ReadError::Refused(format!("owned by user {}", found.uid())));
    }
    Ok(Some(file))
}

/// Why other users may change a file of ours; nothing when they may not.
pub(crate) fn trouble(file: &File) -> io::Result<Option<String>> {
    let mode = file.metadata()?.mode();
    Ok((mode & 0o022 != 0).then(|| format!("may be written by others (mode {:04o})", mode & 0o7777)))
}

/// Opens a file of the user to add to it. If there is none, makes one that no other user may read.
pub fn open_to_add(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().create(true).read(true).append(true).mode(PRIVATE_FILE), path)
}

fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    fs_err::OpenOptions::from_options(options.clone()).open(path)
}

/// Tells whether `path` still names the file that `file` is.
pub(crate) fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs_err::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A process that holds a lock, as proc(5) lists them: `1: FLOCK ADVISORY WRITE 708 08:01:1311 0 EOF`, with the device
/// in hexadecimal and the inode. A process of another space of pids has no number here.
#[cfg(target_os = "linux")]
pub(crate) fn holder(path: &Path) -> Option<u32> {
    let found = fs_err::symlink_metadata(path).ok()?;
    let (major, minor) = (libc::major(found.dev()), libc::minor(found.dev()));
    let locked = format!("{major:02x}:{minor:02x}:{}", found.ino());
    let locks = fs_err::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = words[..] else { return None };
        pid.parse().ok().filter(|pid| *pid > 0 && file == locked)
    })
}

/// Where no list of locks is known, no holder is.
#[cfg(not(target_os = "linux"))]
pub(crate) fn holder(_path: &Path) -> Option<u32> {
    None
}

/// Through a descriptor that can only read, so that a reader can do this on a read-only file system.
pub(crate) fn flush_file(path: &Path) -> io::Result<()> {
    open(OpenOptions::new().read(true).custom_flags(CHECKED), path)?.sync_all()
}

pub(crate) fn flush_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A folder that was opened once: a fact is begun, named and flushed in it wherever the folder is moved meanwhile.
pub(crate) struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty());
        let handle = handle.map_err(|error| failed("open directory", path, error))?;
        Ok(Self { handle, path: path.to_owned() })
    }

    pub(crate) fn create_new(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.opened(name, flags)
    }

    pub(crate) fn open_to_overwrite(&self, name: &str) -> io::Result<File> {
        self.opened(name, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)
    }

    fn opened(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let path = self.path.join(name);
        match rustix::fs::openat(&self.handle, name, flags, Mode::from_raw_mode(PRIVATE_FILE as RawMode)) {
            Ok(file) => Ok(File::from_parts(file.into(), path)),
            Err(error) => Err(failed("open file", &path, error)),
        }
    }

    /// Gives the file `from` the name `to`, unless that name is taken.
    pub(crate) fn name_without_replacing(&self, from: &str, to: &str, naming: Naming) -> io::Result<Publish> {
        if naming == Naming::Best {
            match rename_without_replacing(&self.handle, Path::new(from), &self.handle, Path::new(to)) {
                // Not every file system and not every kernel can; a second link means the same.
                Err(error) if is_unsupported(error) => {}
                Err(error) => return Err(failed("publish", &self.path.join(to), error)),
                Ok(published) => return Ok(published),
            }
        }
        match rustix::fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty()) {
            Ok(()) => {
                // The fact is published; what remains is a second name for it, which tidying finds.
                let _ = self.remove(from);
                Ok(Publish::New)
            }
            Err(Errno::EXIST) => Ok(Publish::Exists),
            Err(error) => Err(failed("publish", &self.path.join(to), error)),
        }
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let removed = rustix::fs::unlinkat(&self.handle, name, AtFlags::empty());
        removed.map_err(|error| failed("remove file", &self.path.join(name), error))
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        rustix::fs::fsync(&self.handle).map_err(|error| failed("flush directory", &self.path, error))
    }
}

/// Whether a file in this folder can be renamed without replacing; by a second link it can be named everywhere.
pub(crate) fn renames_without_replacing(folder: &Path) -> io::Result<bool> {
    let folder = Folder::open(folder)?;
    let [from, to] = ["from", "to"];
    folder.create_new(from)?;
    let renamed =
        match rename_without_replacing(&folder.handle, Path::new(from), &folder.handle, Path::new(to)) {
            Ok(_) => Ok(true),
            Err(error) if is_unsupported(error) => Ok(false),
            Err(error) => Err(failed("rename", &folder.path.join(from), error)),
        };
    let _ = (folder.remove(from), folder.remove(to)); // One of them is not there.
    renamed
}

pub(crate) fn move_dir(from: &Path, to: &Path) -> io::Result<Publish> {
    match rename_without_replacing(CWD, from, CWD, to) {
        // Directories have no second link. The names are ours and random enough for a look before the leap.
        Err(error) if is_unsupported(error) => match fs_err::symlink_metadata(to) {
            Ok(_) => Ok(Publish::Exists),
            Err(_) => plain_rename(from, to).map(|()| Publish::New),
        },
        Err(error) => Err(failed("move directory", from, error)),
        Ok(published) => Ok(published),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that renames, after it has looked")]
fn plain_rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_without_replacing(
    from_dir: impl AsFd,
    from: &Path,
    to_dir: impl AsFd,
    to: &Path,
) -> Result<Publish, Errno> {
    use rustix::fs::{RenameFlags, renameat_with};
    match renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Publish::New),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(Publish::Exists),
        Err(error) => Err(error),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_without_replacing(
    _from_dir: impl AsFd,
    _from: &Path,
    _to_dir: impl AsFd,
    _to: &Path,
) -> Result<Publish, Errno> {
    Err(Errno::NOSYS)
}

fn is_unsupported(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].contains(&error)
}

fn failed(what: &str, path: &Path, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("failed to {what} `{}`: {error}", path.display()))
}
