//! `show-env [NAME…] [--input] [--fds] [--console] [--signals] [--args ARG…]`: prints what it was started with.
//!
//! First `NAME=value` or `NAME unset` for each name, then `cwd=…`; with `--input` how much there was to read; with
//! `--fds` a line `fd N -> target` for each open descriptor (Linux) or whether both outputs are one (Windows); with
//! `--console` (Windows) `console` and the pids of all processes on its console; with `--signals` (Linux) the `SigBlk`
//! and `SigIgn` lines of its status; with `--args` each argument after it as hexadecimal bytes, one a line.
//!
//! The Rust runtime itself ignores SIGPIPE (bit 0x1000 of `SigIgn`) and opens `/dev/null` where 0, 1 or 2 is
//! closed, so neither of these says anything about the process that started it.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut names = Vec::new();
    let (mut input, mut fds, mut console, mut signals) = (false, false, false, false);
    let mut arguments = Vec::new();
    let mut args = env::args_os().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--input") => input = true,
            Some("--fds") => fds = true,
            Some("--console") => console = true,
            Some("--signals") => signals = true,
            Some("--args") => arguments = args.by_ref().collect(),
            _ => names.push(arg),
        }
    }

    let mut out = Vec::new();
    for name in names {
        out.extend_from_slice(name.as_encoded_bytes());
        match env::var_os(&name) {
            Some(value) => {
                out.push(b'=');
                out.extend_from_slice(value.as_encoded_bytes());
            }
            None => out.extend_from_slice(b" unset"),
        }
        out.push(b'\n');
    }
    out.extend_from_slice(b"cwd=");
    out.extend_from_slice(env::current_dir()?.as_os_str().as_encoded_bytes());
    out.push(b'\n');
    if input {
        writeln!(out, "input: {} bytes", io::copy(&mut io::stdin(), &mut io::sink())?)?;
    }
    if console {
        on_the_console(&mut out)?;
    }
    if fds {
        descriptors(&mut out)?;
    }
    if signals {
        signal_state(&mut out)?;
    }
    for argument in arguments {
        for byte in argument.as_encoded_bytes() {
            write!(out, "{byte:02x}")?;
        }
        out.push(b'\n');
    }
    io::stdout().write_all(&out)
}

#[cfg(target_os = "linux")]
fn descriptors(out: &mut Vec<u8>) -> io::Result<()> {
    // Collected first, so that the descriptor used for listing is closed again, and has no target, when
    // asked.
    let mut numbers: Vec<u32> = fs_err::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    for number in numbers {
        if let Ok(target) = fs_err::read_link(format!("/proc/self/fd/{number}")) {
            writeln!(out, "fd {number} -> {}", target.display())?;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn signal_state(out: &mut Vec<u8>) -> io::Result<()> {
    let status = fs_err::read_to_string("/proc/self/status")?;
    for line in status.lines().filter(|line| line.starts_with("SigBlk:") || line.starts_with("SigIgn:")) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(windows)]
fn descriptors(out: &mut Vec<u8>) -> io::Result<()> {
    use std::os::windows::io::AsRawHandle;
    let same = io::stdout().as_raw_handle() == io::stderr().as_raw_handle();
    writeln!(out, "stderr is {}stdout", if same { "" } else { "not " })
}

#[cfg(windows)]
fn on_the_console(out: &mut Vec<u8>) -> io::Result<()> {
    let pids = hearback_platform::testing::on_my_console().into_iter().map(|pid| format!(" {pid}"));
    writeln!(out, "console{}", pids.collect::<String>())
}

#[cfg(not(any(target_os = "linux", windows)))]
fn descriptors(_out: &mut Vec<u8>) -> io::Result<()> {
    unknown_here()
}

#[cfg(not(windows))]
fn on_the_console(_out: &mut Vec<u8>) -> io::Result<()> {
    unknown_here()
}

#[cfg(not(target_os = "linux"))]
fn signal_state(_out: &mut Vec<u8>) -> io::Result<()> {
    unknown_here()
}

fn unknown_here() -> ! {
    eprintln!("show-env: this system does not tell");
    std::process::exit(2)
}
