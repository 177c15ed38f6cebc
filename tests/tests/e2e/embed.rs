//! Programs that embed hearback: their jobs outlive them, and nothing of a job is left with them.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hearback_tests::{KillOnDrop, World, args, bin, lines, run};
use serde_json::json;

fn embedder(world: &World, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(bin("embedder"));
    world.settle(&mut command);
    command.args(args);
    command
}

/// Runs `own-sink`, which has settings and a sink made in code.
fn own_sink(world: &World, depth: &str) -> hearback_tests::Ran {
    let mut command = Command::new(bin("own-sink"));
    world.settle(&mut command);
    command.env("HEARBACK_DEPTH", depth);
    command.arg(world.scratch("witness")).args(args![bin("exit-with"), "3"]);
    run(command)
}

#[test]
fn scenario_143_settings_and_a_sink_made_in_code_need_no_settings_file() {
    let world = World::new();
    // Nothing of this holds: settings that are made in code stand in place of the file.
    world.run(["reconcile"]).ok();
    fs_err::write(world.home().join("config.toml"), "default_sink = \"missing\"\nmax_depth = 9\n").unwrap();
    let id = own_sink(&world, "0").ok();
    hearback_tests::eventually("the follow-up is delivered", || {
        (world.show(&id)["follow_up"]["state"] == "delivered").then_some(())
    });
    let expected = format!("{id}.end failed: exit code 3\n");
    assert_eq!(fs_err::read_to_string(world.scratch("witness")).unwrap(), expected);
    world.show(&id).has("/follow_up/policy", "auto");
}

/// A program that is told of the follow-ups of the session `s`.
fn hears(world: &World, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(bin("hears"));
    world.settle(&mut command);
    command.arg("s").arg(world.scratch("witness")).args(args);
    command
}

#[test]
fn scenario_143_a_program_is_told_in_a_closure_and_what_it_gives_back_comes_again() {
    let world = World::new();
    let id = world.run(args!["launch", "-q", "-s", "s", "--", bin("exit-with"), "3"]).ok();
    run(hears(&world, ["--refuse", "1", "--until", "1"])).ok();
    let told = [1, 2].map(|attempt| format!("{id}.end {attempt} failed: exit code 3"));
    assert_eq!(lines(world.scratch("witness")), told);
    world.show(&id).has("/follow_up/state", "delivered");
    // What was acknowledged is not told again, and neither is what belongs to another session.
    world.run(args!["launch", "-q", "-s", "other", "--wait", "--", bin("exit-with"), "0"]).ok();
    run(hears(&world, ["--within", "0"])).ok();
    assert_eq!(lines(world.scratch("witness")), told);
    assert!(!world.home().join("config.toml").exists());
}

#[test]
fn scenario_143_each_follow_up_is_told_to_one_of_several_programs_until_they_are_cancelled() {
    let world = World::new();
    let stop = world.scratch("stop");
    let mut programs: Vec<_> =
        (0..2).map(|_| KillOnDrop(hears(&world, args!["--stop", stop]).spawn().unwrap())).collect();
    let launch = || world.run(args!["launch", "-q", "-s", "s", "--", bin("exit-with"), "0"]).ok();
    let mut expected: Vec<_> = (0..6).map(|_| format!("{}.end 1 done: exit code 0", launch())).collect();
    expected.sort();
    let told = hearback_tests::eventually("all are told", || {
        Some(lines(world.scratch("witness"))).filter(|told| told.len() >= expected.len())
    });
    hearback_tests::eventually("nothing is pending", || {
        let pending = world.json(["followups", "--session", "s", "--json"]);
        (pending["jobs"] == json!([])).then_some(())
    });
    let since = Instant::now();
    fs_err::write(&stop, "").unwrap();
    assert!(programs.iter_mut().all(|program| program.0.wait().unwrap().success()));
    assert!(
        since.elapsed() < Duration::from_secs(30),
        "they are woken: they look by themselves once a minute"
    );
    let mut told_at_last = lines(world.scratch("witness"));
    told_at_last.sort();
    assert_eq!(told_at_last, expected, "{told:?}");
}

