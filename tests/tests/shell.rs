//! Shell text: whatever is in it, the code and the output are the shell's own, and the record stays whole.
// Not on Windows: bash and sh; `windows.rs` has its own shells.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use hearback_tests::{World, run};
use serde_json::{Value, json};

/// Texts in which a careless wrapper would lose the code, the output or itself. They use nothing but what every
/// shell has built in.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "exit 7",
        "echo before\nexit 7\necho after",
        "exit 300",
        "false",
        "echo (",
        "echo )",
        "if true; then",
        "echo \"unbalanced",
        "echo 'unbalanced",
        "echo `unbalanced",
        "echo $(echo unbalanced",
        "echo trailing\\",
        "echo trailing \\\n",
        "\\",
        r#"printf '%s\n' "a 'b' \"c\" \\" 'd "e" \f' \'g\'"#,
        "printf '%s\\n' 'grüße 日本 🦀 \u{202e}'",
        "printf '%s\\n' '100% %PATH% %d %n' \"%s\"; printf '%%\\n'",
        "printf '%s\\n' \"$0\" \"$#\" \"$*\"",
        "echo to stdout; echo to stderr >&2; exit 9",
        "-n nothing of that name",
        "--version",
        "- x",
        "# nothing but a comment",
        "",
        "  \n\t\n",
        "set -e\nfalse\necho not reached",
        "set -u\necho \"$no_such_variable_here\"",
        "return 5",
        "trap 'echo bye' EXIT\nexit 4",
        "exec >&-\necho lost",
        "(exit 6)",
        "exec no-such-program-here",
        "no-such-program-here",
        "read line <<END\nhello\n",
        "echo one\r\nexit 3\r\n",
        "kill -9 $$",
        "kill -TERM $$",
        "echo \u{1b}[31mred\u{7f}",
        "{ echo in the background; } &\nwait\nexit 8",
    ]
    .map(str::to_owned)
    .to_vec();
    // More than an argument can hold: in many lines, in one line, and with the end that counts after a long nothing.
    texts.push(format!("{}exit 11\n", "echo 0123456789abcdef\n".repeat(200 * 1024 / 22)));
    texts.push(format!("printf '%s' '{}'; exit 12", "x".repeat(200 * 1024)));
    texts.push(format!("#{}\nexit 13", " ".repeat(200 * 1024)));
    texts
}

/// A folder with these programs in it and no other, to be used as the whole path.
fn path_with(world: &World, programs: &[(&str, &Path)]) -> PathBuf {
    let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    let folder = world.scratch(format!("path-{}", names.join("-")));
    fs_err::create_dir(&folder).unwrap();
    for (name, program) in programs {
        symlink(program, folder.join(name)).unwrap();
    }
    folder
}

