//! Killed at any moment: no job is lost, none succeeds falsely, none runs twice, and no command waits for ever.
//!
//! Every point at which a process can be killed is a system call. By default some of them are tried; with
//! `HEARBACK_TEST_FULL=1` all.
#![cfg(any(target_os = "linux", windows))]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hearback_tests::{Ran, World, alive, bin, carrying, eventually, killat, lines};
use serde_json::Value;

/// At how many calls one is killed, unless at all.
const POINTS: usize = 100;

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
        "point {point}: printed {told:?}, found {ids:?}"
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
        // If the launcher was killed before it printed the id, the job may still be running.
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
        let left = carrying(&format!("HEARBACK_JOB={id}"));
        assert_eq!(left, [0; 0], "point {point}: something of the job is left");
    }
    if cfg!(windows) {
        // A process that was killed while it created another has left one that never begins.
        world.run(["prune"]).ok();
    }
    world.settle_down();
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
    if !killat::is_there() {
        return;
    }
    let match_supervisor = how.contains(&"--match");
    let counted: &[&str] = if match_supervisor { how } else { &[] };
    let counted = if how.contains(&"--follow") { &["--only", "all"][..] } else { counted };
    let world = World::new();
    let last = killat::count(&world, counted, &args(&world));
    assert!(last > 50, "only {last} points");
    // The last few are for counts that differ from run to run.
    killat::at_each(1..=last + 3, POINTS, |point| {
        let world = World::new();
        let at = point.to_string();
        let ran = killat::run(&world, &[&["kill", &at, "--wait-root"], how].concat(), &args(&world));
        check(&world, &ran, point);
    });
}

#[test]
fn a_launcher_killed_at_any_call_leaves_a_whole_job_or_none() {
    campaign(&[]);
}

/// What a target writes whose command holds a secret.
const SECRET_NAME: &str = "PASSWORD=hunter2";

fn secret_args(world: &World) -> Vec<String> {
    let clock = world.scratch(SECRET_NAME).display().to_string();
    launch_args(world).into_iter().chain(["--clock".to_owned(), clock]).collect()
}

#[test]
fn scenario_133_a_launcher_killed_at_any_call_has_handed_its_secret_over_or_nothing_runs() {
    campaign_of(&[], secret_args, |world, ran, point| {
        check(world, ran, point);
        let has_exited = jobs(world).iter().any(|job| job["outcome"]["kind"] == "exited");
        assert_eq!(world.scratch(SECRET_NAME).exists(), has_exited, "point {point}: it ran as it was typed");
        let image = image(world.home());
        let found = image.iter().find(|(_, bytes)| bytes.windows(7).any(|window| window == b"hunter2"));
        assert_eq!(found, None, "point {point}: it is recorded");
    });
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
    // No notification is wanted, so that it is settled as soon as it has ended.
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
    if !killat::is_there() {
        return;
    }
    let template = World::new();
    let ask = ["ask".into(), "--session".into(), "p".into(), "--new".into(), "--".into(), bin("exit-with")];
    let id = template.run(ask.into_iter().chain(["0".into(), "--print".into(), "hello".into()])).ok();
    template.leave_alone(&id);
    for reader in [&[][..], &["--reader", "bob"]] {
        let args = [&["results", "--session", "p", "--ack"], reader].concat();
        let last = killat::count(&copy_of(&template), &[], &args);
        killat::at_each(1..=last, POINTS / 2, |point| {
            let world = copy_of(&template);
            let killed = killat::run(&world, &["kill", &point.to_string()], &args);
            let again = world.run(&args);
            let (was_told, is_told) = (killed.stdout.contains("| hello"), again.stdout.contains("| hello"));
            assert!(was_told || is_told, "point {point}: lost: {killed:?} {again:?}");
            assert_eq!(again.code, Some(i32::from(!is_told)), "point {point}: {again:?}");
            let last = world.run(&args);
            assert_eq!((last.code, last.stdout.as_str()), (Some(1), ""), "point {point}: {last:?}");
        });
    }
}

/// A store with one job whose supervisor was killed, and one that is settled.
fn orphaned(world: &World) -> String {
    let id = world.launch(["--".into(), bin("hold"), world.scratch("never")]);
    world.launch(["--wait".into(), "--".into(), bin("exit-with"), "0".into()]);
    let supervisor = world.supervisor(&id);
    world.end_supervisor(&id);
    eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
    id
}

/// A world with the same store.
fn copy_of(template: &World) -> World {
    let world = World::new();
    copy(template.home(), world.home());
    world
}

#[cfg(not(windows))]
fn copy(from: &Path, to: &Path) {
    // A bell is no file that could be read.
    let mut command = std::process::Command::new("cp");
    command.arg("-a").arg(from).arg(to);
    hearback_tests::run(command).ok();
}

#[cfg(windows)]
fn copy(from: &Path, to: &Path) {
    fs_err::create_dir(to).unwrap();
    for entry in fs_err::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs_err::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn a_reconciler_killed_at_any_call_is_finished_by_the_next() {
    if !killat::is_there() {
        return;
    }
    let template = World::new();
    let id = orphaned(&template);
    let last = killat::count(&copy_of(&template), &[], &["reconcile"]);
    killat::at_each(1..=last, POINTS, |point| {
        let world = copy_of(&template);
        killat::run(&world, &["kill", &point.to_string()], &["reconcile"]);
        world.run(["reconcile"]).ok();
        let job = world.show(&id);
        assert_eq!(job["outcome"]["reason"], "supervisor_died", "point {point}: {job}");
        assert_eq!(jobs(&world).len(), 2, "point {point}");
        let before = image(world.home());
        world.run(["reconcile"]).ok();
        assert_eq!(before, image(world.home()), "point {point}");
    });
}

#[test]
fn a_prune_killed_at_any_call_is_finished_by_the_next() {
    if !killat::is_there() {
        return;
    }
    let template = World::new();
    let kept = template.launch(["--session".into(), "s".into(), "--".into(), bin("exit-with"), "0".into()]);
    template.run(["wait", &kept]).ok();
    for _ in 0..2 {
        template.launch(["--wait".into(), "--".into(), bin("exit-with"), "0".into()]);
    }
    template.run(["reconcile"]).ok();
    let prune = ["prune", "--max-jobs", "0"];
    let last = killat::count(&copy_of(&template), &[], &prune);
    killat::at_each(1..=last, POINTS, |point| {
        let world = copy_of(&template);
        killat::run(&world, &["kill", &point.to_string()], &prune);
        world.run(prune).ok();
        let jobs = jobs(&world);
        assert_eq!(jobs.len(), 1, "point {point}: {jobs:?}");
        assert_eq!(jobs[0]["id"], kept.as_str(), "point {point}");
        let trash = fs_err::read_dir(world.home().join("trash")).unwrap().count();
        assert_eq!(trash, 0, "point {point}");
    });
}
