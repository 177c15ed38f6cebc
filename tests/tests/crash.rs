//! Killed at any moment: no job is lost, none succeeds falsely, none runs twice, and nobody waits for ever.
//!
//! Every point at which a process can be killed is a system call. By default some of them are tried; with
//! `HEARBACK_TEST_FULL=1` all.
// Not on Windows: a kill at every system call takes ptrace.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hearback_tests::{Ran, World, alive, bin, eventually, lines, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Of how many points one is tried: all of them, or about a hundred.
fn stride(last: usize) -> usize {
    if std::env::var_os("HEARBACK_TEST_FULL").is_some() { 1 } else { last.div_ceil(100) }
}

fn killat(world: &World, how: &[&str], args: &[&str]) -> Ran {
    let mut command = Command::new(bin("killat"));
    world.settle(&mut command);
    command.args(how).arg("--").arg(bin("hearback")).args(args);
    run(command)
}

/// How many system calls there are to be killed at.
fn points(how: &[&str], args: impl Fn(&World) -> Vec<String>) -> usize {
    let world = World::new();
    let args = args(&world);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut count = vec!["count"];
    count.extend(how);
    let ran = killat(&world, &count, &args);
    let wanted = if how.is_empty() { "syscalls " } else { "all " };
    let found = ran.stdout.lines().find_map(|line| line.strip_prefix(wanted)?.parse().ok());
    found.unwrap_or_else(|| panic!("no count in {ran:?}"))
}

fn launch_args(world: &World) -> Vec<String> {
    let witness = world.scratch("witness").display().to_string();
    let program = bin("exit-with").display().to_string();
    ["launch", "--", &program, "0", "--print", "hello", "--witness", &witness].map(str::to_owned).to_vec()
}

fn jobs(world: &World) -> Vec<Value> {
    world.json(["list", "--all", "--json"])["jobs"].as_array().unwrap().clone()
}

/// Every file of the store with its content.
fn image(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.insert(path.clone(), Vec::new());
                folders.push(path);
            } else if path.is_file() {
                found.insert(path.clone(), fs_err::read(&path).unwrap());
            } else {
                found.insert(path.clone(), b"a bell".to_vec());
            }
        }
    }
    found
}

/// No process carries the mark of the job any more.
fn is_swept(id: &str) -> bool {
    let mark = format!("HEARBACK_JOB={id}").into_bytes();
    let carries = |pid: &str| {
        let environ = fs_err::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark)
    };
    let pids = fs_err::read_dir("/proc").unwrap().flatten();
    !pids.filter_map(|entry| entry.file_name().into_string().ok()).any(|pid| carries(&pid))
}

/// Nobody works in this world any more: a supervisor whose launcher was killed may still be finding that out.
fn settle_down(world: &World) {
    let mark = [b"HEARBACK_HOME=", world.home().as_os_str().as_encoded_bytes()].concat();
    eventually("everybody has left", || {
        let pids = fs_err::read_dir("/proc").unwrap().flatten();
        let mut names = pids.filter_map(|entry| entry.file_name().into_string().ok());
        let at_work = names.any(|pid| {
            let environ = fs_err::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|entry| entry == mark)
        });
        (!at_work).then_some(())
    });
}

