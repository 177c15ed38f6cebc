//! The `hearback` program: arguments, views and exit codes. What it does is in the library `hearback`.

mod args;
mod commands;
mod error;
mod output;
mod run;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a supervisor needs no command line, and should touch none of its memory.
    hearback::supervise_if_asked();
    run::run()
}
