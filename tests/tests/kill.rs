//! Ending jobs: on request, by a limit, with everything that they started, and with the truth on record.
//!
//! By default a race is run some times; with `HEARBACK_TEST_FULL=1` a thousand.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hearback_tests::{KillOnDrop, Ran, Snapshot, World, alive, bin, carrying, eventually, lines, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const DETACH: [&str; 4] = ["none", "group", "setsid", "double-fork"];
/// Far less than a fixture lives, far more than anything here takes.
const PROMPTLY: Duration = Duration::from_secs(20);

macro_rules! args {
    ($($arg:expr),* $(,)?) => { [$(AsRef::<OsStr>::as_ref(&$arg).to_owned()),*] };
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

/// hearback as a session runs it.
fn run_as(world: &World, session: &str, args: &[&str]) -> Ran {
    let mut command = world.command(args);
    command.env("HEARBACK_SESSION", session);
    run(command)
}

/// A job that lasts until it is ended.
#[track_caller]
fn held(world: &World, options: &[&str]) -> String {
    let options = options.iter().map(OsString::from);
    world.launch(options.chain(args!["--", bin("hold"), world.scratch("never")]))
}

/// A job of `sh` that has said that it is ready.
#[track_caller]
fn ready(world: &World, text: &str) -> String {
    let id = world.launch(["--", "sh", "-c", text]);
    eventually("the job is ready", || {
        let logs = world.run(["logs", &id]).ok();
        (logs == "ready").then_some(())
    });
    id
}

/// A job of processes that do not end when they are asked, and their pids.
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
    let line = eventually("somebody holds", || lines(witness).first().cloned());
    line.strip_prefix("start ").unwrap().parse().unwrap()
}

#[track_caller]
fn all_dead(id: &str, pids: &[u32], what: &str) {
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    assert!(left.is_empty(), "{what}: {left:?} are left");
    assert_eq!(carrying(&format!("HEARBACK_JOB={id}")), [0; 0], "{what}");
}

/// Nobody works in this world any more.
#[track_caller]
fn settle_down(world: &World) {
    let mark = format!("HEARBACK_HOME={}", world.home().display());
    eventually("everybody has left", || carrying(&mark).is_empty().then_some(()));
}

#[track_caller]
fn is_settled(world: &World, id: &str) {
    eventually("the job is in history", || {
        (!world.home().join("jobs").join(id).exists() && world.job_dir(id).exists()).then_some(())
    });
}

#[track_caller]
fn unchanged(world: &World, before: &Snapshot) {
    let changes = before.changes(&Snapshot::of(world.home()));
    assert!(changes.is_empty(), "{changes:?}");
}

fn quoted(path: impl AsRef<Path>) -> String {
    format!("'{}'", path.as_ref().display())
}

#[test]
fn scenario_21_a_killed_job_names_who_did_it_and_what_was_seen_of_it() {
    let world = World::new();
    let by_signal = |signal: i32| json!({"kind": "signaled", "signal": signal, "core": false});

    let id = held(&world, &[]);
    let told = world.run(["kill", &id, "--reason", "too slow"]).ok();
    assert_eq!(told, format!("{id} killed: by a person, too slow (then signal 15)"));
    let expected = json!({"kind": "killed", "by": "person", "reason": "too slow", "exit": by_signal(15)});
    let job = world.show(&id);
    assert_eq!((&job["outcome"], &job["state"]), (&expected, &json!("failed")));
    assert_eq!(world.run(["wait", &id]).code, Some(143));

    let id = held(&world, &["--session", "a"]);
    let killed = run_as(&world, "a", &["kill", &id, "--force", "--json"]).ok();
    let killed: Value = serde_json::from_str(&killed).unwrap();
    let expected = json!({"kind": "killed", "by": {"session": "a"}, "exit": by_signal(9)});
    assert_eq!(killed, json!({"format": 1, "id": id, "was_over": false, "outcome": expected}));
    assert_eq!(world.show(&id)["outcome"], expected);
    assert_eq!(world.run(["wait", &id]).code, Some(137));
}

#[test]
fn scenario_21_a_killed_job_is_no_success_whatever_it_returns() {
    let world = World::new();
    for code in [9, 0] {
        let id = ready(&world, &format!("trap 'exit {code}' TERM; echo ready; while :; do sleep 0.05; done"));
        world.run(["kill", &id]).ok();
        let job = world.show(&id);
        let expected = json!({"kind": "killed", "by": "person", "exit": {"kind": "exited", "code": code}});
        assert_eq!((&job["outcome"], &job["state"]), (&expected, &json!("failed")));
        assert_eq!(world.run(["wait", &id]).code, Some(143));
    }
}

