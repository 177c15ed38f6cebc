//! The identity of a process on Windows: pid and the moment of its creation, in units of 100 ns.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::time::Duration;

use hearback_core::{BootId, MachineId, ProcessIdentity};
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_PARAMETER, ERROR_SUCCESS, FILETIME, HANDLE, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RRF_SUBKEY_WOW6464KEY, RegGetValueW,
};
use windows_sys::Win32::System::Threading::{
    GetProcessId, GetProcessTimes, INFINITE, OpenProcess, PROCESS_ACCESS_RIGHTS,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForMultipleObjects,
};
use windows_sys::w;

use super::{call, clock, threads};

/// The rights that identify a process and show whether it has ended.
const LOOK: PROCESS_ACCESS_RIGHTS = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;

/// Windows documents no name for a boot. The wall time of the boot moves with the clock and is none, and what serves
/// for ages (`clock::boot`) may change within one: a process that is older than that would look gone.
pub(crate) fn boot() -> Option<BootId> {
    None
}

/// The name that Windows gave to this installation.
pub(crate) fn machine() -> Option<MachineId> {
    let mut text = [0_u16; 64];
    let mut bytes = u32::try_from(size_of_val(&text)).ok()?;
    // SAFETY: both names end with a zero, and `bytes` is the size of the buffer.
    let asked = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            w!("SOFTWARE\\Microsoft\\Cryptography"),
            w!("MachineGuid"),
            RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY,
            std::ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if asked != ERROR_SUCCESS {
        return None;
    }
    let length = text.iter().position(|unit| *unit == 0)?;
    let id = String::from_utf16(&text[..length]).ok()?;
    (!id.is_empty()).then(|| MachineId::new(id))
}

/// There is one space of pids.
pub(crate) fn scope() -> Option<String> {
    None
}

/// There is no signal that stops a process, but all its threads can be suspended.
pub(crate) fn is_stopped(pid: u32) -> bool {
    threads::are_suspended(pid)
}

pub(crate) fn identify(pid: u32) -> io::Result<Option<ProcessIdentity>> {
    match open(pid, LOOK)? {
        Some(process) if !has_ended(&process, Some(Duration::ZERO))? => identity(&process, pid).map(Some),
        _ => Ok(None),
    }
}

/// Opens a process; nothing when no process has this pid. A process that has ended may still be opened.
pub(crate) fn open(pid: u32, rights: PROCESS_ACCESS_RIGHTS) -> io::Result<Option<OwnedHandle>> {
    // SAFETY: takes numbers, and what it makes is taken over below.
    let raw = unsafe { OpenProcess(rights, 0, pid) };
    // SAFETY: the handle was made for us by the line above.
    let process = match unsafe { call::own(raw) } {
        Ok(process) => process,
        Err(error) if call::is(&error, ERROR_INVALID_PARAMETER) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The system ignores the last two bits of the number that it is given.
    // SAFETY: the handle is ours and borrowed for the call.
    let found = unsafe { GetProcessId(process.as_raw_handle()) };
    Ok((found == pid).then_some(process))
}

/// The identity of the process behind a handle, which may have ended.
pub(crate) fn identity(process: &OwnedHandle, pid: u32) -> io::Result<ProcessIdentity> {
    let started = times(process)?.created;
    Ok(ProcessIdentity { pid, started, boot: boot(), scope: scope() })
}

/// Waits for a process to end, for ever if no time is given, and tells whether it has.
///
/// The exit code says less: 259 may mean that a process runs, or that it ended with 259.
pub(crate) fn has_ended(process: &OwnedHandle, within: Option<Duration>) -> io::Result<bool> {
    Ok(wait(&[process], within)?.is_some())
}

/// Waits for the first of several, for ever if no time is given, and tells which it was.
pub(crate) fn wait(sources: &[&OwnedHandle], within: Option<Duration>) -> io::Result<Option<usize>> {
    let numbers: Vec<_> = sources.iter().map(|source| source.as_raw_handle() as usize).collect();
    wait_for_numbers(&numbers, within)
}

/// Does what [`wait`] does, for handles that other code holds open.
pub(crate) fn wait_for_numbers(handles: &[usize], within: Option<Duration>) -> io::Result<Option<usize>> {
    let millis = match within {
        None => INFINITE,
        // Rounded up, so that a deadline has passed when we wake; the longest wait is 49 days, then one more.
        Some(within) => {
            u32::try_from(within.as_nanos().div_ceil(1_000_000)).unwrap_or(INFINITE).min(INFINITE - 1)
        }
    };
    let handles: Vec<_> = handles.iter().map(|number| *number as HANDLE).collect();
    let count = u32::try_from(handles.len()).expect("a handful");
    // SAFETY: as many handles are there as is said; a number that is no handle is only refused.
    match unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, millis) } {
        WAIT_TIMEOUT => Ok(None),
        first if first.wrapping_sub(WAIT_OBJECT_0) < count => Ok(Some((first - WAIT_OBJECT_0) as usize)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The times of a process.
pub(crate) struct Times {
    /// When it was created, in units of 100 ns since 1601. Set once, however the clock moves later.
    pub(crate) created: u64,
    /// How long it ran in the system.
    pub(crate) system: Duration,
    /// How long it ran in the program itself.
    pub(crate) user: Duration,
}

pub(crate) fn times(process: &OwnedHandle) -> io::Result<Times> {
    let [mut created, mut ended, mut system, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is ours and borrowed for the call, and the pointers are to times of ours.
    let told = unsafe {
        GetProcessTimes(
            process.as_raw_handle(),
            &raw mut created,
            &raw mut ended,
            &raw mut system,
            &raw mut user,
        )
    };
    call::done(told)?;
    let units = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Ok(Times {
        created: units(created),
        system: clock::from_units(units(system)),
        user: clock::from_units(units(user)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beside_ours_is_not_us() {
        let me = std::process::id();
        let found = identify(me).unwrap().unwrap();
        assert_eq!(found.pid, me);
        assert!(found.started > 0);
        assert!(identify(me + 1).unwrap().is_none(), "pids are multiples of four");
    }

    #[test]
    fn an_installation_has_a_name() {
        assert!(machine().is_some());
        assert_eq!(machine(), machine());
    }
}
