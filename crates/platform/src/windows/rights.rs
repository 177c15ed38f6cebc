//! The owner of a file, other users that may write a folder, and folders that are open to their owner alone.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::OnceLock;

use fs_err::File;
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GENERIC_ALL, GENERIC_WRITE, HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo,
    SDDL_REVISION_1, SE_FILE_OBJECT,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, EqualSid, GetAce,
    GetKernelObjectSecurity, GetSecurityDescriptorOwner, GetTokenInformation, IsWellKnownSid,
    OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES, TOKEN_INFORMATION_CLASS,
    TOKEN_QUERY, TokenIntegrityLevel, TokenOwner, TokenUser, WELL_KNOWN_SID_TYPE,
    WinBuiltinAdministratorsSid, WinCreatorOwnerRightsSid, WinCreatorOwnerSid, WinLocalSystemSid,
    WinLogonIdsSid,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, DELETE, FILE_APPEND_DATA, FILE_DELETE_CHILD, FILE_WRITE_DATA, WRITE_DAC, WRITE_OWNER,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::call;

/// Users that may do anything anyway. What an elevated administrator makes belongs to the second of them.
const MASTERS: [WELL_KNOWN_SID_TYPE; 2] = [WinLocalSystemSid, WinBuiltinAdministratorsSid];
/// Identifiers that stand for the owner in a list of rights.
const OWNERS: [WELL_KNOWN_SID_TYPE; 3] = [WinCreatorOwnerSid, WinCreatorOwnerRightsSid, WinLogonIdsSid];
/// Rights by which a folder, or what is in it, can be made another's.
const WRITING: u32 = FILE_WRITE_DATA
    | FILE_APPEND_DATA
    | FILE_DELETE_CHILD
    | DELETE
    | WRITE_DAC
    | WRITE_OWNER
    | GENERIC_WRITE
    | GENERIC_ALL;
/// The kind of entry that allows something.
const ALLOWED: u8 = 0;
/// Kinds that allow something under conditions that we do not know: for compounds, objects, callbacks, and both of
/// these. The rest refuse, or watch.
const ALLOWED_PERHAPS: [u8; 4] = [4, 5, 9, 11];
/// Room for an identifier, which has at most 68 bytes, behind what a token or a descriptor has before it.
const WORDS: usize = 32;

/// Reports why a folder or a file is not ours alone; nothing when it is. It must have been opened with the right to
/// read its rights.
///
/// Its owner can take every right to it, at any time.
pub(crate) fn trouble(folder: &File) -> io::Result<Option<String>> {
    let me = Me::get()?;
    let about = Descriptor::of(folder)?;
    if !me.is_owner(about.owner) {
        let (owner, me) = (shown(about.owner), shown(me.user.sid()));
        return Ok(Some(format!("belongs to user {owner}, and you are user {me}")));
    }
    if about.rights.is_null() {
        return Ok(Some("may be written by every user: it has no access rights".into()));
    }
    // SAFETY: the list is inside the descriptor, which lives.
    let entries = unsafe { (*about.rights).AceCount };
    for n in 0..u32::from(entries) {
        let mut entry = null_mut();
        // SAFETY: the list is inside the descriptor, which lives, and the pointer is to one of ours.
        call::done(unsafe { GetAce(about.rights, n, &raw mut entry) })?;
        // SAFETY: every entry begins with a header.
        let header = unsafe { *entry.cast::<ACE_HEADER>() };
        if ALLOWED_PERHAPS.contains(&header.AceType) {
            return Ok(Some("may be written by others under some conditions".into()));
        }
        // One that is only handed down counts as well: the facts are what it is handed down to.
        if header.AceType != ALLOWED {
            continue;
        }
        let entry: *const ACCESS_ALLOWED_ACE = entry.cast();
        // SAFETY: an entry of this kind has a mask.
        let mask = unsafe { (*entry).Mask };
        // SAFETY: and an identifier, which begins where this number is.
        let who = unsafe { &raw const (*entry).SidStart };
        if mask & WRITING != 0 && !me.may_write(who.cast_mut().cast()) {
            return Ok(Some("may be written by others".into()));
        }
    }
    Ok(None)
}

/// Names the owner of a file that is not ours; nothing when it is. It must have been opened to be read.
///
/// Asked of every fact that is read, so it is one call into the system, and nothing is allocated.
pub(crate) fn stranger(file: &File) -> io::Result<Option<String>> {
    let (me, mut descriptor, mut needed) = (Me::get()?, [0_usize; WORDS], 0);
    let room = size_of_val(&descriptor) as u32;
    let descriptor: PSECURITY_DESCRIPTOR = descriptor.as_mut_ptr().cast();
    // SAFETY: the handle is open as long as `file`, and the pointer is to as many bytes as are said.
    call::done(unsafe {
        GetKernelObjectSecurity(
            file.as_raw_handle(),
            OWNER_SECURITY_INFORMATION,
            descriptor,
            room,
            &raw mut needed,
        )
    })?;
    let (mut owner, mut by_default) = (null_mut(), 0);
    // SAFETY: the call above has filled the descriptor in, and the pointers are to ones of ours.
    call::done(unsafe { GetSecurityDescriptorOwner(descriptor, &raw mut owner, &raw mut by_default) })?;
    Ok((!me.is_owner(owner)).then(|| shown(owner)))
}