#[test]
fn several_jobs_are_killed_by_one_command() {
    let world = World::new();
    let (one, two) = (held(&world, &[]), held(&world, &[]));
    let killed = world.run(["kill", "--json", &one, &two]).ok();
    let outcomes: Vec<Value> = killed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&outcomes[0]["id"], &outcomes[1]["id"]), (&json!(one), &json!(two)));
    // One that is not found is found out before anybody is harmed.
    let three = held(&world, &[]);
    assert_eq!(world.run(["kill", &three, "zzzzzzzz"]).code, Some(1));
    assert_eq!(world.show(&three)["state"], "running");
}

#[test]
fn scenario_23_a_tree_that_ignores_the_request_is_dead_after_the_grace() {
    for detach in DETACH {
        let world = World::new();
        let (id, pids) = stubborn(&world, &[], 2, detach);
        let killed = world.json(["kill", "--grace", "200ms", "--json", &id]);
        all_dead(&id, &pids, detach);
        assert_eq!((killed.get("survivors"), &killed["was_over"]), (None, &json!(false)), "{detach}");
        let job = world.show(&id);
        assert_eq!(job.get("survivors"), None, "{detach}: {job}");
        assert_eq!(job["outcome"]["exit"]["signal"], 9, "{detach}: {job}");
    }
}

#[test]
fn scenario_24_a_finished_job_is_already_over_and_nothing_happens() {
    let world = World::new();
    let settled = world.launch(args!["--", bin("exit-with"), "3"]);
    let pending = world.launch(args!["--session", "a", "--", bin("exit-with"), "0"]);
    let killed = held(&world, &[]);
    world.run(["wait", &settled, &pending]);
    world.run(["kill", &killed]).ok();
    settle_down(&world);
    world.run(["reconcile"]).ok();
    let before = Snapshot::of(world.home());
    for (id, ending, outcome) in [
        (&settled, "failed: exit code 3", json!({"kind": "exited", "code": 3})),
        (&pending, "done: exit code 0", json!({"kind": "exited", "code": 0})),
        (&killed, "killed: by a person (then signal 15)", world.show(&killed)["outcome"].clone()),
    ] {
        for how in [&["kill"][..], &["kill", "--force"], &["kill", "--grace", "0s", "--reason", "again"]] {
            let told = world.run(how.iter().chain(&[id.as_str()])).ok();
            assert_eq!(told, format!("{id} was already over: {ending}"));
            let told = world.json(how.iter().chain(&["--json", id.as_str()]));
            assert_eq!(told, json!({"format": 1, "id": id, "was_over": true, "outcome": outcome}));
        }
    }
    unchanged(&world, &before);
}

