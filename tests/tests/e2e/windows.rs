//! What only Windows has: batch files, codes of 32 bits, Job Objects. And, under Wine, a kill from outside.
#![cfg(windows)]

use std::path::Path;
use std::process::{Command, Stdio};

use hearback_tests::{
    KillOnDrop, Ran, World, alive, args, bin, carrying, copy_program, eventually, is_real_windows, lines,
    outside, run,
};
use serde_json::{Value, json};

fn exited(code: u32) -> Value {
    json!({"kind": "exited", "code": code})
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

/// So a script becomes a plugin, which Windows does not run by its first line.
#[test]
fn a_plugin_can_be_a_batch_file_in_front_of_another_program() {
    let world = World::new();
    let (folder, program) = (world.scratch("plugins"), world.scratch("speaker.exe"));
    fs_err::create_dir(&folder).unwrap();
    copy_program("plugin", &program);
    let steps = "say {\"hearback_sink\":{\"versions\":[1]}}\nanswer rightly";
    fs_err::write(world.scratch("speaker.exe.steps"), steps).unwrap();
    let batch = format!("@\"{}\" %*\r\n", program.display());
    fs_err::write(folder.join("hearback-sink-example.cmd"), batch).unwrap();
    let mut check = world.command(["plugin", "check", "example", "--json"]);
    check.env("PATH", &folder);
    let checked: Value = serde_json::from_str(&run(check).ok()).unwrap();
    assert_eq!(checked["passed"], true, "{checked:#}");
}

#[test]
fn an_agent_that_is_a_batch_file_has_its_turn() {
    let world = World::new();
    let folder = world.scratch("bin");
    fs_err::create_dir(&folder).unwrap();
    fs_err::write(folder.join("agent.cmd"), "@echo off\r\necho \"%~1\"\r\nexit /b 5\r\n").unwrap();
    let mut command = world.command(["turn", "--session", "s", "--", "agent", "a b"]);
    // As npm puts `claude` there.
    command.env("PATH", &folder);
    let ran = run(command);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(5), "\"a b\""), "{ran:?}");
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
    let mut command = world.command(["reconcile"]);
    command.env_remove("HEARBACK_HOME").env("LOCALAPPDATA", &local).env("APPDATA", world.scratch("roaming"));
    run(command).ok();
    assert!(local.join("hearback").join("jobs").is_dir());
}

/// A tree of seven processes, and their pids.
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
    // The processes themselves show the code 0: closing a Job Object ends them with it.
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

/// Launches a held job from inside a Job Object that is gone when this returns. Returns its id and the
/// run of the launcher.
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
    let warned = "warning: the job runs inside the caller's Job Object, and ends when that stops";
    assert!(ran.stderr.contains(warned), "{ran:?}");
    // Its processes ended with it, with the code 0 of a kill on close. That is no success.
    assert_eq!(world.run(["wait", &id]).code, Some(125));
    let job = world.show(&id);
    assert_eq!(job["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}), "{job}");
    assert_eq!(job["survives"], json!(["process_group", "bound to the caller's job"]), "{job}");
    assert_eq!(job["bound_to"], "the caller's Job Object", "{job}");
    assert_eq!(carrying(&format!("HEARBACK_JOB={id}")), [0; 0]);
}
