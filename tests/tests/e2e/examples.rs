//! The programs under `examples`, which others are meant to begin with: they have to work.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use hearback_tests::{KillOnDrop, World, bin, eventually, lines, python, run};
use serde_json::Value;

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples").join(path)
}

/// A folder for the path in which the plugin is found. Windows runs no script by its first line: a batch file does it.
fn folder_of_plugin(world: &World, python: &Path) -> PathBuf {
    let folder = example("sink-python");
    if !cfg!(windows) {
        return folder;
    }
    let (within, script) = (world.scratch("plugins"), folder.join("hearback-sink-example"));
    fs::create_dir(&within).unwrap();
    let batch = format!("@\"{}\" \"{}\" %*\r\n", python.display(), script.display());
    fs::write(within.join("hearback-sink-example.cmd"), batch).unwrap();
    within
}

#[test]
fn the_plugin_in_python_passes_the_check_and_takes_a_follow_up_once() {
    let Some(python) = python::interpreter() else { return };
    let world = World::new();
    let before = env::var_os("PATH").unwrap_or_default();
    let path =
        env::join_paths([folder_of_plugin(&world, &python)].into_iter().chain(env::split_paths(&before)));
    let path = path.unwrap();
    let inbox = world.scratch("inbox");
    let with_plugin = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("PATH", &path).env("HEARBACK_EXAMPLE_INBOX", &inbox);
        run(command)
    };
    let checked = with_plugin(&["plugin", "check", "example", "--json"]);
    let checked: Value = serde_json::from_str(&checked.ok()).unwrap();
    assert_eq!(checked["passed"], true, "{checked:#}");
    assert_eq!(checked["checks"].as_array().unwrap().len(), 9, "{checked:#}");
    // The same delivery four times, and the hostile one.
    assert_eq!(fs::read_dir(&inbox).unwrap().count(), 2);

    let id = with_plugin(&["launch", "--session", "s", "--sink", "example", "--shell", "echo hi"]).ok();
    let file = inbox.join(format!("{id}.end.json"));
    eventually("the follow-up is in the inbox", || file.exists().then_some(()));
    let event: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(event["data"]["output"]["head"], if cfg!(windows) { "hi\r\n" } else { "hi\n" });
    eventually("the receipt is there", || {
        (world.show(&id)["follow_up"]["state"] == "delivered").then_some(())
    });

    // Without its setting it keeps to the protocol, but delivers nothing: that is no success, and it says why.
    let mut command = world.command(["plugin", "check", "example"]);
    command.env("PATH", &path).env_remove("HEARBACK_EXAMPLE_INBOX");
    run(command).exits(1).prints("HEARBACK_EXAMPLE_INBOX is not set").prints("9 checks: 5 ok, 4 failed");
}

#[test]
fn a_consumer_that_is_killed_again_and_again_gets_every_job_once() {
    let Some(python) = python::interpreter() else { return };
    let world = World::new();
    let [calls, strike, state, go, tasks] =
        ["calls", "strike", "state", "go", "tasks"].map(|name| world.scratch(name));
    // PowerShell takes a word in quotes for a value, unless an `&` comes before it.
    let call = if cfg!(windows) { "& " } else { "" };
    let held = format!("{call}'{}' '{}' --code 3\n", bin("hold").display(), go.display());
    fs::write(&tasks, format!("{held}echo one\nsleep 0.2; echo two\nexit 1\n")).unwrap();
    let consumer = |before: u32, after: u32, nap: &str| {
        let _ = fs::remove_file(&calls);
        let mut command = Command::new(&python);
        world.settle(&mut command);
        command.arg(example("consumer-python/consumer.py"));
        command.args(["--session", "agent", "--nap", nap, "--state"]).arg(&state).arg(&tasks);
        command.env("HEARBACK", bin("deadly")).env("REAL", bin("hearback")).env("CALLS", &calls);
        command.env("STRIKE", &strike).env("BEFORE", before.to_string()).env("AFTER", after.to_string());
        command.stdout(Stdio::null());
        command
    };

    // Killed before and after every call that it makes, as long as one job cannot end: so it cannot either.
    let heard = || lines(state.join("heard.jsonl")).len();
    let mut killed = 0;
    for (before, after) in (1..=20).flat_map(|n| [(n, 0), (0, n)]) {
        let mut child = KillOnDrop(consumer(before, after, "500ms").spawn().unwrap());
        eventually("its hour has come", || {
            assert!(child.0.try_wait().unwrap().is_none(), "it has ended");
            strike.exists().then_some(())
        });
        drop(child);
        fs::remove_file(&strike).unwrap();
        killed += 1;
        if heard() == 3 {
            break;
        }
    }
    assert!(killed >= 10, "{killed}");
    assert_eq!(heard(), 3);

    // Killed in its sleep, and what it waits for happens while no consumer runs.
    let mut asleep = KillOnDrop(consumer(0, 0, "30s").spawn().unwrap());
    eventually("it sleeps", || {
        // The launches, then a question and an acknowledgement by turns: at an odd call it asks; nothing is pending.
        let calls = fs::read_to_string(&calls).ok()?.trim().parse::<u32>().ok()?;
        let pending = world.json(["followups", "--session", "agent", "--json"]);
        let waits = calls > 4 && calls % 2 == 1 && pending["jobs"] == Value::Array(Vec::new());
        assert!(asleep.0.try_wait().unwrap().is_none(), "it has ended");
        waits.then_some(())
    });
    drop(asleep);
    fs::write(&go, "").unwrap();
    let ran = run(consumer(0, 0, "30s"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Once more, when everything is done.
    assert_eq!(run(consumer(0, 0, "30s")).code, Some(0));

    let heard: Vec<Value> =
        lines(state.join("heard.jsonl")).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let listed = world.json(["list", "--all", "--session", "agent", "--json"]);
    let jobs: BTreeSet<_> =
        listed["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert_eq!((heard.len(), jobs.len()), (4, 4), "{heard:?}");
    assert_eq!(heard.iter().map(|line| line["job"].as_str().unwrap()).collect::<BTreeSet<_>>(), jobs);
    for job in listed["jobs"].as_array().unwrap() {
        assert_eq!(job["follow_up"]["state"], "delivered", "{job:#}");
    }
}
