//! Shell text: whatever is in it, the code and the output are the shell's own, and the record stays whole.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use hearback_tests::{Ran, World, run, scaled, skipped};
use serde_json::{Value, json};

/// Texts in which a careless wrapper would lose the code, the output or itself. They use nothing but what every
/// shell of Unix has built in.
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

/// The like for `cmd`, the most telling first.
fn texts_for_cmd() -> Vec<String> {
    let mut texts: Vec<String> = [
        "echo before\nexit 7\necho after",
        "goto end\necho not reached\n:end\necho here\nexit 6",
        "echo a \"b c\" (d)\r\necho to stderr 1>&2\r\nexit /b 9",
        "if (",
        "echo \"unbalanced",
        "echo trailing^",
        "no-such-program-here",
        "exit 70000",
        "call :f one\necho %X%\nexit 8\n:f\nset X=%1 %%\nexit /b 2",
        "exit /b 7",
        "exit -1",
        ")",
        "%",
        "^",
        "echo [%*] [%1] %OS% 100%",
        "exit 1 & &",
        "echo )",
        "echo (",
        "rem nothing but a comment",
        "goto nowhere\nexit 5",
        "no-such-program-here\nexit 3",
        "cmd /d /c exit 6",
        "set X=1\nif \"%X%\"==\"1\" exit 4\nexit 5",
        "setlocal enabledelayedexpansion\nset X=5\necho !X!\nexit !X!",
        "for %%i in (a b) do echo %%i",
        "--version",
        "- x",
        "echo off\necho on",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.truncate(scaled(texts.len(), 8));
    texts.push(format!("rem {}\nexit 13", " ".repeat(6 * 1024)));
    // More than an argument can hold.
    texts.push(format!("{}exit 11\n", "echo 0123456789abcdef\n".repeat(40 * 1024 / 22)));
    texts
}

/// A shell that this system has.
struct Shell {
    /// How it is asked for; nothing where no other would be found.
    chosen: Option<&'static str>,
    program: PathBuf,
    /// All of the path that there is for it; nothing where it is the usual.
    path: Option<PathBuf>,
}

impl Shell {
    /// The one that every system has: `sh`, or `cmd`.
    fn plain(world: &World) -> Shell {
        if cfg!(windows) {
            let program = std::env::var_os("ComSpec").expect("every Windows has a shell").into();
            return Shell { chosen: Some("cmd"), program, path: None };
        }
        let sh = found("sh").expect("every Unix has a shell");
        let path = path_with(world, &[("sh", &sh)]);
        Shell { chosen: None, program: path.join("sh"), path: Some(path) }
    }

    /// Where there is one; on Windows it comes with Git.
    fn bash(world: &World) -> Option<Shell> {
        let bash = found("bash");
        if bash.is_none() {
            skipped("there is no bash here");
        }
        let bash = bash?;
        if cfg!(windows) {
            return Some(Shell { chosen: Some("bash"), program: bash, path: None });
        }
        let path = path_with(world, &[("bash", &bash), ("sh", &found("sh").unwrap())]);
        Some(Shell { chosen: None, program: path.join("bash"), path: Some(path) })
    }

    fn is_cmd(&self) -> bool {
        self.chosen == Some("cmd")
    }

    /// A file with this text, under the name that it takes for a script.
    fn script(&self, world: &World, text: &str) -> PathBuf {
        let path = world.scratch(if self.is_cmd() { "script.cmd" } else { "script" });
        let written = match self.is_cmd() {
            // Its commands are not shown, and its lines end as it wants them to.
            true => format!("@echo off\r\n{}", text.replace("\r\n", "\n").replace('\n', "\r\n")),
            false => text.to_owned(),
        };
        fs_err::write(&path, written).unwrap();
        path
    }

    /// Runs such a file directly, without hearback.
    fn command(&self, script: &Path) -> Command {
        let mut command = Command::new(if self.is_cmd() { script } else { &self.program });
        if !self.is_cmd() {
            command.arg(as_it_says(script));
        }
        command
    }
}

/// How a shell that is not of Windows names a file.
fn as_it_says(path: &Path) -> String {
    let text = path.to_str().expect("paths of the tests are text");
    if cfg!(windows) { text.replace('\\', "/") } else { text.to_owned() }
}

/// A folder with these programs in it and no other, to be used as the whole path.
fn path_with(world: &World, programs: &[(&str, &Path)]) -> PathBuf {
    let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    let folder = world.scratch(format!("path-{}", names.join("-")));
    fs_err::create_dir(&folder).unwrap();
    for (name, program) in programs {
        #[cfg(unix)]
        std::os::unix::fs::symlink(program, folder.join(name)).unwrap();
        #[cfg(windows)]
        fs_err::copy(program, folder.join(name).with_extension("exe")).unwrap();
    }
    folder
}

/// Where the system has a program of a shell; none if it has no such.
fn found(name: &str) -> Option<PathBuf> {
    let (folders, suffix) = match cfg!(windows) {
        true => {
            let programs = std::env::var_os("ProgramFiles").unwrap_or_default();
            (vec![Path::new(&programs).join("Git").join("bin")], ".exe")
        }
        false => (["/bin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from).to_vec(), ""),
    };
    folders.iter().map(|folder| folder.join(format!("{name}{suffix}"))).find(|path| path.exists())
}

/// Launches shell text, as an argument if it fits into one, and waits for it.
fn launch(world: &World, shell: &Shell, text: &str, as_argument: bool) -> (Ran, Value) {
    let mut command = world.command(["launch", "--wait", "--json"]);
    command.args(shell.chosen.map(|name| ["--shell-program", name]).into_iter().flatten());
    command.args(["--shell", if as_argument { text } else { "-" }]);
    if let Some(path) = &shell.path {
        command.env("PATH", path);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let typed = if as_argument { String::new() } else { text.to_owned() };
    // Beside the reading, because a pipe holds less than a long text has.
    let writer = thread::spawn(move || stdin.write_all(typed.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let shown = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let ran =
        Ran { code: output.status.code(), stdout: shown(&output.stdout), stderr: shown(&output.stderr) };
    let job = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{text:?}: {ran:?}"));
    (ran, job)
}

/// What a shell makes of a script without hearback: how it ends, and what it prints to both streams.
fn directly(world: &World, shell: &Shell, text: &str) -> (Value, Vec<u8>) {
    let (script, log) = (shell.script(world, text), world.scratch("log"));
    let stream = fs_err::OpenOptions::new().append(true).create(true).open(&log).unwrap();
    let stream = || Stdio::from(stream.file().try_clone().unwrap());
    let mut command = shell.command(&script);
    world.settle(&mut command);
    command.stdout(stream()).stderr(stream());
    if let Some(path) = &shell.path {
        command.env("PATH", path);
    }
    let status = command.status().unwrap();
    let printed = fs_err::read(&log).unwrap();
    fs_err::remove_file(&log).unwrap();
    (outcome(status), unnamed(printed, &script))
}

fn outcome(status: ExitStatus) -> Value {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let core = std::os::unix::process::ExitStatusExt::core_dumped(&status);
        return json!({"kind": "signaled", "signal": signal, "core": core});
    }
    json!({"kind": "exited", "code": status.code().unwrap().cast_unsigned()})
}

/// Shells name the script in their complaints, and it is elsewhere each time.
fn unnamed(printed: Vec<u8>, script: &Path) -> Vec<u8> {
    let text = String::from_utf8(printed).unwrap();
    let text = text.replace(script.to_str().unwrap(), "SCRIPT");
    text.replace(&as_it_says(script), "SCRIPT").into_bytes()
}

#[track_caller]
fn is_as_if_run_directly(world: &World, shell: &Shell, text: &str, as_argument: bool) {
    let shown: String = text.chars().take(60).collect();
    let (outcome, expected) = directly(world, shell, text);
    let (ran, job) = launch(world, shell, text, as_argument);
    assert_eq!(job["outcome"], outcome, "{shown:?}");
    let code = outcome["code"].as_i64().unwrap_or_else(|| 128 + outcome["signal"].as_i64().unwrap());
    assert_eq!(ran.code.map(|code| i64::from(code.cast_unsigned())), Some(code), "{shown:?}");

    let id = job["id"].as_str().unwrap();
    let logs = world.command(["logs", id]).output().unwrap();
    let name = if shell.is_cmd() { "script.cmd" } else { "script" };
    let printed = unnamed(logs.stdout, &world.home().join("jobs").join(id).join(name));
    assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(&expected), "{shown:?}");

    let mut command = json!({ "shell": text });
    if let Some(chosen) = shell.chosen {
        command["program"] = json!(chosen);
    }
    assert_eq!(job["command"], command, "{shown:?}");
    assert!((job.get("notes"), job.get("survivors")) == (None, None), "{shown:?}: {job}");
    let folder = world.job_dir(id);
    assert_eq!(
        job["output"]["bytes"],
        fs_err::metadata(folder.join("output.log")).unwrap().len(),
        "{shown:?}"
    );
    let end: Value = serde_json::from_slice(&fs_err::read(folder.join("end.json")).unwrap()).unwrap();
    assert_eq!(end["outcome"], outcome, "{shown:?}");
}

/// Every text, as an argument where it fits and from standard input as well.
fn all_texts(world: &World, shell: &Shell) {
    // On Linux the longest argument has 128 KiB, on Windows all of them together 32.
    let longest = if cfg!(windows) { 30 * 1024 } else { 128 * 1024 };
    let texts = if shell.is_cmd() { texts_for_cmd() } else { texts() };
    for text in texts.iter().filter(|text| text.len() < longest) {
        // `-` stands for standard input.
        is_as_if_run_directly(world, shell, text, true);
    }
    for text in texts.iter().rev().take(scaled(6, 2)) {
        is_as_if_run_directly(world, shell, text, false);
    }
}

#[test]
fn scenario_61_text_for_sh_or_cmd_runs_as_the_shell_itself_would_run_it() {
    let world = World::new();
    let shell = Shell::plain(&world);
    all_texts(&world, &shell);
    if shell.is_cmd() {
        let (ran, job) = launch(&world, &shell, "echo grüße 日本\nexit 3", true);
        assert_eq!(ran.code, Some(3), "{job}");
        let printed = world.run(["logs", job["id"].as_str().unwrap()]).ok();
        assert_eq!(printed.lines().count(), 1, "{printed}");
        // Wine has no such code page.
        assert!(hearback_tests::is_wine() || printed == "grüße 日本", "{printed}");
    }
}

#[test]
fn scenario_61_text_for_bash_runs_as_the_shell_itself_would_run_it() {
    let world = World::new();
    let Some(bash) = Shell::bash(&world) else { return };
    all_texts(&world, &bash);
    let (_, job) = launch(&world, &bash, "echo \"${BASH_VERSION:+bash}\"", true);
    assert_eq!(world.run(["logs", job["id"].as_str().unwrap()]).ok(), "bash", "it is preferred to sh");
}

#[test]
fn text_with_a_null_byte_runs_as_the_shell_itself_would_run_it() {
    let world = World::new();
    let shell = Shell::plain(&world);
    let texts = match shell.is_cmd() {
        true => ["echo one\nexit 3\n\0", "exit 4 & rem \0"],
        false => ["echo one\nexit 3\n\0", "exit 4 # \0"],
    };
    for text in texts {
        if text.contains("rem") && hearback_tests::is_wine() {
            skipped("the `cmd` of Wine reads a line with a null byte in it for ever");
            continue;
        }
        is_as_if_run_directly(&world, &shell, text, false);
    }
}

#[test]
fn a_shell_sees_neither_our_standard_input_nor_more_arguments() {
    let world = World::new();
    let shell = Shell::plain(&world);
    let text = match shell.is_cmd() {
        true => "set line=nothing\nset /p line=\necho %line% to read, [%*] as arguments",
        false => "read line || echo \"nothing to read, [$*] as arguments\"",
    };
    let (_, job) = launch(&world, &shell, text, false);
    assert_eq!(world.run(["logs", job["id"].as_str().unwrap()]).ok(), "nothing to read, [] as arguments");
}

#[test]
fn text_that_opens_its_streams_again_loses_nothing() {
    let world = World::new();
    // A program that opens `/dev/stderr` opens what is behind it: a file would be truncated and overwritten.
    let text = "echo one; echo two >/dev/stderr; echo three | tee /dev/stderr; echo four >/dev/stdout; echo five >&2";
    // `cmd` has no such names. What it gives to others, it gives to one after the other.
    let cmd = "echo one\necho two>&2\ncmd /d /c echo three\ncmd /d /c \"echo three>&2\"\necho four 1>&1\necho five>&2";
    let expected = ["one", "two", "three", "three", "four", "five"];
    let mut shells = vec![Shell::plain(&world)];
    shells.extend(Shell::bash(&world));
    for mut shell in shells {
        if cfg!(unix) {
            let name = shell.program.file_name().unwrap().to_str().unwrap().to_owned();
            let tee = found("tee").expect("every system has it");
            shell.path = Some(path_with(&world, &[(&name, &found(&name).unwrap()), ("tee", &tee)]));
        }
        let (_, job) = launch(&world, &shell, if shell.is_cmd() { cmd } else { text }, false);
        let printed = world.run(["logs", job["id"].as_str().unwrap()]).stdout;
        let printed_lines: Vec<_> = printed.lines().map(str::trim_end).collect();
        assert_eq!(printed_lines, expected, "{}", shell.program.display());
        assert_eq!(job["output"]["bytes"], printed.len());
    }
}

#[test]
fn without_any_shell_the_text_cannot_be_started() {
    let world = World::new();
    let empty = path_with(&world, &[]);
    let launch = |chosen: &[&str]| {
        let mut command = world.command([&["launch"], chosen, &["--shell", "exit 0"]].concat());
        command.env("PATH", &empty);
        for variable in ["ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA"] {
            command.env_remove(variable);
        }
        run(command)
    };
    let (ran, reason) = match cfg!(windows) {
        true => (launch(&["--shell-program", "bash"]), "there is no shell `bash` on the PATH"),
        false => (launch(&[]), "neither `bash` nor `sh` was found on the PATH"),
    };
    assert_eq!(ran.code, Some(127), "{ran:?}");
    assert!(ran.stderr.contains(reason), "{ran:?}");
    let job = world.show(ran.stdout.trim());
    assert_eq!(job["outcome"]["kind"], "failed_to_start");
    assert_eq!(job["outcome"]["error"]["kind"], "not_found");
    assert_eq!(job["follow_up"]["state"], "not_wanted", "it has no owner");
    // `cmd` is part of Windows, wherever the path leads.
    if cfg!(windows) {
        let id = launch(&[]).ok();
        assert_eq!(world.run(["wait", &id]).code, Some(0));
    }
}

/// The shells by the names that they are asked for; nothing is the one that hearback chooses.
fn shells() -> Vec<Option<&'static str>> {
    let names: &[_] = match () {
        () if cfg!(unix) => &["sh", "bash"],
        // Wine has something of the name of PowerShell, which runs nothing.
        () if hearback_tests::is_wine() => &["cmd"],
        () => &["cmd", "powershell", "pwsh", "bash"],
    };
    let is_there = |name: &&str| {
        let probe = World::new().run(["launch", "--wait", "--shell-program", name, "--shell", "exit 0"]);
        let always = ["sh", "cmd", "powershell"].contains(name);
        if !always && probe.code == Some(127) {
            skipped(format_args!("there is no {name} here"));
        }
        always || probe.code != Some(127)
    };
    [None].into_iter().chain(names.iter().copied().filter(is_there).map(Some)).collect()
}

#[test]
fn scenario_81_a_code_is_the_commands_own_in_each_shell() {
    let world = World::new();
    for program in shells() {
        for code in [0, 3] {
            let text = format!("echo before\nexit {code}\necho after");
            let chosen = program.map(|program| ["--shell-program", program]);
            let id = world.launch(chosen.iter().flatten().copied().chain(["--shell", &text]));
            assert_eq!(world.run(["wait", &id]).code, Some(code), "{program:?}");
            assert_eq!(world.show(&id)["outcome"], json!({"kind": "exited", "code": code}), "{program:?}");
            assert_eq!(world.run(["logs", &id]).ok(), "before", "{program:?}");
        }
    }
}

/// Windows puts what only looks like a shell on the path, and no Unix does.
#[test]
#[cfg(windows)]
fn scenario_81_a_stub_of_a_shell_is_not_chosen() {
    let world = World::new();
    // The stub ends with 2 at once; what it stands before prints where it is and ends with 0.
    let place = |folder: &str, fixture: &str| {
        let folder = world.scratch(folder);
        fs_err::create_dir(&folder).unwrap();
        fs_err::copy(hearback_tests::bin(fixture), folder.join("bash.exe")).unwrap();
        folder
    };
    let stubs = [place("System32", "exit-with"), place("WindowsApps", "exit-with")];
    let launch = |path: &[PathBuf]| {
        let mut command = world.command(["launch", "--shell-program", "bash", "--shell", "exit 0"]);
        command.env("PATH", std::env::join_paths(path).unwrap());
        for variable in ["ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA"] {
            command.env_remove(variable);
        }
        run(command)
    };
    let genuine = [&stubs[..], &[place("usr", "show-env")]].concat();
    let id = launch(&genuine).ok();
    assert_eq!(world.run(["wait", &id]).code, Some(0));
    let refused = launch(&stubs);
    assert_eq!(refused.code, Some(127), "{refused:?}");
    assert!(refused.stderr.contains("no shell `bash`"), "{refused:?}");

    // Git for Windows has one, and seldom puts it on the path.
    let git = world.scratch("Git");
    for (folder, name, fixture) in [("cmd", "git.exe", "exit-with"), ("bin", "bash.exe", "show-env")] {
        fs_err::create_dir_all(git.join(folder)).unwrap();
        fs_err::copy(hearback_tests::bin(fixture), git.join(folder).join(name)).unwrap();
    }
    let mut command = world.command(["launch", "--wait", "--shell-program", "bash", "--shell", "exit 0"]);
    let path = [&stubs[..], &[git.join("cmd")]].concat();
    command.env("PATH", std::env::join_paths(path).unwrap());
    run(command).ok();
}
