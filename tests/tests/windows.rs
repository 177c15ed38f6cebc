//! What only Windows has: its shells, batch files, codes of 32 bits. And, under Wine, a kill from outside.
#![cfg(windows)]
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hearback_tests::{
    KillOnDrop, Ran, World, alive, bin, carrying, eventually, is_real_windows, lines, outside, run,
};
use serde_json::{Value, json};

macro_rules! args {
    ($($arg:expr),* $(,)?) => { [$(AsRef::<OsStr>::as_ref(&$arg).to_owned()),*] };
}

/// The shells that a Windows may have. Wine has something of the name of PowerShell, which runs nothing.
fn shells() -> Vec<Option<&'static str>> {
    let mut shells = vec![None, Some("cmd")];
    if is_real_windows() {
        shells.push(Some("powershell"));
    }
    for name in ["pwsh", "bash"] {
        let probe = World::new().run(["launch", "--wait", "--shell-program", name, "--shell", "exit 0"]);
        match probe.code {
            Some(0) => shells.push(Some(name)),
            _ => eprintln!("there is no {name} here"),
        }
    }
    shells
}

/// Runs shell text to its end; tells its outcome and its lines.
#[track_caller]
fn shell(world: &World, program: Option<&str>, text: &str) -> (Value, Vec<String>) {
    let chosen = program.map(|program| ["--shell-program", program]);
    let id = world.launch(chosen.iter().flatten().chain(&["--shell", text]));
    world.run(["wait", &id]);
    let logs = world.run(["logs", &id]).ok();
    (world.show(&id)["outcome"].clone(), logs.lines().map(|line| line.trim_end().to_owned()).collect())
}

fn exited(code: u32) -> Value {
    json!({"kind": "exited", "code": code})
}

#[test]
fn scenario_81_a_code_is_the_commands_own_in_each_shell() {
    let world = World::new();
    for program in shells() {
        for code in [0, 3] {
            let text = format!("echo before\nexit {code}\necho after");
            let (outcome, printed) = shell(&world, program, &text);
            assert_eq!((outcome, printed), (exited(code), vec!["before".to_owned()]), "{program:?}");
        }
    }
}

#[test]
fn scenario_81_a_stub_of_a_shell_is_not_chosen() {
    let world = World::new();
    // The stub ends with 2 at once; what it stands before prints where it is and ends with 0.
    let place = |folder: &str, fixture: &str| {
        let folder = world.scratch(folder);
        fs_err::create_dir(&folder).unwrap();
        fs_err::copy(bin(fixture), folder.join("bash.exe")).unwrap();
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
        fs_err::copy(bin(fixture), git.join(folder).join(name)).unwrap();
    }
    let mut command = world.command(["launch", "--wait", "--shell-program", "bash", "--shell", "exit 0"]);
    let path = [&stubs[..], &[git.join("cmd")]].concat();
    command.env("PATH", std::env::join_paths(path).unwrap());
    run(command).ok();
}

#[test]
fn scenario_61_text_for_cmd_runs_from_a_file() {
    let world = World::new();
    let cmd = |text: &str| shell(&world, Some("cmd"), text);
    for (text, code, printed) in [
        ("exit /b 7", 7, &[][..]),
        ("echo one\r\necho two", 0, &["one", "two"]),
        ("echo a \"b c\" (d)", 0, &["a \"b c\" (d)"]),
        ("set X=1\nif \"%X%\"==\"1\" exit 4\nexit 5", 4, &[]),
        ("goto end\necho not reached\n:end\necho here\nexit 6", 6, &["here"]),
        ("echo to stderr 1>&2\nexit 9", 9, &["to stderr"]),
        ("", 0, &[]),
    ] {
        assert_eq!(
            cmd(text),
            (exited(code), printed.iter().map(|line| (*line).to_owned()).collect()),
            "{text}"
        );
    }
    let (outcome, printed) = cmd("echo grüße 日本\nexit 3");
    assert_eq!((outcome, printed.len()), (exited(3), 1));
    if is_real_windows() {
        // Wine has no such code page.
        assert_eq!(printed, ["grüße 日本"]);
    }
    // Nothing in it breaks the record.
    for text in ["echo \"unbalanced", "if (", ")", "exit 1 & &", "%", "no-such-program-here"] {
        let (outcome, _) = cmd(text);
        assert_eq!(outcome["kind"], "exited", "{text}");
    }
}

