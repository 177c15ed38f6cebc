//! A program that outlives the process that started it: it has a hidden console of its own, no inherited handle, and is
//! outside of the caller's Job Object where that is ours or allows it. A supervisor is one with a wire to its launcher.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::io::{IntoRawHandle, OwnedHandle};
use std::time::Duration;

use hearback_core::ProcessIdentity;
use hearback_core::port::executor::{BOUND_TO_CALLER, Detachment};
use hearback_core::port::process::{DetachedRequest, SupervisorLink, SupervisorRequest};
use windows_sys::Win32::Foundation::ERROR_ACCESS_DENIED;
use windows_sys::Win32::Globalization::CP_UTF8;
use windows_sys::Win32::System::Console::{
    GetConsoleProcessList, GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
    SetConsoleCP, SetConsoleOutputCP, SetStdHandle,
};
use windows_sys::Win32::System::JobObjects::IsProcessInJob;
use windows_sys::Win32::System::Threading::{
    CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, GetCurrentProcess,
    PROCESS_CREATION_FLAGS, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
};

use super::process::{ADOPT, Created, Creation, Streams};
use super::{call, command_line, environment, identity, rights};
use crate::mark::Names;
use crate::wire::PipeLink;

const FLAGS: PROCESS_CREATION_FLAGS = CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP;

/// What a job survives on this system. Logging off ends everything.
pub(crate) const SURVIVES: [&str; 3] = ["parent", "terminal", "process_group"];
/// What it survives inside another program's Job Object: that may end with the terminal, or with the parent.
const SURVIVES_IN_A_JOB: [&str; 2] = ["process_group", BOUND_TO_CALLER];

/// What a target of this process survives, and what it ends with.
pub(crate) fn detachment() -> Detachment {
    let inside = is_in_a_job();
    let known = if inside { &SURVIVES_IN_A_JOB[..] } else { &SURVIVES[..] };
    Detachment {
        survives: known.iter().map(|what| (*what).to_owned()).collect(),
        bound_to: inside.then(|| "the caller's Job Object".to_owned()),
    }
}

/// Whether this process is in a Job Object: one that did not allow it to leave, since no supervisor is put into one on
/// purpose. If that is unknown, it counts as inside.
fn is_in_a_job() -> bool {
    let mut inside = 0;
    // SAFETY: gives a constant that stands for this process.
    let me = unsafe { GetCurrentProcess() };
    // SAFETY: the handle stands for this process, none stands for any job, and the pointer is to a flag of ours.
    let asked = unsafe { IsProcessInJob(me, std::ptr::null_mut(), &raw mut inside) };
    asked == 0 || inside != 0
}

/// Whether this process has a console, seen or not. A program with windows has none.
pub(crate) fn has_console() -> bool {
    let mut first = 0;
    // SAFETY: the pointer is to one number, as is said.
    unsafe { GetConsoleProcessList(&raw mut first, 1) > 0 }
}

/// Makes programs that print by the code page of our console, as `cmd` and Windows PowerShell do, print UTF-8. That
/// console is not shown, and the log is read as UTF-8.
pub(crate) fn print_unicode() {
    // SAFETY: takes a number. Without a console it does nothing.
    unsafe { SetConsoleOutputCP(CP_UTF8) };
    // SAFETY: as above.
    unsafe { SetConsoleCP(CP_UTF8) };
}

pub(crate) fn spawn_supervisor(
    names: &Names,
    request: &SupervisorRequest,
) -> io::Result<Box<dyn SupervisorLink>> {
    let (word, tell) = io::pipe()?;
    let (hear, answer) = io::pipe()?;
    let streams = Streams { input: word.into(), output: answer.into(), error: Some(null()?) };
    // The supervisor's ends of the wire are closed by this, so that its death is heard.
    create(&names.supervisor(request), Some(names.owner), streams)?;
    Ok(Box::new(PipeLink::new(tell, hear)?))
}

pub(crate) fn spawn_detached(names: &Names, request: &DetachedRequest) -> io::Result<()> {
    let streams = Streams { input: null()?, output: null()?, error: None };
    create(&names.detached(request), Some(names.owner), streams).map(drop)
}

/// Starts a program that leads a tree of its own, and identifies it.
pub(crate) fn spawn_leader(request: &DetachedRequest, output: Option<File>) -> io::Result<ProcessIdentity> {
    let output = output.map_or_else(null, |file| Ok(file.into()))?;
    let created = create(request, None, Streams { input: null()?, output, error: None })?;
    identity::identity(&created.process, created.pid)
}