#[test]
fn scenario_31_a_supervisor_that_does_not_answer_is_an_error_and_can_be_forced() {
    let world = World::new();
    let witness = world.scratch("witness");
    let id = world.launch(args!["--", bin("hold"), world.scratch("never"), "--witness", witness]);
    let (target, supervisor) = (holder(&witness), world.supervisor(&id));
    signal(supervisor, Signal::SIGSTOP);
    let refused = world.run(["kill", "--grace", "100ms", &id]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("does not answer"), "{refused:?}");
    assert!(refused.stderr.contains("\ntip: ") && refused.stderr.contains("--force"), "{refused:?}");
    let listed = world.json(["list", "--state", "running", "--json"]);
    assert_eq!(listed["jobs"][0]["id"], id.as_str(), "{listed}");
    assert!(alive(target));

    world.run(["kill", "--force", &id]).ok();
    all_dead(&id, &[target, supervisor], "forced");
    let job = world.show(&id);
    assert_eq!(job["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}));
    assert_eq!(world.run(["wait", &id]).code, Some(125));
}

#[test]
fn a_stopped_job_is_shown_as_one_and_can_be_continued_or_killed() {
    let world = World::new();
    let witness = world.scratch("witness");
    let id = world.launch(args!["--", bin("hold"), world.scratch("never"), "--witness", witness]);
    let target = holder(&witness);
    let shown = |stopped: bool| {
        let what = if stopped { "stopped" } else { "running" };
        eventually(what, || {
            let job = world.show(&id);
            (job.get("stopped") == stopped.then_some(&json!(true)) && job["state"] == "running").then_some(())
        });
        assert!(world.run(["show", &id]).ok().starts_with(what));
        let listed = world.run(["list"]).ok();
        assert!(listed.contains(&format!(" {what} ")), "{listed}");
        let listed = world.json(["list", "--state", "running", "--json"]);
        assert_eq!(listed["jobs"][0].get("stopped"), stopped.then_some(&json!(true)), "{listed}");
    };
    shown(false);
    signal(target, Signal::SIGSTOP);
    shown(true);
    signal(target, Signal::SIGCONT);
    shown(false);
    signal(target, Signal::SIGSTOP);
    shown(true);
    world.run(["kill", "--grace", "100ms", &id]).ok();
    all_dead(&id, &[target], "stopped");
    let job = world.show(&id);
    assert_eq!((&job["outcome"]["exit"]["signal"], job.get("stopped")), (&json!(9), None), "{job}");
}

#[test]
fn the_limit_of_a_stopped_job_counts_on() {
    let world = World::new();
    let witness = world.scratch("witness");
    let limits = args!["--timeout", "1s", "--grace", "100ms", "--"];
    let hold = args![bin("hold"), world.scratch("never"), "--witness", witness];
    let id = world.launch(limits.into_iter().chain(hold));
    let target = holder(&witness);
    signal(target, Signal::SIGSTOP);
    assert_eq!(world.run(["wait", &id]).code, Some(124));
    all_dead(&id, &[target], "stopped");
    assert_eq!(world.show(&id)["outcome"]["exit"]["signal"], 9);
}

/// How many times a race is run, and by how many at once.
fn races() -> (usize, usize) {
    (if std::env::var_os("HEARBACK_TEST_FULL").is_some() { 1000 } else { 100 }, 4)
}

/// One job that ends by itself about when it is killed. Tells whether the kill was in time.
fn race(world: &World, n: usize) -> bool {
    let text = format!("sleep 0.0{:02}; exit 7", n * 7 % 40);
    let id = world.launch(["--session", "a", "--", "sh", "-c", &text]);
    let killed = world.json(["kill", "--json", &id]);
    let code = world.run(["wait", &id]).code;
    let job = world.show(&id);
    assert_eq!(job["outcome"], killed["outcome"], "{n}: told otherwise before: {job}");
    assert_eq!(job["state"], "failed", "{n}: {job}");
    // One message is owed, however it ended: nobody of the session has asked for the end.
    assert_eq!(job["follow_up"]["state"], "owed", "{n}: {job}");
    match job["outcome"]["kind"].as_str() {
        Some("exited") => {
            assert_eq!((&job["outcome"]["code"], code), (&json!(7), Some(7)), "{n}: {job}");
            false
        }
        Some("killed") => {
            assert_eq!(killed["was_over"], false, "{n}: {job}");
            let by_signal = job["outcome"]["exit"]["signal"].as_i64();
            let expected = by_signal.map_or(143, |signal| 128 + i32::try_from(signal).unwrap());
            assert_eq!(code, Some(expected), "{n}: {job}");
            true
        }
        other => panic!("{n}: {other:?} in {job}"),
    }
}

#[test]
fn scenario_20_a_kill_and_an_exit_at_once_make_exactly_one_end() {
    let world = World::new();
    let (wanted, at_once) = races();
    let (next, in_time) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= wanted {
                        return;
                    }
                    if race(&world, n) {
                        in_time.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    settle_down(&world);
    let store = Snapshot::of(world.home());
    let ends = store.paths().filter(|path| path.file_name() == Some(OsStr::new("end.json"))).count();
    assert_eq!(ends, wanted);
    eprintln!("{in_time:?} of {wanted} kills were in time");
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
    assert_eq!(world.run(["wait", &id]).code, Some(124));
    all_dead(&id, &first_words(&witness), "over its limit");
    let job = world.show(&id);
    let exit = json!({"kind": "signaled", "signal": 9, "core": false});
    assert_eq!(job["outcome"], json!({"kind": "timed_out", "limit_ms": 300, "exit": exit}), "{job}");
    assert_eq!((&job["timeout_ms"], job.get("survivors")), (&json!(300), None), "{job}");
    assert!(job["ran_ms"].as_u64().unwrap() >= 300, "not early: {job}");
    assert_eq!(job["follow_up"]["state"], "owed", "{job}");
    assert!(world.run(["show", &id]).ok().contains("timed out: over its limit of 300 ms"));
}

#[test]
fn scenario_67_a_job_that_ends_in_time_is_not_timed_out() {
    let world = World::new();
    let id = world.launch(args!["--timeout", "20s", "--", bin("exit-with"), "4"]);
    assert_eq!(world.run(["wait", &id]).code, Some(4));
    assert_eq!(world.show(&id)["outcome"], json!({"kind": "exited", "code": 4}));
}

#[test]
fn scenario_111_only_silence_is_ended_by_an_idle_limit() {
    let world = World::new();
    let limits = args!["--timeout", "none", "--idle-timeout", "500ms", "--"];
    let printing =
        args![bin("print"), "--bytes", "4000", "--line-length", "80", "--pause-ms", "20"].into_iter();
    let printing = world.launch(limits.iter().cloned().chain(printing));
    let silent = args![bin("hold"), world.scratch("never"), "--print", "once"].into_iter();
    let silent = world.launch(limits.into_iter().chain(silent));

    assert_eq!(world.run(["wait", &silent]).code, Some(124));
    let job = world.show(&silent);
    let exit = json!({"kind": "signaled", "signal": 15, "core": false});
    assert_eq!(job["outcome"], json!({"kind": "idle_timed_out", "limit_ms": 500, "exit": exit}), "{job}");
    assert_eq!((job.get("timeout_ms"), &job["idle_timeout_ms"]), (None, &json!(500)), "{job}");
    assert_eq!(job["output"]["bytes"], 5, "{job}");

    world.run(["wait", &printing]).ok();
    let job = world.show(&printing);
    assert_eq!((&job["outcome"]["kind"], &job["output"]["bytes"]), (&json!("exited"), &json!(4000)));
    assert!(job["ran_ms"].as_u64().unwrap() > 500, "it lived longer than the limit: {job}");
}

#[test]
fn scenario_36_a_grandchild_that_keeps_the_output_open_delays_nothing() {
    let world = World::new();
    let witness = world.scratch("witness");
    let grandchild = world.scratch("grandchild");
    let hold = format!(
        "echo grandchild; exec {} {} --witness {}",
        quoted(bin("hold")),
        quoted(world.scratch("never")),
        quoted(&witness),
    );
    fs_err::write(&grandchild, hold).unwrap();
    let text = format!(
        "setsid sh {} & until [ -s {} ]; do sleep 0.01; done; echo main; exit 5",
        quoted(&grandchild),
        quoted(&witness),
    );
    let began = Instant::now();
    let id = world.launch(["--leftovers", "kill", "--", "sh", "-c", &text]);
    assert_eq!(world.run(["wait", &id]).code, Some(5));
    assert!(began.elapsed() < PROMPTLY);
    all_dead(&id, &[holder(&witness)], "left behind");
    let job = world.show(&id);
    assert_eq!((&job["outcome"], job.get("survivors")), (&json!({"kind": "exited", "code": 5}), None));
    assert_eq!(world.run(["logs", &id]).ok(), "grandchild\nmain");
}

#[test]
fn a_leftover_that_ignores_the_request_is_forced_and_the_code_is_kept() {
    let world = World::new();
    let witness = world.scratch("witness");
    let text = format!(
        "{} --depth 0 --breadth 0 --ignore-term --witness {} & until [ -s {} ]; do sleep 0.01; done; exit 6",
        quoted(bin("tree")),
        quoted(&witness),
        quoted(&witness),
    );
    let id = world.launch(["--grace", "200ms", "--shell", &text]);
    assert_eq!(world.run(["wait", &id]).code, Some(6));
    all_dead(&id, &first_words(&witness), "left behind");
    assert_eq!(world.show(&id)["outcome"], json!({"kind": "exited", "code": 6}));
}

#[test]
fn scenario_37_a_job_that_closes_its_output_is_still_running() {
    let world = World::new();
    let (go, witness) = (world.scratch("go"), world.scratch("witness"));
    let text = format!(
        "echo before; exec >/dev/null 2>&1; exec {} {} --code 6 --witness {}",
        quoted(bin("hold")),
        quoted(&go),
        quoted(&witness),
    );
    let id = world.launch(["--", "sh", "-c", &text]);
    holder(&witness);
    assert_eq!(world.run(["wait", "--timeout", "300ms", &id]).code, Some(75));
    assert_eq!(world.show(&id)["state"], "running");
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(6));
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
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
            assert!(refused.stderr.starts_with(&format!("error: no job `{name}`")), "{refused:?}");
            assert_eq!(world.run([&words[..], &["--session", "other"]].concat()).code, Some(1));
        }
    }
    unchanged(&world, &before);
    assert!(alive(target));

    // Who says that all are meant may, and is named; the owner has not asked for it and is told.
    run_as(&world, "other", &["kill", &id, "--all-sessions"]).ok();
    let job = world.show(&id);
    assert_eq!(job["outcome"]["by"], json!({"session": "other"}));
    assert_eq!(job["follow_up"]["state"], "owed", "{job}");
}

