//! The identity of a process on macOS: boot session, pid, and the kernel's start time in microseconds.
#![expect(unsafe_code, reason = "the calls that identify a process have no safe wrapper")]

use std::io;
use std::mem::MaybeUninit;

use hearback_core::{BootId, MachineId, ProcessIdentity};

use super::snapshot::Stat;

pub(crate) fn boot() -> Option<BootId> {
    let mut text = [0_u8; 64];
    let mut length = text.len();
    // SAFETY: the name ends with a zero, and `length` is the size of the buffer.
    let asked = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if asked != 0 {
        return None;
    }
    let id = std::str::from_utf8(&text[..length]).ok()?.trim_end_matches('\0');
    (!id.is_empty()).then(|| BootId::new(id))
}

/// Told apart by their boot sessions; the hardware's own name is behind a framework that is not worth linking.
pub(crate) fn machine() -> Option<MachineId> {
    None
}

pub(crate) fn scope() -> Option<String> {
    None
}

/// What the kernel reports about a process that has not ended.
fn info(pid: u32) -> io::Result<Option<libc::proc_bsdinfo>> {
    let Ok(number) = i32::try_from(pid) else { return Ok(None) };
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>() as i32;
    // SAFETY: the buffer is as large as `size` says.
    let read =
        unsafe { libc::proc_pidinfo(number, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size) };
    if read != size {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ESRCH) | Some(0) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: it was zeroed, and then filled by the kernel.
    let info = unsafe { info.assume_init() };
    Ok((info.pbi_status != libc::SZOMB).then_some(info))
}

pub(crate) fn is_stopped(pid: u32) -> bool {
    info(pid).ok().flatten().is_some_and(|info| info.pbi_status == libc::SSTOP)
}

pub(crate) fn identify(pid: u32) -> io::Result<Option<ProcessIdentity>> {
    let Some(info) = info(pid)? else { return Ok(None) };
    let started = info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec;
    Ok(Some(ProcessIdentity { pid, started, boot: boot(), scope: None }))
}

/// The identity of a child of ours. One that has already ended has no start time to tell.
pub(crate) fn identify_child(pid: u32) -> io::Result<ProcessIdentity> {
    Ok(identify(pid)?.unwrap_or(ProcessIdentity { pid, started: 0, boot: boot(), scope: None }))
}

pub(crate) fn identity(stat: &Stat) -> ProcessIdentity {
    ProcessIdentity { pid: stat.pid, started: stat.started, boot: boot(), scope: None }
}
