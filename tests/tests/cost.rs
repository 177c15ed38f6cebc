//! What hearback costs: an idle supervisor sleeps, and a launch does not mind how many jobs there are.
// Not on Windows: `/proc` counts how often a process wakes, and ptrace its calls.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hearback_core::JobId;
use hearback_tests::{World, bin, eventually, run};
use serde_json::Value;

fn supervisor(world: &World, id: &str) -> u64 {
    let begin = fs_err::read(world.job_dir(id).join("begin.json")).unwrap();
    let begin: Value = serde_json::from_slice(&begin).unwrap();
    begin["by"]["supervisor"]["pid"].as_u64().unwrap()
}

/// How often a process has been given a processor, as the kernel counts it.
fn switches(pid: u64) -> u64 {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    counts.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn state(pid: u64) -> char {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

#[test]
fn an_idle_supervisor_never_wakes_up() {
    let world = World::new();
    let ids: Vec<_> =
        (0..5).map(|_| world.launch(["--".into(), bin("hold"), world.scratch("never")])).collect();
    let supervisors: Vec<_> = ids.iter().map(|id| supervisor(&world, id)).collect();
    for pid in &supervisors {
        eventually("the supervisor sleeps", || (state(*pid) == 'S').then_some(()));
    }
    let before: Vec<_> = supervisors.iter().map(|pid| switches(*pid)).collect();
    // That nothing happens can only be seen by watching for a while.
    let full = std::env::var_os("HEARBACK_TEST_FULL").is_some();
    std::thread::sleep(Duration::from_secs(if full { 20 } else { 4 }));
    let after: Vec<_> = supervisors.iter().map(|pid| switches(*pid)).collect();
    assert_eq!(before, after);
}

/// Fills a store with jobs, half of them open and half of them in history.
fn fill(world: &World, template: &Path, from: u64, to: u64) {
    for n in from..to {
        let id = JobId::mint(1_763_000_000_000 + n * 10_000, n);
        let folder = if n % 2 == 0 {
            world.home().join("jobs").join(id.as_str())
        } else {
            world.home().join("history").join(id.era()).join(id.as_str())
        };
        fs_err::create_dir_all(&folder).unwrap();
        // One fact makes a folder a job; a link is enough, because a launch must not look at any of them.
        fs_err::hard_link(template.join("spec.json"), folder.join("spec.json")).unwrap();
    }
}

/// System calls of one launch, the launcher's own.
fn calls_of_a_launch(world: &World) -> usize {
    let mut command = Command::new(bin("killat"));
    world.settle(&mut command);
    command.args(["count", "--only", "launcher", "--"]).arg(bin("hearback"));
    command.args(["launch", "--"]).arg(bin("exit-with")).arg("0");
    let ran = run(command);
    let found = ran.stdout.lines().find_map(|line| line.strip_prefix("syscalls ")?.parse().ok());
    found.unwrap_or_else(|| panic!("no count in {ran:?}"))
}

#[test]
fn a_launch_costs_the_same_with_10_and_with_10000_jobs() {
    let world = World::new();
    let id = world.launch(["--session".into(), "s".into(), "--".into(), bin("exit-with"), "0".into()]);
    world.run(["wait", &id]).ok();
    let template = world.job_dir(&id);
    fill(&world, &template, 0, 10);
    let few = calls_of_a_launch(&world);
    fill(&world, &template, 10, 10_000);
    let many = calls_of_a_launch(&world);
    // A launcher that has to wait for its answer makes a call or two more than one that does not.
    assert!(many.abs_diff(few) <= 4, "{few} system calls with 10 jobs, {many} with 10,000");
}