/// What has to hold after a launch of `exit-with 0` in which anything was killed.
fn check(world: &World, launch: &Ran, point: usize) {
    let told: Vec<String> = launch.stdout.lines().map(str::to_owned).collect();
    for id in &told {
        // Never hangs: the harness would say so.
        world.run(["wait", id]);
    }
    world.run(["reconcile"]).ok();
    let jobs = jobs(world);
    let ids: Vec<&str> = jobs.iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert!(jobs.len() <= 1, "point {point}: {jobs:?}");
    assert!(
        told.iter().all(|id| ids.contains(&id.as_str())),
        "point {point}: told of {told:?}, found {ids:?}"
    );

    let witness = lines(world.scratch("witness"));
    let started = witness.iter().filter(|line| line.starts_with("start")).count();
    let finished = witness.iter().any(|line| line == "end 0");
    assert!(started <= 1, "point {point}: ran twice: {witness:?}");
    if started == 1 {
        assert_eq!(jobs.len(), 1, "point {point}: something ran, and no job is known");
    }
    if let Some(job) = jobs.first() {
        let id = job["id"].as_str().unwrap();
        // Who killed the launcher before it told anybody an id may find the job still running.
        let code = world.run(["wait", id]).code;
        let job = world.show(id);
        let outcome = &job["outcome"];
        match outcome["kind"].as_str() {
            Some("exited") => {
                assert_eq!((outcome["code"].as_u64(), code), (Some(0), Some(0)), "point {point}: {job}");
                let witness = lines(world.scratch("witness"));
                assert!(witness.iter().any(|line| line == "end 0"), "point {point}: a success that was none");
                assert_eq!(job["output"]["bytes"], 6, "point {point}: {job}");
            }
            Some("lost") => {
                assert_eq!(code, Some(125), "point {point}: {job}");
                let never_started = outcome["reason"] == "abandoned";
                assert!(!(never_started && started > 0), "point {point}: it did start: {job}");
                assert!(!(never_started && finished), "point {point}: {job}");
            }
            other => panic!("point {point}: {other:?} in {job}"),
        }
        assert!(is_swept(id), "point {point}: something of the job is left");
    }
    settle_down(world);
    world.run(["reconcile"]).ok();
    let before = image(world.home());
    world.run(["reconcile"]).ok();
    assert_eq!(before, image(world.home()), "point {point}: a second reconcile changes no byte");
    world.run(["prune"]).ok();
    let left = image(world.home());
    let unfinished = left.keys().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("tmp."));
    assert_eq!(unfinished, None, "point {point}");
    let folders = fs_err::read_dir(world.home().join("jobs")).unwrap().count();
    assert_eq!(folders, 0, "point {point}: a folder that is no job is left");
}

fn campaign(how: &[&str]) {
    campaign_of(how, launch_args, check);
}

fn campaign_of(how: &[&str], args: fn(&World) -> Vec<String>, check: fn(&World, &Ran, usize)) {
    let match_supervisor = how.contains(&"--match");
    let counted: &[&str] = if match_supervisor { &["--match", "__supervise"] } else { &[] };
    let counted = if how.contains(&"--follow") { &["--only", "all"][..] } else { counted };
    let last = points(counted, args);
    assert!(last > 50, "only {last} points");
    // The last few are for counts that differ from run to run.
    for point in (1..=last + 3).step_by(stride(last)) {
        let world = World::new();
        let args = args(&world);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let at = point.to_string();
        let mut kill = vec!["kill", &at, "--wait-root"];
        kill.extend(how);
        let ran = killat(&world, &kill, &args);
        check(&world, &ran, point);
    }
}

#[test]
fn a_launcher_killed_at_any_call_leaves_a_whole_job_or_none() {
    campaign(&[]);
}

#[test]
fn a_supervisor_killed_at_any_call_leaves_the_truth() {
    campaign(&["--match", "__supervise"]);
}

#[test]
fn a_launch_killed_whole_at_any_call_leaves_the_truth() {
    campaign(&["--follow", "--whole"]);
}

fn ask_args(world: &World) -> Vec<String> {
    let launch = launch_args(world);
    // Nobody is to be told, so that it is settled as soon as it is over.
    let ask = ["ask", "--session", "p", "--new", "--notify", "never"].map(str::to_owned);
    ask.into_iter().chain(launch.into_iter().skip(1)).collect()
}

#[test]
fn scenario_52_an_agent_whose_supervisor_is_killed_at_any_call_has_an_answer_or_a_reason() {
    campaign_of(&["--match", "__supervise"], ask_args, |world, ran, point| {
        check(world, ran, point);
        for job in jobs(world) {
            let (outcome, answer) = (&job["outcome"], &job["answer"]);
            if outcome["kind"] == "exited" {
                let words = serde_json::json!({"kind": "text", "text": "hello", "source": "output"});
                assert_eq!(*answer, words, "point {point}: {job}");
            } else {
                assert_eq!(answer["kind"], "failed", "point {point}: {job}");
            }
            let folder = world.job_dir(job["id"].as_str().unwrap());
            assert!(folder.join("answer.json").exists(), "point {point}: it is on disk");
        }
    });
}

