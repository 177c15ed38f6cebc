//! Where the system keeps its own programs, and whether it is Windows at all.

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use windows_sys::Win32::System::Diagnostics::Debug::{
    GetErrorMode, SEM_FAILCRITICALERRORS, SEM_NOOPENFILEERRORBOX, SetErrorMode,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows_sys::{s, w};

/// Longer than any path that the system tells.
pub(crate) const PATH_MAX: usize = 32_768;

/// The folder of the system's programs.
pub(crate) fn directory() -> PathBuf {
    let mut text = vec![0_u16; PATH_MAX];
    // SAFETY: the pointer is to as many units as are said.
    let length = unsafe { GetSystemDirectoryW(text.as_mut_ptr(), PATH_MAX as u32) } as usize;
    match text.get(..length).filter(|text| !text.is_empty()) {
        Some(directory) => OsString::from_wide(directory).into(),
        None => Path::new(r"C:\Windows\System32").into(),
    }
}

/// The program that runs batch files: the system's own, whatever a variable or the path says.
pub(crate) fn cmd() -> PathBuf {
    directory().join("cmd.exe")
}

/// Lets no error of this process, or of one that it starts, wait for a person to click it away: a library that is
/// missing is reported by the exit code of the program. Crashes are still reported to the service that collects them.
pub(crate) fn show_no_dialogs() {
    // SAFETY: gives a number.
    let already = unsafe { GetErrorMode() };
    // SAFETY: takes a number, and changes nothing but what it says.
    unsafe { SetErrorMode(already | SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX) };
}

/// Whether this is Wine, which has the calls of Windows and some programs that only have the names.
pub(crate) fn is_wine() -> bool {
    // SAFETY: the name ends with a zero.
    let library = unsafe { GetModuleHandleW(w!("ntdll.dll")) };
    // SAFETY: the library is loaded in every process and stays; the name ends with a zero.
    !library.is_null() && unsafe { GetProcAddress(library, s!("wine_get_version")) }.is_some()
}
