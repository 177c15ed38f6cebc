//! Ending jobs: on request, by a limit, with everything that they started, and with the truth on record.
//!
//! By default a race is run some times; with `HEARBACK_TEST_FULL=1` a thousand.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hearback_tests::{
    Job, KillOnDrop, Ran, Snapshot, World, alive, args, bin, eventually, exit_killed, exit_terminated, go_on,
    is_full, is_real_windows, is_wine, lines, rounds, run, scaled, skipped, stop,
};
use serde_json::{Value, json};

/// How processes try to escape: by what each system has.
const DETACH: [&str; 4] =
    ["none", if cfg!(windows) { "breakaway" } else { "group" }, "setsid", "double-fork"];
/// Far less than a fixture lives, far more than anything here takes.
const PROMPTLY: Duration = Duration::from_secs(20);

#[cfg(unix)]
fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

/// How an exit is shown to people.
fn shown(exit: &Value) -> String {
    match exit["signal"].as_i64() {
        Some(signal) => format!("ended by {}", hearback::core::signal_text(signal.try_into().unwrap())),
        None => format!("exit code {}", exit["code"]),
    }
}

/// What a wait for a killed job returns.
fn code(exit: &Value) -> Option<i32> {
    exit["signal"].as_i64().map_or(Some(143), |signal| i32::try_from(128 + signal).ok())
}

/// hearback as a session runs it.
fn run_as(world: &World, session: &str, args: &[&str]) -> Ran {
    let mut command = world.command(args);
    command.env("HEARBACK_SESSION", session);
    run(command)
}

/// A job that lasts until it is killed, with a short grace for a target that ignores termination.
#[track_caller]
fn held(world: &World, options: &[&str]) -> String {
    let options = options.iter().chain(&["--grace", "500ms"]).map(OsString::from);
    world.launch(options.chain(args!["--", bin("hold"), world.scratch("never")]))
}

/// A job of processes that ignore termination, and their pids.
#[track_caller]
fn stubborn(world: &World, options: &[&str], depth: u32, detach: &str) -> (String, Vec<u32>) {
    let witness = world.scratch("witness");
    let depth_text = depth.to_string();
    let tree = args![
        "--",
        bin("tree"),
        "--depth",
        depth_text,
        "--breadth",
        "2",
        "--detach",
        detach,
        "--ignore-term",
        "--witness",
        witness,
    ];
    let id = world.launch(options.iter().map(OsString::from).chain(tree));
    let pids = eventually("the tree has grown", || {
        let found = first_words(&witness);
        (found.len() == (2 << depth) - 1).then_some(found)
    });
    (id, pids)
}

