//! What only tests do to other processes, or want to know about them.

use std::io;
use std::os::windows::io::AsRawHandle;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hearback_core::{Exit, ProcessIdentity};
use windows_sys::Win32::System::Console::{
    CTRL_C_EVENT, GenerateConsoleCtrlEvent, GetConsoleProcessList, STD_ERROR_HANDLE, STD_OUTPUT_HANDLE,
    SetConsoleCtrlHandler, SetStdHandle,
};
use windows_sys::Win32::System::JobObjects::AssignProcessToJobObject;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, ResumeThread, SuspendThread, THREAD_SUSPEND_RESUME,
};

use super::executor::exit_code;
use super::job::{Job, LETS_GO};
use super::process::{Created, Creation, Streams};
use super::terminal::Terminal;
use super::{call, command_line, detach, environment, identity, snapshot, system, threads};

/// Whether this is Wine.
pub fn is_wine() -> bool {
    system::is_wine()
}

/// Every process on the console of this process, itself among them.
pub fn on_my_console() -> Vec<u32> {
    // Far more than are ever there.
    let mut pids = [0; 256];
    // SAFETY: the pointer is to as many numbers as are said.
    let found = unsafe { GetConsoleProcessList(pids.as_mut_ptr(), pids.len() as u32) };
    pids.into_iter().take(found as usize).collect()
}

/// Gives up the output of this process: what it prints from now on goes nowhere.
pub fn close_my_output() {
    let [output, error] = [STD_OUTPUT_HANDLE, STD_ERROR_HANDLE].map(detach::standard);
    for stream in [STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        // SAFETY: none stands in for a stream that is not there.
        unsafe { SetStdHandle(stream, std::ptr::null_mut()) };
    }
    // SAFETY: it was a standard stream of this process, and is none any more, so it is ours to close.
    drop(unsafe { call::own(output) });
    if error != output {
        // SAFETY: as above.
        drop(unsafe { call::own(error) });
    }
}

/// Puts this process, and whatever it starts from now on, into a Job Object of its own that ends with it. So a
/// terminal or an agent may confine what it runs.
///
/// # Errors
///
/// When the system would not.
pub fn confine_myself(lets_go: bool) -> io::Result<()> {
    let job = Job::new()?;
    if lets_go {
        job.limit(LETS_GO)?;
    }
    // SAFETY: gives a constant that stands for this process.
    let me = unsafe { GetCurrentProcess() };
    // SAFETY: the job is ours, and the other handle stands for this process.
    call::done(unsafe { AssignProcessToJobObject(job.as_raw_handle(), me) })?;
    // Closed by the system at our end.
    std::mem::forget(job);
    Ok(())
}

/// The processes that have `NAME=value` in their environment, ourselves not among them.
///
/// # Errors
///
/// When the system would not list them.
pub fn carrying(entry: &str) -> io::Result<Vec<ProcessIdentity>> {
    let entry: Vec<u16> = entry.encode_utf16().collect();
    Ok(snapshot::found(|other| other == entry)?.into_iter().map(|found| found.process).collect())
}

/// Suspends every thread of a process, ours too.
///
/// # Errors
///
/// When one of them would not be suspended.
pub fn suspend(pid: u32) -> io::Result<()> {
    for thread in threads::threads(pid)? {
        let thread = threads::open(thread, THREAD_SUSPEND_RESUME)?;
        // SAFETY: the handle is ours and borrowed for the call.
        counted(unsafe { SuspendThread(thread.as_raw_handle()) })?;
    }
    Ok(())
}

/// Lets the threads of a process go on, each if it was suspended once.
///
/// # Errors
///
/// When one of them would not go on.
pub fn resume(pid: u32) -> io::Result<()> {
    for thread in threads::threads(pid)? {
        let thread = threads::open(thread, THREAD_SUSPEND_RESUME)?;
        // SAFETY: the handle is ours and borrowed for the call.
        counted(unsafe { ResumeThread(thread.as_raw_handle()) })?;
    }
    Ok(())
}

/// Both tell how often the thread was suspended before.
fn counted(before: u32) -> io::Result<()> {
    if before == u32::MAX { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A program in a terminal, with the owner of this in the place of the window. Dropped, the terminal is closed, and
/// every process in it ends.
pub struct InTerminal {
    created: Created,
    terminal: Option<Terminal>,
}

impl InTerminal {
    /// Starts it. Its standard streams are the null device; it finds its console by the names `CONIN$` and `CONOUT$`.
    ///
    /// # Errors
    ///
    /// When there are no such terminals here, or the program cannot be started.
    pub fn start(command: &Command, columns: u16, rows: u16) -> io::Result<Self> {
        let terminal = Terminal::open(columns, rows)?;
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let cwd = command.get_current_dir().map_or_else(std::env::current_dir, |cwd| Ok(cwd.to_owned()))?;
        let creation = Creation {
            program: command.get_program().as_ref(),
            line: &command_line::command_line(command.get_program(), &arguments)?,
            environment: &environment::block(command.get_envs())?,
            cwd: &cwd,
            streams: Streams { input: detach::null()?, output: detach::null()?, error: None },
            job: None,
            terminal: Some(&terminal),
        };
        let created = creation.create(0)?;
        Ok(Self { created, terminal: Some(terminal) })
    }

    /// Types, as at the keyboard of the terminal.
    ///
    /// # Errors
    ///
    /// When it is closed.
    pub fn type_in(&self, keys: &str) -> io::Result<()> {
        let terminal = self.terminal.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        terminal.type_in(keys)
    }

    /// Waits for the end of the program, and tells its code; nothing if it runs on.
    ///
    /// # Errors
    ///
    /// When it cannot be waited for.
    pub fn wait(&self, within: Duration) -> io::Result<Option<u32>> {
        if !identity::has_ended(&self.created.process, Some(within))? {
            return Ok(None);
        }
        match exit_code(&self.created.process) {
            Some(Exit::Exited { code }) => Ok(Some(code)),
            _ => Err(io::Error::other("the code of a program that has ended is not told")),
        }
    }

    /// Closes the terminal. What was shown in it, escape sequences and all, comes when every process has left it;
    /// nothing comes if it was closed before.
    pub fn close(&mut self) -> Receiver<Vec<u8>> {
        self.terminal.take().map_or_else(|| channel().1, Terminal::close)
    }
}

/// Lets Ctrl-C mean this process, and what it starts from now on: a process that was started in a group of its own
/// ignores it, and hands that on.
///
/// # Errors
///
/// When the system would not.
pub fn heed_ctrl_c() -> io::Result<()> {
    // SAFETY: without a routine it only changes what this process does at an event.
    call::done(unsafe { SetConsoleCtrlHandler(None, 0) })
}

/// Presses Ctrl-C on the console of this process. Every process there hears it, and this one ignores it.
///
/// # Errors
///
/// When the system would not.
pub fn press_ctrl_c() -> io::Result<()> {
    // SAFETY: without a routine it only changes what this process does at an event.
    call::done(unsafe { SetConsoleCtrlHandler(None, 1) })?;
    // SAFETY: takes numbers.
    call::done(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) })
}