/// Where the system has a shell; none if it has no such shell.
fn shell(name: &str) -> Option<PathBuf> {
    ["/bin", "/usr/bin", "/usr/local/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists())
}

/// Launches shell text, as an argument if it fits into one, and returns the job's id.
fn launch(world: &World, path: &Path, text: &str, as_argument: bool) -> String {
    let mut command = world.command(["launch", "--shell", if as_argument { text } else { "-" }]);
    command.env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let typed = if as_argument { String::new() } else { text.to_owned() };
    // Beside the reading, because a pipe holds less than a long text has.
    let writer = thread::spawn(move || stdin.write_all(typed.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{text:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What a shell makes of a script when nobody is between: how it ends, and what it prints to both streams.
fn directly(world: &World, shell: &Path, path: &Path, text: &str) -> (Value, Vec<u8>) {
    let (script, log) = (world.scratch("script"), world.scratch("log"));
    fs_err::write(&script, text).unwrap();
    let stream = fs_err::OpenOptions::new().append(true).create(true).open(&log).unwrap();
    let stream = || Stdio::from(stream.file().try_clone().unwrap());
    let mut command = Command::new(shell);
    world.settle(&mut command);
    command.arg(&script).env("PATH", path).stdout(stream()).stderr(stream());
    let status = command.status().unwrap();
    let printed = fs_err::read(&log).unwrap();
    fs_err::remove_file(&log).unwrap();
    let outcome = match status.code() {
        Some(code) => json!({"kind": "exited", "code": code}),
        None => {
            json!({"kind": "signaled", "signal": status.signal().unwrap(), "core": status.core_dumped()})
        }
    };
    (outcome, unnamed(printed, &script))
}

/// Shells name the script in their complaints, and it is elsewhere each time.
fn unnamed(printed: Vec<u8>, script: &Path) -> Vec<u8> {
    let text = String::from_utf8(printed).unwrap();
    text.replace(script.to_str().unwrap(), "SCRIPT").into_bytes()
}

#[track_caller]
fn is_as_if_run_directly(world: &World, shell: &Path, path: &Path, text: &str, as_argument: bool) {
    let shown: String = text.chars().take(60).collect();
    let (outcome, expected) = directly(world, shell, path, text);
    let id = launch(world, path, text, as_argument);
    let waited = world.run(["wait", &id]);
    let job = world.show(&id);
    assert_eq!(job["outcome"], outcome, "{shown:?}");
    let code = outcome["code"].as_i64().unwrap_or_else(|| 128 + outcome["signal"].as_i64().unwrap());
    assert_eq!(waited.code.map(i64::from), Some(code), "{shown:?}");

    let logs = world.command(["logs", &id]).output().unwrap();
    let script = world.home().join("jobs").join(&id).join("script");
    let printed = unnamed(logs.stdout, &script);
    assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(&expected), "{shown:?}");

    assert_eq!(job["command"], json!({ "shell": text }), "{shown:?}");
    assert!((job.get("notes"), job.get("survivors")) == (None, None), "{shown:?}: {job}");
    assert_eq!(job["output"]["bytes"], logs_size(world, &id), "{shown:?}");
    let end: Value =
        serde_json::from_slice(&fs_err::read(world.job_dir(&id).join("end.json")).unwrap()).unwrap();
    assert_eq!(end["outcome"], outcome, "{shown:?}");
}

fn logs_size(world: &World, id: &str) -> u64 {
    fs_err::metadata(world.job_dir(id).join("output.log")).unwrap().len()
}

/// Every text, as an argument where it fits and from standard input as well.
fn all_texts(world: &World, shell: &Path, path: &Path) {
    for text in texts() {
        // The longest argument has 128 KiB, and `-` stands for standard input.
        if text.len() < 128 * 1024 {
            is_as_if_run_directly(world, shell, path, &text, true);
        }
    }
    for text in texts().iter().rev().take(6) {
        is_as_if_run_directly(world, shell, path, text, false);
    }
}

#[test]
fn scenario_61_text_for_sh_runs_as_the_shell_itself_would_run_it() {
    let world = World::new();
    let sh = shell("sh").expect("every Unix has a shell");
    let path = path_with(&world, &[("sh", &sh)]);
    all_texts(&world, &path.join("sh"), &path);
}

#[test]
fn scenario_61_text_for_bash_runs_as_the_shell_itself_would_run_it() {
    let world = World::new();
    let Some(bash) = shell("bash") else {
        hearback_tests::skipped("there is no bash here");
        return;
    };
    let path = path_with(&world, &[("bash", &bash), ("sh", &shell("sh").unwrap())]);
    all_texts(&world, &path.join("bash"), &path);
    let id = launch(&world, &path, "echo \"${BASH_VERSION:+bash}\"", true);
    world.run(["wait", &id]).ok();
    assert_eq!(world.run(["logs", &id]).ok(), "bash", "it is preferred to sh");
}

#[test]
fn text_with_a_null_byte_runs_as_the_shell_itself_would_run_it() {
    let world = World::new();
    let sh = shell("sh").expect("every Unix has a shell");
    let path = path_with(&world, &[("sh", &sh)]);
    for text in ["echo one\nexit 3\n\0", "exit 4 # \0"] {
        is_as_if_run_directly(&world, &path.join("sh"), &path, text, false);
    }
}

#[test]
fn a_shell_sees_neither_our_standard_input_nor_more_arguments() {
    let world = World::new();
    let sh = shell("sh").unwrap();
    let path = path_with(&world, &[("sh", &sh)]);
    let id = launch(&world, &path, "read line || echo \"nothing to read, $# arguments\"", false);
    world.run(["wait", &id]).ok();
    assert_eq!(world.run(["logs", &id]).ok(), "nothing to read, 0 arguments");
}

#[test]
fn text_that_opens_its_streams_again_loses_nothing() {
    let world = World::new();
    // Whoever opens `/dev/stderr` opens what is behind it: a file would be cut off and written over.
    let text = "echo one; echo two >/dev/stderr; echo three | tee /dev/stderr; echo four >/dev/stdout; echo five >&2";
    let expected = "one\ntwo\nthree\nthree\nfour\nfive";
    let tee = shell("tee").expect("every system has it");
    for name in ["sh", "bash"] {
        let Some(shell) = shell(name) else { continue };
        let path = path_with(&world, &[(name, &shell), ("tee", &tee)]);
        let id = launch(&world, &path, text, false);
        world.run(["wait", &id]).ok();
        assert_eq!(world.run(["logs", &id]).ok(), expected, "{}", shell.display());
        assert_eq!(world.show(&id)["output"]["bytes"], expected.len() + 1);
    }
}

#[test]
fn without_any_shell_the_text_cannot_be_started() {
    let world = World::new();
    let empty = path_with(&world, &[]);
    let mut command = world.command(["launch", "--shell", "exit 0"]);
    command.env("PATH", &empty);
    let ran = run(command);
    assert_eq!(ran.code, Some(127), "{ran:?}");
    assert!(ran.stderr.contains("neither `bash` nor `sh` was found on the PATH"), "{ran:?}");
    let job = world.show(ran.stdout.trim());
    assert_eq!(job["outcome"]["kind"], "failed_to_start");
    assert_eq!(job["outcome"]["error"]["kind"], "not_found");
    assert_eq!(job["follow_up"]["state"], "consumed");
}