#[test]
fn scenario_77_a_kill_by_the_owner_wakes_nobody() {
    let world = World::new();
    let id = held(&world, &["--session", "mine"]);
    run_as(&world, "mine", &["kill", &id]).ok();
    let job = world.show(&id);
    assert_eq!(job["outcome"]["by"], json!({"session": "mine"}));
    assert_eq!(job["follow_up"]["state"], "not_wanted", "{job}");
    is_settled(&world, &id);

    settle_down(&world);
    let before = Snapshot::of(world.home());
    for session in ["mine", "other"] {
        let unknown = run_as(&world, session, &["kill", "zzzzzzzz"]);
        assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""), "{unknown:?}");
        assert!(unknown.stderr.starts_with("error: no job `zzzzzzzz`\ntip: "), "{unknown:?}");
    }
    assert!(run_as(&world, "mine", &["kill", &id]).ok().contains("was already over: killed"));
    unchanged(&world, &before);

    let always = held(&world, &["--session", "mine", "--notify", "always"]);
    run_as(&world, "mine", &["kill", &always]).ok();
    assert_eq!(world.show(&always)["follow_up"]["state"], "owed");
}

#[test]
fn a_supervisor_that_is_told_to_end_ends_its_job() {
    for detach in DETACH {
        let world = World::new();
        let (id, pids) = stubborn(&world, &["--grace", "200ms"], 1, detach);
        signal(world.supervisor(&id), Signal::SIGTERM);
        assert_eq!(world.run(["wait", &id]).code, Some(137), "{detach}");
        all_dead(&id, &pids, detach);
        let exit = json!({"kind": "signaled", "signal": 9, "core": false});
        let job = world.show(&id);
        assert_eq!(job["outcome"], json!({"kind": "killed", "by": "system", "exit": exit}), "{detach}");
    }
}