#[test]
fn arguments_arrive_as_they_were_given() {
    let world = World::new();
    let half = OsString::from_wide(&[0x61, 0xd800, 0x62]);
    let odd = args![
        "",
        " ",
        "a b",
        "\"",
        "\"quoted\"",
        "a\"b",
        "\\",
        "C:\\dir\\",
        "C:\\my dir\\",
        "a\\\"b",
        "\\\\\"",
        "a\nb",
        "tab\there",
        "grüße 日本 🦀",
        "%PATH%",
        "^&|<>()!",
        "'single'",
        "--",
        "-x",
        half,
    ];
    let launch = args!["--", bin("show-env"), "--args"].into_iter().chain(odd.iter().cloned());
    let id = world.launch(launch);
    world.run(["wait", &id]).ok();
    let hex =
        |arg: &OsString| arg.as_encoded_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let logs = world.run(["logs", &id]);
    let seen: Vec<_> = logs.stdout.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(seen, odd.iter().map(hex).collect::<Vec<_>>());
    let recorded = world.show(&id)["command"].as_array().unwrap()[2..].to_vec();
    assert_eq!(recorded[..2], [json!(""), json!(" ")]);
    assert_eq!(recorded.last().unwrap(), &json!({"wide": [0x61, 0xd800, 0x62]}));
}

#[test]
fn a_batch_file_gets_its_arguments_and_nothing_else_happens() {
    let world = World::new();
    let folder = world.scratch("a folder");
    fs_err::create_dir(&folder).unwrap();
    let batch = folder.join("tool.cmd");
    let text = "@echo off\r\necho \"%~1\"\r\necho \"%~2\"\r\necho \"%~3\"\r\nexit /b 5\r\n";
    fs_err::write(&batch, text).unwrap();
    let mut command = world.command(["launch"]);
    // Found by its name alone, as `npm` is.
    command.args(["--", "tool", "a b", "c&echo injected", "plain"]).env("PATH", &folder);
    let id = run(command).ok();
    assert_eq!(world.run(["wait", &id]).code, Some(5));
    let logs = world.run(["logs", &id]).ok();
    let printed: Vec<_> = logs.lines().map(str::trim_end).collect();
    assert_eq!(printed, ["\"a b\"", "\"c&echo injected\"", "\"plain\""]);
    if is_real_windows() {
        // Wine expands it all the same.
        let id = world.launch(args!["--", batch, "%PATH%"]);
        world.run(["wait", &id]);
        assert!(world.run(["logs", &id]).ok().starts_with("\"%PATH%\""));
    }
    // What cannot be passed on is refused, and nothing runs.
    let refused = world.run(args!["launch", "--", batch, "a\nb"]);
    assert_eq!(refused.code, Some(125), "{refused:?}");
    assert!(refused.stderr.contains("line break"), "{refused:?}");
    assert_eq!(world.show(refused.stdout.trim())["outcome"]["kind"], "failed_to_start");
}

#[test]
fn codes_keep_all_their_bits() {
    let world = World::new();
    for code in [259_u32, 256, 0xc000_0005, u32::MAX, 0x8000_0000] {
        let id = world.launch(args!["--", bin("exit-with"), code.to_string()]);
        let waited = world.run(["wait", &id]).code.unwrap();
        assert_eq!(waited.cast_unsigned(), code);
        let job = world.show(&id);
        assert_eq!((&job["outcome"], &job["state"]), (&exited(code), &json!("failed")));
    }
}

#[test]
fn jobs_are_kept_where_nothing_roams() {
    let world = World::new();
    let local = world.scratch("local");
    let mut command = world.command(["list"]);
    command.env_remove("HEARBACK_HOME").env("LOCALAPPDATA", &local).env("APPDATA", world.scratch("roaming"));
    run(command).ok();
    assert!(local.join("hearback").join("jobs").is_dir());
}