fn first_words(witness: &Path) -> Vec<u32> {
    lines(witness).iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// The pid of a `hold` with this witness, once it holds.
#[track_caller]
fn holder(witness: &Path) -> u32 {
    let line = eventually("a process holds", || lines(witness).first().cloned());
    line.strip_prefix("start ").unwrap().parse().unwrap()
}

#[track_caller]
fn all_dead(id: &str, pids: &[u32], what: &str) {
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    assert!(left.is_empty(), "{what}: {left:?} are left");
    no_process_carries(id, what);
}

/// No process has the mark of this job, where that can be seen from outside.
#[track_caller]
fn no_process_carries(id: &str, what: &str) {
    #[cfg(any(target_os = "linux", windows))]
    assert_eq!(hearback_tests::carrying(&format!("HEARBACK_JOB={id}")), [0; 0], "{what}");
    let _ = (id, what);
}

#[track_caller]
fn is_settled(world: &World, id: &str) {
    eventually("the job is in history", || {
        (!world.home().join("jobs").join(id).exists() && world.job_dir(id).exists()).then_some(())
    });
}

/// The output of a job so far, line by line.
#[track_caller]
fn printed(world: &World, id: &str) -> Vec<String> {
    world.run(["logs", id]).ok().lines().map(str::to_owned).collect()
}

#[track_caller]
fn unchanged(world: &World, before: &Snapshot) {
    let changes = before.changes(&Snapshot::of(world.home()));
    assert!(changes.is_empty(), "{changes:?}");
}

/// What `kill --json` says, besides the job as it then is.
fn without_job(mut killed: Value) -> Value {
    let job = killed.as_object_mut().unwrap().remove("job").expect("the job as it is");
    assert_eq!((&job["id"], &job["outcome"]), (&killed["id"], &killed["outcome"]));
    killed
}

#[test]
fn scenario_21_a_killed_job_names_the_killer_and_the_exit() {
    let world = World::new();
    let id = held(&world, &[]);
    let told = world.run(["kill", &id, "--reason", "too slow"]).ok();
    assert_eq!(
        told,
        format!("{id} killed: by a person or a script, too slow ({})", shown(&exit_terminated()))
    );
    let killed = json!({"kind": "killed", "by": "person", "reason": "too slow", "exit": exit_terminated()});
    world.show(&id).state_is("failed").outcome_is(killed);
    world.run(["wait", &id]).exits(143);

    let id = held(&world, &["--session", "a"]);
    let killed = run_as(&world, "a", &["kill", &id, "--force", "--json"]).ok();
    let killed = without_job(serde_json::from_str(&killed).unwrap());
    let expected = json!({"kind": "killed", "by": {"session": "a"}, "exit": exit_killed()});
    assert_eq!(killed, json!({"format": 1, "id": id, "already_ended": false, "outcome": expected}));
    world.show(&id).outcome_is(expected);
    assert_eq!(world.run(["wait", &id]).code, code(&exit_killed()));
}

#[test]
fn scenario_21_a_killed_job_is_no_success_whatever_it_returns() {
    if is_wine() {
        return skipped("Wine passes no Ctrl-Break on, so no program there can answer one with a code");
    }
    let world = World::new();
    for code in [9, 0] {
        let witness = world.scratch(format!("witness-{code}"));
        let hold = args!["--", bin("hold"), world.scratch("never"), "--asked", code.to_string()];
        let id = world.launch(hold.into_iter().chain(args!["--witness", witness]));
        holder(&witness);
        world.run(["kill", &id]).ok();
        let exit = json!({"kind": "exited", "code": code});
        let killed = json!({"kind": "killed", "by": "person", "exit": exit});
        world.show(&id).state_is("failed").outcome_is(killed);
        world.run(["wait", &id]).exits(143);
    }
}

#[test]
fn several_jobs_are_killed_by_one_command() {
    let world = World::new();
    let (one, two) = (held(&world, &[]), held(&world, &[]));
    let killed = world.run(["kill", "--json", &one, &two]).ok();
    let outcomes: Vec<Value> = killed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = outcomes.iter().map(|outcome| outcome["id"].as_str()).collect();
    assert_eq!(ids, [Some(&*one), Some(&*two)]);
    // An unknown id is reported, and keeps no other job from being killed.
    let three = held(&world, &[]);
    world.run(["kill", "zzzzzzzz", &three]).exits(1).says("no job `zzzzzzzz`");
    world.show(&three).ended_as("killed");
}

#[test]
fn scenario_23_a_tree_that_ignores_termination_is_dead_after_the_grace() {
    for detach in DETACH {
        let world = World::new();
        let (id, pids) = stubborn(&world, &[], 2, detach);
        let killed = world.json(["kill", "--grace", "200ms", "--json", &id]);
        all_dead(&id, &pids, detach);
        Job::new(killed).in_case(detach).lacks("/survivors").has("/already_ended", false);
        world.show(&id).in_case(detach).lacks("/survivors").has("/outcome/exit", exit_killed());
    }
}

#[test]
fn scenario_24_killing_a_finished_job_changes_nothing() {
    let world = World::new();
    let settled = world.launch(args!["--", bin("exit-with"), "3"]);
    let pending = world.launch(args!["--session", "a", "--", bin("exit-with"), "0"]);
    let killed = held(&world, &[]);
    world.run(["wait", &settled, &pending]);
    world.run(["kill", &killed]).ok();
    world.settle_down();
    world.run(["reconcile"]).ok();
    let before = Snapshot::of(world.home());
    for (id, ending, outcome) in [
        (&settled, "failed: exit code 3", json!({"kind": "exited", "code": 3})),
        (&pending, "done: exit code 0", json!({"kind": "exited", "code": 0})),
        (
            &killed,
            &*format!("killed: by a person or a script ({})", shown(&exit_terminated())),
            world.show(&killed)["outcome"].clone(),
        ),
    ] {
        for how in [&["kill"][..], &["kill", "--force"], &["kill", "--grace", "0s", "--reason", "again"]] {
            let told = world.run(how.iter().chain(&[id.as_str()])).ok();
            assert_eq!(told, format!("{id} had already ended: {ending}"));
            let told = without_job(world.json(how.iter().chain(&["--json", id.as_str()])));
            assert_eq!(told, json!({"format": 1, "id": id, "already_ended": true, "outcome": outcome}));
        }
    }
    unchanged(&world, &before);
}

#[test]
fn an_end_that_another_process_planted_ends_nothing() {
    let world = World::new();
    for planted in ["not an end", r#"{"format":1,"outcome":{"kind":"exited","code":0},"at_ms":0}"#] {
        let id = held(&world, &[]);
        let target = world.show(&id)["pid"].as_u64().unwrap().try_into().unwrap();
        fs_err::write(world.job_dir(&id).join("end.json"), planted).unwrap();
        world.show(&id).because("its supervisor is alive").state_is("running");
        assert_eq!(world.run(["wait", &id, "--timeout", "100ms"]).code, Some(75));
        let killed = world.run(["kill", &id]);
        assert!(!alive(target), "it has ended when kill says so: {killed:?}");
        assert!(!killed.stdout.contains("already"), "{killed:?}");
    }
}

#[test]
fn scenario_31_an_unresponsive_supervisor_is_an_error_and_can_be_killed() {
    let world = World::new();
    let (id, tree) = stubborn(&world, &["--grace", "100ms"], 2, "none");
    let supervisor = world.supervisor(&id);
    stop(supervisor);
    let refused = world.run(["kill", "--grace", "100ms", &id]);
    refused.refuses(1).says("does not answer").says("\ntip: ").says("--force");
    let listed = world.json(["list", "--state", "running", "--json"]);
    assert_eq!(listed["jobs"][0]["id"], id.as_str(), "{listed}");
    assert!(tree.iter().all(|pid| alive(*pid)));

    world.run(["kill", "--force", &id]).ok();
    all_dead(&id, &[&tree[..], &[supervisor]].concat(), "killed");
    world.show(&id).is_lost("supervisor_died");
    world.run(["wait", &id]).exits(125);
}

/// How a paused job may end when it is killed. The thread that handles Ctrl-Break on Windows is a new one, which
/// no process has stopped.
fn exits_of_a_paused_job() -> Vec<Value> {
    if is_real_windows() { vec![exit_terminated(), exit_killed()] } else { vec![exit_killed()] }
}

#[test]
fn a_paused_job_is_shown_as_paused_and_can_be_continued_or_killed() {
    let world = World::new();
    let witness = world.scratch("witness");
    let id = world.launch(args!["--", bin("hold"), world.scratch("never"), "--witness", witness]);
    let target = holder(&witness);
    let shown = |stopped: bool| {
        let what = if stopped { "paused" } else { "running" };
        eventually(what, || {
            let job = world.show(&id);
            (job.get("paused") == stopped.then_some(&json!(true)) && job["state"] == "running").then_some(())
        });
        assert!(world.run(["show", &id]).ok().starts_with(what));
        let listed = world.run(["list"]).ok();
        assert!(listed.contains(&format!(" {what} ")), "{listed}");
        let listed = world.json(["list", "--state", "running", "--json"]);
        assert_eq!(listed["jobs"][0].get("paused"), stopped.then_some(&json!(true)), "{listed}");
    };
    shown(false);
    stop(target);
    shown(true);
    go_on(target);
    shown(false);
    stop(target);
    shown(true);
    world.run(["kill", "--grace", "100ms", &id]).ok();
    all_dead(&id, &[target], "stopped");
    let job = world.show(&id);
    assert!(exits_of_a_paused_job().contains(&job["outcome"]["exit"]), "{job}");
    job.lacks("/paused");
}

#[test]
fn the_limit_of_a_paused_job_counts_on() {
    let world = World::new();
    let witness = world.scratch("witness");
    let limits = args!["--timeout", scaled("1s", "3s"), "--grace", "100ms", "--"];
    let hold = args![bin("hold"), world.scratch("never"), "--witness", witness];
    let id = world.launch(limits.into_iter().chain(hold));
    let target = holder(&witness);
    stop(target);
    world.run(["wait", &id]).exits(124);
    all_dead(&id, &[target], "stopped");
    let job = world.show(&id);
    assert!(exits_of_a_paused_job().contains(&job["outcome"]["exit"]), "{job}");
}

/// How many times a race is run, and by how many at once.
fn races() -> (usize, usize) {
    let full = is_full();
    scaled((if full { 1000 } else { 100 }, 4), (if full { 100 } else { 10 }, 2))
}

/// One job that ends by itself about when it is killed. Returns whether the kill was in time.
fn race(world: &World, n: usize) -> bool {
    let after = (n * scaled(7, 67) % scaled(40, 400)).to_string();
    let exits = args!["--grace", "500ms", "--session", "a", "--", bin("exit-with"), "7", "--after", after];
    let id = world.launch(exits);
    let killed = world.json(["kill", "--json", &id]);
    let waited = world.run(["wait", &id]).code;
    let job = world.show(&id).in_case(n);
    assert_eq!(job["outcome"], killed["outcome"], "the kill reported another outcome: {job}");
    // One follow-up is pending, however it ended: the session did not kill the job.
    job.state_is("failed").follow_up_is("pending");
    match job["outcome"]["kind"].as_str() {
        Some("exited") => {
            job.has("/outcome/code", 7);
            assert_eq!(waited, Some(7), "{job}");
            false
        }
        Some("killed") => {
            assert_eq!(killed["already_ended"], false, "{job}");
            assert_eq!(waited, code(&job["outcome"]["exit"]), "{job}");
            true
        }
        other => panic!("{other:?} in {job}"),
    }
}

#[test]
fn scenario_20_a_kill_and_an_exit_at_once_make_exactly_one_end() {
    let world = World::new();
    let (wanted, at_once) = races();
    let in_time = rounds(wanted, at_once, |n| race(&world, n)).into_iter().filter(|in_time| *in_time).count();
    world.settle_down();
    let store = Snapshot::of(world.home());
    let ends = store.paths().filter(|path| path.file_name() == Some(OsStr::new("end.json"))).count();
    assert_eq!(ends, wanted);
    eprintln!("{in_time} of {wanted} kills were in time");
}

#[test]
fn scenario_67_a_tree_over_its_time_limit_is_stopped_whole() {
    let world = World::new();
    let witness = world.scratch("witness");
    let tree = args![bin("tree"), "--depth", "2", "--breadth", "2", "--detach", "setsid", "--ignore-term"];
    let id = world.launch(
        args!["--session", "a", "--timeout", "300ms", "--grace", "200ms", "--"]
            .into_iter()
            .chain(tree)
            .chain(args!["--witness", witness]),
    );
    world.run(["wait", &id]).exits(124);
    all_dead(&id, &first_words(&witness), "beyond its limit");
    let job = world.show(&id);
    job.outcome_is(json!({"kind": "timed_out", "limit_ms": 300, "exit": exit_killed()}));
    job.has("/timeout_ms", 300).lacks("/survivors").follow_up_is("pending");
    assert!(job["ran_ms"].as_u64().unwrap() >= 300, "not early: {job}");
    assert!(world.run(["show", &id]).ok().contains("timed out: exceeded its limit of 300 ms"));
}

#[test]
fn scenario_67_a_job_that_ends_in_time_is_not_timed_out() {
    let world = World::new();
    let id = world.launch(args!["--timeout", "20s", "--", bin("exit-with"), "4"]);
    world.run(["wait", &id]).exits(4);
    world.show(&id).exited(4);
}

#[test]
fn scenario_111_only_silence_is_ended_by_an_idle_limit() {
    let world = World::new();
    // Longer than a program takes to begin.
    let limit = scaled(500, 4000);
    let (idle, pause) = (format!("{limit}ms"), scaled("20", "100"));
    let limits = args!["--timeout", "none", "--grace", "500ms", "--idle-timeout", idle, "--"];
    let printing =
        args![bin("print"), "--bytes", "4000", "--line-length", "80", "--pause-ms", pause].into_iter();
    let printing = world.launch(limits.iter().cloned().chain(printing));
    let silent = args![bin("hold"), world.scratch("never"), "--print", "once"].into_iter();
    let silent = world.launch(limits.into_iter().chain(silent));

    world.run(["wait", &silent]).exits(124);
    let job = world.show(&silent);
    job.outcome_is(json!({"kind": "idle_timed_out", "limit_ms": limit, "exit": exit_terminated()}));
    job.lacks("/timeout_ms").has("/idle_timeout_ms", limit).has("/output/bytes", 5);

    world.run(["wait", &printing]).ok();
    let job = world.show(&printing);
    job.ended_as("exited").has("/output/bytes", 4000);
    assert!(job["ran_ms"].as_u64().unwrap() > limit, "it ran longer than the limit: {job}");
}

#[test]
fn scenario_36_a_grandchild_that_keeps_the_output_open_delays_nothing() {
    let world = World::new();
    let witness = world.scratch("witness");
    let hold = args![bin("hold"), world.scratch("never"), "--print", "grandchild", "--witness", witness, ";"];
    let act = args!["--leftovers", "kill", "--", bin("act"), "detach"].into_iter().chain(hold);
    let began = Instant::now();
    let id = world.launch(act.chain(args!["until", "1", witness, "print", "main", "exit", "5"]));
    world.run(["wait", &id]).exits(5);
    assert!(began.elapsed() < PROMPTLY);
    all_dead(&id, &[holder(&witness)], "left behind");
    world.show(&id).exited(5).lacks("/survivors");
    assert_eq!(printed(&world, &id), ["grandchild", "main"]);
}

#[test]
fn a_leftover_that_ignores_termination_is_killed_and_the_code_is_kept() {
    let world = World::new();
    let witness = world.scratch("witness");
    let tree =
        args![bin("tree"), "--depth", "0", "--breadth", "0", "--ignore-term", "--witness", witness, ";"];
    let act = args!["--grace", "200ms", "--", bin("act"), "detach"].into_iter().chain(tree);
    let id = world.launch(act.chain(args!["until", "1", witness, "exit", "6"]));
    world.run(["wait", &id]).exits(6);
    all_dead(&id, &first_words(&witness), "left behind");
    world.show(&id).exited(6);
}

#[test]
fn scenario_37_a_job_that_closes_its_output_is_still_running() {
    let world = World::new();
    let (go, witness) = (world.scratch("go"), world.scratch("witness"));
    let act =
        args!["--", bin("act"), "print", "before", "close", "witness", witness, "hold", go, "exit", "6"];
    let id = world.launch(act);
    holder(&witness);
    world.run(["wait", "--timeout", "300ms", &id]).exits(75);
    world.show(&id).state_is("running");
    fs_err::write(&go, "").unwrap();
    world.run(["wait", &id]).exits(6);
    assert_eq!(world.run(["logs", &id]).ok(), "before");
}

#[test]
fn scenario_76_another_sessions_job_is_not_found_and_not_touched() {
    let world = World::new();
    let witness = world.scratch("witness");
    let hold = args!["--", bin("hold"), world.scratch("never"), "--witness", witness];
    let id = world.launch(args!["--session", "mine"].into_iter().chain(hold));
    let target = holder(&witness);
    let before = Snapshot::of(world.home());
    for name in [&id, &id[9..]] {
        for force in [&[][..], &["--force"]] {
            let words = [&["kill", name][..], force].concat();
            let refused = run_as(&world, "other", &words);
            refused.refuses(1);
            assert!(refused.stderr.starts_with(&format!("error: no job `{name}`")), "{refused:?}");
            assert_eq!(world.run([&words[..], &["--session", "other"]].concat()).code, Some(1));
        }
    }
    unchanged(&world, &before);
    assert!(alive(target));

    // A caller may kill it with `--all-sessions`, and is named; the owner did not ask for it and is notified.
    run_as(&world, "other", &["kill", &id, "--all-sessions"]).ok();
    world.show(&id).has("/outcome/by", json!({"session": "other"})).follow_up_is("pending");
}

#[test]
fn scenario_77_a_kill_by_the_owner_wakes_no_agent() {
    let world = World::new();
    let id = held(&world, &["--session", "mine"]);
    run_as(&world, "mine", &["kill", &id]).ok();
    world.show(&id).has("/outcome/by", json!({"session": "mine"})).follow_up_is("not_wanted");
    is_settled(&world, &id);

    world.settle_down();
    let before = Snapshot::of(world.home());
    for session in ["mine", "other"] {
        let unknown = run_as(&world, session, &["kill", "zzzzzzzz"]);
        unknown.refuses(1);
        assert!(unknown.stderr.starts_with("error: no job `zzzzzzzz`\ntip: "), "{unknown:?}");
    }
    assert!(run_as(&world, "mine", &["kill", &id]).ok().contains("had already ended: killed"));
    unchanged(&world, &before);

    let always = held(&world, &["--session", "mine", "--notify", "always"]);
    run_as(&world, "mine", &["kill", &always]).ok();
    world.show(&always).follow_up_is("pending");
}

// Not on Windows: a console without a window, as a supervisor has it, gets a close event only at logoff.
#[cfg(unix)]
#[test]
fn a_supervisor_that_is_terminated_ends_its_job() {
    for detach in DETACH {
        let world = World::new();
        let (id, pids) = stubborn(&world, &["--grace", "200ms"], 1, detach);
        signal(world.supervisor(&id), nix::sys::signal::Signal::SIGTERM);
        assert_eq!(world.run(["wait", &id]).code, Some(137), "{detach}");
        all_dead(&id, &pids, detach);
        let killed = json!({"kind": "killed", "by": "system", "exit": exit_killed()});
        world.show(&id).in_case(detach).outcome_is(killed);
    }
}

/// A job that is done and has left a process that prints `late` when `go` is there, and `last` when
/// `end` is.
#[track_caller]
fn kept(world: &World) -> (String, u32) {
    let witness = world.scratch("witness");
    let (go, end) = (world.scratch("go"), world.scratch("end"));
    let later =
        args![bin("act"), "witness", witness, "hold", go, "print", "late", "hold", end, "print", "last", ";"];
    let act = args!["--leftovers", "keep", "--grace", "500ms", "--", bin("act"), "detach"].into_iter();
    let id = world.launch(act.chain(later).chain(args!["until", "1", witness, "print", "main"]));
    world.run(["wait", &id]).ok();
    (id, holder(&witness))
}

#[test]
fn leftovers_that_are_kept_live_on_and_are_heard() {
    let world = World::new();
    let (id, leftover) = kept(&world);
    let job = world.show(&id);
    job.state_is("done");
    let named = job["survivors"].as_array().unwrap();
    assert!(alive(leftover) && named.contains(&json!(leftover)), "{job}");
    assert_eq!(printed(&world, &id), ["main"]);
    assert!(world.home().join("jobs").join(&id).exists(), "its output is still written");

    fs_err::write(world.scratch("go"), "").unwrap();
    eventually("what it prints later is kept", || (printed(&world, &id) == ["main", "late"]).then_some(()));
    world.run(["reconcile"]).ok();
    assert!(
        world.home().join("jobs").join(&id).exists(),
        "no command moves it while its supervisor keeps it"
    );
    fs_err::write(world.scratch("end"), "").unwrap();
    is_settled(&world, &id);
    assert_eq!(printed(&world, &id), ["main", "late", "last"], "to the last byte");
    world.show(&id).exited(0);
}

#[test]
fn leftovers_that_were_kept_can_be_killed() {
    let world = World::new();
    let (id, leftover) = kept(&world);
    let killed = without_job(world.json(["kill", "--json", &id]));
    let outcome = json!({"kind": "exited", "code": 0});
    let expected =
        json!({"format": 1, "id": id, "already_ended": true, "outcome": outcome, "leftovers_killed": 1});
    assert_eq!(killed, expected);
    all_dead(&id, &[leftover], "kept");
    is_settled(&world, &id);
    world.show(&id).state_is("done").lacks("/survivors").notes("1 process that outlived it has ended since");
    assert!(!world.run(["show", &id]).ok().contains("still runs"));
    let again = world.json(["kill", "--json", &id]);
    Job::new(again).has("/already_ended", true).lacks("/leftovers_killed");

    let other = World::new();
    let (id, _) = kept(&other);
    assert!(other.run(["show", &id]).ok().contains("outlived it and still runs"));
    let killed = other.run(["kill", &id]).ok();
    assert!(
        killed.ends_with("already ended: done: exit code 0; 1 process that had outlived it was killed"),
        "{killed}"
    );
}

#[test]
fn several_jobs_are_requested_to_end_at_once() {
    let world = World::new();
    let ready = |n: usize| world.scratch(format!("ready-{n}"));
    let launch = |n: usize| {
        let tree = args![
            "--",
            bin("tree"),
            "--depth",
            "0",
            "--breadth",
            "1",
            "--ignore-term",
            "--witness",
            ready(n)
        ];
        let id = world.launch(tree);
        eventually("it ignores termination", || (!lines(ready(n)).is_empty()).then_some(()));
        id
    };
    let ids: Vec<_> = (0..6).map(launch).collect();
    let since = Instant::now();
    let killed = world.run(["kill", "--grace", "3s"].into_iter().chain(ids.iter().map(String::as_str)));
    let took = since.elapsed();
    let answers: Vec<_> = killed.ok().lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), 6, "{answers:?}");
    for (id, answer) in ids.iter().zip(&answers) {
        assert!(answer.starts_with(&format!("{id} killed")), "in their order: {answers:?}");
    }
    assert!(
        (Duration::from_secs(3)..Duration::from_secs(15)).contains(&took),
        "one after the other: {took:?}"
    );
}

