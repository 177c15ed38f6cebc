//! The `hearback` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a supervisor needs no command line, and should touch none of its memory.
    hearback::supervise_if_asked();
    hearback::cli::run()
}