/// A job that is done and has left somebody who prints `late` when `go` is there, and `last` when
/// `end` is.
#[track_caller]
fn kept(world: &World) -> (String, u32) {
    let witness = world.scratch("witness");
    let hold = |until: &str| format!("{} {}", quoted(bin("hold")), quoted(world.scratch(until)));
    let text = format!(
        "({} --witness {}; echo late; {}; echo last) & until [ -s {} ]; do sleep 0.01; done; echo main",
        hold("go"),
        quoted(&witness),
        hold("end"),
        quoted(&witness),
    );
    let id = world.launch(["--leftovers", "keep", "--", "sh", "-c", &text]);
    world.run(["wait", &id]).ok();
    (id, holder(&witness))
}

#[test]
fn leftovers_that_are_kept_live_on_and_are_heard() {
    let world = World::new();
    let (id, leftover) = kept(&world);
    let job = world.show(&id);
    assert_eq!(job["state"], "done", "{job}");
    let named = job["survivors"].as_array().unwrap();
    assert!(alive(leftover) && named.contains(&json!(leftover)), "{job}");
    assert_eq!(world.run(["logs", &id]).ok(), "main");
    assert!(world.home().join("jobs").join(&id).exists(), "its output is still written");

    fs_err::write(world.scratch("go"), "").unwrap();
    eventually("what it prints later is kept", || {
        (world.run(["logs", &id]).ok() == "main\nlate").then_some(())
    });
    world.run(["reconcile"]).ok();
    assert!(world.home().join("jobs").join(&id).exists(), "nobody moves it from under its keeper");
    fs_err::write(world.scratch("end"), "").unwrap();
    is_settled(&world, &id);
    assert_eq!(world.run(["logs", &id]).ok(), "main\nlate\nlast", "to the last byte");
    assert_eq!(world.show(&id)["outcome"], json!({"kind": "exited", "code": 0}));
}

