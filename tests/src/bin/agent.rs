//! `agent`: stands in for an agent of hearback's table; a test copies it under the name of one.
//!
//! `agent begin GATE FILE PROG ARG…` runs the program to its end, with its output in `FILE`, and then stays until
//! `GATE` exists, as an agent that is open. With any other arguments it is resumed: it appends its working directory,
//! its own path, its arguments and the time in milliseconds since 1970 to the file `resumed` beside itself, one line
//! each time. If an argument holds `missing`, it says that there is no such session, and exits with 42. If there is
//! a file `slow` beside it, it takes so many milliseconds before and after that line.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hearback_tests::witness;

const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [begin, gate, file, program, rest @ ..] = &args[..]
        && begin == "begin"
    {
        let output = fs_err::File::create(file).expect("the file can be made").into_file();
        let ran = Command::new(program).args(rest).stdin(Stdio::null()).stdout(output).status();
        assert!(ran.expect("it can be started").success());
        let deadline = Instant::now() + WAIT_MAX;
        while !Path::new(gate).exists() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        return;
    }
    let me = env::current_exe().expect("it knows itself");
    let here = env::current_dir().expect("it is somewhere");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let slow = fs_err::read_to_string(me.with_file_name("slow")).ok().and_then(|text| text.parse().ok());
    let pause = Duration::from_millis(slow.unwrap_or(0));
    thread::sleep(pause);
    witness(me.with_file_name("resumed"), format_args!("{} {} {args:?} {now}", here.display(), me.display()));
    thread::sleep(pause);
    if args.iter().any(|arg| arg.contains("missing")) {
        eprintln!("Error resuming session: Invalid session identifier \"missing\".");
        process::exit(42);
    }
}
