//! The system around Wine: there a Windows program can have something done that Windows has no call for, such as a
//! signal, a mount, or another owner.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use fs_err as fs;

use crate::{Ran, World, eventually, is_real_windows, skipped};

/// Names the folder of our fixture programs as they were built for the host.
const FIXTURES: &str = "HEARBACK_TESTS_OUTSIDE";

/// Whether there is an outside. If not, says what it was needed for.
pub fn is_there(what_for: &str) -> bool {
    if is_real_windows() {
        skipped(format_args!("{what_for}, which only the host of Wine can do"));
    }
    !is_real_windows()
}

/// A fixture program as it was built for the host; nothing when it was not, which is said.
///
/// # Panics
///
/// Where there is no outside.
pub fn bin(name: &str) -> Option<String> {
    assert!(!is_real_windows(), "there is nothing around Windows");
    let folder = env::var(FIXTURES).ok();
    if folder.is_none() {
        skipped(format_args!("`{FIXTURES}` is not set: run it through `cargo xtask windows`"));
    }
    folder.map(|folder| format!("{folder}/{name}"))
}

/// Runs a program of the host to its end, at most a minute, where we are.
///
/// # Panics
///
/// If it does not end.
#[track_caller]
pub fn run(program: &str, args: &[&str]) -> Ran {
    start(|_| {}, program, args)
}

/// Does the same in a world, such as for Wine with a program of ours.
///
/// # Panics
///
/// If it does not end.
#[track_caller]
pub fn run_in(world: &World, program: &str, args: &[&str]) -> Ran {
    start(|command| world.settle(command), program, args)
}

#[track_caller]
fn start(settle: impl Fn(&mut Command), program: &str, args: &[&str]) -> Ran {
    let folder = tempfile::tempdir().expect("the temporary folder can be written");
    let at = |name: &str| folder.path().join(name);
    let words: String =
        [program].iter().chain(args).map(|word| format!("'{}' ", word.replace('\'', r"'\''"))).collect();
    // Its code comes last, under its name only once it is whole.
    let (here, there) = (unix(&env::current_dir().expect("a test is somewhere")), unix(folder.path()));
    let script = format!(
        "cd '{here}'\nat='{there}'\n{words} >$at/out 2>$at/err </dev/null\necho $? >$at/part\nmv $at/part $at/code\n"
    );
    fs::write(at("script"), script).unwrap();
    // No process of Wine can wait for a program of the host, nor read its output: it has neither handle nor pipes.
    let mut start = Command::new("start");
    settle(&mut start);
    start.args(["/unix", "/bin/sh", &unix(&at("script"))]).stdin(Stdio::null());
    crate::run(start).ok();
    let code = eventually(&format!("{program} has ended"), || fs::read_to_string(at("code")).ok());
    let text = |name| String::from_utf8_lossy(&fs::read(at(name)).unwrap_or_default()).into_owned();
    Ran { code: code.trim().parse().ok(), stdout: text("out"), stderr: text("err") }
}

/// The processes of the host that have `mark` in their command line, words with one space between them.
///
/// Those of Windows programs are among them, with the words that Windows gave them.
pub fn find(mark: &str) -> Vec<u32> {
    let pids = fs::read_dir(r"Z:\proc").expect("the host has processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let words = fs::read(format!(r"Z:\proc\{pid}\cmdline")).unwrap_or_default();
        let words: Vec<u8> = words.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
        String::from_utf8_lossy(&words).contains(mark)
    })
    .collect()
}

/// Sends a signal to the one process that has `mark` in its command line. The mark is random, or has something random
/// in it, so that no other process is meant.
///
/// # Panics
///
/// If there is not exactly one, or it could not be signalled.
#[track_caller]
pub fn signal(signal: &str, mark: &str) {
    let found = eventually(&format!("a process has `{mark}`"), || {
        let found = find(mark);
        (!found.is_empty()).then_some(found)
    });
    assert_eq!(found.len(), 1, "{mark}: {found:?}");
    run("kill", &[&format!("-{signal}"), &found[0].to_string()]).ok();
}

/// A path as the host has it.
#[track_caller]
pub fn unix(path: &Path) -> String {
    // Most are in here, and asking takes a program of its own.
    static TEMPORARY: OnceLock<(PathBuf, String)> = OnceLock::new();
    let (temporary, known) = TEMPORARY.get_or_init(|| (env::temp_dir(), asked(&env::temp_dir())));
    let (above, below) = match path.strip_prefix(temporary) {
        Ok(below) => (known.trim_end_matches('/'), below),
        Err(_) => match path.strip_prefix(r"Z:\") {
            Ok(below) => ("", below),
            Err(_) => return asked(path),
        },
    };
    let below: Vec<_> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    format!("{above}/{}", below.join("/"))
}

#[track_caller]
fn asked(path: &Path) -> String {
    let mut command = Command::new("winepath");
    command.arg("-u").arg(path);
    crate::run(command).ok()
}
