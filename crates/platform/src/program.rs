//! Finding what to run: programs on the path, and a shell for shell text.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hearback_core::{CommandLine, StartError, StartErrorKind};

use crate::sys;

/// What to exit with to pass a code on: all of it where a code has 32 bits, and elsewhere never a failure as success.
pub fn exit_code(code: u32) -> i32 {
    if cfg!(windows) { code.cast_signed() } else { i32::from(u8::try_from(code).unwrap_or(u8::MAX)) }
}

/// The program that this process runs, to be executed again: also after another program was put in its place, or it
/// was removed it. A job can take longer than the next upgrade.
///
/// # Errors
///
/// When the system does not tell.
pub fn own_program() -> std::io::Result<PathBuf> {
    // Linux runs what is gone once more under this name; elsewhere there is none.
    const ITSELF: &str = "/proc/self/exe";
    let program = std::env::current_exe()?;
    Ok(if !program.exists() && Path::new(ITSELF).exists() { ITSELF.into() } else { program })
}

/// The program that is to come after this process: what is in its place by now, so that an upgrade takes effect.
///
/// # Errors
///
/// When the system does not tell.
pub fn next_program() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    // So Linux names what is no longer there.
    let replaced = program.to_str().and_then(|name| name.strip_suffix(" (deleted)")).map(PathBuf::from);
    match replaced.filter(|path| !program.exists() && path.exists()) {
        Some(path) => Ok(path),
        None => own_program(),
    }
}

/// A program that was found, and what to hand it.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// The file to execute.
    pub(crate) program: PathBuf,
    /// The name that the program gets as its own.
    pub(crate) name: OsString,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
}

/// Finds what `command` runs in `cwd`; `script` is where the text of a shell command was written.
pub(crate) fn resolve(
    command: &CommandLine,
    cwd: &Path,
    script: Option<&Path>,
) -> Result<Invocation, StartError> {
    match command {
        CommandLine::Argv(argv) => {
            let mut argv = argv.iter().map(sys::text::to_os);
            let name = argv.next().ok_or_else(|| not_found("there is nothing to run".into()))?;
            Ok(Invocation { program: find(&name, cwd)?, name, arguments: argv.collect() })
        }
        CommandLine::Shell { program, .. } => {
            let script = script.ok_or_else(|| StartError {
                kind: StartErrorKind::Other,
                message: "the text for the shell was not written".into(),
            })?;
            let (shell, arguments) = sys::shell::find(program.as_deref(), script, cwd)?;
            Ok(Invocation { name: shell.clone().into(), program: shell, arguments })
        }
        CommandLine::Unknown(_) => Err(StartError {
            kind: StartErrorKind::Other,
            message: "only a newer hearback knows how to run this kind of command".into(),
        }),
    }
}

/// Finds a program as a shell would: a bare name on the path, a name with a separator from `cwd`.
pub(crate) fn find(name: &OsStr, cwd: &Path) -> Result<PathBuf, StartError> {
    let shown = name.display();
    if name.is_empty() {
        return Err(not_found("the name of the program is empty".into()));
    }
    if let Ok(found) = which::which_in(name, std::env::var_os("PATH"), cwd) {
        return Ok(found);
    }
    // Something of that name may be there without being a program.
    let as_path = cwd.join(name);
    if Path::new(name).components().count() > 1 && as_path.exists() {
        return Err(StartError {
            kind: StartErrorKind::NotExecutable,
            message: format!("`{shown}` is not an executable file"),
        });
    }
    Err(not_found(match Path::new(name).components().count() {
        1 => format!("`{shown}` was not found on the PATH"),
        _ => format!("`{shown}` was not found in `{}`", cwd.display()),
    }))
}

pub(crate) fn not_found(message: String) -> StartError {
    StartError { kind: StartErrorKind::NotFound, message }
}

/// Tells why a target could not work in `cwd`, before that looks like a missing program.
pub(crate) fn check_directory(cwd: &Path) -> Result<(), StartError> {
    let bad = |message| Err(StartError { kind: StartErrorKind::BadDirectory, message });
    match std::fs::metadata(cwd) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => bad(format!("the working directory `{}` is not a directory", cwd.display())),
        Err(error) => bad(format!("cannot use the working directory `{}`: {error}", cwd.display())),
    }
}