/// Creates it, as a child of the owner that the variable names, if there is one.
fn create(request: &DetachedRequest, owner_variable: Option<&str>, streams: Streams) -> io::Result<Created> {
    let changes = request.env.iter().map(|(name, value)| (name.as_os_str(), value.as_deref()));
    let own = owner_variable.map(|name| (name.as_ref(), None));
    let environment = environment::block(own.into_iter().chain(changes))?;
    let line = command_line::command_line(request.program.as_os_str(), &request.args)?;
    let creation = Creation {
        program: &request.program,
        line: &line,
        environment: &environment,
        cwd: &request.home,
        streams,
        job: None,
        terminal: None,
    };
    // Through the owner first: a Job Object inside of ours may allow it to leave, and ours would still hold it.
    match owner_variable.and_then(owner) {
        Some(owner) => leave(&creation, Some(&owner)).or_else(|_| leave(&creation, None)),
        None => leave(&creation, None),
    }
}

/// Creates it outside of the Job Object that its parent is in. If that does not allow it, the process stays in there,
/// and a supervisor reports that in what its job survives.
fn leave(creation: &Creation<'_>, parent: Option<&OwnedHandle>) -> io::Result<Created> {
    match creation.create_as_child_of(parent, FLAGS | CREATE_BREAKAWAY_FROM_JOB) {
        Err(error) if call::is(&error, ERROR_ACCESS_DENIED) => creation.create_as_child_of(parent, FLAGS),
        created => created,
    }
}

/// What the variable is set to by which a process in a Job Object of ours knows its owner.
///
/// Such a Job Object does not allow processes to leave, and a supervisor that is launched from inside must not end with
/// it. So it becomes a child of the owner, which is outside.
pub(crate) fn owned_by_me() -> Option<OsString> {
    let me = identity::identify(std::process::id()).ok()??;
    Some(format!("{}.{}", me.pid, me.started).into())
}

/// The owner of the Job Object that we are in, if it is ours and the owner is still there.
fn owner(variable: &str) -> Option<OwnedHandle> {
    let named = std::env::var(variable).ok()?;
    let (pid, started) = named.split_once('.')?;
    let (pid, started): (u32, u64) = (pid.parse().ok()?, started.parse().ok()?);
    let rights = ADOPT | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    let owner = identity::open(pid, rights).ok()??;
    let is_it = identity::identity(&owner, pid).ok()?.started == started;
    let lives = !identity::has_ended(&owner, Some(Duration::ZERO)).ok()?;
    // A child has the rights of its parent, and ours are what the launch was made with.
    let mighty = rights::are_those_of(&owner).ok()?;
    (is_it && lives && mighty).then_some(owner)
}

/// The null device, to read from and to write to.
pub(crate) fn null() -> io::Result<OwnedHandle> {
    Ok(OpenOptions::new().read(true).write(true).open("NUL")?.into())
}

/// Closes the wire: standard input and output become the null device.
pub(crate) fn close_standard_streams() {
    for stream in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE] {
        let Ok(null) = null() else { return };
        let before = standard(stream);
        // SAFETY: the handle is open, and only the next call that replaces it closes it.
        let replaced = unsafe { SetStdHandle(stream, null.into_raw_handle()) };
        let shared = [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE].map(standard).contains(&before);
        if replaced != 0 && !shared {
            // SAFETY: it was this process's standard stream, and is none any more, so it is ours to close.
            drop(unsafe { call::own(before) });
        }
    }
}

pub(super) fn standard(stream: STD_HANDLE) -> windows_sys::Win32::Foundation::HANDLE {
    // SAFETY: takes a number and gives what is in its place, without making anything.
    unsafe { GetStdHandle(stream) }
}

pub(crate) fn read_standard_input(into: &mut [u8]) -> io::Result<usize> {
    io::stdin().lock().read(into)
}

pub(crate) fn write_standard_output(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush())
}

/// There are no such limits here.
pub(crate) fn survive_size_limits() {}

pub(crate) fn hear_of_children() {}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::port::process::SupervisorReply;
    use hearback_core::testing::sample;

    #[test]
    fn a_supervisor_that_says_nothing_is_heard_to_go() {
        let dir = tempfile::tempdir().unwrap();
        let request = SupervisorRequest {
            job: sample::id(1),
            // Finds no test of the name that it is given, and goes.
            program: std::env::current_exe().unwrap(),
            home: fs_err::canonicalize(dir.path()).unwrap(),
            env: vec![("A".into(), Some("b".into())), ("PATHEXT".into(), None)],
        };
        let mut link = spawn_supervisor(&Names::HEARBACK, &request).unwrap();
        assert_eq!(link.hear(Duration::from_secs(60)), SupervisorReply::Gone);
    }
}
