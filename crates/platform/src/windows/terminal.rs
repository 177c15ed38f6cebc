//! A terminal of our own making: a pseudo console, with us in the place of its window. Closing it does what closing a
//! window does: everybody in it is told, and ends.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::windows::io::AsRawHandle;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hearback_core::Exit;
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Console::{
    COORD, CTRL_C_EVENT, GenerateConsoleCtrlEvent, HPCON, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::core::{HRESULT, PCSTR};
use windows_sys::{s, w};

use super::executor::exit_code;
use super::process::{Created, Creation, Streams};
use super::{call, command_line, detach, environment, identity, system};

/// What a console asks its window on newer systems before anybody may print, and how one answers that knows nothing
/// special. It waits three seconds for that.
const WHO_ARE_YOU: &[u8] = b"\x1b[c";
const JUST_A_TERMINAL: &[u8] = b"\x1b[?61c";
/// What we say ourselves when everything was shown, where nobody can wait for the end. No console says this.
const ALL_WAS_SHOWN: &[u8] = b"\x1b]that was all\x07";

type Create = unsafe extern "system" fn(COORD, HANDLE, HANDLE, u32, *mut HPCON) -> HRESULT;
type Close = unsafe extern "system" fn(HPCON);

/// A terminal. Dropped, it is closed.
pub(crate) struct Terminal {
    // Closed before its input is: a console whose input has ended may end before it has told anybody.
    console: Console,
    keys: Arc<PipeWriter>,
    shown: Receiver<Vec<u8>>,
    /// The console's own way to our screen, under Wine: whoever draws Wine's desktop may have it as well, and keep it.
    screen: Option<PipeWriter>,
}

impl Terminal {
    /// Opens one of this size that nobody is in yet. Fails where the system has no such thing.
    pub(crate) fn open(columns: u16, rows: u16) -> io::Result<Self> {
        let (input, keys) = io::pipe()?;
        let (screen, output) = io::pipe()?;
        let console = Console::create(columns, rows, &input, &output)?;
        let keys = Arc::new(keys);
        let shown = watch(screen, keys.clone());
        Ok(Self { console, keys, shown, screen: system::is_wine().then_some(output) })
    }

    /// What `CreateProcess` is told.
    pub(super) fn raw(&self) -> HPCON {
        self.console.handle
    }

    /// Closes it. Whatever was shown in it comes when nobody is in it any more.
    fn close(self) -> Receiver<Vec<u8>> {
        let Self { console, keys, shown, screen } = self;
        // Wine returns from this when the console is gone, and has said all that it had to say.
        drop(console);
        drop(keys);
        if let Some(mut screen) = screen {
            // Whoever reads has no other end to hear.
            let _ = screen.write_all(ALL_WAS_SHOWN);
        }
        shown
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
        // Nobody may want to know.
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
            // The last sixteen bits are the error that anybody else would have told.
            return Err(io::Error::from_raw_os_error(result & 0xffff));
        }
        Ok(Self { handle, close })
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and closed once. Somebody reads what is shown until its end, so this returns.
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

/// A program in a terminal, with whoever has this in the place of the window. Dropped, the terminal is closed, and
/// everybody in it ends. Only our tests need it.
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
        (&*terminal.keys).write_all(keys.as_bytes())
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

    /// Closes the terminal. What was shown in it, escape sequences and all, comes when everybody has left it; nothing
    /// comes if it was closed before.
    pub fn close(&mut self) -> Receiver<Vec<u8>> {
        self.terminal.take().map_or_else(|| channel().1, Terminal::close)
    }
}

/// Lets Ctrl-C mean this process, and whoever it starts from now on: a process that was started in a group of its own
/// ignores it, and hands that on. Only our tests need it.
///
/// # Errors
///
/// When the system would not.
pub fn heed_ctrl_c() -> io::Result<()> {
    // SAFETY: without a routine it only changes what this process does when it is told.
    call::done(unsafe { SetConsoleCtrlHandler(None, 0) })
}

/// Presses Ctrl-C on the console of this process. Everybody there is told, and we do not mind. Only our tests need it.
///
/// # Errors
///
/// When the system would not.
pub fn press_ctrl_c() -> io::Result<()> {
    // SAFETY: without a routine it only changes what this process does when it is told.
    call::done(unsafe { SetConsoleCtrlHandler(None, 1) })?;
    // SAFETY: takes numbers.
    call::done(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) })
}
