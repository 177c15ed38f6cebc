//! Becoming one of the sinks that are built in: hearback, executed again, with a delivery on its standard input.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;

/// Why a built-in sink did not deliver, and the exit code that says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub(super) code: u32,
    pub(super) reason: String,
}

impl From<String> for Undelivered {
    /// What may work another time.
    fn from(reason: String) -> Self {
        Self { code: 1, reason }
    }
}

impl From<io::Error> for Undelivered {
    fn from(error: io::Error) -> Self {
        error.to_string().into()
    }
}

/// Reads a delivery, does what the sink is for, and tells with which code to exit.
pub(crate) fn run(arguments: &[OsString]) -> i32 {
    let done = match arguments {
        [kind, path] if kind == "file" => append(Path::new(path)),
        #[cfg(feature = "webhook")]
        [kind, url, secret_env] if kind == "webhook" => super::webhook::post(url, secret_env),
        _ => Err("there is no such sink in this build".to_owned().into()),
    };
    let Err(Undelivered { code, reason }) = done else { return 0 };
    let _ = writeln!(io::stderr(), "{reason}");
    i32::try_from(code).unwrap_or(1)
}

/// All of standard input.
pub(super) fn input() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Adds one line to a file, in one write: two at the same time do not mix.
fn append(path: &Path) -> Result<(), Undelivered> {
    let line = input()?;
    fs_err::OpenOptions::new().create(true).append(true).open(path)?.write_all(&line)?;
    Ok(())
}
