//! Marks: which processes a job, a turn or a sink may end, and which belong to another one.
#![cfg(any(target_os = "linux", windows))]

use std::path::Path;

use hearback_tests::{Outbox, alive, args, bin, carrying, eventually, kill_hard, lines};

/// The pid in the last line of a witness that begins so.
fn named(witness: &Path, word: &str) -> Option<u32> {
    let lines = lines(witness);
    let line = lines.iter().rev().find(|line| line.starts_with(word))?;
    line.split(' ').find_map(|word| word.parse().ok().filter(|pid| *pid > 1))
}

#[test]
fn scenario_123_a_daemon_of_another_sessions_agent_survives_the_job_that_adopted_it() {
    let outbox = Outbox::new(&["fork:0"]);
    let (inner, go) = (outbox.world.scratch("inner"), outbox.world.scratch("go"));
    let launch = args![bin("hearback"), "launch", "--session", "x", "--", bin("exit-with"), "0", ";"];
    let outer = args!["--", bin("act"), "run", inner].into_iter().chain(launch);
    let outer = outbox.world.launch(outer.chain(args!["hold", go]));
    let daemon: u32 = eventually("the woken agent left a daemon", || {
        outbox.said("left").first().and_then(|said| said.parse().ok())
    });
    let inner = eventually("the inner job is launched", || lines(&inner).first().cloned());
    outbox.until(&inner, &["delivered"]);
    // Its last parent is gone: on Linux the supervisor of the outer job has adopted it.
    eventually("the inner supervisor has ended", || {
        carrying(&format!("HEARBACK_SUPERVISOR={inner}")).is_empty().then_some(())
    });
    assert!(carrying(&format!("HEARBACK_JOB={outer}")).iter().all(|pid| *pid != daemon), "it is not marked");
    outbox.release("go");
    assert_eq!(outbox.world.run(["wait", &outer]).code, Some(0));
    assert!(alive(daemon), "it belongs to the agent of another session");
    outbox.world.show(&outer).exited(0).lacks("/survivors").lacks("/notes");
    kill_hard(daemon);
}

/// A job in which a turn of session `s` runs an agent that ignores a request to terminate. Returns the job, its main
/// process and the agent.
fn turn_in_a_job(outbox: &Outbox) -> (String, u32, u32) {
    let (witness, main) = (outbox.world.scratch("agent"), outbox.world.scratch("main"));
    let turn = args![bin("hearback"), "turn", "--session", "s", "--", bin("sink"), "--witness", witness];
    let job = args!["--", bin("act"), "witness", main, "spawn"].into_iter().chain(turn);
    let id = outbox.world.launch(job.chain(args!["hang", ";", "rest"]));
    let agent = eventually("the agent runs", || named(&witness, "start"));
    let main = eventually("the job runs", || named(&main, "start"));
    (id, main, agent)
}

#[test]
fn scenario_124_a_turn_inside_a_job_is_interrupted_by_its_own_mark() {
    let outbox = Outbox::with("busy = \"interrupt\"", "turn = true", &[]);
    let (id, main, agent) = turn_in_a_job(&outbox);
    let sent = outbox.world.json(["send", "--session", "s", "--sink", "fixture", "--json", "stop that"]);
    assert_eq!(sent["interrupted"], true, "{sent}");
    assert!(!alive(agent), "its agent is gone before the request is answered");
    assert!(alive(main), "the job that the turn runs in goes on");
    let _ = outbox.called(1);
    outbox.world.run(["kill", &id]).ok();
}

#[test]
fn scenario_124_a_turn_inside_a_job_whose_host_died_is_ended_before_the_next() {
    let outbox = Outbox::pull();
    let (id, main, agent) = turn_in_a_job(&outbox);
    let hosts =
        carrying(&format!("HEARBACK_JOB={id}")).into_iter().filter(|pid| ![main, agent].contains(pid));
    let [host] = hosts.collect::<Vec<_>>()[..] else { panic!("one process runs the turn") };
    kill_hard(host);
    let next = outbox.world.scratch("next");
    let words = args!["turn", "--session", "s", "--", bin("act"), "witness", next];
    outbox.world.run(words).ok();
    assert!(!alive(agent), "two turns never overlap");
    assert!(alive(main), "the job that the turn ran in goes on");
    outbox.world.run(["kill", &id]).ok();
}
