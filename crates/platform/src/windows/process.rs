//! Creating a process that inherits three handles and no others, and is born in its Job Object.
//!
//! The standard library lets a child inherit whatever is inheritable at that moment, a caller's pipe among it; a
//! job that holds it keeps the caller waiting until it ends.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_INTERNAL_ERROR, ERROR_LOCK_VIOLATION, ERROR_NO_SYSTEM_RESOURCES,
    ERROR_NOT_ENOUGH_MEMORY, ERROR_SHARING_VIOLATION, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation,
};
use windows_sys::Win32::System::Threading::{
    CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT,
    InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_CREATION_FLAGS, PROCESS_INFORMATION, STARTF_USESTDHANDLES,
    STARTUPINFOEXW, STARTUPINFOW, UpdateProcThreadAttribute,
};

use super::call;
use super::job::Job;

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
    /// Whose it is from its first moment on, however soon we end.
    pub(crate) job: Option<&'a Job>,
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
        let jobs: Vec<HANDLE> = self.job.iter().map(|job| job.as_raw_handle()).collect();
        let list = Attributes::new(&inherited, &jobs)?;
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
        drop(unsafe { call::own(created.hThread) });
        Ok(Created { process, pid: created.dwProcessId })
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

/// What a child inherits and which jobs it is born into, as the system wants to be told.
struct Attributes<'a> {
    list: LPPROC_THREAD_ATTRIBUTE_LIST,
    /// Where it lies. In words, because what is put there is aligned like a pointer.
    _memory: Vec<usize>,
    _handles: [&'a [HANDLE]; 2],
}

impl<'a> Attributes<'a> {
    fn new(inherited: &'a [HANDLE], jobs: &'a [HANDLE]) -> io::Result<Self> {
        const MOST: u32 = 2;
        let mut bytes = 0;
        // SAFETY: without memory it only tells how much it needs, and calls that a failure.
        unsafe { InitializeProcThreadAttributeList(std::ptr::null_mut(), MOST, 0, &raw mut bytes) };
        let mut memory = vec![0_usize; bytes.div_ceil(size_of::<usize>())];
        let list: LPPROC_THREAD_ATTRIBUTE_LIST = memory.as_mut_ptr().cast();
        // SAFETY: the memory is at least as large as it just said.
        call::done(unsafe { InitializeProcThreadAttributeList(list, MOST, 0, &raw mut bytes) })?;
        let list = Self { list, _memory: memory, _handles: [inherited, jobs] };
        list.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, inherited)?;
        if !jobs.is_empty() {
            list.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, jobs)?;
        }
        Ok(list)
    }

    fn set(&self, attribute: u32, handles: &'a [HANDLE]) -> io::Result<()> {
        // SAFETY: the list is initialised, has room for it, and borrows the handles for as long as it lives.
        call::done(unsafe {
            UpdateProcThreadAttribute(
                self.list,
                0,
                attribute as usize,
                handles.as_ptr().cast(),
                size_of_val(handles),
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
