//! Running as a built-in sink: hearback, executed again, with a delivery on its standard input.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::time::Duration;

use hearback_core::port::sink::SinkReply;

use super::agent;
use super::file;
use super::hand_over::line;
#[cfg(feature = "webhook")]
use super::post;

/// The command that makes hearback, executed again, a built-in sink.
pub(crate) const SINK_COMMAND: &str = "__sink";

/// A built-in sink.
pub(super) struct BuiltIn {
    /// Its name: the first argument after the command.
    pub(super) name: &'static str,
    /// Gets the arguments that follow, and reads the delivery from standard input.
    pub(super) run: fn(&[OsString]) -> Result<(), Undelivered>,
}

/// All built-in sinks.
const BUILT_IN: &[BuiltIn] = &[
    agent::BUILT_IN,
    file::BUILT_IN,
    #[cfg(feature = "webhook")]
    post::BUILT_IN,
];

/// Why a built-in sink did not deliver, and the exit code that says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub(super) code: u32,
    pub(super) reason: String,
    /// When to retry, if the receiver said so.
    pub(super) retry_after: Option<Duration>,
}

impl From<String> for Undelivered {
    /// A failure that a later attempt may not have.
    fn from(reason: String) -> Self {
        Self { code: 1, reason, retry_after: None }
    }
}

impl From<io::Error> for Undelivered {
    fn from(error: io::Error) -> Self {
        error.to_string().into()
    }
}

/// Delivers, and returns the exit code.
pub(crate) fn run(arguments: &[OsString]) -> i32 {
    let named = arguments.split_first().and_then(|(name, words)| {
        let built_in = BUILT_IN.iter().find(|built_in| name == built_in.name)?;
        Some((built_in.run)(words))
    });
    let done = named.unwrap_or_else(|| Err("there is no such sink in this build".to_owned().into()));
    let Err(Undelivered { code, reason, retry_after }) = done else { return 0 };
    let _ = writeln!(io::stderr(), "{reason}");
    let reply = retry_after
        .map(|pause| SinkReply::RetryAfter { millis: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX) });
    if let Some(Ok(answer)) = reply.map(|reply| line(&reply)) {
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
