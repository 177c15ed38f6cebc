//! `confine [--lets-go] PROG ARG…`: runs a program inside a Job Object, as a terminal or an agent may do it (Windows).
//!
//! Ends with the program's code, and then every process that is still in the Job Object ends as well. Without
//! `--lets-go` no process may leave it.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::process::ExitCode;

#[cfg(windows)]
fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    let lets_go = args.next_if(|arg| arg == "--lets-go").is_some();
    hearback_platform::testing::confine_myself(lets_go)
        .expect("a process needs no rights to enter a Job Object");
    let program = args.next().expect("PROG is needed");
    let status = std::process::Command::new(program).args(args).status().expect("a child can be started");
    std::process::exit(status.code().unwrap_or(1));
}

#[cfg(not(windows))]
fn main() -> ExitCode {
    eprintln!("confine: only for Windows");
    ExitCode::from(2)
}