/// Makes a directory that no other user may enter, nor anything that will be made in it, whatever the one above hands
/// down. `path` is as the system takes it.
pub(crate) fn make_private_dir(path: &[u16]) -> io::Result<()> {
    let me = shown(Me::get()?.user.sid());
    // Nothing is inherited (P), and all of it (FA) is handed down to folders and files (OICI).
    let rights = format!("D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;{me})");
    let rights = call::zero_ended(rights.as_ref())?;
    let mut descriptor = null_mut();
    // SAFETY: the text ends with a zero, the pointer is to one of ours, and the size is not asked for.
    call::done(unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            rights.as_ptr(),
            SDDL_REVISION_1,
            &raw mut descriptor,
            null_mut(),
        )
    })?;
    let descriptor = Memory(descriptor);
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    };
    // SAFETY: the path ends with a zero, and the attributes and what they point to outlive the call.
    call::done(unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) })
}

/// Whether another process may do what we may: its user is ours, and it is as trusted as we are. One that is elevated,
/// or confined, is not.
pub(crate) fn are_those_of(process: &OwnedHandle) -> io::Result<bool> {
    // SAFETY: gives a constant that stands for this process.
    let me = unsafe { GetCurrentProcess() };
    let (ours, theirs) = (token_of(me)?, token_of(process.as_raw_handle())?);
    for what in [TokenUser, TokenIntegrityLevel] {
        if !TokenSid::by(&ours, what)?.is(TokenSid::by(&theirs, what)?.sid()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn token_of(process: HANDLE) -> io::Result<OwnedHandle> {
    let mut token = null_mut();
    // SAFETY: the handle stands for this process or is borrowed by the caller, and the pointer is to one of ours.
    call::done(unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) })?;
    // SAFETY: the call above made this handle for us.
    unsafe { call::own(token) }
}

/// The user that runs this process, and the owner of what it makes: mostly the same, but not for an elevated
/// administrator.
struct Me {
    user: TokenSid,
    owner: TokenSid,
}

impl Me {
    /// Looks once: the user of a process does not change.
    fn get() -> io::Result<&'static Self> {
        static ME: OnceLock<Me> = OnceLock::new();
        if let Some(me) = ME.get() {
            return Ok(me);
        }
        // SAFETY: gives a constant that stands for this process.
        let token = token_of(unsafe { GetCurrentProcess() })?;
        let me = Self { user: TokenSid::by(&token, TokenUser)?, owner: TokenSid::by(&token, TokenOwner)? };
        Ok(ME.get_or_init(|| me))
    }

    /// Whether what belongs to `who` is ours, or belongs to a user that could take it anyway.
    fn is_owner(&self, who: PSID) -> bool {
        !who.is_null() && (self.user.is(who) || self.owner.is(who) || is_one_of(who, &MASTERS))
    }

    fn may_write(&self, who: PSID) -> bool {
        self.is_owner(who) || is_one_of(who, &OWNERS)
    }
}

fn is_one_of(who: PSID, kinds: &[WELL_KNOWN_SID_TYPE]) -> bool {
    // SAFETY: the caller has an identifier inside something that lives.
    kinds.iter().any(|kind| unsafe { IsWellKnownSid(who, *kind) } != 0)
}

/// An identifier as a token holds it: a pointer to what is behind it, aligned as one.
struct TokenSid(Box<[usize; WORDS]>);

impl TokenSid {
    /// `what` is one whose answer begins with an identifier.
    fn by(token: &OwnedHandle, what: TOKEN_INFORMATION_CLASS) -> io::Result<Self> {
        let (mut words, mut size) = (Box::new([0; WORDS]), 0);
        let room = size_of_val(&*words) as u32;
        // SAFETY: the handle is ours, and the pointer is to as many bytes as are said.
        call::done(unsafe {
            GetTokenInformation(token.as_raw_handle(), what, words.as_mut_ptr().cast(), room, &raw mut size)
        })?;
        Ok(Self(words))
    }

    fn sid(&self) -> PSID {
        std::ptr::with_exposed_provenance_mut(self.0[0])
    }

    fn is(&self, who: PSID) -> bool {
        // SAFETY: both are identifiers, inside what lives.
        unsafe { EqualSid(self.sid(), who) != 0 }
    }
}

/// An identifier as people read it. Its name may have to come from other machines, which may take long.
fn shown(who: PSID) -> String {
    let mut text = null_mut();
    // SAFETY: the caller has an identifier inside something that lives, and the pointer is to one of ours.
    if who.is_null() || unsafe { ConvertSidToStringSidW(who, &raw mut text) } == 0 {
        return "unknown".into();
    }
    let _memory = Memory(text.cast());
    let mut units = Vec::new();
    loop {
        // SAFETY: the text ends with a zero, and none was met before.
        match unsafe { *text.wrapping_add(units.len()) } {
            0 => return String::from_utf16_lossy(&units),
            unit => units.push(unit),
        }
    }
}

/// What the system made for us, to be freed.
struct Memory(*mut core::ffi::c_void);

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the system made it for us, to be freed by this.
        unsafe { LocalFree(self.0) };
    }
}

/// The owner and the rights of a folder; the pointers are into memory that goes with it.
struct Descriptor {
    _memory: Memory,
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
        Ok(Self { _memory: Memory(memory), owner, rights })
    }
}
