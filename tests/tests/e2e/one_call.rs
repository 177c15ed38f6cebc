//! One call where an integrator needs one: what a document says besides the state of a job.

use hearback_tests::{Outbox, World, bin, eventually};
use serde_json::{Value, json};

use crate::command_line::{conforms, schema};
use crate::secrets::{MASK, TOKEN};

fn path(name: &str) -> String {
    bin(name).to_str().expect("paths of the tests are text").to_owned()
}

/// A job of session `s` that printed these lines and has ended.
fn printed(outbox: &Outbox, options: &[&str], text: &str) -> String {
    let id = outbox.launch(options, "exit-with", &["3", "--print", text]);
    assert_eq!(outbox.world.run(["wait", "--peek", &id]).code, Some(3));
    id
}

/// The text of a log document, and that its parts adjoin.
fn text(log: &Value) -> String {
    let mut at = log["offset"].as_u64().unwrap();
    let mut text = String::new();
    for part in log["parts"].as_array().unwrap() {
        assert_eq!(part["offset"], at, "{log}");
        at = part["end"].as_u64().unwrap();
        text += part["text"].as_str().unwrap_or_default();
    }
    assert_eq!(log["end"], at, "{log}");
    text
}

#[test]
fn scenario_132_a_job_and_its_output_are_one_document() {
    let outbox = Outbox::pull();
    let (world, schema) = (&outbox.world, schema(&outbox.world));
    let lines: Vec<_> = (1..=400).map(|n| format!("line {n}")).collect();
    let id = printed(&outbox, &[], &lines.join("\n"));
    assert_eq!(world.show(&id).get("log"), None, "not unless it is asked for");
    let shown = world.json(["show", &id, "--output", "30", "--json"]);
    conforms(&schema, "show", &shown);
    assert_eq!((&shown["id"], &shown["outcome"]["code"]), (&json!(id), &json!(3)));
    assert_eq!(text(&shown["log"]).trim_end(), "line 398\nline 399\nline 400", "it begins with a line");
    assert_eq!(shown["log"]["end"], shown["output"]["bytes"]);
    let shown = world.json(["show", &id, "--output", "1MB", "--json"]);
    assert_eq!(text(&shown["log"]).lines().count(), 400);
    assert_eq!(shown["follow_up"]["state"], "pending", "to show is not to read");
    let for_people = world.run(["show", &id, "--output", "1KB"]).ok();
    assert!(for_people.contains("│ line 330\n") && for_people.contains("│ line 400\n"), "{for_people}");
    // One line that is longer than what is wanted is cut within it, and never within a character.
    let long = printed(&outbox, &[], &"ä".repeat(10_000));
    let shown = world.json(["show", &long, "--output", "8", "--json"]);
    assert_eq!(text(&shown["log"]).trim_end().trim_matches('\u{fffd}').trim_matches('ä'), "", "{shown}");
    let empty = outbox.launch(&[], "exit-with", &["0"]);
    world.run(["wait", "--peek", &empty]).ok();
    let shown = world.json(["show", &empty, "--output", "8", "--json"]);
    assert_eq!((text(&shown["log"]), &shown["log"]["bytes"]), (String::new(), &json!(0)));
}

#[test]
fn scenario_132_a_kill_returns_the_job_as_it_then_is() {
    let outbox = Outbox::pull();
    let (world, schema) = (&outbox.world, schema(&outbox.world));
    let id = outbox.launch(&["--key", "k"], "hold", &[&outbox.gate("never"), "--print", "so far"]);
    eventually("it has printed", || (world.show(&id)["output"]["bytes"].as_u64() > Some(0)).then_some(()));
    let killed =
        world.json(["kill", "--key", "k", "-s", "s", "--reason", "enough", "--output", "1KB", "--json"]);
    conforms(&schema, "kill", &killed);
    assert_eq!((&killed["id"], &killed["job"]["id"]), (&json!(id), &json!(id)));
    assert_eq!(killed["job"]["outcome"]["kind"], "killed");
    assert_eq!(killed["job"]["outcome"], killed["outcome"]);
    assert_eq!(killed["job"]["state"], "failed");
    assert!(killed["job"]["ended_at"].is_string(), "{killed}");
    assert_eq!(text(&killed["log"]).trim_end(), "so far");
    let again = world.json(["kill", &id, "--json"]);
    assert_eq!((&again["already_ended"], again.get("log")), (&json!(true), None));
}

