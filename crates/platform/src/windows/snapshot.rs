//! Who carries the mark of a job: what is in no Job Object of ours because another was made its parent, and what
//! outlived one.
//!
//! The environment of a process is where its process block says, which is how debuggers and process viewers find it.
//! Nobody may look into a process of another user, so those are not found; none of ours is among them.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use hearback_core::{JobId, ProcessIdentity};
use windows_sys::Wdk::System::Threading::{NtQueryInformationProcess, ProcessBasicInformation};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::ProcessStatus::K32EnumProcesses;
use windows_sys::Win32::System::Threading::{
    PROCESS_BASIC_INFORMATION, PROCESS_QUERY_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
    PROCESS_VM_READ,
};

use super::job::is_console_host;
use super::{call, identity};
use crate::{ERRAND_MARK, JOB_MARK};

/// More than a machine runs; what is beyond is not looked at.
const PROCESSES_MAX: usize = 64 * 1024;
/// More than an environment has.
const ENVIRONMENT_MAX: usize = 1024 * 1024;
/// Where a 64-bit process block points to the parameters of its process, and those to the environment and its size.
/// Unchanged since Windows Vista.
const PARAMETERS: usize = 0x20;
const ENVIRONMENT: usize = 0x80;
const ENVIRONMENT_SIZE: usize = 0x3f0;

/// A process that may be ended.
pub(crate) struct Marked {
    pub(crate) process: ProcessIdentity,
    pub(crate) handle: OwnedHandle,
}

/// Every process but us that carries the mark of this job.
pub(crate) fn marked(job: &JobId) -> io::Result<Vec<Marked>> {
    let marks = [JOB_MARK, ERRAND_MARK].map(|name| wide(&format!("{name}={job}")));
    found(|entry| marks.iter().any(|mark| entry == mark))
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// Every process but us with such an entry in its environment.
pub(super) fn found(is_mark: impl Fn(&[u16]) -> bool) -> io::Result<Vec<Marked>> {
    let others = pids()?.into_iter().filter(|pid| *pid != std::process::id());
    Ok(others.filter_map(|pid| look(pid, &is_mark)).collect())
}

fn pids() -> io::Result<Vec<u32>> {
    let mut pids = vec![0_u32; PROCESSES_MAX];
    let mut bytes = 0;
    // SAFETY: the pointer is to as many bytes as are said.
    call::done(unsafe { K32EnumProcesses(pids.as_mut_ptr(), size_of_val(&*pids) as u32, &raw mut bytes) })?;
    pids.truncate(bytes as usize / size_of::<u32>());
    Ok(pids)
}

fn look(pid: u32, is_mark: impl Fn(&[u16]) -> bool) -> Option<Marked> {
    let rights = PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | PROCESS_TERMINATE | PROCESS_SYNCHRONIZE;
    let handle = identity::open(pid, rights).ok()??;
    let process = identity::identity(&handle, pid).ok()?;
    let carries = environment(&handle)?.split(|unit| *unit == 0).any(is_mark);
    let lives = !identity::has_ended(&handle, Some(std::time::Duration::ZERO)).ok()?;
    (carries && lives && !is_console_host(&handle)).then_some(Marked { process, handle })
}

/// The environment of a process; nothing when it cannot be read.
fn environment(process: &OwnedHandle) -> Option<Vec<u16>> {
    if cfg!(not(target_pointer_width = "64")) {
        return None;
    }
    let parameters = word(process, about(process)?.PebBaseAddress as usize + PARAMETERS)?;
    let size = word(process, parameters + ENVIRONMENT_SIZE)?.min(ENVIRONMENT_MAX);
    let mut block = vec![0_u16; size / size_of::<u16>()];
    read(process, word(process, parameters + ENVIRONMENT)?, &mut block)?;
    Some(block)
}

fn about(process: &OwnedHandle) -> Option<PROCESS_BASIC_INFORMATION> {
    let mut about = PROCESS_BASIC_INFORMATION::default();
    // SAFETY: the handle is ours, and the pointer is to as many bytes as are said, of what is said.
    let status = unsafe {
        NtQueryInformationProcess(
            process.as_raw_handle(),
            ProcessBasicInformation,
            (&raw mut about).cast(),
            size_of_val(&about) as u32,
            std::ptr::null_mut(),
        )
    };
    (status == 0).then_some(about)
}

fn word(process: &OwnedHandle, at: usize) -> Option<usize> {
    let mut word = [0_usize];
    read(process, at, &mut word)?;
    Some(word[0])
}

fn read<T: Copy>(process: &OwnedHandle, at: usize, into: &mut [T]) -> Option<()> {
    let size = size_of_val(into);
    // SAFETY: the handle is ours, and the second pointer is to as many bytes as are said, of plain numbers; the first
    // is one of the other process, and is checked by the system.
    let done = unsafe {
        ReadProcessMemory(
            process.as_raw_handle(),
            at as *const _,
            into.as_mut_ptr().cast(),
            size,
            std::ptr::null_mut(),
        )
    };
    (done != 0).then_some(())
}
