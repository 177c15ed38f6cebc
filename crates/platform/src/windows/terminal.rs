//! A terminal of our own making: a pseudo console, with us in the place of its window. Closing it does what closing a
//! window does: every process in it hears of it, and ends.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::windows::io::AsRawHandle;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Console::{COORD, HPCON};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::core::{HRESULT, PCSTR};
use windows_sys::{s, w};

use super::system;

/// What a console asks its window on newer systems before a process may print, and how one answers that knows nothing
/// special. It waits three seconds for that.
const WHO_ARE_YOU: &[u8] = b"\x1b[c";
const JUST_A_TERMINAL: &[u8] = b"\x1b[?61c";
/// What we write ourselves when everything was shown, where the end cannot be waited for. No console writes this.
const ALL_WAS_SHOWN: &[u8] = b"\x1b]that was all\x07";

type Create = unsafe extern "system" fn(COORD, HANDLE, HANDLE, u32, *mut HPCON) -> HRESULT;
type Close = unsafe extern "system" fn(HPCON);

/// A terminal. Dropped, it is closed.
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only tests type and look"))]
pub(crate) struct Terminal {
    // Closed before its input is: a console whose input has ended may end before it has told its processes.
    console: Console,
    keys: Arc<PipeWriter>,
    shown: Receiver<Vec<u8>>,
    /// The console's own way to our screen, under Wine: the process that draws Wine's desktop may have it as well,
    /// and keep it.
    screen: Option<PipeWriter>,
}

impl Terminal {
    /// Opens one of this size that no process is in yet. Fails where the system has no such thing.
    pub(crate) fn open(columns: u16, rows: u16) -> io::Result<Self> {
        let (input, keys) = io::pipe()?;
        let (screen, output) = io::pipe()?;
        let console = Console::create(columns, rows, &input, &output)?;
        let keys = Arc::new(keys);
        let shown = watch(screen, keys.clone());
        Ok(Self { console, keys, shown, screen: system::is_wine().then_some(output) })
    }

    /// What `CreateProcess` takes.
    pub(super) fn raw(&self) -> HPCON {
        self.console.handle
    }
}

#[cfg(feature = "testing")]
impl Terminal {
    /// Closes it. Whatever was shown in it comes when no process is in it any more.
    pub(super) fn close(self) -> Receiver<Vec<u8>> {
        let Self { console, keys, shown, screen } = self;
        // Wine returns from this when the console is gone, and has written everything.
        drop(console);
        drop(keys);
        if let Some(mut screen) = screen {
            // The reader has no other end to hear.
            let _ = screen.write_all(ALL_WAS_SHOWN);
        }
        shown
    }

    /// Types, as at its keyboard.
    pub(super) fn type_in(&self, keys: &str) -> io::Result<()> {
        (&*self.keys).write_all(keys.as_bytes())
    }
}

/// Reads what is shown for as long as there is something: a console whose window does not read stands still.
fn watch(mut screen: PipeReader, keys: Arc<PipeWriter>) -> Receiver<Vec<u8>> {
    let (sender, shown) = channel();
    std::thread::spawn(move || {
        let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
        let mut keys = Some(keys);
        while let Ok(n @ 1..) = screen.read(&mut chunk) {
            all.extend_from_slice(&chunk[..n]);
            let asked = all.windows(WHO_ARE_YOU.len()).any(|window| window == WHO_ARE_YOU);
            if asked && let Some(keys) = keys.take() {
                let _ = (&*keys).write_all(JUST_A_TERMINAL);
            }
            if all.ends_with(ALL_WAS_SHOWN) {
                all.truncate(all.len() - ALL_WAS_SHOWN.len());
                break;
            }
        }
        // The caller may not want it.
        let _ = sender.send(all);
    });
    shown
}

/// The handle of a pseudo console, and what closes it.
struct Console {
    handle: HPCON,
    close: Close,
}

impl Console {
    fn create(columns: u16, rows: u16, input: &PipeReader, output: &PipeWriter) -> io::Result<Self> {
        // Looked up, since Windows has it only since 2018, and a program that needs it would not start before.
        let (create, close) = (procedure(s!("CreatePseudoConsole"))?, procedure(s!("ClosePseudoConsole"))?);
        // SAFETY: this is the documented type of what has this name.
        let create: Create = unsafe { std::mem::transmute(create) };
        // SAFETY: as above.
        let close: Close = unsafe { std::mem::transmute(close) };
        let side = |length: u16| i16::try_from(length).map_err(io::Error::other);
        let size = COORD { X: side(columns)?, Y: side(rows)? };
        let mut handle = 0;
        // SAFETY: both pipes are open and are duplicated by the call, and the pointer is to a handle of ours.
        let result =
            unsafe { create(size, input.as_raw_handle(), output.as_raw_handle(), 0, &raw mut handle) };
        if result < 0 {
            // The last sixteen bits are the error code of the system.
            return Err(io::Error::from_raw_os_error(result & 0xffff));
        }
        Ok(Self { handle, close })
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and closed once. A thread reads what is shown until its end, so this returns.
        unsafe { (self.close)(self.handle) };
    }
}

/// What the system has under this name.
fn procedure(name: PCSTR) -> io::Result<unsafe extern "system" fn() -> isize> {
    // SAFETY: the name ends with a zero.
    let library = unsafe { GetModuleHandleW(w!("kernel32.dll")) };
    // SAFETY: the library is loaded in every process and stays, and the name ends with a zero.
    unsafe { GetProcAddress(library, name) }.ok_or_else(|| io::ErrorKind::Unsupported.into())
}
