//! `reader [--after FILE] [--close]`: reads its standard input to the end, and says what it read.
//!
//! Prints each line of up to 100 bytes as `line: TEXT`, and at the end `end: N bytes`. With `--after` it reads when
//! that file exists; with `--close` it closes its input first, says `closed`, and ends when the file exists.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use hearback_tests::eventually;

fn main() {
    let (mut after, mut close) = (None, false);
    let mut args = std::env::args_os().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--after") => after = args.next().map(PathBuf::from),
            Some("--close") => close = true,
            _ => panic!("unknown argument"),
        }
    }
    if close {
        close_input();
        println!("closed");
    }
    if let Some(file) = &after {
        eventually("the file is there", || file.exists().then_some(()));
    }
    if close {
        return;
    }
    let (mut input, mut bytes, mut line) = (BufReader::new(std::io::stdin().lock()), 0, Vec::new());
    loop {
        line.clear();
        // A line that never ends is read in parts.
        let read =
            input.by_ref().take(64 * 1024).read_until(b'\n', &mut line).expect("the input can be read");
        bytes += read;
        match line.strip_suffix(b"\n") {
            _ if read == 0 => break,
            Some(text) if text.len() <= 100 => println!("line: {}", String::from_utf8_lossy(text).trim_end()),
            _ => {}
        }
    }
    println!("end: {bytes} bytes");
}

#[cfg(unix)]
fn close_input() {
    // The null device takes the place of the input, which is closed by that.
    let null = std::fs::File::open("/dev/null").expect("there is a null device");
    nix::unistd::dup2_stdin(&null).expect("the input can be replaced");
}

#[cfg(windows)]
fn close_input() {
    panic!("no safe call closes a standard handle");
}
