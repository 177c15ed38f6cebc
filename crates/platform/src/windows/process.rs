//! Creating a process that inherits three handles and no others: born in its Job Object, on our console or in a
//! terminal of its own, as our child or as another process's.
//!
//! The standard library lets a child inherit whatever is inheritable at that moment, a caller's pipe among it; a
//! job that holds it keeps the caller waiting until it ends.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    DUPLICATE_CLOSE_SOURCE, DUPLICATE_SAME_ACCESS, DuplicateHandle, ERROR_COMMITMENT_LIMIT,
    ERROR_INTERNAL_ERROR, ERROR_LOCK_VIOLATION, ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY,
    ERROR_SHARING_VIOLATION, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation,
};
use windows_sys::Win32::System::Console::HPCON;
use windows_sys::Win32::System::Threading::{
    CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT,
    GetCurrentProcess, InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROC_THREAD_ATTRIBUTE_JOB_LIST, PROC_THREAD_ATTRIBUTE_PARENT_PROCESS,
    PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, PROCESS_ACCESS_RIGHTS, PROCESS_CREATE_PROCESS,
    PROCESS_CREATION_FLAGS, PROCESS_DUP_HANDLE, PROCESS_INFORMATION, STARTF_USESTDHANDLES, STARTUPINFOEXW,
    STARTUPINFOW, UpdateProcThreadAttribute,
};

use super::call;
use super::job::Job;
use super::terminal::Terminal;

/// How often to try to create a process.
const TRIES: u32 = 5;

/// What to create.
pub(crate) struct Creation<'a> {
    /// The file to execute.
    pub(crate) program: &'a Path,
    /// Its command line: its name and its arguments.
    pub(crate) line: &'a [u16],
    /// Its whole environment.
    pub(crate) environment: &'a [u16],
    /// Where it runs.
    pub(crate) cwd: &'a Path,
    /// Its standard streams. They become inheritable, so they are taken for this one process.
    pub(crate) streams: Streams,
    /// Whose it is from its first moment on, however soon we end.
    pub(crate) job: Option<&'a Job>,
    /// The terminal that it is in; without one the flags tell which console it has.
    pub(crate) terminal: Option<&'a Terminal>,
}

/// What it takes to have a child in the name of another process.
pub(crate) const ADOPT: PROCESS_ACCESS_RIGHTS = PROCESS_CREATE_PROCESS | PROCESS_DUP_HANDLE;

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
        self.create_as_child_of(None, flags)
    }

    /// Does what [`Self::create`] does, as a child of another process: where that one is in a Job Object, so is the
    /// child, and not where we are.
    pub(crate) fn create_as_child_of(
        &self,
        parent: Option<&OwnedHandle>,
        flags: PROCESS_CREATION_FLAGS,
    ) -> io::Result<Created> {
        let mut tried = 1;
        loop {
            match self.try_to_create(parent, flags) {
                Err(error) if is_for_a_moment(&error) && tried < TRIES => {
                    std::thread::sleep(Duration::from_millis(10) * 2_u32.pow(tried));
                    tried += 1;
                }
                other => return other,
            }
        }
    }

    fn try_to_create(
        &self,
        parent: Option<&OwnedHandle>,
        flags: PROCESS_CREATION_FLAGS,
    ) -> io::Result<Created> {
        let program = call::zero_ended(self.program.as_os_str())?;
        let mut line = self.line.to_vec();
        let cwd = call::zero_ended(plain(self.cwd).as_os_str())?;
        let Streams { input, output, error } = &self.streams;
        // Named once each: a handle that is listed twice makes the whole list invalid.
        let streams: Vec<_> = [input, output].into_iter().chain(error).collect();
        let inherited = Inherited::new(&streams, parent)?;
        let handles = &inherited.handles;
        let parent = parent.map(AsRawHandle::as_raw_handle);
        let mut attributes: Vec<Attribute> =
            vec![(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles.as_ptr().cast(), size_of_val(&handles[..]))];
        attributes.extend(parent.as_ref().map(|parent| {
            (PROC_THREAD_ATTRIBUTE_PARENT_PROCESS, std::ptr::from_ref(parent).cast(), size_of_val(parent))
        }));
        let job = self.job.map(AsRawHandle::as_raw_handle);
        attributes.extend(
            job.as_ref().map(|job| {
                (PROC_THREAD_ATTRIBUTE_JOB_LIST, std::ptr::from_ref(job).cast(), size_of_val(job))
            }),
        );
        attributes.extend(self.terminal.map(|terminal| {
            // Unlike the others, it is passed by its value, and not by its address.
            (PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, terminal.raw() as *const c_void, size_of::<HPCON>())
        }));
        // SAFETY: handles, parent and job live until the end of this function, and the terminal longer.
        let list = unsafe { Attributes::new(&attributes) }?;
        let startup = STARTUPINFOEXW { StartupInfo: startup(handles), lpAttributeList: list.list };
        let mut created = PROCESS_INFORMATION::default();
        // SAFETY: the texts end with zeroes and the environment with two, the line is ours to be written to, and
        // everything that is pointed to lives until the call returns.
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

/// How a process finds its standard streams.
fn startup(handles: &[HANDLE]) -> STARTUPINFOW {
    STARTUPINFOW {
        cb: size_of::<STARTUPINFOEXW>() as u32,
        dwFlags: STARTF_USESTDHANDLES,
        hStdInput: handles[0],
        hStdOutput: handles[1],
        // Where there is no third, errors go where output goes.
        hStdError: *handles.get(2).unwrap_or(&handles[1]),
        ..Default::default()
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

/// The handles that a child inherits. A child inherits from its parent, so another's are lent to that one first.
struct Inherited<'a> {
    handles: Vec<HANDLE>,
    /// The other process that has them, until this is dropped.
    lent_to: Option<&'a OwnedHandle>,
}

impl<'a> Inherited<'a> {
    fn new(streams: &[&OwnedHandle], parent: Option<&'a OwnedHandle>) -> io::Result<Self> {
        let mut inherited = Self { handles: Vec::new(), lent_to: parent };
        for stream in streams {
            let handle = match parent {
                Some(parent) => lend(stream, parent)?,
                None => {
                    let handle = stream.as_raw_handle();
                    // SAFETY: the handle is open as long as the stream, which is borrowed.
                    call::done(unsafe {
                        SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)
                    })?;
                    handle
                }
            };
            inherited.handles.push(handle);
        }
        Ok(inherited)
    }
}

impl Drop for Inherited<'_> {
    fn drop(&mut self) {
        let Some(parent) = self.lent_to else { return };
        for handle in &self.handles {
            // SAFETY: the process handle is ours; the other names a handle that was made in that process by us, which
            // no code there knows of, and is closed by this.
            unsafe {
                DuplicateHandle(
                    parent.as_raw_handle(),
                    *handle,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    0,
                    0,
                    DUPLICATE_CLOSE_SOURCE,
                )
            };
        }
    }
}

