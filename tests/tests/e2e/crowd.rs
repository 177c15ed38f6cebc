//! Many at once: every job is recorded, every code is right, and no process disturbs another.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use hearback_tests::{World, bin, run, scaled};

/// Launches `jobs` jobs from `threads` threads in each of `processes` processes; returns ids and codes.
fn swarm(world: &World, processes: usize, threads: usize, jobs: usize) -> BTreeMap<String, u64> {
    let told: Vec<String> = std::thread::scope(|scope| {
        let swarms: Vec<_> = (0..processes)
            .map(|_| {
                scope.spawn(|| {
                    let mut command = Command::new(bin("swarm"));
                    world.settle(&mut command);
                    command.arg(bin("hearback")).args([threads.to_string(), jobs.to_string()]);
                    command.arg(bin("exit-with"));
                    run(command).ok()
                })
            })
            .collect();
        swarms.into_iter().map(|swarm| swarm.join().expect("it ran")).collect()
    });
    let lines = told.iter().flat_map(|told| told.lines());
    let pairs = lines.map(|line| line.split_once(' ').expect("an id and a code"));
    let found: BTreeMap<_, _> =
        pairs.map(|(id, code)| (id.to_owned(), code.parse().expect("a code"))).collect();
    assert_eq!(found.len(), processes * jobs, "every job has an id of its own");
    found
}

/// Waits for every job and compares what is recorded with what was asked for.
fn check(world: &World, expected: &BTreeMap<String, u64>) {
    let wait: Vec<_> = ["wait"].into_iter().chain(expected.keys().map(String::as_str)).collect();
    world.run(wait);
    let listed = world.json(["list", "--all", "--json"]);
    let jobs = listed["jobs"].as_array().expect("a list");
    let recorded: BTreeMap<_, _> = jobs
        .iter()
        .map(|job| (job["id"].as_str().unwrap_or_default().to_owned(), job["outcome"]["code"].as_u64()))
        .collect();
    let expected: BTreeMap<_, _> = expected.iter().map(|(id, code)| (id.clone(), Some(*code))).collect();
    assert_eq!(recorded, expected);
}

#[test]
fn scenario_33_hosts_on_one_store_leave_each_other_alone() {
    // 200 launches from 16 threads in each of 4 processes.
    let world = World::new();
    let (processes, threads, jobs) = scaled((4, 16, 50), (2, 2, 6));
    check(&world, &swarm(&world, processes, threads, jobs));
}

#[test]
fn scenario_79_launching_reconciling_and_pruning_at_once_loses_nothing() {
    let world = World::new();
    let launching = AtomicBool::new(true);
    let launched = std::thread::scope(|scope| {
        let meddlers = [["reconcile", "--json"], ["prune", "--json"], ["list", "--json"]].map(|command| {
            let (world, launching) = (&world, &launching);
            scope.spawn(move || {
                let mut rounds = 0;
                while launching.load(Ordering::Relaxed) {
                    world.json(command);
                    rounds += 1;
                }
                rounds
            })
        });
        let (processes, threads, jobs) = scaled((3, 20, 30), (2, 2, 5));
        let launched = swarm(&world, processes, threads, jobs);
        launching.store(false, Ordering::Relaxed);
        for meddler in meddlers {
            assert!(meddler.join().expect("none failed") > 0);
        }
        launched
    });
    check(&world, &launched);
    // Whatever happened, nothing was left half done.
    world.run(["reconcile"]).ok();
    let open = fs_err::read_dir(world.home().join("jobs")).unwrap().count();
    assert_eq!(open, 0, "every settled job is in history");
}
