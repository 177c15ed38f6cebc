//! `seat FILE PROG ARG…`: runs a program on the console of this process (Windows), and ends with its code.
//!
//! The streams of the program are the console, whatever ours are. When `FILE` appears, Ctrl-C is pressed once.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::process::ExitCode;

#[cfg(windows)]
fn main() -> ExitCode {
    use std::io::IsTerminal;
    use std::time::Duration;

    // For both, or it is not taken for a terminal.
    let console = |name| std::fs::OpenOptions::new().read(true).write(true).open(name);
    let console = |name| console(name).expect("this process is in a terminal");
    let (input, output) = (console("CONIN$"), console("CONOUT$"));
    assert!(input.is_terminal() && output.is_terminal());
    hearback_platform::testing::heed_ctrl_c().expect("it needs no rights");
    let mut args = std::env::args_os().skip(1);
    let file = std::path::PathBuf::from(args.next().expect("FILE is needed"));
    let mut command = std::process::Command::new(args.next().expect("PROG is needed"));
    command
        .args(args)
        .stdin(input)
        .stdout(output.try_clone().expect("a handle can be doubled"))
        .stderr(output);
    let mut child = command.spawn().expect("a child can be started");
    let mut pressed = false;
    loop {
        if let Some(status) = child.try_wait().expect("only this process waits for the child") {
            std::process::exit(status.code().unwrap_or(1));
        }
        if !pressed && file.exists() {
            pressed = true;
            hearback_platform::testing::press_ctrl_c().expect("this process is in a terminal");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(not(windows))]
fn main() -> ExitCode {
    eprintln!("seat: only for Windows");
    ExitCode::from(2)
}
