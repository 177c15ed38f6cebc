//! Creating a process that inherits three handles and no others, on our console or in a terminal of its own.
//!
//! The standard library lets a child inherit whatever is inheritable at that moment, a caller's pipe among it; a
//! job that holds it keeps the caller waiting until it ends.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_INTERNAL_ERROR, ERROR_LOCK_VIOLATION, ERROR_NO_SYSTEM_RESOURCES,
    ERROR_NOT_ENOUGH_MEMORY, ERROR_SHARING_VIOLATION, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation,
};
use windows_sys::Win32::System::Console::HPCON;
use windows_sys::Win32::System::Threading::{
    CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT,
    InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, PROCESS_CREATION_FLAGS, PROCESS_INFORMATION, STARTF_USESTDHANDLES,
    STARTUPINFOEXW, STARTUPINFOW, UpdateProcThreadAttribute,
};

use super::call;
use super::terminal::Terminal;

/// How often to try to create a process.
const TRIES: u32 = 5;

/// What to create.
pub(crate) struct Creation<'a> {
    /// The file to execute.
    pub(crate) program: &'a Path,
    /// What it is told: its name and its arguments in one line.
    pub(crate) line: &'a [u16],
    /// Its whole environment.
    pub(crate) environment: &'a [u16],
    /// Where it runs.
    pub(crate) cwd: &'a Path,
    /// Its standard streams. They become inheritable, so they are taken for this one process.
    pub(crate) streams: Streams,
    /// The terminal that it is in; without one the flags tell which console it has.
    pub(crate) terminal: Option<&'a Terminal>,
}

/// Standard streams.
pub(crate) struct Streams {
    pub(crate) input: OwnedHandle,
    pub(crate) output: OwnedHandle,
    /// Nothing when errors go where output goes.
    pub(crate) error: Option<OwnedHandle>,
}

/// What was created.
pub(crate) struct Created {
    pub(crate) process: OwnedHandle,
    /// Its first thread.
    pub(crate) thread: OwnedHandle,
    pub(crate) pid: u32,
}

impl Creation<'_> {
    /// Creates the process. May be called again, if it failed, with other flags.
    ///
    /// What stands in the way for a moment is waited for, but not for long.
    pub(crate) fn create(&self, flags: PROCESS_CREATION_FLAGS) -> io::Result<Created> {
        let mut tried = 1;
        loop {
            match self.try_to_create(flags) {
                Err(error) if is_for_a_moment(&error) && tried < TRIES => {
                    std::thread::sleep(Duration::from_millis(10) * 2_u32.pow(tried));
                    tried += 1;
                }
                other => return other,
            }
        }
    }

    fn try_to_create(&self, flags: PROCESS_CREATION_FLAGS) -> io::Result<Created> {
        let program = call::zero_ended(self.program.as_os_str())?;
        let mut line = self.line.to_vec();
        let cwd = call::zero_ended(plain(self.cwd).as_os_str())?;
        let Streams { input, output, error } = &self.streams;
        let mut inherited = vec![input.as_raw_handle(), output.as_raw_handle()];
        // Named once each: a handle that is listed twice makes the whole list invalid.
        inherited.extend(error.as_ref().map(AsRawHandle::as_raw_handle));
        for handle in &inherited {
            // SAFETY: the handle is open as long as `self`, which owns it.
            call::done(unsafe { SetHandleInformation(*handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) })?;
        }
        let list = Attributes::new(&inherited, self.terminal)?;
        let startup = STARTUPINFOEXW {
            StartupInfo: STARTUPINFOW {
                cb: size_of::<STARTUPINFOEXW>() as u32,
                dwFlags: STARTF_USESTDHANDLES,
                hStdInput: input.as_raw_handle(),
                hStdOutput: output.as_raw_handle(),
                hStdError: error.as_ref().unwrap_or(output).as_raw_handle(),
                ..Default::default()
            },
            lpAttributeList: list.list,
        };
        let mut created = PROCESS_INFORMATION::default();
        // SAFETY: the texts end with zeroes and the environment with two, the line is ours to be written to, and
        // everything that is pointed to lives until the call is over.
        call::done(unsafe {
            CreateProcessW(
                program.as_ptr(),
                line.as_mut_ptr(),
                std::ptr::null(),
                std::ptr::null(),
                1,
                flags | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT,
                self.environment.as_ptr().cast(),
                cwd.as_ptr(),
                (&raw const startup).cast(),
                &raw mut created,
            )
        })?;
        // SAFETY: the call above made this handle for us.
        let process = unsafe { call::own(created.hProcess) }?;
        // SAFETY: as above.
        let thread = unsafe { call::own(created.hThread) }?;
        Ok(Created { process, thread, pid: created.dwProcessId })
    }
}

