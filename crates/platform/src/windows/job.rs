//! The Job Object that owns a target and everything that it starts.

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::io::{AsRawHandle, OwnedHandle, RawHandle};
use std::path::PathBuf;
use std::time::Duration;

use hearback_core::ProcessIdentity;
use windows_sys::Win32::Foundation::ERROR_MORE_DATA;
use windows_sys::Win32::System::JobObjects::{
    CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT, JOB_OBJECT_LIMIT_BREAKAWAY_OK,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_BASIC_LIMIT_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS,
    JobObjectBasicAccountingInformation, JobObjectBasicProcessIdList, JobObjectExtendedLimitInformation,
    QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    PROCESS_NAME_WIN32, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, QueryFullProcessImageNameW,
};

use super::system::{self, PATH_MAX};
use super::{call, clock, identity};

/// The exit code of a process that was killed. It is no success.
pub(crate) const EXIT_KILLED: u32 = 1;
/// The limits of a job that ends with its owner and whose processes may leave. Those of ours may not.
pub(crate) const LETS_GO: JOB_OBJECT_LIMIT =
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_BREAKAWAY_OK;
/// How many members are looked at. A longer list would only be cut later.
const MEMBERS_MAX: usize = 1024;

/// A Job Object. When the last handle to it is closed, its processes end; only this process has one.
pub(crate) struct Job {
    handle: OwnedHandle,
}

/// What the processes of a job used together.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// The most that they had at once, in bytes that the system had promised them.
    pub(crate) peak_memory: u64,
}

impl Job {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no attributes and no name are allowed; what it makes is taken over below.
        let raw = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
        // SAFETY: the handle was made for us by the line above.
        let handle = unsafe { call::own(raw) }?;
        let job = Self { handle };
        // No process may leave: the runtime of Git Bash leaves with everything that it starts, wherever that is
        // allowed. A supervisor that is launched from inside leaves by another way, see `detach`.
        job.limit(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
        Ok(job)
    }

