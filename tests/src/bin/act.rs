//! `act STEP…`: does one thing after the other, as a shell script would, on systems that have no such shell.
//!
//! `spawn PROG ARG… ;` starts a program that shares the output, and goes on. `run FILE PROG ARG… ;` runs one to its
//! end, with its output in `FILE`; `unheard PROG ARG… ;` does so with everything that it says going nowhere. `detach
//! PROG ARG… ;` is `spawn` into a session of its own or, on Windows, without a console. `until N FILE` waits until
//! `FILE` has `N` lines, `hold FILE` until it exists. `print TEXT` and `exit CODE` do what they say; `witness FILE`
//! appends `start <pid>`; `answer TEXT` writes to the file that `HEARBACK_ANSWER` names; `env NAME=VALUE` sets a
//! variable for what is started later. `copy` prints what there is to read, to its end. `years FILE` prints again and
//! again how many years of 366 days the wall clock has seen since 1970, until `FILE` exists. `close` gives up the
//! output, `rest` does nothing at all. Waiting ends after 120 s with code 99.
#![allow(clippy::disallowed_methods, clippy::zombie_processes, reason = "fixtures are ordinary programs")]

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);
const GAVE_UP: i32 = 99;

fn main() {
    let mut variables = Vec::new();
    let mut args = env::args_os().skip(1);
    while let Some(step) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage("a step lacks a value"));
        match step.to_str() {
            Some("print") => println!("{}", value().display()),
            Some("exit") => process::exit(number(&value()) as i32),
            Some("witness") => hearback_tests::witness(value(), format_args!("start {}", process::id())),
            Some("answer") => {
                let file = env::var_os("HEARBACK_ANSWER").expect("there is a place for the answer");
                fs_err::write(file, value().as_encoded_bytes()).expect("it can be written");
            }
            Some("env") => variables.push(value()),
            Some("copy") => {
                std::io::copy(&mut std::io::stdin(), &mut std::io::stdout())
                    .expect("all of it can be copied");
            }
            Some("years") => {
                let file = value();
                wait(|| {
                    println!("{}", years());
                    Path::new(&file).exists()
                });
            }
            Some("close") => close_output(),
            Some("rest") => {
                thread::park_timeout(WAIT_MAX);
                process::exit(GAVE_UP);
            }
            Some("hold") => {
                let file = value();
                wait(|| Path::new(&file).exists());
            }
            Some("until") => {
                let (lines, file) = (number(&value()), value());
                wait(|| hearback_tests::lines(&file).len() >= lines as usize);
            }
            Some("spawn") => drop(command(&mut args, &variables).spawn().expect("a child can be started")),
            Some("detach") => drop(detached(command(&mut args, &variables)).spawn().expect("likewise")),
            Some("run") => {
                let file = fs_err::File::create(value()).expect("a file can be made").into_parts().0;
                let status = command(&mut args, &variables).stdout(Stdio::from(file)).status();
                assert!(status.expect("a child can be started").success());
            }
            Some("unheard") => {
                let mut command = command(&mut args, &variables);
                let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
                assert!(status.expect("a child can be started").success());
            }
            #[cfg(unix)]
            Some("setsid") => {
                nix::unistd::setsid().expect("a new child leads no group");
                let error = std::os::unix::process::CommandExt::exec(&mut command(&mut args, &variables));
                panic!("{error}");
            }
            _ => usage("a step is not known"),
        }
    }
}

fn command(args: &mut impl Iterator<Item = OsString>, variables: &[OsString]) -> Command {
    let mut words = args.take_while(|word| word != ";");
    let mut command = Command::new(words.next().unwrap_or_else(|| usage("a program is missing")));
    command.args(words);
    for variable in variables.iter().filter_map(|variable| variable.to_str()?.split_once('=')) {
        command.env(variable.0, variable.1);
    }
    command
}

#[cfg(unix)]
fn detached(command: Command) -> Command {
    // A process puts itself into a session; not every Unix has a program for that.
    let mut within = Command::new(env::current_exe().expect("a program knows its own path"));
    within.arg("setsid").arg(command.get_program()).args(command.get_args());
    within.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    within
}

#[cfg(windows)]
fn detached(mut command: Command) -> Command {
    std::os::windows::process::CommandExt::creation_flags(&mut command, hearback_tests::DETACHED_PROCESS);
    command
}

/// A wall clock that is moved by 366 days has seen one more, or one less.
fn years() -> u64 {
    const YEAR: u64 = 366 * 24 * 60 * 60;
    std::time::UNIX_EPOCH.elapsed().expect("it is later than 1970").as_secs() / YEAR
}

#[cfg(unix)]
fn close_output() {
    for stream in [1, 2] {
        nix::unistd::close(stream).expect("it was open");
    }
}

#[cfg(windows)]
fn close_output() {
    hearback_platform::testing::close_my_output();
}

fn wait(done: impl Fn() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !done() {
        if Instant::now() >= deadline {
            process::exit(GAVE_UP);
        }
        thread::sleep(POLL);
    }
}

fn number(text: &OsStr) -> u32 {
    text.to_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| usage("a number is wanted"))
}

fn usage(problem: &str) -> ! {
    eprintln!("act: {problem}");
    process::exit(2)
}
