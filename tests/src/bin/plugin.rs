//! A sink plugin that does what the file beside it says (its own path with `.steps` added), one step a line.
//!
//! `say TEXT` and `complain TEXT` print a line, `read` reads one, `drain` all, `exit CODE` ends. `answer HOW` answers
//! each line of input, `answer-once HOW` the first: `rightly`, `strictly` (by ending where there is nothing to answer),
//! `always` as delivered, `failing` (every delivery fails), or `singing`.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::io::{self, BufRead, Write};
use std::process;

fn main() {
    let mut beside = env::current_exe().expect("a program knows its own path").into_os_string();
    beside.push(".steps");
    let steps = fs_err::read_to_string(beside).expect("there are steps");
    // What it is sent may be no text.
    let lines = io::stdin().lock().split(b'\n').map_while(Result::ok);
    let mut input = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    for step in steps.lines() {
        let (what, rest) = step.split_once(' ').unwrap_or((step, ""));
        match what {
            "say" => say(rest),
            "complain" => eprintln!("{rest}"),
            "read" => drop(input.next()),
            "drain" => input.by_ref().for_each(drop),
            "exit" => process::exit(rest.parse().expect("a code is a number")),
            "answer" => input.by_ref().for_each(|line| answer(rest, &line)),
            "answer-once" => input.by_ref().take(1).for_each(|line| answer(rest, &line)),
            _ => panic!("unknown step `{step}`"),
        }
    }
}

fn answer(how: &str, line: &str) {
    let is_delivery = line.contains("\"kind\":\"deliver\"") && line.contains("\"version\":1");
    match how {
        "singing" => say(r#"{"kind":"sung"}"#),
        "always" => say(r#"{"kind":"delivered"}"#),
        _ if is_delivery && how != "failing" => say(r#"{"kind":"delivered"}"#),
        "strictly" => process::exit(1),
        _ => say(r#"{"kind":"failed","reason":"unknown"}"#),
    }
}

/// Prints a line at once: the caller waits for it.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    // A caller that has closed the pipe needs no answer, and no error either.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
