//! Whichever process is killed or in the way, the truth is recorded: lost is shown as lost, and never as a success.

use std::path::Path;

use hearback_tests::{World, alive, args, bin, eventually, kill_hard, lines};
use serde_json::json;

/// A job of seven processes, each of which tries to escape, and their pids.
#[track_caller]
fn tree(world: &World, detach: &str) -> (String, Vec<u32>) {
    let witness = world.scratch(format!("witness-{detach}"));
    let shape = args!["--", bin("tree"), "--depth", "2", "--breadth", "2", "--detach", detach];
    let id = world.launch(shape.into_iter().chain(args!["--ignore-term", "--witness", witness]));
    let pids = eventually("the tree has grown", || {
        let found = lines(&witness);
        (found.len() == 7).then_some(found)
    });
    (id, pids.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect())
}

/// The job is lost, nothing of it is left, and no command shows that as a success.
#[track_caller]
fn is_lost(world: &World, id: &str, pids: &[u32], what: &str) {
    // No interval passes: the lock is free as soon as its holder is dead.
    assert_eq!(world.run(["wait", id]).code, Some(125), "{what}");
    let job = world.show(id);
    assert_eq!(job["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}), "{what}: {job}");
    assert_eq!((&job["state"], job.get("survivors")), (&json!("failed"), None), "{what}: {job}");
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    assert!(left.is_empty(), "{what}: {left:?} are left");
}

#[test]
fn scenario_69_a_killed_supervisor_ends_its_job_and_is_reported_at_once() {
    // On Windows no process may leave its Job Object, however it asks.
    let group = if cfg!(windows) { "breakaway" } else { "group" };
    for detach in ["none", group, "setsid", "double-fork"] {
        let world = World::new();
        let (id, pids) = tree(&world, detach);
        kill_hard(world.supervisor(&id));
        is_lost(&world, &id, &pids, detach);
    }
}

#[test]
fn scenario_28_a_job_is_known_through_any_number_of_hosts() {
    let world = World::new();
    let go = world.scratch("go");
    let id = world.launch(["--".into(), bin("hold"), go.clone(), "--code".into(), "5".into()]);
    for _ in 0..3 {
        let mut host = world.command(["wait", &id]).spawn().unwrap();
        assert_eq!(world.show(&id)["state"], "running");
        host.kill().unwrap();
        host.wait().unwrap();
    }
    assert_eq!(world.show(&id)["state"], "running");
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(5));
}

#[test]
fn a_reader_that_keeps_facts_open_keeps_nothing_from_being_recorded() {
    let world = World::new();
    let go = world.scratch("go");
    let id = world.launch(args!["--", bin("hold"), go, "--code", "6"]);
    let supervisor = world.supervisor(&id);
    let folder = world.job_dir(&id);
    let facts = ["spec.json", "begin.json", "target.json"];
    let readers = facts.map(|fact| unfriendly(&folder.join(fact)));
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(6));
    eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
    assert_eq!(world.show(&id)["outcome"], json!({"kind": "exited", "code": 6}));
    drop(readers);
    // Where an open file held its folder in place, it is moved by the next command that looks.
    world.run(["reconcile"]).ok();
    assert!(!world.home().join("jobs").join(&id).exists());
    assert_eq!(world.show(&id)["outcome"], json!({"kind": "exited", "code": 6}));
}

/// Opens a file, and lets no process write, rename or remove it meanwhile, where a system has such a thing.
fn unfriendly(path: &Path) -> fs_err::File {
    #[cfg_attr(unix, expect(unused_mut, reason = "everybody may, whatever a reader wants"))]
    let mut options = std::fs::OpenOptions::new();
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, FILE_SHARE_READ);
    let mut options = fs_err::OpenOptions::from_options(options);
    options.read(true).open(path).unwrap()
}

#[cfg(windows)]
const FILE_SHARE_READ: u32 = 1;
