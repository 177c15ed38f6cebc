//! The `hearback` program: arguments, views and exit codes. What it does is in the library `hearback`.

mod args;
mod commands;
#[cfg_attr(not(feature = "completions"), path = "complete/none.rs")]
mod complete;
mod error;
mod help;
mod log;
#[cfg(feature = "man")]
mod man;
mod output;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod status;
mod table;
#[cfg(feature = "timeline")]
mod timeline;
#[cfg(feature = "top")]
mod top;
mod usage;
mod wrap;

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: a supervisor does not parse arguments, and must not use memory for that.
    hearback::supervise_if_asked();
    complete::answer_shell();
    run::run()
}