/// Whether a program that cannot be run now may be in a moment: it is being written or scanned, or the machine has no
/// room for another process. Wine calls the latter an internal error.
fn is_for_a_moment(error: &io::Error) -> bool {
    let codes = [
        ERROR_SHARING_VIOLATION,
        ERROR_LOCK_VIOLATION,
        ERROR_NOT_ENOUGH_MEMORY,
        ERROR_NO_SYSTEM_RESOURCES,
        ERROR_COMMITMENT_LIMIT,
        ERROR_INTERNAL_ERROR,
    ];
    codes.into_iter().any(|code| call::is(error, code))
}

/// The handles that a child inherits and the terminal that it is in, as the system wants to be told.
struct Attributes<'a> {
    list: LPPROC_THREAD_ATTRIBUTE_LIST,
    /// Where it lies. In words, because what is put there is aligned like a pointer.
    _memory: Vec<usize>,
    _handles: &'a [HANDLE],
    _terminal: Option<&'a Terminal>,
}

impl<'a> Attributes<'a> {
    fn new(handles: &'a [HANDLE], terminal: Option<&'a Terminal>) -> io::Result<Self> {
        let count = 1 + u32::from(terminal.is_some());
        let mut bytes = 0;
        // SAFETY: without memory it only tells how much it needs, and calls that a failure.
        unsafe { InitializeProcThreadAttributeList(std::ptr::null_mut(), count, 0, &raw mut bytes) };
        let mut memory = vec![0_usize; bytes.div_ceil(size_of::<usize>())];
        let list: LPPROC_THREAD_ATTRIBUTE_LIST = memory.as_mut_ptr().cast();
        // SAFETY: the memory is at least as large as it just said.
        call::done(unsafe { InitializeProcThreadAttributeList(list, count, 0, &raw mut bytes) })?;
        let mut list = Self { list, _memory: memory, _handles: handles, _terminal: terminal };
        list.add(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles.as_ptr().cast(), size_of_val(handles))?;
        if let Some(terminal) = terminal {
            // Unlike the others, it is told by its value, and not by where that is.
            let value = terminal.raw() as *const c_void;
            list.add(PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, value, size_of::<HPCON>())?;
        }
        Ok(list)
    }

    fn add(&mut self, attribute: u32, value: *const c_void, bytes: usize) -> io::Result<()> {
        // SAFETY: the list is initialised, has room for what is added, and borrows it for as long as it lives.
        call::done(unsafe {
            UpdateProcThreadAttribute(
                self.list,
                0,
                attribute as usize,
                value,
                bytes,
                std::ptr::null_mut(),
                std::ptr::null(),
            )
        })
    }
}

impl Drop for Attributes<'_> {
    fn drop(&mut self) {
        // SAFETY: it was initialised, and is deleted once.
        unsafe { DeleteProcThreadAttributeList(self.list) };
    }
}

/// A path without the prefix `\\?\`, if it means the same without. Few programs can work in a directory with it.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let Some(Component::Prefix(prefix)) = parts.next() else { return path.into() };
    let Prefix::VerbatimDisk(letter) = prefix.kind() else { return path.into() };
    let mut short = PathBuf::from(format!("{}:", char::from(letter)));
    short.push(parts.as_path());
    // Names that end in a dot, or that are those of devices, are made into others without the prefix.
    match std::path::absolute(&short) {
        Ok(same) if same.as_os_str() == short.as_os_str() => short,
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_goes_only_where_nothing_changes() {
        for (long, short) in [
            (r"\\?\C:\a\b", r"C:\a\b"),
            (r"\\?\C:\", r"C:\"),
            (r"C:\a", r"C:\a"),
            (r"a\b", r"a\b"),
            (r"\\?\UNC\server\share\a", r"\\?\UNC\server\share\a"),
            (r"\\?\C:\ends.in.a.dot.", r"\\?\C:\ends.in.a.dot."),
        ] {
            assert_eq!(plain(Path::new(long)), Path::new(short), "{long}");
        }
    }
}
