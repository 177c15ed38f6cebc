//! Which processes carry a mark of ours: those that are in no Job Object of ours because another process was made their
//! parent, those that outlived one, and those that were left before they began.
//!
//! The environment of a process is where its process block says, which is how debuggers and process viewers find it.
//! A process of another user cannot be read, so those are not found; none of ours is among them.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use hearback_core::ProcessIdentity;
use windows_sys::Wdk::System::Threading::{NtQueryInformationProcess, ProcessBasicInformation};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::ProcessStatus::K32EnumProcesses;
use windows_sys::Win32::System::Threading::{
    PROCESS_BASIC_INFORMATION, PROCESS_QUERY_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
    PROCESS_VM_READ,
};

use super::job::is_console_host;
use super::{call, identity, threads};
use crate::mark::{Membership, Names};

/// More than a machine runs; what is beyond is not looked at.
const PROCESSES_MAX: usize = 64 * 1024;
/// More than an environment has.
const ENVIRONMENT_MAX: usize = 1024 * 1024;
/// Where a 64-bit process block points to the list of what is loaded and to the parameters of its process, and those
/// to the environment and its size. Unchanged since Windows Vista.
const LOADED: usize = 0x18;
const PARAMETERS: usize = 0x20;
const ENVIRONMENT: usize = 0x80;
const ENVIRONMENT_SIZE: usize = 0x3f0;

/// A process that may be ended.
pub(crate) struct Marked {
    pub(crate) process: ProcessIdentity,
    pub(crate) handle: OwnedHandle,
}

/// Every process but us that carries the mark of this tree.
pub(crate) fn marked(tree: &Membership) -> io::Result<Vec<Marked>> {
    let marks: Vec<_> = tree.variables.iter().map(|name| wide(&format!("{name}={}", tree.value))).collect();
    found(|entry| marks.iter().any(|mark| entry == mark))
}

/// Every supervisor and detached program that was left by its creator before it began, and never will.
///
/// A process is created suspended, and its creator then resumes it; the creator may be ended in between. One that an
/// owner adopted counts as its child, and is left only when that one has ended as well.
pub(crate) fn unbegun(names: &Names) -> io::Result<Vec<Marked>> {
    let mark = wide(&format!("{}=", names.supervisor));
    let mut found = found(|entry| entry.starts_with(&mark))?;
    found.retain(|who| never_begins(who).unwrap_or(false));
    Ok(found)
}

/// Whether it has loaded nothing, not even what loads the rest, and there is no process to resume it.
fn never_begins(who: &Marked) -> Option<bool> {
    let about = about(&who.handle)?;
    let at_rest = word(&who.handle, about.PebBaseAddress as usize + LOADED)? == 0
        && threads::are_suspended(who.process.pid);
    let parent = u32::try_from(about.InheritedFromUniqueProcessId).ok()?;
    // A process that is younger than its child has only the same number.
    let is_left = identity::identify(parent).ok()?.is_none_or(|parent| parent.started > who.process.started);
    Some(at_rest && is_left)
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::super::process::{Creation, Streams};
    use super::super::{clock, command_line, detach, environment, tree};
    use super::*;
    use hearback_core::port::process::DetachedRequest;
    use windows_sys::Win32::System::Threading::CREATE_SUSPENDED;

    const LONG: Duration = Duration::from_secs(60);

    fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = clock::awake() + LONG;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(clock::awake() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Creates a process, and ends without resuming it. A test like others where no stage is set for it.
    #[test]
    fn creator() {
        if !Path::new("stage").exists() {
            return;
        }
        let me = std::env::current_exe().unwrap();
        let creation = Creation {
            program: &me,
            line: &command_line::command_line(me.as_os_str(), &["--list".into()]).unwrap(),
            environment: &environment::block([(Names::HEARBACK.supervisor.as_ref(), Some("none".as_ref()))])
                .unwrap(),
            cwd: Path::new("."),
            streams: Streams { input: detach::null().unwrap(), output: detach::null().unwrap(), error: None },
            job: None,
            terminal: None,
        };
        let created = creation.create(CREATE_SUSPENDED).unwrap();
        fs_err::write("told.new", created.pid.to_string()).unwrap();
        fs_err::rename("told.new", "told").unwrap();
        until("it is not released", || Path::new("go").exists().then_some(()));
    }

    #[test]
    fn only_a_process_that_was_left_before_it_began_is_ended() {
        let stage = tempfile::tempdir().unwrap();
        let at = |name: &str| stage.path().join(name);
        fs_err::write(at("stage"), "").unwrap();
        let request = DetachedRequest {
            program: std::env::current_exe().unwrap(),
            args: ["--exact", "sys::snapshot::tests::creator"].map(Into::into).to_vec(),
            home: stage.path().to_owned(),
            env: Vec::new(),
        };
        detach::spawn_detached(&Names::HEARBACK, &request).unwrap();
        let pid =
            until("no process was created", || fs_err::read_to_string(at("told")).ok()).parse().unwrap();
        tree::end_unbegun(&Names::HEARBACK).unwrap();
        assert!(identity::identify(pid).unwrap().is_some(), "its creator may still resume it");
        fs_err::write(at("go"), "").unwrap();
        until("it stays for ever", || {
            tree::end_unbegun(&Names::HEARBACK).unwrap();
            identity::identify(pid).unwrap().is_none().then_some(())
        });
    }
}
