//! A monitor that is paused or hangs: other processes deliver, and the status says so.

#[cfg(target_os = "linux")]
use std::process::Stdio;
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use hearback_tests::{KillOnDrop, alive};
use hearback_tests::{Outbox, bin, eventually, go_on, stop};

use crate::sessions::Host;

#[test]
fn scenario_126_a_paused_monitor_silences_nobody_and_is_said_not_to_answer() {
    let host = Host::over(Outbox::with("", "turn = true", &["1:no luck", "0"]));
    let monitor = host.first.0.id();
    assert_eq!(host.status()["answers"], true);
    stop(monitor);
    eventually("it is seen to be paused", || (host.status()["answers"] == false).then_some(()));
    let status = host.run(&["monitor", "status"]).ok();
    assert!(status.contains("a monitor is running") && status.contains("does not answer"), "{status}");
    let doctor = host.run(&["doctor"]).ok();
    assert!(doctor.contains("does not answer"), "{doctor}");
    // A message, which fails once: a messenger delivers it, and its next attempt.
    host.send("s", "anybody there?");
    // A follow-up, which fails once: its supervisor delivers it, and its next attempt.
    let exit_with = bin("exit-with");
    let job = host.outbox.world.launch(["--session", "t", "--", exit_with.to_str().unwrap(), "0"]);
    host.in_hand("s.message.1", 2);
    host.until_idle("s");
    host.outbox.until(&job, &["delivered"]);
    let before = host.taken().len();
    assert_eq!(before, 4, "{:?}", host.taken());
    // One that is continued finds everything done.
    go_on(monitor);
    eventually("it answers", || (host.status()["answers"] == true).then_some(()));
    host.send("u", "and now you");
    host.in_hand("u.message.1", 2);
    host.until_idle("u");
    assert_eq!(host.taken().len(), before + 2, "nothing came twice: {:?}", host.taken());
}

// Not on Windows: Wine's monitor is held at a call of Wine's, and others wait for its server then.
#[cfg(target_os = "linux")]
#[test]
fn scenario_126_what_a_monitor_that_hangs_leaves_is_delivered_by_others_and_it_is_said_not_to_answer() {
    let outbox = Outbox::with("", "turn = true", &["1:no luck", "0"]);
    // Its loop is held when it looks at the first message, and everything else of it lives.
    let mut monitor = std::process::Command::new(bin("killat"));
    outbox.world.settle(&mut monitor);
    monitor.args(["stop", "1", "--from", "message.1", "--for", "300", "--"]);
    monitor.arg(bin("hearback")).args(["monitor", "run"]);
    let monitor = KillOnDrop(monitor.stderr(Stdio::null()).spawn().unwrap());
    let host = Host { outbox, first: monitor };
    eventually("it is the host", || host.status()["pid"].as_u64());
    // The sender notices that nothing happens, and starts a messenger. Its attempt fails.
    host.send("s", "anybody there?");
    host.in_hand("s.message.1", 1);
    // The supervisor makes the first attempt, which fails, too. It leaves the next one to the monitor.
    let exit_with = bin("exit-with");
    let job = host.outbox.world.launch(["--session", "t", "--", exit_with.to_str().unwrap(), "0"]);
    eventually("the supervisor has left", || (!alive(host.outbox.world.supervisor(&job))).then_some(()));
    assert_eq!(host.taken().len(), 2, "one attempt at each: {:?}", host.taken());
    let began = Instant::now();
    while !host.run(&["doctor"]).ok().contains("does not answer") {
        assert!(began.elapsed() < Duration::from_secs(120), "it is seen to hang");
    }
    assert_eq!(host.taken().len(), 2, "doctor changes nothing: {:?}", host.taken());
    // Any command that looks at sessions or jobs has the rest delivered.
    let status = host.run(&["monitor", "status"]).ok();
    assert!(status.contains("does not answer"), "{status}");
    host.in_hand("s.message.1", 2);
    host.until_idle("s");
    eventually("the follow-up is delivered", || {
        host.run(&["list", "--all-sessions"]).ok();
        (host.outbox.world.show(&job).into_json()["follow_up"]["state"] == "delivered").then_some(())
    });
    assert_eq!(host.taken().len(), 4, "nothing came twice: {:?}", host.taken());
}

// Not on Windows: there are no signals to ignore. Elsewhere `env` cannot ignore one.
#[cfg(target_os = "linux")]
#[test]
fn a_turn_under_a_parent_that_ignores_the_ends_of_children_ends_well_and_takes_a_message_once() {
    let outbox = Outbox::with("", "turn = true", &["0"]);
    let (go, hold) = (outbox.gate("go"), bin("hold"));
    let ignoring = |agent: &[&str]| {
        let plain = outbox.world.command([&["turn", "--session", "s", "--"], agent].concat());
        let mut turn = std::process::Command::new("env");
        turn.arg("--ignore-signal=CHLD").arg(plain.get_program()).args(plain.get_args());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => turn.env(name, value),
                None => turn.env_remove(name),
            };
        }
        turn
    };
    let exit_with = bin("exit-with");
    let failed = hearback_tests::run(ignoring(&[exit_with.to_str().unwrap(), "3"]));
    assert_eq!(failed.code, Some(3), "how it ended is known: {failed:?}");
    let turn = ignoring(&[hold.to_str().unwrap(), &go]);
    let turn = std::thread::spawn(move || hearback_tests::run(turn));
    eventually("it is in its turn", || {
        let sessions = outbox.world.json(["sessions", "--json"]);
        sessions["sessions"][0]["turn"].as_u64()
    });
    outbox.world.run(["send", "--session", "s", "--sink", "fixture", "hello"]).ok();
    outbox.release("go");
    assert_eq!(turn.join().unwrap().code, Some(0));
    eventually("nothing waits", || {
        let sessions = outbox.world.json(["sessions", "--json"]);
        (sessions["sessions"][0]["waiting"] == 0).then_some(())
    });
    assert_eq!(outbox.calls().len(), 1, "{:?}", outbox.calls());
}

// Not on Windows: a process is paused thread by thread there, and a thread that ends meanwhile is an error.
#[cfg(unix)]
#[test]
fn scenario_126_a_monitor_that_is_paused_while_many_messages_come_delivers_none_twice() {
    let host = Host::over(Outbox::with("", "turn = true", &["0"]));
    let monitor = host.first.0.id();
    for n in 0..12 {
        // Paused at any moment of its work: before it heard, while it begins a turn, while it records one.
        if n % 2 == 0 {
            stop(monitor);
        }
        host.send(&format!("s{}", n % 3), "hello");
        if n % 2 == 1 {
            go_on(monitor);
        }
    }
    for n in 0..3 {
        host.until_idle(&format!("s{n}"));
    }
    let mut taken = host.taken();
    taken.sort();
    let times = taken.len();
    taken.dedup();
    assert_eq!((taken.len(), times), (12, 12), "each once");
}