/// A tree of seven, and who they are.
#[track_caller]
fn tree(world: &World) -> (String, Vec<u32>) {
    let witness = world.scratch("tree");
    let tree = args!["--", bin("tree"), "--depth", "2", "--breadth", "2", "--witness", witness];
    let id = world.launch(tree);
    let grown = eventually("the tree has grown", || {
        let found = lines(&witness);
        (found.len() == 7).then_some(found)
    });
    (id, grown.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect())
}

#[test]
fn a_supervisor_killed_from_outside_takes_its_tree_along_and_is_lost() {
    if !outside::is_there("a kill without a word") {
        return;
    }
    let world = World::new();
    let (id, pids) = tree(&world);
    // The only thing on its command line is the id.
    outside::signal("KILL", &format!("__supervise {id}"));
    assert_eq!(world.run(["wait", &id]).code, Some(125));
    let job = world.show(&id);
    // Who looks at the processes alone sees the code 0: closing a Job Object ends them with it.
    assert_eq!(job["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}), "{job}");
    assert_eq!((&job["state"], job.get("survivors")), (&json!("failed"), None), "{job}");
    eventually("nothing of the tree is left", || (!pids.iter().any(|pid| alive(*pid))).then_some(()));
}

#[test]
fn a_launcher_killed_from_outside_takes_nothing_along() {
    if !outside::is_there("a kill without a word") {
        return;
    }
    let world = World::new();
    let (go, witness) = (world.scratch("go"), world.scratch("witness"));
    let launch = args!["launch", "--wait", "--", bin("hold"), go, "--code", "4"];
    let mut command = world.command(launch.into_iter().chain(args!["--witness", witness]));
    let mut launcher = KillOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let started = eventually("the job has started", || lines(&witness).first().cloned());
    let target: u32 = started.strip_prefix("start ").unwrap().parse().unwrap();
    // What the target has on its command line, with the dashes that only the launcher has.
    outside::signal("KILL", &format!("-- {} {}", bin("hold").display(), go.display()));
    launcher.0.wait().unwrap();
    assert!(alive(target));
    let id = world.json(["list", "--json"])["jobs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.show(&id)["state"], "running");
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(4));
}

/// Launches a held job from inside a Job Object that is gone when this returns. Tells its id and what was said.
#[track_caller]
fn launched_confined(world: &World, options: &[&str], go: &Path) -> (String, Ran) {
    let mut command = Command::new(bin("confine"));
    world.settle(&mut command);
    command.args(options).arg(bin("hearback")).args(["launch", "--"]).arg(bin("hold")).arg(go);
    command.args(["--code", "4"]);
    let ran = run(command);
    (ran.ok(), ran)
}

#[test]
fn scenario_82_a_job_leaves_the_callers_job_object_where_that_lets_go() {
    let world = World::new();
    let go = world.scratch("go");
    let (id, ran) = launched_confined(&world, &["--lets-go"], &go);
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let job = world.show(&id);
    assert_eq!(job["state"], "running", "{job}");
    assert_eq!(job["survives"], json!(["parent", "terminal", "process_group"]), "{job}");
    assert_eq!(job.get("bound_to"), None, "{job}");
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(4));
}

#[test]
fn scenario_82_a_job_bound_to_the_callers_job_object_says_so_and_is_lost_with_it() {
    let world = World::new();
    let never = world.scratch("never");
    let (id, ran) = launched_confined(&world, &[], &never);
    let warned = "warning: it was launched inside the caller's Job Object, and ends when that is stopped";
    assert!(ran.stderr.contains(warned), "{ran:?}");
    // Whoever is in there ended with it, with the code 0 of a kill on close. That is no success.
    assert_eq!(world.run(["wait", &id]).code, Some(125));
    let job = world.show(&id);
    assert_eq!(job["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}), "{job}");
    assert_eq!(job["survives"], json!(["process_group", "bound to the caller's job"]), "{job}");
    assert_eq!(job["bound_to"], "the caller's Job Object", "{job}");
    assert_eq!(carrying(&format!("HEARBACK_JOB={id}")), [0; 0]);
}