#[test]
fn scenario_132_a_job_is_found_by_its_key_and_a_launch_says_whether_it_made_it() {
    let world = World::new();
    let exit_with = path("exit-with");
    let launch = |session: &str| {
        let words =
            ["launch", "-s", session, "--key", "nightly", "--json", "--", &exit_with, "0", "--print", "hi"];
        world.json(words)
    };
    let (first, second, other) = (launch("a"), launch("a"), launch("b"));
    assert_eq!((&first["created"], &second["created"]), (&json!(true), &json!(false)));
    assert_eq!(first["id"], second["id"]);
    assert_ne!(first["id"], other["id"], "each session has keys of its own");
    let found =
        |words: &[&str]| world.json([&["show", "--json", "--key", "nightly"], words].concat())["id"].clone();
    assert_eq!((found(&["-s", "a"]), found(&["-s", "b"])), (first["id"].clone(), other["id"].clone()));
    assert_eq!(found(&[]), other["id"], "of all sessions, the newest");
    assert_eq!(world.run(["wait", "--key", "nightly", "-s", "a"]).code, Some(0));
    assert_eq!(world.run(["logs", "--key", "nightly", "-s", "a"]).ok().trim_end(), "hi");
    // In history it still has its key.
    eventually("it is settled", || {
        let job = world.json(["show", "--json", "--key", "nightly", "-s", "a"]);
        (job["follow_up"]["state"] == "read").then_some(())
    });
    for words in [&["show", "--key", "nope"][..], &["kill", "--key", "nightly", "-s", "c"]] {
        let ran = world.run(words);
        assert!(ran.code == Some(1) && ran.stderr.contains("no job has the key"), "{ran:?}");
    }
}

#[test]
fn scenario_132_a_list_has_the_last_line_of_each_job_where_it_is_asked_for() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    let of = |text: &str| printed(&outbox, &[], text);
    let cases = [
        (of("one\ntwo\n\n"), json!("two")),
        (of("10%\r100%"), json!("100%")),
        (of(&"x".repeat(5_000)), json!("x".repeat(200))),
        (of(&format!("token {TOKEN}")), json!(format!("token {MASK}"))),
        (of(""), Value::Null),
    ];
    let preview = world.json(["list", "--preview", "--json", "--all-sessions"]);
    conforms(&schema(world), "list", &preview);
    let listed = world.json(["list", "--json"]);
    for (id, expected) in cases {
        let line = |list: &Value| {
            let jobs = list["jobs"].as_array().unwrap();
            jobs.iter().find(|job| job["id"] == id).unwrap()["output"]["last_line"].clone()
        };
        assert_eq!(line(&preview), expected);
        assert_eq!(line(&listed), Value::Null, "not unless it is asked for");
    }
    assert_eq!(world.run(["list", "--preview"]).code, Some(2), "it is for programs");
}

#[test]
fn scenario_132_a_record_says_what_was_asked_where_it_goes_and_when_it_is_tried_again() {
    let outbox = Outbox::with("retry_first = \"1h\"", "", &["1"]);
    let world = &outbox.world;
    let act = path("act");
    let asked = world
        .json(["ask", "-s", "p", "--new", "--prompt", "why?", "--json", "--", &act, "print", "{prompt}"]);
    assert_eq!(asked["prompt"], "why?");
    assert_eq!(asked["command"], json!({"argv": [act, "print", "why?"]}));
    let id = outbox.launch(&[], "exit-with", &["0"]);
    let job = eventually("an attempt has failed", || {
        let job = world.show(&id);
        (job["follow_up"]["attempts"] == 1 && job["follow_up"]["state"] == "pending").then_some(job)
    });
    let follow_up = &job["follow_up"];
    assert_eq!(follow_up["sinks"], json!(["fixture"]));
    let next = follow_up["next_attempt_at"].as_str().unwrap();
    assert!(next > job["ended_at"].as_str().unwrap(), "{job}");
    let mut results = world.json(["results", "-s", "p", "--json"]);
    if results["results"] == json!([]) {
        results["results"] = results["running"].take();
    }
    assert_eq!(results["results"][0]["prompt"], "why?", "{results}");
}

#[test]
fn the_follow_up_of_one_job_is_read_by_the_job() {
    let outbox = Outbox::pull();
    let (first, second) = (printed(&outbox, &[], "one"), printed(&outbox, &["--label", "build"], "two"));
    let next = |words: &[&str]| outbox.world.json([&["followups", "next", "--json"], words].concat());
    assert_eq!(next(&[])["subject"], first, "the oldest");
    assert_eq!(next(&[&second])["subject"], second);
    assert_eq!(next(&["build", "-s", "s"])["subject"], second);
    assert_eq!(outbox.world.run(["followups", "next", &second, "-s", "other"]).code, Some(1));
    outbox.world.run(["followups", "ack", &second]).ok();
    let ran = outbox.world.run(["followups", "next", &second]);
    assert!(ran.code == Some(1) && ran.stderr.contains("nothing is pending"), "{ran:?}");
    // A job that runs is waited for, whatever else is pending.
    let third = outbox.launch(&[], "hold", &[&outbox.gate("go")]);
    outbox.release("go");
    assert_eq!(next(&["--wait", "30s", &third])["subject"], third);
}