#[test]
fn a_job_that_was_launched_by_a_job_survives_it() {
    let world = World::new();
    for (n, limits) in [&[][..], &["--timeout", scaled("1500ms", "9s")]].into_iter().enumerate() {
        let [told, witness] = [format!("told-{n}"), format!("witness-{n}")].map(|name| world.scratch(name));
        let never = world.scratch("never");
        let act = args!["--grace", "500ms", "--", bin("act"), "run", told, bin("hearback"), "launch", "--"];
        let hold = args![bin("hold"), never, "--witness", witness, ";", "hold", never];
        let limits_given = limits.iter().map(OsString::from);
        let outer = world.launch(limits_given.chain(act).chain(hold));
        let inner = eventually("the inner job is known", || lines(&told).first().cloned());
        let target = holder(&witness);
        if limits.is_empty() {
            world.run(["kill", &outer]).ok();
        } else {
            world.run(["wait", &outer]).exits(124);
        }
        world.show(&outer).in_case(format!("{limits:?}")).state_is("failed");
        assert!(alive(target), "{limits:?}");
        world.show(&inner).in_case(format!("{limits:?}")).state_is("running");
        no_process_carries(&outer, "outer");
        world.run(["kill", "--grace", "500ms", &inner]).ok();
        all_dead(&inner, &[target], "inner");
    }
}

