//! Who else may write a folder: its owner and the list of its access rights.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null_mut;

use fs_err::File;
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GENERIC_ALL, GENERIC_WRITE, LocalFree};
use windows_sys::Win32::Security::Authorization::{GetSecurityInfo, SE_FILE_OBJECT};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, EqualSid, GetAce, GetTokenInformation,
    INHERIT_ONLY_ACE, IsWellKnownSid, OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, TOKEN_QUERY,
    TOKEN_USER, TokenUser, WELL_KNOWN_SID_TYPE, WinBuiltinAdministratorsSid, WinCreatorOwnerRightsSid,
    WinCreatorOwnerSid, WinLocalSystemSid, WinLogonIdsSid,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_APPEND_DATA, FILE_DELETE_CHILD, FILE_WRITE_DATA, WRITE_DAC, WRITE_OWNER,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::call;

/// Who may do anything anyway, and who stands for the owner.
const TRUSTED: [WELL_KNOWN_SID_TYPE; 5] = [
    WinLocalSystemSid,
    WinBuiltinAdministratorsSid,
    WinCreatorOwnerSid,
    WinCreatorOwnerRightsSid,
    WinLogonIdsSid,
];
/// Rights by which a folder, or what is in it, can be made another's.
const WRITING: u32 = FILE_WRITE_DATA
    | FILE_APPEND_DATA
    | FILE_DELETE_CHILD
    | DELETE
    | WRITE_DAC
    | WRITE_OWNER
    | GENERIC_WRITE
    | GENERIC_ALL;
/// The kind of entry that allows something. Other kinds refuse, watch, or allow under conditions that we do not know.
const ALLOWED: u8 = 0;
/// Room for a token's user: an identifier has at most 68 bytes.
const USER_WORDS: usize = 32;

/// Tells why a folder is not ours alone; nothing when it is. It must have been opened with the right to ask.
pub(crate) fn trouble(folder: &File) -> io::Result<Option<String>> {
    let user = User::current()?;
    let about = Descriptor::of(folder)?;
    if !user.is_trusted(about.owner) {
        return Ok(Some("belongs to somebody else".into()));
    }
    if about.rights.is_null() {
        return Ok(Some("may be written by everybody: it has no access rights".into()));
    }
    // SAFETY: the list is inside the descriptor, which lives.
    let entries = unsafe { (*about.rights).AceCount };
    for n in 0..u32::from(entries) {
        let mut entry = null_mut();
        // SAFETY: the list is inside the descriptor, which lives, and the pointer is to one of ours.
        call::done(unsafe { GetAce(about.rights, n, &raw mut entry) })?;
        // SAFETY: every entry begins with a header.
        let header = unsafe { *entry.cast::<ACE_HEADER>() };
        let handed_down_only = u32::from(header.AceFlags) & INHERIT_ONLY_ACE != 0;
        if header.AceType != ALLOWED || handed_down_only {
            continue;
        }
        let entry: *const ACCESS_ALLOWED_ACE = entry.cast();
        // SAFETY: an entry of this kind has a mask.
        let mask = unsafe { (*entry).Mask };
        // SAFETY: and an identifier, which begins where this number is.
        let who = unsafe { &raw const (*entry).SidStart };
        if mask & WRITING != 0 && !user.is_trusted(who.cast_mut().cast()) {
            return Ok(Some("may be written by others".into()));
        }
    }
    Ok(None)
}

/// Who runs this process.
struct User {
    /// As the system lays it out, aligned as a pointer is: what it points to is behind it.
    words: Box<[usize; USER_WORDS]>,
}

impl User {
    fn current() -> io::Result<Self> {
        let mut token = null_mut();
        // SAFETY: gives a constant that stands for this process.
        let me = unsafe { GetCurrentProcess() };
        // SAFETY: the handle stands for this process, and the pointer is to one of ours.
        call::done(unsafe { OpenProcessToken(me, TOKEN_QUERY, &raw mut token) })?;
        // SAFETY: the call above made this handle for us.
        let token: OwnedHandle = unsafe { call::own(token) }?;
        let mut words = Box::new([0; USER_WORDS]);
        let mut size = 0;
        // SAFETY: the handle is ours, and the pointer is to as many bytes as are said.
        call::done(unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                TokenUser,
                words.as_mut_ptr().cast(),
                size_of_val(&*words) as u32,
                &raw mut size,
            )
        })?;
        Ok(Self { words })
    }

    fn is_trusted(&self, who: PSID) -> bool {
        // SAFETY: the system has filled it in as this structure.
        let me = unsafe { (*self.words.as_ptr().cast::<TOKEN_USER>()).User.Sid };
        // SAFETY: both are identifiers, inside what lives.
        let same = unsafe { EqualSid(me, who) } != 0;
        // SAFETY: as above.
        same || TRUSTED.iter().any(|kind| unsafe { IsWellKnownSid(who, *kind) } != 0)
    }
}

/// What the system says about a folder; the pointers are into memory that goes with it.
struct Descriptor {
    memory: PSECURITY_DESCRIPTOR,
    owner: PSID,
    rights: *const ACL,
}

impl Descriptor {
    fn of(folder: &File) -> io::Result<Self> {
        let (mut owner, mut rights, mut memory) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the handle is open as long as `folder`, and the pointers are to ones of ours.
        let error = unsafe {
            GetSecurityInfo(
                folder.as_raw_handle(),
                SE_FILE_OBJECT,
                OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                &raw mut owner,
                null_mut(),
                &raw mut rights,
                null_mut(),
                &raw mut memory,
            )
        };
        if error != ERROR_SUCCESS {
            return Err(io::Error::from_raw_os_error(error.cast_signed()));
        }
        Ok(Self { memory, owner, rights })
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the system made it for us, to be freed by this.
        unsafe { LocalFree(self.memory) };
    }
}
