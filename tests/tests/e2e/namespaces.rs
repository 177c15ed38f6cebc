//! Pid namespaces: containers, and sandboxes that give each command its own.
// Not on Windows: it has one space of pids.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

use hearback_tests::{
    Job, KillOnDrop, Ran, World, alive, args, bin, carrying, eventually, kill_hard, lines, run, skipped,
};
use serde_json::Value;

/// A program in a pid namespace of its own, below ours, which ends with it.
fn inside(world: &World, program: &str) -> Command {
    let mut command = Command::new("unshare");
    world.settle(&mut command);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(bin(program));
    command
}

/// hearback in there.
fn hearback_inside(world: &World, args: &[&str]) -> Ran {
    let mut command = inside(world, "hearback");
    command.args(args);
    run(command)
}

fn can_unshare(world: &World) -> bool {
    let mut command = inside(world, "exit-with");
    let works = command.arg("0").status().is_ok_and(|status| status.success());
    if !works {
        skipped("no pid namespace can be made here");
    }
    works
}

/// A job whose supervisor and target are dead, and the process that they left.
fn orphaned(world: &World) -> (String, u32) {
    let (never, witness) = (world.scratch("never"), world.scratch("witness"));
    let id =
        world.launch(args!["--", bin("act"), "spawn", bin("hold"), never, "--witness", witness, ";", "rest"]);
    let left = eventually("the tree is up", || lines(&witness).first()?.strip_prefix("start ")?.parse().ok());
    let target = world.show(&id)["pid"].as_u64().and_then(|pid| pid.try_into().ok()).unwrap();
    world.end_supervisor(&id);
    eventually("the target is ended with its supervisor", || (!alive(target)).then_some(()));
    assert!(alive(left), "this test proves nothing");
    (id, left)
}

#[test]
fn scenario_121_what_cannot_be_seen_is_not_called_ended_and_a_look_from_the_right_place_ends_it() {
    let world = World::new();
    if !can_unshare(&world) {
        return;
    }
    let (id, left) = orphaned(&world);
    let shown = hearback_inside(&world, &["show", &id]).ok();
    assert!(shown.contains("may not have ended") && shown.contains("could not be seen"), "{shown}");
    let job: Value = serde_json::from_str(&hearback_inside(&world, &["show", "--json", &id]).ok()).unwrap();
    let scope = job["out_of_sight"].as_str().unwrap_or_default().to_owned();
    assert!(scope.contains("pid:["), "{job}");
    Job::new(job).is_lost("unswept").lacks("/survivors");
    assert!(alive(left), "it runs on");

    let killed = hearback_inside(&world, &["kill", &id]);
    assert!(killed.code == Some(1) && killed.stderr.contains("cannot be seen from here"), "{killed:?}");
    assert!(alive(left), "it runs on");
    let doctor = world.run(["doctor"]).ok();
    let said = doctor.lines().find(|line| line.contains("processes of lost jobs")).unwrap_or_default();
    assert!(said.contains(&id) && said.contains(&scope), "{doctor}");

    world.show(&id).is_lost("unswept").lacks("/out_of_sight").lacks("/survivors");
    assert!(!alive(left), "a look from the right place ends it");
    assert_eq!(world.json(["reconcile", "--dry-run", "--json"])["steps"], Value::Array(vec![]));
}

#[test]
fn scenario_121_a_later_kill_ends_what_could_not_be_seen() {
    let world = World::new();
    if !can_unshare(&world) {
        return;
    }
    let (id, left) = orphaned(&world);
    hearback_inside(&world, &["list"]).ok();
    assert!(alive(left), "it runs on");
    world.run(["kill", &id]).ok();
    assert!(!alive(left), "kill ends it");
}

/// Launches a job in a pid namespace of its own, and returns it, with what its first process said to standard error.
fn launched_inside(world: &World, name: &str) -> (KillOnDrop, Value) {
    let out = world.scratch(name);
    let mut command = inside(world, "act");
    command.arg("run").arg(&out).arg(bin("hearback")).args(["launch", "--json", "--"]);
    command.args(args!["sh", "-c", r#""$0" "$1" & wait"#, bin("hold"), world.scratch("never"), ";"]);
    command
        .arg("rest")
        .stdout(Stdio::null())
        .stderr(fs_err::File::create(world.scratch("said")).unwrap().into_parts().0);
    let first = KillOnDrop(command.spawn().unwrap());
    let job = eventually("it is launched", || serde_json::from_str(&lines(&out).join("")).ok());
    (first, job)
}

#[test]
fn scenario_122_a_job_launched_in_a_pid_namespace_says_that_it_ends_with_it() {
    let world = World::new();
    if !can_unshare(&world) {
        return;
    }
    let (first, job) = launched_inside(&world, "job");
    let id = job["id"].as_str().unwrap();
    let place = job["bound_to"].as_str().unwrap_or_default();
    assert!(place.contains("pid:["), "{job}");
    assert_eq!(job.get("survives"), None, "its first process may be its parent: {job}");
    let said = lines(world.scratch("said")).join("\n");
    assert!(said.contains(&format!("the job runs inside {place}")), "{said}");
    world.show(id).has("/bound_to", place).state_is("running");

    drop(first);
    let lost = eventually("it has ended with the namespace", || {
        Some(world.show(id)).filter(|job| job["state"] == "failed")
    });
    // From the first namespace of the machine it is proved that nothing is left.
    let first_pids = fs_err::read_link("/proc/self/ns/pid").unwrap().display().to_string();
    let is_proved = first_pids == "pid:[4026531836]";
    lost.is_lost(if is_proved { "supervisor_died" } else { "unswept" });
    assert_eq!(lost.get("out_of_sight").is_none(), is_proved, "{lost:?}");
    let doctor = hearback_inside(&world, &["doctor", "--json"]);
    let doctor: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "pids").unwrap();
    assert_eq!(check["level"], "warn", "{check}");
}

#[test]
fn scenario_121_a_tree_in_a_pid_namespace_below_is_seen_and_ended() {
    let world = World::new();
    if !can_unshare(&world) {
        return;
    }
    let (_first, job) = launched_inside(&world, "job");
    let id = job["id"].as_str().unwrap();
    let marked = || carrying(&format!("HEARBACK_JOB={id}"));
    eventually("its tree is up", || (marked().len() == 2).then_some(()));
    let [supervisor] = carrying(&format!("HEARBACK_SUPERVISOR={id}"))[..] else {
        panic!("one supervises it")
    };
    kill_hard(supervisor);
    eventually("the target is ended with its supervisor", || (marked().len() == 1).then_some(()));
    world.show(id).is_lost("supervisor_died").lacks("/out_of_sight");
    assert_eq!(marked(), [0; 0], "what it left is ended");
}
