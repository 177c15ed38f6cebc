//! The `hearback` program: arguments, views and exit codes. What it does is in the library `hearback`.

mod args;
mod commands;
mod complete;
mod error;
mod help;
mod log;
#[cfg(feature = "man")]
mod man;
mod output;
mod run;
mod status;
mod table;
mod timeline;

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: a supervisor does not parse arguments, and must not use memory for that.
    hearback::supervise_if_asked();
    complete::answer_shell();
    run::run()
}
