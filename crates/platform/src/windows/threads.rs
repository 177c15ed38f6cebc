//! The threads of a process. One whose threads are all suspended stands still; viewers of processes offer that.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use windows_sys::Wdk::System::Threading::{NtQueryInformationThread, ThreadSuspendCount};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{
    OpenThread, THREAD_ACCESS_RIGHTS, THREAD_QUERY_LIMITED_INFORMATION,
};

use super::call;

/// Whether there are threads and each of them is suspended. One that cannot be looked at is taken to run.
pub(crate) fn are_suspended(pid: u32) -> bool {
    let Ok(threads) = threads(pid) else { return false };
    let suspended =
        |thread: &u32| open(*thread, THREAD_QUERY_LIMITED_INFORMATION).is_ok_and(|t| is_suspended(&t));
    !threads.is_empty() && threads.iter().all(suspended)
}

pub(super) fn open(thread: u32, rights: THREAD_ACCESS_RIGHTS) -> io::Result<OwnedHandle> {
    // SAFETY: takes numbers, and what it makes is taken over below.
    let raw = unsafe { OpenThread(rights, 0, thread) };
    // SAFETY: the handle was made for us by the line above.
    unsafe { call::own(raw) }
}

fn is_suspended(thread: &OwnedHandle) -> bool {
    let mut times = 0_u32;
    // SAFETY: the handle is ours, and the pointer is to as many bytes as are said, of what is said.
    let status = unsafe {
        NtQueryInformationThread(
            thread.as_raw_handle(),
            ThreadSuspendCount,
            (&raw mut times).cast(),
            size_of_val(&times) as u32,
            std::ptr::null_mut(),
        )
    };
    status == 0 && times > 0
}

/// The threads of a process. The system lists those of all processes.
pub(super) fn threads(pid: u32) -> io::Result<Vec<u32>> {
    // SAFETY: takes numbers, and what it makes is taken over below.
    let raw = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    // SAFETY: the handle was made for us by the line above.
    let list = unsafe { call::own(raw) }?;
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..Default::default() };
    let mut found = Vec::new();
    // SAFETY: the handle is ours, and the pointer is to an entry that tells its size.
    let mut more = unsafe { Thread32First(list.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        if entry.th32OwnerProcessID == pid {
            found.push(entry.th32ThreadID);
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(list.as_raw_handle(), &raw mut entry) };
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_not_suspended() {
        let me = std::process::id();
        assert!(!threads(me).unwrap().is_empty());
        assert!(!are_suspended(me));
        assert!(!are_suspended(me + 1), "pids are multiples of four");
    }
}