#[test]
fn scenario_48_a_reader_killed_at_any_call_has_read_it_or_reads_it_again() {
    let template = World::new();
    let ask = ["ask".into(), "--session".into(), "p".into(), "--new".into(), "--".into(), bin("exit-with")];
    let id = template.run(ask.into_iter().chain(["0".into(), "--print".into(), "hello".into()])).ok();
    template.leave_alone(&id);
    for reader in [&[][..], &["--reader", "bob"]] {
        let args = [&["results", "--session", "p", "--ack"], reader].concat();
        let last = points(&[], |world| {
            copy(template.home(), world.home());
            args.iter().map(|arg| (*arg).to_owned()).collect()
        });
        for point in (1..=last).step_by(stride(2 * last)) {
            let world = World::new();
            copy(template.home(), world.home());
            let killed = killat(&world, &["kill", &point.to_string()], &args);
            let again = world.run(&args);
            let (was_told, is_told) = (killed.stdout.contains("| hello"), again.stdout.contains("| hello"));
            assert!(was_told || is_told, "point {point}: lost: {killed:?} {again:?}");
            assert_eq!(again.code, Some(i32::from(!is_told)), "point {point}: {again:?}");
            let last = world.run(&args);
            assert_eq!((last.code, last.stdout.as_str()), (Some(1), ""), "point {point}: {last:?}");
        }
    }
}

/// A store with one job whose supervisor was killed, and one that is settled.
fn orphaned(world: &World) -> String {
    let id = world.launch(["--".into(), bin("hold"), world.scratch("never")]);
    world.launch(["--wait".into(), "--".into(), bin("exit-with"), "0".into()]);
    let begin = fs_err::read(world.job_dir(&id).join("begin.json")).unwrap();
    let begin: Value = serde_json::from_slice(&begin).unwrap();
    let supervisor = begin["by"]["supervisor"]["pid"].as_i64().unwrap();
    kill(Pid::from_raw(i32::try_from(supervisor).unwrap()), Signal::SIGKILL).unwrap();
    eventually("the supervisor is gone", || (!alive(u32::try_from(supervisor).unwrap())).then_some(()));
    id
}

fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.arg("-a").arg(from).arg(to);
    run(command).ok();
}

#[test]
fn a_reconciler_killed_at_any_call_is_finished_by_the_next() {
    let template = World::new();
    let id = orphaned(&template);
    let last = points(&[], |world| {
        copy(template.home(), world.home());
        vec!["reconcile".to_owned()]
    });
    for point in (1..=last).step_by(stride(last)) {
        let world = World::new();
        copy(template.home(), world.home());
        killat(&world, &["kill", &point.to_string()], &["reconcile"]);
        world.run(["reconcile"]).ok();
        let job = world.show(&id);
        assert_eq!(job["outcome"]["reason"], "supervisor_died", "point {point}: {job}");
        assert_eq!(jobs(&world).len(), 2, "point {point}");
        let before = image(world.home());
        world.run(["reconcile"]).ok();
        assert_eq!(before, image(world.home()), "point {point}");
    }
}

#[test]
fn a_prune_killed_at_any_call_is_finished_by_the_next() {
    let template = World::new();
    let kept = template.launch(["--session".into(), "s".into(), "--".into(), bin("exit-with"), "0".into()]);
    template.run(["wait", &kept]).ok();
    for _ in 0..2 {
        template.launch(["--wait".into(), "--".into(), bin("exit-with"), "0".into()]);
    }
    template.run(["reconcile"]).ok();
    let prune = ["prune", "--max-jobs", "0"];
    let last = points(&[], |world| {
        copy(template.home(), world.home());
        prune.map(str::to_owned).to_vec()
    });
    for point in (1..=last).step_by(stride(last)) {
        let world = World::new();
        copy(template.home(), world.home());
        killat(&world, &["kill", &point.to_string()], &prune);
        world.run(prune).ok();
        let jobs = jobs(&world);
        assert_eq!(jobs.len(), 1, "point {point}: {jobs:?}");
        assert_eq!(jobs[0]["id"], kept.as_str(), "point {point}");
        let trash = fs_err::read_dir(world.home().join("trash")).unwrap().count();
        assert_eq!(trash, 0, "point {point}");
    }
}