#[test]
fn a_second_kill_is_more_urgent_and_the_first_names_the_cause() {
    let world = World::new();
    let (id, pids) = stubborn(&world, &[], 0, "none");
    let began = Instant::now();
    let mut first = world.command(["kill", "--grace", "60s", "--reason", "first", &id]);
    let mut first = KillOnDrop(first.stdout(Stdio::null()).spawn().unwrap());
    let asked = world.job_dir(&id).join("kill.1.json");
    eventually("the first has asked", || asked.exists().then_some(()));
    world.run(["kill", "--grace", "60s", "--reason", "lost", "zzzzzzzz"]).exits(1);
    assert!(alive(pids[0]));
    world.run(["kill", "--grace", "0s", "--reason", "second", &id]).ok();
    all_dead(&id, &pids, "urgent");
    assert!(began.elapsed() < PROMPTLY);
    assert_eq!(first.0.wait().unwrap().code(), Some(0));
    world.show(&id).has("/outcome/reason", "first").has("/outcome/exit", exit_killed());
}

#[test]
fn invalid_limits_are_refused_and_nothing_runs() {
    let world = World::new();
    for (words, helpful) in [
        (&["--timeout", "0"][..], "`none`"),
        (&["--timeout", "0s"], "`none`"),
        (&["--timeout", "soon"], "use `90s`, `10m`, `2h` or `none`"),
        (&["--timeout", "-5m"], "use `90s`, `10m`, `2h` or `none`"),
        (&["--idle-timeout", "0s"], "`none`"),
        (&["--grace", "-1"], "such as `5s` or `1m`"),
        (&["--grace", "none"], "such as `5s` or `1m`"),
        (&["--leftovers", "maybe"], "kill, keep"),
    ] {
        let ran = world.run(["launch"].iter().chain(words).chain(&["--", "true"]));
        ran.refuses(2).says(words[0]).says(helpful);
    }
    for words in [&["--grace", "-1"][..], &["--grace", "soon"], &["--grace", "1s", "--force"]] {
        let ran = world.run(["kill", "zzzzzzzz"].iter().chain(words));
        ran.refuses(2).says("--grace");
    }
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"], json!([]));
}