/// Gives another process a handle to what ours is, for its children to inherit.
fn lend(handle: &OwnedHandle, to: &OwnedHandle) -> io::Result<HANDLE> {
    let mut lent = std::ptr::null_mut();
    // SAFETY: gives a constant that stands for this process.
    let me = unsafe { GetCurrentProcess() };
    // SAFETY: both handles are ours and borrowed for the call, and the pointer is to a handle of ours.
    call::done(unsafe {
        DuplicateHandle(
            me,
            handle.as_raw_handle(),
            to.as_raw_handle(),
            &raw mut lent,
            0,
            1,
            DUPLICATE_SAME_ACCESS,
        )
    })?;
    Ok(lent)
}

/// One of the things that a child is created with beside the usual: which, where it is, and how large.
type Attribute = (u32, *const c_void, usize);

/// Those things as the system wants to be told.
struct Attributes {
    list: LPPROC_THREAD_ATTRIBUTE_LIST,
    /// Where it lies. In words, because what is put there is aligned like a pointer.
    _memory: Vec<usize>,
}

impl Attributes {
    /// # Safety
    ///
    /// What the attributes point to must live for as long as this.
    unsafe fn new(attributes: &[Attribute]) -> io::Result<Self> {
        let room = u32::try_from(attributes.len()).expect("a handful");
        let mut bytes = 0;
        // SAFETY: without memory it only tells how much it needs, and calls that a failure.
        unsafe { InitializeProcThreadAttributeList(std::ptr::null_mut(), room, 0, &raw mut bytes) };
        let mut memory = vec![0_usize; bytes.div_ceil(size_of::<usize>())];
        let list: LPPROC_THREAD_ATTRIBUTE_LIST = memory.as_mut_ptr().cast();
        // SAFETY: the memory is at least as large as it just said.
        call::done(unsafe { InitializeProcThreadAttributeList(list, room, 0, &raw mut bytes) })?;
        let list = Self { list, _memory: memory };
        for (what, at, size) in attributes {
            // SAFETY: the list is initialised and has room for it, and the caller promises that it is there.
            call::done(unsafe {
                UpdateProcThreadAttribute(
                    list.list,
                    0,
                    *what as usize,
                    *at,
                    *size,
                    std::ptr::null_mut(),
                    std::ptr::null(),
                )
            })?;
        }
        Ok(list)
    }
}

impl Drop for Attributes {
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