#[test]
fn scenario_143_what_a_program_held_when_it_died_comes_to_the_next() {
    let world = World::new();
    let id = world.run(args!["launch", "-q", "-s", "s", "--", bin("exit-with"), "0"]).ok();
    let mut program = KillOnDrop(hears(&world, args!["--hold", world.scratch("never")]).spawn().unwrap());
    hearback_tests::eventually("it is told", || (!lines(world.scratch("witness")).is_empty()).then_some(()));
    // Another program leaves it alone for as long as the first one lives.
    run(hears(&world, ["--within", "300"])).ok();
    assert_eq!(lines(world.scratch("witness")).len(), 1);
    program.0.kill().unwrap();
    program.0.wait().unwrap();
    run(hears(&world, ["--until", "1"])).ok();
    let told = [1, 2].map(|attempt| format!("{id}.end {attempt} done: exit code 0"));
    assert_eq!(lines(world.scratch("witness")), told);
}

#[test]
fn a_launch_through_the_library_obeys_the_depth_and_the_permissions_of_its_caller() {
    let world = World::new();
    let deep = own_sink(&world, "1");
    assert_eq!(deep.code, Some(1), "{deep:?}");
    assert!(deep.stderr.contains("TooDeep"), "{deep:?}");
    let mut denied = Command::new(bin("own-sink"));
    world.settle(&mut denied);
    denied.env("HEARBACK_DENY", "notify").arg(world.scratch("witness")).args(args![bin("exit-with"), "0"]);
    let denied = run(denied);
    assert_eq!(denied.code, Some(1), "{denied:?}");
    assert!(denied.stderr.contains("Notify"), "{denied:?}");
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"], json!([]), "neither left a job");
}

#[test]
fn a_program_that_embeds_hearback_learns_how_its_job_ended() {
    let world = World::new();
    let ran = run(embedder(&world, args!["--wait", "60000", "--", bin("exit-with"), "3", "--print", "hi"]));
    let printed = ran.ok();
    let (id, outcome) = printed.split_once('\n').unwrap();
    assert_eq!(outcome, "failed: exit code 3");
    assert_eq!(world.run(["wait", id]).code, Some(3));
    assert_eq!(world.run(["logs", id]).ok(), "hi");
    assert_eq!(world.show(id)["command"], json!({"argv": [bin("exit-with"), "3", "--print", "hi"]}));
}

#[test]
fn a_job_outlives_the_program_that_launched_it() {
    let world = World::new();
    let go = world.scratch("go");
    let ran = run(embedder(&world, args!["--wait", "50", "--", bin("hold"), go, "--code", "4"]));
    let printed = ran.ok();
    let (id, outcome) = printed.split_once('\n').unwrap();
    assert_eq!(outcome, "still running");
    assert_eq!(world.show(id)["state"], "running");
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", id]).code, Some(4));
}

#[test]
fn a_job_outlives_the_violent_end_of_the_program_that_launched_it() {
    let world = World::new();
    let go = world.scratch("go");
    let mut command = embedder(&world, args!["--stay", world.scratch("never"), "--", bin("hold"), go]);
    let mut child = KillOnDrop(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut id = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut id).unwrap();
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert_eq!(world.show(id.trim())["state"], "running");
    fs_err::write(&go, "").unwrap();
    world.run(["wait", id.trim()]).ok();
}

#[test]
fn a_program_that_forgot_to_supervise_is_told_so_and_runs_nothing() {
    let world = World::new();
    let witness = world.scratch("witness");
    let job = args!["--", bin("exit-with"), "0", "--witness", witness];
    let ran = run(embedder(&world, [&args!["--forget"][..], &job].concat()));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("nothing was run") && ran.stderr.contains("supervise_if_asked"), "{ran:?}");
    assert!(lines(&witness).is_empty());
    assert_eq!(fs_err::read_dir(world.home().join("jobs")).unwrap().count(), 0);

    // Unless it names another program that does.
    let named = args!["--forget", "--supervisor", bin("hearback"), "--wait", "60000"];
    assert!(run(embedder(&world, [&named[..], &job].concat())).ok().ends_with("done: exit code 0"));
    assert_eq!(lines(&witness).len(), 2);
}

