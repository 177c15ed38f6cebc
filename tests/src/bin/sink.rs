//! `sink --witness W [--save FOLDER] [--told FILE] [--alone FOLDER] [ANSWER…]`: takes deliveries, and answers as
//! instructed.
//!
//! First of all it appends `start <delivery> <attempt> <pid> <nanoseconds> <session>` to the witness, and
//! `after-receipt <delivery>` if that delivery had been closed before, and `agent <id>` if the variable of an agent
//! names a session. With `--alone` it holds a lock of its session in that folder until it ends; if another process
//! holds it, the witness gets `overlap <delivery> <session>`. Then it reads its input, saves it in
//! the folder as `<delivery>.<attempt>.<pid>`, and appends `end <delivery> <attempt> <pid> <nanoseconds>`
//! before it ends. If one turn tells of several follow-ups, it does each of this for each of them.
//!
//! The n-th answer is for the n-th attempt, and the last one for all that follow; by default it is `0`. What
//! is in the file that `--told` names, if there is one, is the answer instead:
//!
//! - `CODE` or `CODE:TEXT`: complains with the text, and exits with the code.
//! - `deaf:CODE`: does not read its input.
//! - `hang`: never ends by itself, nor when it is terminated (it gives up after 120 s).
//! - `crash`: aborts.
//! - `flood:BYTES:CODE`: prints so much on both streams first.
//! - `fork:CODE`: leaves a process behind that keeps its streams open; the witness gets `left <pid>`.
//! - `until:FILE:CODE`: waits for the file.
//! - `pause:MILLIS:CODE`: takes so long.
//! - `launch:HEARBACK|PROG|FILE:CODE`: launches `PROG FILE` first; the witness gets `launched <id>`.
//! - `launch-hang:HEARBACK|PROG|FILE`: the same, and then hangs.
//! - `restart`: asks for a restart of the monitor, and then waits to be interrupted; the witness gets `asked <answer>`.
//! - `restart-finish:MILLIS:CODE`: asks for a restart, goes on for so long, and ends.
//! - `send:TEXT:CODE`: sends the text to its own session first; the witness gets `sent <answer>`.
//! - `kill-host`: kills the monitor, and then waits to end with it.
//! - `betray`: kills the supervisors of what it tells, of which one sent it, and then hangs.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hearback_tests::witness;

const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);
const GAVE_UP: i32 = 99;

fn main() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let (mut witness_file, mut save, mut instructed, mut alone) = (None, None, None, None);
    let mut answers = Vec::new();
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || PathBuf::from(args.next().unwrap_or_else(|| usage("an option lacks its value")));
        match arg.as_str() {
            "--witness" => witness_file = Some(value()),
            "--save" => save = Some(value()),
            "--told" => instructed = Some(value()),
            "--alone" => alone = Some(value()),
            "--linger" => linger(),
            _ => answers.push(arg),
        }
    }
    let Some(witness_file) = witness_file else { usage("--witness is needed") };
    let of = |name: &str| env::var(name).unwrap_or_else(|_| "-".into());
    let (delivery, attempt, session) =
        (of("HEARBACK_DELIVERY"), of("HEARBACK_ATTEMPT"), of("HEARBACK_SESSION"));
    // Looked at first of all, together: a receipt that comes later is no fault.
    let told = deliveries(&delivery, &attempt);
    let closed: Vec<_> = told.iter().filter(|(delivery, _)| is_closed(delivery)).collect();
    let us: Vec<_> =
        told.iter().map(|(delivery, attempt)| format!("{delivery} {attempt} {}", process::id())).collect();
    for us in &us {
        witness(&witness_file, format_args!("start {us} {now} {session}"));
    }
    if let Ok(agent) = env::var("CLAUDE_CODE_SESSION_ID") {
        witness(&witness_file, format_args!("agent {agent}"));
    }
    for (delivery, _) in closed {
        witness(&witness_file, format_args!("after-receipt {delivery}"));
    }
    // Held until this process ends, whatever ends it.
    let _alone = alone.map(|folder| {
        let lock = fs_err::File::create(folder.join(&session)).expect("the lock can be made");
        if lock.file().try_lock().is_err() {
            witness(&witness_file, format_args!("overlap {delivery} {session}"));
        }
        lock
    });
    let told =
        instructed.and_then(|file| fs_err::read_to_string(file).ok()).map(|told| told.trim().to_owned());
    let n = attempt.parse::<usize>().unwrap_or(1).saturating_sub(1);
    let planned = answers.get(n).or(answers.last()).cloned();
    let answer = told.or(planned).unwrap_or_else(|| "0".into());
    let (kind, rest) = answer.split_once(':').unwrap_or((&answer, ""));
    if kind != "deaf" {
        let mut input = Vec::new();
        let _ = io::stdin().read_to_end(&mut input);
        for us in us.iter().filter(|_| save.is_some()) {
            let file = save.as_ref().map(|folder| folder.join(us.replace(' ', "."))).unwrap_or_default();
            fs_err::write(file, &input).expect("it can be saved");
        }
    }
    let code = act(kind, rest, &witness_file, &delivery);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    for us in &us {
        witness(&witness_file, format_args!("end {us} {now}"));
    }
    process::exit(code)
}

