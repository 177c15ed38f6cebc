//! The conformance check of plugins, against programs that do not keep to the protocol.

use std::path::PathBuf;

use fs_err as fs;
use hearback_tests::{World, copy_program};
use serde_json::Value;

pub(crate) const HELLO: &str = r#"say {"hearback_sink":{"versions":[1]}}"#;

/// A plugin that takes these steps.
pub(crate) fn plugin(world: &World, steps: &str) -> PathBuf {
    let path = world.scratch(format!("plugin{}", std::env::consts::EXE_SUFFIX));
    copy_program("plugin", &path);
    let mut beside = path.clone().into_os_string();
    beside.push(".steps");
    fs::write(PathBuf::from(beside), steps).unwrap();
    path
}

/// The names of the checks that fail, with what was seen.
#[track_caller]
fn failed(body: &str) -> Vec<(String, String)> {
    let world = World::new();
    let ran =
        world.run(["plugin".as_ref(), "check".as_ref(), plugin(&world, body).as_os_str(), "--json".as_ref()]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let checks = document["checks"].as_array().unwrap().iter();
    let failed: Vec<_> = checks
        .filter(|check| check["passed"] == false)
        .map(|check| (text(&check["name"]), text(&check["message"])))
        .collect();
    assert_eq!(
        (ran.code, &document["passed"]),
        (Some(i32::from(!failed.is_empty())), &failed.is_empty().into())
    );
    failed
}

#[track_caller]
fn assert_failed(body: &str, expected: &[(&str, &str)]) {
    let found = failed(body);
    let names = |list: &[(String, String)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), expected.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{found:?}");
    for ((_, seen), (_, part)) in found.iter().zip(expected) {
        assert!(seen.contains(part), "{seen}");
    }
}

#[test]
fn a_plugin_that_keeps_to_the_protocol_passes() {
    assert_failed(&format!("{HELLO}\nanswer rightly"), &[]);
    // An error exit is as good as an answer, where there is nothing to answer.
    assert_failed(&format!("{HELLO}\nanswer strictly"), &[]);
}

#[test]
fn whoever_does_not_say_hello_is_asked_nothing_more() {
    assert_failed("exit 3", &[("hello", "ended without a hello")]);
    assert_failed("complain nonsense\nexit 3", &[("hello", "nonsense")]);
    assert_failed("say hi\ndrain", &[("hello", "did not say hello")]);
    let newer = r#"say {"hearback_sink":{"versions":[7]}}"#;
    assert_failed(newer, &[("hello", "speaks versions [7], and not 1")]);
    // It waits to be asked first.
    let shy = format!("read\n{HELLO}\nsay {{\"kind\":\"delivered\"}}");
    assert_failed(&shy, &[("hello", "it said nothing within 10 s")]);
}

#[test]
fn what_a_plugin_does_wrong_is_named() {
    let believes = format!("{HELLO}\nanswer always");
    assert_failed(&believes, &[("unknown_request", "took this for a delivery"), ("garbage", "took this")]);
    let found = failed(&format!("{HELLO}\nsay working\nanswer rightly"));
    assert!(found.iter().any(|(name, seen)| name == "stdout" && seen.contains("working")), "{found:?}");
    let found = failed(&format!("{HELLO}\nanswer singing"));
    assert!(found.iter().any(|(name, seen)| name == "deliver" && seen.contains("sung")), "{found:?}");
    let once = format!("{HELLO}\nanswer-once rightly");
    assert_failed(&once, &[("two_requests", "answered 1 times to 2")]);
}

#[test]
fn a_plugin_whose_deliveries_all_fail_does_not_pass() {
    let why = r#"the delivery failed: {"kind":"failed","reason":"unknown"}"#;
    let deliveries = ["deliver", "repeat", "two_requests", "hostile_text"].map(|name| (name, why));
    assert_failed(&format!("{HELLO}\nanswer failing"), &deliveries);
}

#[test]
fn a_missing_plugin_is_reported() {
    let world = World::new();
    let missing = world.run(["plugin", "check", "no-such"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("hearback-sink-no-such"), "{missing:?}");
    assert_eq!(world.run(["plugin", "check", "./no-such"]).code, Some(2));
    let mut denied = world.command(["plugin", "check", "no-such"]);
    denied.env("HEARBACK_DENY", "sink");
    assert!(hearback_tests::run(denied).stderr.contains("HEARBACK_DENY"));
}