#[test]
fn scenario_154_a_person_has_no_limit_and_a_session_has_an_hour_unless_said_otherwise() {
    let world = World::new();
    for (words, expected) in [
        (&[][..], None),
        (&["--session", "s"], Some(3_600_000)),
        (&["--session", "s", "--timeout", "none"], None),
        (&["--timeout", "none"], None),
        (&["--timeout", "90m"], Some(5_400_000)),
        (&["--timeout", "1000000000000000h"], Some(u64::MAX)),
    ] {
        let words = words.iter().map(OsString::from);
        let id = world.launch(words.chain(args!["--", bin("exit-with"), "0"]));
        world.run(["wait", &id]).ok();
        let job = world.show(&id);
        match expected {
            Some(limit) => job.has("/timeout_ms", limit),
            None => job.lacks("/timeout_ms"),
        };
        job.lacks("/idle_timeout_ms");
    }
    // A setting holds for both, and a launch over it.
    for (setting, words, expected) in [
        ("90s", &[][..], Some(90_000)),
        ("90s", &["--session", "s"], Some(90_000)),
        ("90s", &["--timeout", "2m"], Some(120_000)),
        ("none", &["--session", "s"], None),
    ] {
        let mut launch = world.command(["launch", "--json", "--wait"]);
        launch.args(words).args(args!["--", bin("exit-with"), "0"]).env("HEARBACK_TIMEOUT", setting);
        let job: Value = serde_json::from_str(&run(launch).ok()).unwrap();
        assert_eq!(job["timeout_ms"].as_u64(), expected, "{setting} {words:?}");
    }
}