/// What this hand-over tells, with the number of the attempt at each.
fn deliveries(delivery: &str, attempt: &str) -> Vec<(String, String)> {
    let all = env::var("HEARBACK_DELIVERIES").unwrap_or_default();
    if !all.contains(' ') {
        return vec![(delivery.to_owned(), attempt.to_owned())];
    }
    let attempts = |delivery: &str| {
        let leases =
            folders(delivery).into_iter().filter_map(|folder| fs_err::read_dir(folder).ok()).flatten();
        let names = leases.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_lease =
            |name: &String| name.strip_prefix("lease.").is_some_and(|number| number.parse::<u32>().is_ok());
        names.filter(is_lease).count()
    };
    all.split(' ').map(|delivery| (delivery.to_owned(), attempts(delivery).to_string())).collect()
}

fn act(kind: &str, rest: &str, witness_file: &Path, delivery: &str) -> i32 {
    let number = |text: &str| text.parse::<i32>().unwrap_or_else(|_| usage("a code is a number"));
    let split = |text: &str| {
        let (one, two) = text.rsplit_once(':').unwrap_or_else(|| usage("an answer lacks a part"));
        (one.to_owned(), two.to_owned())
    };
    match kind {
        "deaf" => number(rest),
        "hang" => hang(),
        "crash" => process::abort(),
        "flood" => {
            let (bytes, code) = split(rest);
            flood(bytes.parse().unwrap_or_else(|_| usage("a flood is a number of bytes")));
            number(&code)
        }
        "fork" => {
            let left = Command::new(env::current_exe().expect("it knows itself")).arg("--linger").spawn();
            witness(witness_file, format_args!("left {}", left.expect("it can be started").id()));
            number(rest)
        }
        "until" => {
            let (file, code) = split(rest);
            wait_for(Path::new(&file));
            number(&code)
        }
        "pause" => {
            let (millis, code) = split(rest);
            thread::sleep(Duration::from_millis(number(&millis).unsigned_abs().into()));
            number(&code)
        }
        "launch" => {
            let (rest, code) = split(rest);
            launch(&rest, witness_file);
            number(&code)
        }
        "launch-hang" => {
            launch(rest, witness_file);
            hang()
        }
        "restart" => {
            restart(witness_file);
            linger()
        }
        "restart-finish" => {
            let (millis, code) = split(rest);
            restart(witness_file);
            thread::sleep(Duration::from_millis(
                millis.parse().unwrap_or_else(|_| usage("a time is a number")),
            ));
            number(&code)
        }
        "send" => {
            let (text, code) = split(rest);
            let (out, err) = hearback(&["send", &text]);
            witness(witness_file, format_args!("sent {out}{}", err.replace('\n', " ")));
            number(&code)
        }
        "kill-host" => {
            let (status, _) = hearback(&["monitor", "status", "--json"]);
            let status: serde_json::Value = serde_json::from_str(&status).expect("it is JSON");
            let pid = status["pid"].as_u64().and_then(|pid| pid.try_into().ok());
            hearback_tests::kill_hard(pid.expect("a monitor runs"));
            linger()
        }
        "betray" => betray(&deliveries(delivery, "")),
        code => {
            if !rest.is_empty() {
                eprintln!("{rest}");
            }
            number(code)
        }
    }
}

