//! The identity of a process on FreeBSD: pid and the kernel's start time in microseconds.
#![expect(unsafe_code, reason = "the calls that identify a process have no safe wrapper")]

use std::io;
use std::mem::MaybeUninit;

use hearback_core::{BootId, MachineId, ProcessIdentity};

use super::snapshot::Stat;

/// FreeBSD names no boot; its boot time moves with the clock and is no name.
pub(crate) fn boot() -> Option<BootId> {
    None
}

pub(crate) fn machine() -> Option<MachineId> {
    let mut text = [0_u8; 64];
    let mut length = text.len();
    // SAFETY: the name ends with a zero, and `length` is the size of the buffer.
    let asked = unsafe {
        libc::sysctlbyname(
            c"kern.hostuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null(),
            0,
        )
    };
    let id = std::str::from_utf8(text.get(..length)?).ok()?.trim_end_matches('\0');
    (asked == 0 && !id.is_empty()).then(|| MachineId::new(id))
}

pub(crate) fn scope() -> Option<String> {
    None
}

/// What the kernel reports about a process that has not ended.
fn info(pid: u32) -> io::Result<Option<libc::kinfo_proc>> {
    let Ok(number) = i32::try_from(pid) else { return Ok(None) };
    let name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, number];
    let mut info = MaybeUninit::<libc::kinfo_proc>::zeroed();
    let mut length = size_of::<libc::kinfo_proc>();
    // SAFETY: the name has as many parts as are said, and `length` is the size of the buffer.
    let asked = unsafe {
        libc::sysctl(
            name.as_ptr(),
            name.len() as u32,
            info.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null(),
            0,
        )
    };
    if asked != 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ESRCH) { Ok(None) } else { Err(error) };
    }
    if length == 0 {
        return Ok(None);
    }
    // SAFETY: it was zeroed, and then filled by the kernel.
    let info = unsafe { info.assume_init() };
    Ok((info.ki_stat != libc::SZOMB).then_some(info))
}

pub(crate) fn is_stopped(pid: u32) -> bool {
    info(pid).ok().flatten().is_some_and(|info| info.ki_stat == libc::SSTOP)
}

pub(crate) fn identify(pid: u32) -> io::Result<Option<ProcessIdentity>> {
    let Some(info) = info(pid)? else { return Ok(None) };
    let started = info.ki_start.tv_sec as u64 * 1_000_000 + info.ki_start.tv_usec as u64;
    Ok(Some(ProcessIdentity { pid, started, boot: None, scope: None }))
}

/// The identity of a child of ours. One that has already ended has no start time to tell.
pub(crate) fn identify_child(pid: u32) -> io::Result<ProcessIdentity> {
    Ok(identify(pid)?.unwrap_or(ProcessIdentity { pid, started: 0, boot: None, scope: None }))
}

pub(crate) fn identity(stat: &Stat) -> ProcessIdentity {
    ProcessIdentity { pid: stat.pid, started: stat.started, boot: None, scope: None }
}