    /// Ends every process in it.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        // SAFETY: the handle is ours and borrowed for the call.
        call::done(unsafe { TerminateJobObject(self.handle.as_raw_handle(), EXIT_KILLED) })
    }

    /// Lets its processes live on when the handle is closed, and leave: no process owns them any more.
    pub(crate) fn release(&self) -> io::Result<()> {
        self.limit(JOB_OBJECT_LIMIT_BREAKAWAY_OK)
    }

    pub(crate) fn limit(&self, limits: JOB_OBJECT_LIMIT) -> io::Result<()> {
        let limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION {
            BasicLimitInformation: JOBOBJECT_BASIC_LIMIT_INFORMATION {
                LimitFlags: limits,
                ..Default::default()
            },
            ..Default::default()
        };
        // SAFETY: the handle is ours, and the pointer is to as many bytes as are said, of what is said.
        call::done(unsafe {
            SetInformationJobObject(
                self.handle.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_val(&limits) as u32,
            )
        })
    }

    /// The processes in it. The helper that gives a process its console is not: it ends by itself, after the last of
    /// them.
    pub(crate) fn members(&self) -> io::Result<Vec<ProcessIdentity>> {
        let ids = self.ids()?;
        Ok(ids.listed().filter_map(|pid| self.member(pid)).collect())
    }

    /// What its processes have used so far, those that are gone included.
    pub(crate) fn account(&self) -> io::Result<Account> {
        let times: JOBOBJECT_BASIC_ACCOUNTING_INFORMATION =
            self.query(JobObjectBasicAccountingInformation)?;
        let memory: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = self.query(JobObjectExtendedLimitInformation)?;
        let time = |units: i64| clock::from_units(units.unsigned_abs());
        Ok(Account {
            user: time(times.TotalUserTime),
            system: time(times.TotalKernelTime),
            peak_memory: memory.PeakJobMemoryUsed as u64,
        })
    }

    /// Queries one of the structures that are plain numbers.
    fn query<T: Default>(&self, class: JOBOBJECTINFOCLASS) -> io::Result<T> {
        let mut answer = T::default();
        // SAFETY: the handle is ours, and the pointer is to as many bytes as are said; the system refuses a class
        // whose structure has another size.
        call::done(unsafe {
            QueryInformationJobObject(
                self.handle.as_raw_handle(),
                class,
                (&raw mut answer).cast(),
                size_of::<T>() as u32,
                std::ptr::null_mut(),
            )
        })?;
        Ok(answer)
    }

    fn ids(&self) -> io::Result<Box<ProcessIds>> {
        let mut ids = Box::new(ProcessIds { _assigned: 0, listed: 0, ids: [0; MEMBERS_MAX] });
        // SAFETY: the handle is ours, and the pointer is to as many bytes as are said, laid out as this list is.
        let asked = call::done(unsafe {
            QueryInformationJobObject(
                self.handle.as_raw_handle(),
                JobObjectBasicProcessIdList,
                (&raw mut *ids).cast(),
                size_of::<ProcessIds>() as u32,
                std::ptr::null_mut(),
            )
        });
        match asked {
            // There are more than fit; those that fit are there.
            Err(error) if !call::is(&error, ERROR_MORE_DATA) => Err(error),
            _ => Ok(ids),
        }
    }

    fn member(&self, pid: u32) -> Option<ProcessIdentity> {
        let unknown = ProcessIdentity { pid, started: 0, boot: identity::boot(), scope: identity::scope() };
        let process = match identity::open(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE) {
            Ok(process) => process?,
            // It is in the job and cannot be looked at: there, but no more is known.
            Err(_) => return Some(unknown),
        };
        let gone = identity::has_ended(&process, Some(Duration::ZERO)).unwrap_or(false);
        if gone || self.is_stranger(&process) || is_console_host(&process) {
            return None;
        }
        Some(identity::identity(&process, pid).unwrap_or(unknown))
    }

    /// Whether the pid was reused, since it was listed, by a process that is not in the job.
    fn is_stranger(&self, process: &OwnedHandle) -> bool {
        let mut inside = 0;
        // SAFETY: both handles are ours, and the pointer is to a flag of ours.
        let asked =
            unsafe { IsProcessInJob(process.as_raw_handle(), self.handle.as_raw_handle(), &raw mut inside) };
        asked != 0 && inside == 0
    }
}

impl AsRawHandle for Job {
    fn as_raw_handle(&self) -> RawHandle {
        self.handle.as_raw_handle()
    }
}

/// Whether this is the helper that gives a process its console. It is in its job and has its mark, and ends by itself.
pub(crate) fn is_console_host(process: &OwnedHandle) -> bool {
    let host = system::directory().join("conhost.exe");
    image(process).is_some_and(|image| image.as_os_str().eq_ignore_ascii_case(&host))
}

/// `JOBOBJECT_BASIC_PROCESS_ID_LIST`, with room for more than one.
#[repr(C)]
struct ProcessIds {
    _assigned: u32,
    listed: u32,
    ids: [usize; MEMBERS_MAX],
}

impl ProcessIds {
    fn listed(&self) -> impl Iterator<Item = u32> {
        self.ids.iter().take(self.listed as usize).filter_map(|id| u32::try_from(*id).ok())
    }
}

/// The file that a process was started from.
fn image(process: &OwnedHandle) -> Option<PathBuf> {
    let mut text = vec![0_u16; PATH_MAX];
    let mut length = PATH_MAX as u32;
    // SAFETY: the handle is ours, and the pointer is to as many units as are said.
    let told = unsafe {
        QueryFullProcessImageNameW(
            process.as_raw_handle(),
            PROCESS_NAME_WIN32,
            text.as_mut_ptr(),
            &raw mut length,
        )
    };
    let path = text.get(..length as usize)?;
    (told != 0).then(|| OsString::from_wide(path).into())
}
