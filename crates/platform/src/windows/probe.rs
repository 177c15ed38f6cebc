//! Trying what this system can do.

use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use hearback_core::finding::{FileSystem, Logout, Medium, NamedBy, Room, Tried};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_STANDARD_INFO, FileStandardInfo, GetDiskFreeSpaceExW, GetDriveTypeW, GetFileInformationByHandleEx,
    GetVolumeInformationW, GetVolumePathNameW,
};
use windows_sys::Win32::System::WindowsProgramming::{DRIVE_RAMDISK, DRIVE_REMOTE};

use super::call;
use super::system::PATH_MAX;

/// Longer than the name of any file system.
const NAME_MAX: usize = 261;

pub(crate) fn file_system(folder: &Path) -> Tried<FileSystem> {
    volume(folder).into()
}

fn volume(folder: &Path) -> io::Result<FileSystem> {
    let folder = call::zero_ended(folder.as_os_str())?;
    let mut root = vec![0_u16; PATH_MAX];
    // SAFETY: the name ends with a zero, and the other pointer is to as many units as are said.
    call::done(unsafe { GetVolumePathNameW(folder.as_ptr(), root.as_mut_ptr(), PATH_MAX as u32) })?;
    let mut name = [0_u16; NAME_MAX];
    // SAFETY: the name of the root ends with a zero, nothing else is asked for, and the last pointer is to as many
    // units as are said.
    call::done(unsafe {
        GetVolumeInformationW(
            root.as_ptr(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            name.as_mut_ptr(),
            NAME_MAX as u32,
        )
    })?;
    // SAFETY: the name of the root ends with a zero.
    let medium = match unsafe { GetDriveTypeW(root.as_ptr()) } {
        DRIVE_REMOTE => Medium::Shared,
        DRIVE_RAMDISK => Medium::Memory,
        _ => Medium::Local,
    };
    let length = name.iter().position(|unit| *unit == 0).unwrap_or(NAME_MAX);
    Ok(FileSystem { name: String::from_utf16_lossy(&name[..length]), medium })
}

pub(crate) fn room(folder: &Path) -> Tried<Room> {
    let (mut left, mut all) = (0, 0);
    let asked = call::zero_ended(folder.as_os_str()).and_then(|folder| {
        // SAFETY: the name ends with a zero, the pointers are to numbers of ours, and nothing else is asked for.
        call::done(unsafe {
            GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut left, &raw mut all, std::ptr::null_mut())
        })
    });
    match asked {
        Err(error) => Tried::Failed(error),
        Ok(()) if all == 0 => Tried::untried("this file system does not count its room"),
        Ok(()) => Tried::Worked(Room { bytes: left, files: None }),
    }
}

/// There is one way here.
pub(crate) fn naming(_folder: &Path) -> Tried<NamedBy> {
    Tried::Worked(NamedBy::Rename)
}

/// How many bytes of the disk a file takes.
pub(crate) fn allocated(file: &fs_err::File) -> io::Result<u64> {
    let mut told = FILE_STANDARD_INFO::default();
    // SAFETY: the handle is open as long as `file`, and the pointer is to as many bytes as are said, of what is asked.
    call::done(unsafe {
        GetFileInformationByHandleEx(
            file.as_raw_handle(),
            FileStandardInfo,
            (&raw mut told).cast(),
            size_of_val(&told) as u32,
        )
    })?;
    Ok(told.AllocationSize.unsigned_abs())
}

pub(crate) fn oom_score() -> Tried {
    Tried::untried("this system does not let a process offer itself")
}

pub(crate) fn descriptors() -> Tried<u64> {
    Tried::untried("this system has no such limit")
}

pub(crate) fn pids_are_the_machines() -> Tried<bool> {
    Tried::untried("this system has one space of pids")
}

pub(crate) fn logout() -> Tried<Logout> {
    Tried::untried("logging off ends everything on Windows")
}
