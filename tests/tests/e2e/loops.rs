//! Loops: what cuts its turn short again and again, and agents that send messages to themselves.

use hearback_tests::{Outbox, eventually};
use serde_json::Value;

use crate::sessions::{Host, start};

/// A world with two sinks: the agent that answers like this, and one that takes everything.
fn world(settings: &str, answers: &[&str]) -> Outbox {
    let outbox = Outbox::with("", "", &[]);
    let good = format!("turn = true\n\n[sink.good]\n{}\nturn = true", outbox.command(&["0"]));
    outbox.configure(settings, &good, answers);
    outbox
}

/// Waits for the monitor to be killed by its agent, and starts the next one.
fn replace(host: &mut Host) {
    host.first.0.wait().unwrap();
    host.first = start(&host.outbox);
}

/// The dead letter in the inbox.
#[track_caller]
fn held_message(host: &Host) -> Value {
    eventually("the message is held", || {
        let inbox = host.json(&["inbox"]);
        Some(inbox["messages"][0].clone()).filter(|message| message["dead_letter"] == true)
    })
}

#[test]
fn scenario_117_a_message_that_kills_its_host_three_times_is_held_and_the_rest_goes_on() {
    let mut host = Host::over(world("", &["kill-host"]));
    host.send("s", "die");
    for attempt in 1..=3 {
        host.in_hand("s.message.1", attempt);
        replace(&mut host);
    }
    // Not before: a message that is sent while no monitor runs is delivered by another process, with all before it.
    host.run(&["send", "--session", "s", "--sink", "good", "live"]).ok();
    let held = held_message(&host);
    let because = "held for a person: its turn was cut short 3 times in a row";
    assert!(held["error"].as_str().unwrap().contains(because), "{held}");
    assert_eq!(held["attempts"], 3, "{held}");
    host.in_hand("s.message.2", 1);
    let session = host.until_idle("s");
    assert_eq!(session["dead_letters"], 1, "{session}");
    for (command, expected) in [("inbox", "dead letter"), ("sessions", "1 dead letter")] {
        let said = host.run(&[command]).ok();
        assert!(said.contains(expected) && said.contains(because), "{said}");
    }
    let doctor = host.outbox.world.run(["doctor", "--json"]).ok();
    assert!(
        doctor.contains("wait for a person: 1 (message 1 to session") && doctor.contains(because),
        "{doctor}"
    );
    // A person releases it. The agent hears that this is a repeat, though the session has had a good turn since.
    host.outbox.tell("0");
    assert_eq!(host.run(&["inbox", "retry", "--session", "s", "1"]).code, Some(0));
    host.in_hand("s.message.1", 5);
    let note = &host.sent("s.message.1", 5)["note"];
    assert!(note["text"].as_str().unwrap().contains("handed to you before"), "{note}");
    host.until_idle("s");
    assert!(host.json(&["inbox"])["messages"].as_array().unwrap().is_empty());
    assert_eq!(host.run(&["inbox", "retry", "--session", "s", "1"]).code, Some(1), "nothing to retry");
}

#[test]
fn scenario_117_a_follow_up_that_kills_its_host_three_times_is_held() {
    // The supervisor makes the first attempt, and leaves the others to the monitor.
    let mut host = Host::over(world("", &["1:no luck", "kill-host"]));
    let job = host.outbox.launch(&[], "exit-with", &["0"]);
    let delivery = format!("{job}.end");
    for attempt in 2..=4 {
        host.in_hand(&delivery, attempt);
        replace(&mut host);
    }
    let seen = host.outbox.until(&job, &["dead_letter"]);
    let because = "held for a person: its turn was cut short 3 times in a row";
    let error = seen["follow_up"]["error"].as_str().unwrap();
    assert!(error.contains(because), "{error}");
    let said = host.run(&["followups"]);
    assert!(said.stderr.contains(because), "{said:?}");
    let doctor = host.outbox.world.run(["doctor", "--json"]).ok();
    assert!(doctor.contains("wait for a person: 1 (follow-up ") && doctor.contains(because), "{doctor}");
    host.run(&["send", "--session", "s", "--sink", "good", "the rest goes on"]).ok();
    host.in_hand("s.message.1", 1);
    host.outbox.tell("0");
    host.run(&["followups", "retry", &job]).ok();
    host.outbox.until(&job, &["delivered"]);
    let last = host.outbox.calls().into_iter().rfind(|call| call.delivery == delivery).unwrap();
    let note = &host.sent(&delivery, last.attempt)["note"];
    assert!(note["text"].as_str().unwrap().contains("handed to you before"), "{note}");
}

#[test]
fn scenario_118_a_turn_that_asks_for_a_restart_finishes_first_and_is_not_run_again() {
    // Longer than an agent needs to see the answer to its request.
    let host = Host::over(Outbox::with("", "turn = true", &["restart-finish:3000:0"]));
    let before = host.first.0.id();
    host.send("s", "restart yourself");
    host.successor_of(before);
    let seen = host.until_idle("s");
    assert!(seen["interrupted"].is_null(), "{seen}");
    host.outbox.tell("0");
    host.send("s", "and now?");
    host.until_idle("s");
    let taken = host.taken();
    assert_eq!(taken, [("s.message.1".to_owned(), 1), ("s.message.2".to_owned(), 1)], "each once");
    assert_eq!(host.sent("s.message.2", 1)["note"], Value::Null);
}

#[test]
fn scenario_119_an_agent_that_sends_to_itself_is_refused_when_the_chain_is_too_long() {
    let outbox = Outbox::with("max_depth = 3", "turn = true", &["send:again:0"]);
    outbox.world.run(["send", "--session", "s", "begin"]).ok();
    let said = eventually("the chain is cut", || {
        let said = outbox.said("sent");
        said.iter().any(|line| line.contains("error")).then_some(said)
    });
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[3].contains("number 4 of a chain") && said[3].contains("the limit is 3"), "{said:?}");
    // A person may still send.
    outbox.tell("0");
    outbox.world.run(["send", "--session", "s", "hello"]).ok();
}

#[test]
fn scenario_119_an_agent_that_sends_to_itself_too_fast_is_refused() {
    let outbox = Outbox::with("max_rate = 2", "turn = true", &["send:again:0"]);
    outbox.world.run(["send", "--session", "s", "begin"]).ok();
    let refused = |n: usize| {
        eventually("the chain is cut", || {
            let said = outbox.said("sent");
            let refused = said.iter().filter(|line| line.contains("error")).count();
            (refused == n).then_some(said)
        })
    };
    let said = refused(1);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[2].contains("2 messages") && said[2].contains("within an hour"), "{said:?}");
    // What a person sends is not counted, and does not begin the count anew.
    outbox.world.run(["send", "--session", "s", "begin again"]).ok();
    assert_eq!(refused(2).len(), 4);
}
