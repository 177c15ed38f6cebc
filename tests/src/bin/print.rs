//! `print --bytes N [--line-length L] [--pause-ms M] [--stderr]`: prints exactly `N` bytes of numbered lines.
//! `print --hex BYTES` prints those and nothing else.
//!
//! A line has `L` bytes with its newline (default 80): a number of ten digits that counts from 0, or the last
//! digits of it if `L` has no room, then a space and filling. The last line is cut where `N` ends. Without a
//! pause it writes 64 KiB at a time (on Windows 4 KiB), with one it writes line by line and sleeps after each.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::io::{self, Write};
use std::process;
use std::thread;
use std::time::Duration;

const DIGITS: usize = 10;
/// Wine gives up on a process whose large write to a pipe is interrupted, and calls that a success.
const BLOCK: usize = if cfg!(windows) { 4 * 1024 } else { 64 * 1024 };

fn main() {
    let mut bytes = None;
    let (mut line_length, mut pause_ms, mut to_stderr) = (80, 0, false);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().and_then(|value| value.parse::<u64>().ok());
            value.unwrap_or_else(|| usage("an option lacks its number"))
        };
        match arg.as_str() {
            "--bytes" => bytes = Some(number()),
            "--line-length" => line_length = number(),
            "--pause-ms" => pause_ms = number(),
            "--stderr" => to_stderr = true,
            "--hex" => return raw(&args.next().unwrap_or_default()),
            _ => usage("an argument is not known"),
        }
    }
    let Some(bytes) = bytes else { usage("--bytes is needed") };
    let line_length = usize::try_from(line_length).ok().filter(|length| *length > 0);
    let Some(line_length) = line_length else { usage("a line has at least its newline") };

    let pause = Duration::from_millis(pause_ms);
    let printed = if to_stderr {
        print(io::stderr().lock(), bytes, line_length, pause)
    } else {
        // Its line buffer costs nothing here: up to the last newline a block is written as it is.
        print(io::stdout().lock(), bytes, line_length, pause)
    };
    if printed.is_err() {
        // The reader is gone, and would not read an error either.
        process::exit(1);
    }
}

/// Past the line buffer, which on Windows takes nothing but text for a terminal.
fn raw(hex: &str) {
    let bytes =
        (0..hex.len() / 2).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).expect("two digits"));
    io::stdout()
        .write_all(&bytes.collect::<Vec<_>>())
        .and_then(|()| io::stdout().flush())
        .expect("the output is read");
}

fn print(mut out: impl Write, bytes: u64, line_length: usize, pause: Duration) -> io::Result<()> {
    let mut line = Line::new(line_length);
    let mut left = bytes;
    let mut block = Vec::with_capacity(BLOCK + line_length);
    while left > 0 {
        block.clear();
        loop {
            block.extend_from_slice(&line.bytes);
            line.count();
            if !pause.is_zero() || block.len() >= BLOCK {
                break;
            }
        }
        let cut = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        out.write_all(&block[..cut])?;
        left -= cut as u64;
        if !pause.is_zero() {
            out.flush()?;
            thread::sleep(pause);
        }
    }
    out.flush()
}

/// A numbered line that is counted up in place, which is faster than formatting each anew.
struct Line {
    bytes: Vec<u8>,
    digits: usize,
}

impl Line {
    fn new(length: usize) -> Line {
        let digits = DIGITS.min(length - 1);
        let mut bytes = vec![b'x'; length];
        bytes[..digits].fill(b'0');
        if length > digits + 1 {
            bytes[digits] = b' ';
        }
        bytes[length - 1] = b'\n';
        Line { bytes, digits }
    }

    fn count(&mut self) {
        for digit in self.bytes[..self.digits].iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }
}

fn usage(problem: &str) -> ! {
    eprintln!("print: {problem}");
    process::exit(2)
}
