//! Follow-ups for callers that fetch: claimed with a token, acknowledged or released with it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use hearback_tests::{Outbox, Ran, eventually};
use serde_json::{Value, json};

use crate::command_line::{conforms, schema};

/// The documented settings of a world without sinks, with a short pause between attempts.
fn pulled(settings: &str) -> Outbox {
    let outbox = Outbox::pull();
    outbox.write_settings(&format!("retry_first = \"40ms\"\n{settings}"));
    outbox
}

/// A job of session `s` that has ended.
fn ended(outbox: &Outbox) -> String {
    let id = outbox.launch(&[], "exit-with", &["0", "--print", "hi"]);
    outbox.world.run(["wait", "--peek", &id]).ok();
    id
}

fn claim(outbox: &Outbox, words: &[&str]) -> Ran {
    outbox.world.run([&["followups", "claim", "--json"], words].concat())
}

/// What was claimed: the job and the token.
#[track_caller]
fn claimed(outbox: &Outbox, words: &[&str]) -> (String, String) {
    let document: Value = serde_json::from_str(&claim(outbox, words).ok()).unwrap();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&document["payload"]["subject"]), text(&document["token"]))
}

#[track_caller]
fn fails(ran: &Ran, kind: &str) {
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!((printed["error"]["kind"].as_str(), ran.code), (Some(kind), Some(1)), "{ran:?}");
}

#[test]
fn scenario_47_claimers_never_have_the_same_follow_up() {
    let outbox = pulled("");
    let jobs: BTreeSet<_> = (0..12).map(|_| ended(&outbox)).collect();
    let taken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let ran = claim(&outbox, &[]);
                    if ran.code == Some(1) {
                        break fails(&ran, "nothing");
                    }
                    let document: Value = serde_json::from_str(&ran.ok()).unwrap();
                    taken.lock().unwrap().push(document);
                }
            });
        }
    });
    let taken = taken.into_inner().unwrap();
    let ids: BTreeSet<_> =
        taken.iter().map(|it| it["payload"]["subject"].as_str().unwrap().to_owned()).collect();
    assert_eq!((taken.len(), &ids), (12, &jobs), "each once");
    let schema = schema(&outbox.world);
    for document in &taken {
        conforms(&schema, "followups_claim", document);
        assert_eq!((&document["attempt"], &document["kind"]), (&json!(1), &json!("follow_up")));
        let acked = outbox.world.json(["followups", "ack", "--json", document["token"].as_str().unwrap()]);
        assert_eq!((&acked["delivery"], &acked["changed"]), (&document["id"], &json!(true)));
    }
    for id in &jobs {
        outbox.until(id, &["delivered"]);
    }
    fails(&claim(&outbox, &[]), "nothing");
}

#[test]
fn scenario_48_a_claim_that_is_not_acknowledged_is_offered_again() {
    let outbox = pulled("");
    let id = ended(&outbox);
    let (job, first) = claimed(&outbox, &["--for", "4s"]);
    assert_eq!(job, id);
    // The process that claimed it has exited, and it is still its caller's.
    fails(&claim(&outbox, &[]), "nothing");
    fails(&claim(&outbox, &[&id]), "nothing");
    assert_eq!(outbox.world.show(&id)["follow_up"]["state"], "leased");
    let (job, second) = claimed(&outbox, &["--wait", "60s"]);
    assert!(job == id && first != second);
    let ack = |token: &str| outbox.world.run(["followups", "ack", "--json", token]);
    fails(&ack(&first), "claim_lost");
    fails(&outbox.world.run(["followups", "release", "--json", &first]), "claim_lost");
    let guessed = format!("{}x", &second[..second.len() - 1]);
    fails(&ack(&guessed), "claim_lost");
    assert_eq!(outbox.world.show(&id)["follow_up"]["state"], "leased", "a wrong token changes nothing");
    ack(&second).ok();
    outbox.until(&id, &["delivered"]);
    // To repeat it is harmless, even for the one that was overtaken.
    for token in [&first, &second] {
        let again: Value = serde_json::from_str(&ack(token).ok()).unwrap();
        assert_eq!(again["changed"], false, "{again}");
        let released = outbox.world.json(["followups", "release", "--json", token]);
        assert_eq!(released["changed"], false, "{released}");
    }
}

#[test]
fn a_claim_whose_time_has_passed_is_good_while_nobody_else_has_the_follow_up() {
    let outbox = pulled("");
    let id = ended(&outbox);
    let (_, token) = claimed(&outbox, &["--for", "1ms"]);
    let ran = outbox.world.run(["followups", "release", &token]);
    assert!(ran.ok().ends_with("nothing to do: the claim is over"));
    outbox.world.run(["followups", "ack", &token]).ok();
    outbox.until(&id, &["delivered"]);
}

#[test]
fn a_claim_that_is_released_is_free_again_and_after_too_many_failures_a_dead_letter() {
    let outbox = pulled("attempts = 2");
    let id = ended(&outbox);
    let release = |words: &[&str]| {
        let (_, token) = claimed(&outbox, &["--wait", "60s"]);
        outbox.world.run([&["followups", "release", &token], words].concat()).ok();
        outbox.world.show(&id)["follow_up"].clone()
    };
    for words in [&[][..], &["--busy"], &["--busy", "--reason", "in a turn"]] {
        assert_eq!(release(words)["state"], "pending", "no attempt is spent");
    }
    assert_eq!(release(&["--failed", "--reason", "no network"])["error"], "no network");
    let given_up = release(&["--failed"]);
    assert_eq!(given_up["state"], "dead_letter", "{given_up}");
    fails(&claim(&outbox, &[&id]), "nothing");
    outbox.world.run(["followups", "retry", &id]).ok();
    let (job, token) = claimed(&outbox, &[&id]);
    assert_eq!(job, id);
    outbox.world.run(["followups", "ack", &token]).ok();
}

#[test]
fn what_a_sink_gets_and_what_another_session_owns_is_not_claimed() {
    let outbox = Outbox::new(&["75"]);
    let pushed = ended(&outbox);
    eventually("the sink was asked", || (!outbox.calls_of(&pushed).is_empty()).then_some(()));
    fails(&claim(&outbox, &[]), "nothing");
    fails(&claim(&outbox, &[&pushed]), "nothing");
    outbox.write_settings("");
    let fetched = ended(&outbox);
    fails(&claim(&outbox, &["-s", "other"]), "nothing");
    fails(&claim(&outbox, &["-s", "other", &fetched]), "unknown_job");
    let (job, token) = claimed(&outbox, &["-s", "s"]);
    assert_eq!(job, fetched);
    let ran = outbox.run_as("other", &["followups", "ack", "--json", &token]);
    fails(&ran, "unknown_job");
    let mut denied = outbox.world.command(["followups", "claim", "--json"]);
    denied.env("HEARBACK_DENY", "ack");
    assert_eq!(hearback_tests::run(denied).code, Some(2));
    let no_token = outbox.world.run(["followups", "release", &format!("{fetched}.end")]);
    assert!(no_token.code == Some(2) && no_token.stderr.contains("not the token of a claim"), "{no_token:?}");
}
