//! The bell: an event of the system, by which others wake a supervisor that sleeps.
//!
//! An event has a name of its own and is in no folder. The name is random, and stands in a file where the bell of the
//! job is.

use std::io::{self, Read, Write};
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, ERROR_FILE_NOT_FOUND};
use windows_sys::Win32::System::Threading::{CreateEventW, EVENT_MODIFY_STATE, OpenEventW, SetEvent};

use super::{call, files};

/// Seen from every logon session: a user that is logged on twice can end from one session what was started in the
/// other.
const SPACE: &str = r"Global\hearback-";
/// More than a name has.
const NAME_MAX: u64 = 128;

/// The supervisor's side. Taken down when it is dropped.
pub(crate) struct Bell {
    event: OwnedHandle,
    path: PathBuf,
}

impl Bell {
    /// Hangs the bell up. A process that reads half a name finds no bell, and a supervisor looks by itself once it
    /// has begun.
    pub(crate) fn hang(path: &Path) -> io::Result<Self> {
        let random = || getrandom::u64().map_err(io::Error::other);
        let name = format!("{SPACE}{:016x}{:016x}", random()?, random()?);
        let event = event(Some(&name))?;
        // One that was hung up before us under the same id.
        let _ = fs_err::remove_file(path);
        files::create_new(path)?.write_all(name.as_bytes())?;
        Ok(Self { event, path: path.to_owned() })
    }

    /// Set by each ring, and reset by the process that waited for it.
    pub(crate) fn event(&self) -> &OwnedHandle {
        &self.event
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = fs_err::remove_file(&self.path); // Otherwise it is removed with the folder.
    }
}

/// Makes an event that wakes one waiting thread and is reset by that.
pub(crate) fn event(name: Option<&str>) -> io::Result<OwnedHandle> {
    let name = name.map(|name| call::zero_ended(name.as_ref())).transpose()?;
    let name = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
    // SAFETY: no attributes are allowed, and the name is none or ends with a zero and outlives the call.
    let raw = unsafe { CreateEventW(std::ptr::null(), 0, 0, name) };
    let taken = call::is(&io::Error::last_os_error(), ERROR_ALREADY_EXISTS);
    // SAFETY: the handle was made for us by the line above.
    let event = unsafe { call::own(raw) }?;
    // Another process guessed a random name, or the bits are not random.
    if taken { Err(io::Error::from(io::ErrorKind::AlreadyExists)) } else { Ok(event) }
}

/// Rings a bell; reports whether a process listened.
pub(crate) fn ring(path: &Path) -> io::Result<bool> {
    let Ok(Some(file)) = files::open_checked(path) else { return Ok(false) };
    let mut name = String::new();
    if file.take(NAME_MAX).read_to_string(&mut name).is_err() || !name.starts_with(SPACE) {
        return Ok(false);
    }
    let name = call::zero_ended(name.as_ref())?;
    // SAFETY: the name ends with a zero and outlives the call.
    let raw = unsafe { OpenEventW(EVENT_MODIFY_STATE, 0, name.as_ptr()) };
    // SAFETY: the handle was made for us by the line above.
    let event = match unsafe { call::own(raw) } {
        Ok(event) => event,
        Err(error) if call::is(&error, ERROR_FILE_NOT_FOUND) => return Ok(false),
        Err(error) => return Err(error),
    };
    set(&event)?;
    Ok(true)
}

/// Wakes a thread that waits for an event.
pub(crate) fn set(event: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the handle is open as long as it is borrowed.
    call::done(unsafe { SetEvent(event.as_raw_handle()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::identity::wait;
    use std::time::Duration;

    #[test]
    fn a_bell_is_heard_while_it_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bell");
        assert!(!ring(&path).unwrap(), "there is none yet");
        let bell = Bell::hang(&path).unwrap();
        let heard = || wait(&[bell.event()], Some(Duration::ZERO)).unwrap() == Some(0);
        assert!(!heard());
        assert!(ring(&path).unwrap() && ring(&path).unwrap());
        assert!(heard() && !heard(), "rings that were not heard yet are one");
        let name = fs_err::read_to_string(&path).unwrap();
        drop(bell);
        assert!(!path.exists());
        fs_err::write(&path, name).unwrap();
        assert!(!ring(&path).unwrap(), "its supervisor is gone");
        fs_err::write(&path, "something else").unwrap();
        assert!(!ring(&path).unwrap());
    }

    #[test]
    fn a_bell_of_the_same_id_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bell");
        fs_err::write(&path, "left behind").unwrap();
        let bell = Bell::hang(&path).unwrap();
        assert!(ring(&path).unwrap());
        assert_eq!(wait(&[bell.event()], Some(Duration::ZERO)).unwrap(), Some(0));
    }
}
