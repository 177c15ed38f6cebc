//! Told means durable: an end that can still be lost to a power cut is told by no command and no delivery. And what is
//! acknowledged is not told any more.
// Not on Windows: ptrace.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use hearback_tests::killat::{self, Held};
use hearback_tests::{Outbox, World, bin, eventually};

/// The supervisor flushes the content of the end first, and its name second.
const BEFORE_THE_NAME_IS_FLUSHED: &str = "2";

#[test]
fn an_end_that_is_not_flushed_yet_is_told_by_nobody() {
    let outbox = Outbox::new(&[]);
    let world = &outbox.world;
    let how = [BEFORE_THE_NAME_IS_FLUSHED, "--flushes", "--match", "__supervise"];
    let exits = bin("exit-with").display().to_string();
    let mut held = Held::new(world, &how, &["launch", "--session", "s", "--", &exits, "3"]);
    let id = world.only_job();
    assert!(world.job_dir(&id).join("end.json").exists(), "it has its name");

    world.show(&id).state_is("running").lacks("/outcome").lacks("/ended_at");
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"][0]["state"], "running");
    assert_eq!(world.run(["wait", &id, "--timeout", "100ms"]).code, Some(75));
    let next = outbox.run_as("s", &["followups", "next"]);
    assert_eq!((next.code, next.stdout.as_str()), (Some(1), ""), "{next:?}");
    assert_ne!(world.run(["followups", "ack", &id]).code, Some(0), "there is nothing to acknowledge");
    world.run(["reconcile"]).ok();
    world.run(["monitor", "run", "--once"]).ok();
    assert!(!world.job_dir(&id).join("settled.json").exists());
    assert_eq!(outbox.calls(), []);

    held.let_go();
    assert_eq!(world.run(["wait", "--peek", &id]).code, Some(3));
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
}

#[test]
fn a_reader_flushes_the_end_of_a_dead_supervisor_before_it_tells_it() {
    let world = World::new();
    let how = ["kill", BEFORE_THE_NAME_IS_FLUSHED, "--flushes", "--match", "__supervise"];
    let exits = bin("exit-with").display().to_string();
    let launched = killat::run(&world, &how, &["launch", "--session", "s", "--", &exits, "3"]);
    assert!(launched.stderr.contains("killed "), "{launched:?}");
    let id = world.only_job();
    eventually("the supervisor is gone", || {
        world.show(&id)["state"].as_str().is_some_and(|state| state != "running").then_some(())
    });
    let mark = world.job_dir(&id).join("end.durable");
    let forget = || {
        if mark.exists() {
            fs_err::remove_file(&mark).unwrap();
        }
    };
    let tellers: [&[&str]; 4] = [
        &["show", &id],
        &["wait", "--peek", &id],
        &["list", "--all"],
        &["followups", "next", "--session", "s"],
    ];
    for teller in tellers {
        let told = world.run(teller.iter());
        assert!(told.stdout.contains("exit code 3") || told.stdout.contains("exit 3"), "{told:?}");
        // As if no process had told it yet.
        forget();
        let flushes = killat::count(&world, &["--flushes"], teller);
        assert!(flushes >= 2, "{teller:?}: the file and its folder, not {flushes}");
        forget();
        for at in 1..=2 {
            let killed = killat::run(&world, &["kill", &at.to_string(), "--flushes"], teller);
            assert_eq!(killed.stdout, "", "{teller:?} told it before flush {at}");
        }
    }
    // Once it was acknowledged it was told, and needs no flush any more.
    world.run(["followups", "ack", &id]).ok();
    assert_eq!(
        killat::run(&world, &["count", "--flushes"], &["show", &id]).stdout.lines().last(),
        Some("all 0")
    );
}

#[test]
fn a_follow_up_that_is_acknowledged_at_the_last_moment_is_not_handed_over() {
    let exits = bin("exit-with").display().to_string();
    // The flushes of the supervisor are those of the end, and then those of the turn that it begins.
    for flush in 3..10 {
        let outbox = Outbox::with("", "turn = true", &[]);
        let how = [&flush.to_string(), "--flushes", "--match", "__supervise"];
        let mut held = Held::new(&outbox.world, &how, &["launch", "--session", "s", "--", &exits, "3"]);
        let id = outbox.world.only_job();
        if !outbox.world.job_dir(&id).join("lease.1").exists() {
            continue;
        }
        // It is claimed, and its owner gets it in another way.
        assert_eq!(outbox.calls(), []);
        outbox.world.run(["followups", "ack", &id]).ok();
        held.let_go();
        eventually("the deliverer is gone", || (!hearback_tests::alive(held.pid)).then_some(()));
        assert_eq!(outbox.calls(), [], "it has its receipt");
        return;
    }
    panic!("no flush follows the claim");
}

#[test]
fn hardly_a_call_lies_between_the_last_look_for_a_receipt_and_the_sink() {
    let exits = bin("exit-with").display().to_string();
    for of_sink in ["", "turn = true"] {
        let outbox = Outbox::with("", of_sink, &[]);
        let how = ["count", "--since", "/receipt.json", "--for", "60"];
        let ran = killat::run(&outbox.world, &how, &["launch", "--session", "s", "--", &exits, "3"]);
        assert_eq!(outbox.calls().len(), 1, "{ran:?}");
        let calls: Vec<u32> =
            ran.stdout.lines().filter_map(|line| line.strip_prefix("exec ")?.parse().ok()).collect();
        // Other threads and processes make calls meanwhile.
        assert!(calls.iter().min().is_some_and(|calls| *calls <= 8), "`{of_sink}`: {calls:?}");
    }
}