/// Whether the receipt of a delivery is published.
fn is_closed(delivery: &str) -> bool {
    folders(delivery).iter().any(|folder| folder.join("receipt.json").exists())
}

/// Where the job of a delivery may be.
fn folders(delivery: &str) -> Vec<PathBuf> {
    let Some(home) = env::var_os("HEARBACK_HOME").map(PathBuf::from) else { return Vec::new() };
    let id = delivery.strip_suffix(".end").unwrap_or(delivery);
    let past = home.join("history").join(id.get(..5).unwrap_or(id)).join(id);
    vec![home.join("jobs").join(id), past]
}

fn launch(what: &str, witness_file: &Path) {
    let mut parts = what.splitn(3, '|');
    let mut next = || parts.next().unwrap_or_else(|| usage("a launch needs three parts"));
    let (hearback, program, file) = (next(), next(), next());
    let launched = Command::new(hearback).args(["launch", "--", program, file]).stdin(Stdio::null()).output();
    let launched = launched.expect("hearback can be started");
    let id = String::from_utf8_lossy(&launched.stdout).trim().to_owned();
    // Of a launch that succeeds, what it says about the job is no part of the id.
    let refused = if launched.status.success() {
        String::new()
    } else {
        String::from_utf8_lossy(&launched.stderr).into()
    };
    witness(witness_file, format_args!("launched {id}{}", refused.trim()));
}

/// Runs hearback; returns what it printed.
fn hearback(args: &[&str]) -> (String, String) {
    let program = env::current_exe().expect("it knows itself");
    let program = program.with_file_name(format!("hearback{}", env::consts::EXE_SUFFIX));
    let ran = Command::new(program).args(args).stdin(Stdio::null()).output();
    let ran = ran.expect("hearback can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    (text(&ran.stdout), text(&ran.stderr))
}

fn restart(witness_file: &Path) {
    let (asked, _) = hearback(&["monitor", "restart", "--json"]);
    witness(witness_file, format_args!("asked {asked}"));
}

fn flood(mut bytes: u64) {
    // Wine ends a program whose large write it had to interrupt.
    let block = vec![b'x'; if cfg!(windows) { 4096 } else { 64 * 1024 }];
    while bytes > 0 {
        let piece = &block[..usize::try_from(bytes).unwrap_or(usize::MAX).min(block.len())];
        if io::stdout().write_all(piece).and_then(|()| io::stderr().write_all(piece)).is_err() {
            return;
        }
        bytes -= piece.len() as u64;
    }
}

fn wait_for(file: &Path) {
    let deadline = Instant::now() + WAIT_MAX;
    while !file.exists() {
        if Instant::now() >= deadline {
            process::exit(GAVE_UP);
        }
        thread::sleep(POLL);
    }
}

fn linger() -> ! {
    thread::sleep(WAIT_MAX);
    process::exit(GAVE_UP)
}

fn hang() -> ! {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
        let mut asked = SigSet::empty();
        asked.add(Signal::SIGTERM);
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&asked), None);
    }
    linger()
}

fn betray(deliveries: &[(String, String)]) -> ! {
    for (delivery, _) in deliveries {
        let begin = folders(delivery).iter().find_map(|folder| fs_err::read(folder.join("begin.json")).ok());
        let begin: serde_json::Value =
            serde_json::from_slice(&begin.expect("the job has begun")).expect("it is a fact");
        let pid = begin["by"]["supervisor"]["pid"].as_u64().and_then(|pid| pid.try_into().ok());
        // On Windows we end with it.
        hearback_tests::kill_hard(pid.expect("a process supervises it"));
    }
    linger()
}

fn usage(problem: &str) -> ! {
    eprintln!("sink: {problem}");
    process::exit(2)
}