#[test]
fn a_program_that_embeds_hearback_finds_out_what_its_jobs_survive() {
    let world = World::new();
    let survives = ["survives_parent", "survives_terminal", "survives_process_group"];
    let found = run(embedder(&world, args!["--doctor"])).ok();
    for name in survives {
        assert!(found.contains(&format!("Ok {name}: ")), "{found}");
    }
    let found = run(embedder(&world, args!["--forget", "--doctor"])).ok();
    for name in survives {
        assert!(found.contains(&format!("Fail {name}: ")), "{found}");
    }
    assert!(found.contains("supervise_if_asked"), "{found}");
    let found = run(embedder(&world, args!["--forget", "--supervisor", bin("hearback"), "--doctor"])).ok();
    assert!(found.contains("Ok survives_parent: "), "{found}");
    assert!(!world.home().exists(), "it is only looked at");
}

#[test]
fn a_supervisor_that_is_no_program_is_an_error_and_leaves_nothing() {
    let world = World::new();
    let missing = world.scratch("missing");
    let ran = run(embedder(&world, args!["--supervisor", missing, "--", bin("exit-with"), "0"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("the supervisor could not be started, so nothing was run"), "{ran:?}");
    assert_eq!(fs_err::read_dir(world.home().join("jobs")).unwrap().count(), 0);
}

/// Through the command line no such command can be given: it has to fit into hearback's own arguments first.
#[test]
fn a_command_longer_than_the_system_allows_cannot_be_started_and_is_said_so() {
    let world = World::new();
    // One argument, and all together; each far beyond what any system takes.
    for (size, bytes) in [(["--long", "2000000"], 2_000_000), (["--many", "7000"], 7_000_000)] {
        let ran = run(embedder(
            &world,
            size.iter().map(OsStr::new).chain(["--".as_ref(), bin("exit-with").as_ref()]),
        ));
        assert_eq!(ran.code, Some(1), "{:?}", ran.stderr.get(..500));
        let id = ran.stderr.split('`').nth(1).unwrap();
        assert!(ran.stderr.starts_with(&format!("embedder: job `{id}` could not be started\n")), "{id}");
        let job = world.show(id);
        assert_eq!(job["outcome"]["kind"], "failed_to_start");
        assert_eq!(job["outcome"]["error"]["kind"], "other");
        let message = job["outcome"]["error"]["message"].as_str().unwrap();
        assert!(message.len() < 1000, "it does not repeat what was too long: {} bytes", message.len());
        let argv = job["command"]["argv"].as_array().unwrap();
        assert!(argv.iter().map(|word| word.as_str().unwrap().len()).sum::<usize>() > bytes);
        assert_eq!(world.run(["wait", id]).code, Some(125));
    }
}

// Not on Windows: no process is reaped there. A process is gone with the last handle to it; its parent needs none.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_launches_has_no_children_to_reap() {
    let world = World::new();
    let done = world.scratch("done");
    let launch = args!["--wait", "60000", "--stay", done, "--", bin("exit-with"), "0"];
    let mut child = KillOnDrop(embedder(&world, launch).stdout(Stdio::piped()).spawn().unwrap());
    let mut printed = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let id = printed.next().unwrap().unwrap();
    // While the job runs, when it has ended, and when its supervisor is gone.
    assert_eq!(children(child.0.id()), [""; 0]);
    assert_eq!(printed.next().unwrap().unwrap(), "done: exit code 0");
    hearback_tests::eventually("the supervisor is gone", || {
        hearback_tests::carrying(&format!("HEARBACK_SUPERVISOR={id}")).is_empty().then_some(())
    });
    assert_eq!(children(child.0.id()), [""; 0]);
    fs_err::write(&done, "").unwrap();
    assert!(child.0.wait().unwrap().success());
}

/// The children of a process, those that are not reaped among them, as `/proc` shows them.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<String> {
    let stats = fs_err::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        // A process may end while it is looked at.
        std::fs::read_to_string(entry.path().join("stat")).ok()
    });
    let is_child = |stat: &String| {
        let field = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        field == Some(parent)
    };
    stats.filter(is_child).collect()
}
