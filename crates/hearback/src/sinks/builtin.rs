//! Becoming one of the sinks that are built in: hearback, executed again, with a delivery on its standard input.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::time::Duration;

use hearback_core::port::sink::SinkReply;

use super::file;
use super::hand_over::line;
#[cfg(feature = "webhook")]
use super::post;

/// The command by which hearback, executed again, becomes one of its own sinks.
pub(crate) const SINK_COMMAND: &str = "__sink";

/// What hearback can become.
pub(super) struct BuiltIn {
    /// The first word after the command.
    pub(super) name: &'static str,
    /// Takes the words that follow, and reads the delivery from standard input.
    pub(super) run: fn(&[OsString]) -> Result<(), Undelivered>,
}

/// Every sink that hearback can become.
const BUILT_IN: &[BuiltIn] = &[
    file::BUILT_IN,
    #[cfg(feature = "webhook")]
    post::BUILT_IN,
];

/// Why a built-in sink did not deliver, and the exit code that says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub(super) code: u32,
    pub(super) reason: String,
    /// When to come back, if the receiver said so.
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
    let named = arguments.split_first().and_then(|(name, words)| {
        let built_in = BUILT_IN.iter().find(|built_in| name == built_in.name)?;
        Some((built_in.run)(words))
    });
    let done = named.unwrap_or_else(|| Err("there is no such sink in this build".to_owned().into()));
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