#[test]
fn leftovers_that_were_kept_can_be_killed() {
    let world = World::new();
    let (id, leftover) = kept(&world);
    let killed = world.json(["kill", "--json", &id]);
    let outcome = json!({"kind": "exited", "code": 0});
    assert_eq!(killed, json!({"format": 1, "id": id, "was_over": true, "outcome": outcome}));
    all_dead(&id, &[leftover], "kept");
    is_settled(&world, &id);
    assert_eq!(world.show(&id)["state"], "done");
}

#[test]
fn a_job_that_was_launched_by_a_job_survives_it() {
    let world = World::new();
    for (n, limits) in [&[][..], &["--timeout", "1500ms"]].into_iter().enumerate() {
        let [told, witness] = [format!("told-{n}"), format!("witness-{n}")].map(|name| world.scratch(name));
        let text = format!(
            "{} launch -- {} {} --witness {} > {}; exec {} {}",
            quoted(bin("hearback")),
            quoted(bin("hold")),
            quoted(world.scratch("never")),
            quoted(&witness),
            quoted(&told),
            quoted(bin("hold")),
            quoted(world.scratch("never")),
        );
        let outer = world.launch(limits.iter().chain(&["--", "sh", "-c", &text]));
        let inner = eventually("the inner job is known", || lines(&told).first().cloned());
        let target = holder(&witness);
        if limits.is_empty() {
            world.run(["kill", &outer]).ok();
        } else {
            assert_eq!(world.run(["wait", &outer]).code, Some(124));
        }
        assert!(world.show(&outer)["state"] == "failed" && alive(target), "{limits:?}");
        assert_eq!(world.show(&inner)["state"], "running", "{limits:?}");
        assert_eq!(carrying(&format!("HEARBACK_JOB={outer}")), [0; 0], "{limits:?}");
        world.run(["kill", &inner]).ok();
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
    assert_eq!(world.run(["kill", "--grace", "60s", "--reason", "lost", "zzzzzzzz"]).code, Some(1));
    assert!(alive(pids[0]));
    world.run(["kill", "--grace", "0s", "--reason", "second", &id]).ok();
    all_dead(&id, &pids, "urgent");
    assert!(began.elapsed() < PROMPTLY);
    assert_eq!(first.0.wait().unwrap().code(), Some(0));
    let job = world.show(&id);
    assert_eq!((&job["outcome"]["reason"], &job["outcome"]["exit"]["signal"]), (&json!("first"), &json!(9)));
}

#[test]
fn limits_that_make_no_sense_are_refused_and_nothing_runs() {
    let world = World::new();
    for (words, helpful) in [
        (&["--timeout", "0"][..], "`none`"),
        (&["--timeout", "0s"], "`none`"),
        (&["--timeout", "soon"], "such as `90m`"),
        (&["--timeout", "-5m"], "such as `90m`"),
        (&["--idle-timeout", "0s"], "`none`"),
        (&["--grace", "-1"], "such as `5s`"),
        (&["--grace", "none"], "such as `5s`"),
        (&["--leftovers", "maybe"], "kill, keep"),
    ] {
        let ran = world.run(["launch"].iter().chain(words).chain(&["--", "true"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(words[0]) && ran.stderr.contains(helpful), "{ran:?}");
    }
    for words in [&["--grace", "-1"][..], &["--grace", "soon"], &["--grace", "1s", "--force"]] {
        let ran = world.run(["kill", "zzzzzzzz"].iter().chain(words));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains("--grace"), "{ran:?}");
    }
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"], json!([]));
}

#[test]
fn a_job_has_an_hour_unless_it_is_told_otherwise() {
    let world = World::new();
    for (words, expected) in [
        (&[][..], Some(3_600_000)),
        (&["--timeout", "none"], None),
        (&["--timeout", "90m"], Some(5_400_000)),
        (&["--timeout", "1000000000000000h"], Some(u64::MAX)),
    ] {
        let words = words.iter().map(OsString::from);
        let id = world.launch(words.chain(args!["--", bin("exit-with"), "0"]));
        world.run(["wait", &id]).ok();
        let job = world.show(&id);
        assert_eq!(job.get("timeout_ms").and_then(Value::as_u64), expected, "{job}");
        assert_eq!(job.get("timeout_ms").is_some(), expected.is_some(), "{job}");
        assert_eq!(job.get("idle_timeout_ms"), None, "{job}");
    }
}
