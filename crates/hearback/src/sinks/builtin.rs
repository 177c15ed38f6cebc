//! Becoming one of the sinks that are built in: hearback, executed again, with a delivery on its standard input.

use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use hearback_core::port::sink::SinkReply;

use super::exec::line;

/// Why a built-in sink did not deliver, and the exit code that says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub(super) code: u32,
    pub(super) reason: String,
    /// When to come back, if somebody said so.
    pub(super) retry_after: Option<Duration>,
}

impl From<String> for Undelivered {
    /// What may work another time.
    fn from(reason: String) -> Self {
        Self { code: 1, reason, retry_after: None }
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
    let Err(Undelivered { code, reason, retry_after }) = done else { return 0 };
    let _ = writeln!(io::stderr(), "{reason}");
    let asked = retry_after
        .map(|pause| SinkReply::RetryAfter { millis: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX) });
    if let Some(Ok(answer)) = asked.map(|answer| line(&answer)) {
        let _ = io::stdout().write_all(&answer);
    }
    i32::try_from(code).unwrap_or(1)
}

/// All of standard input.
pub(super) fn input() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Adds one line to a file, in one write: two at the same time do not mix. It is there to stay before it is delivered.
fn append(path: &Path) -> Result<(), Undelivered> {
    let mut line = input()?;
    let mut file = fs_err::OpenOptions::new().create(true).read(true).append(true).open(path)?;
    // What a full disk cut short stays a line of its own.
    if ends_within_a_line(&mut file)? {
        line.insert(0, b'\n');
    }
    file.write_all(&line)?;
    Ok(file.sync_data()?)
}

fn ends_within_a_line(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
