//! `hearback serve`: a host that is a program of its own runs the turns of sessions over one pipe.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hearback_tests::{Chance, KillOnDrop, ServeClient, World, args, bin, eventually, is_full};
use serde_json::{Value, json};

use crate::command_line::{conforms_to, schema};

fn host(world: &World) -> ServeClient {
    ServeClient::start(world.command(["serve"]))
}

fn exit_with(code: &str) -> Value {
    json!([bin("exit-with"), code, "--print", "hello"])
}

/// Launches a job of a session that ends when the gate is there.
fn hold(host: &mut ServeClient, session: &str, gate: &Path) -> String {
    let job = host.call("launch", json!({ "command": [bin("hold"), gate], "session": session }));
    job["id"].as_str().unwrap().to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn ids(turn: &Value) -> Vec<String> {
    turn["items"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect()
}

fn close(host: &mut ServeClient, turn: &Value, how: &str) {
    host.call("turn.close", json!({ "turn": turn["turn"], "how": how }));
}

/// Each line of a conversation fits what `hearback schema` says about it.
#[track_caller]
fn fits(world: &World, lines: &[Value]) {
    let schema = schema(world);
    let part = |name: &str, method: &str| schema["$defs"][name]["properties"][method].clone();
    let mut asked = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for line in lines {
        match (line["method"].as_str(), &line["id"]) {
            (Some(method), id) if !id.is_null() => {
                asked.insert(id.as_u64().unwrap(), method.to_owned());
                // What is sent wrongly on purpose is answered with an error about it.
                if !part("ServeParams", method).is_null() && line["params"]["nonsense"].is_null() {
                    conforms_to(&schema, &part("ServeParams", method), &line["params"]);
                }
            }
            (Some(method), _) => {
                seen.insert(method.to_owned());
                let told = json!({ "method": method, "params": line["params"] });
                conforms_to(&schema, &schema["$defs"]["Notification"], &told);
            }
            (None, id) => {
                let method = id.as_u64().and_then(|id| asked.get(&id));
                match method.filter(|_| line["error"].is_null()) {
                    Some(method) => conforms_to(&schema, &part("ServeResults", method), &line["result"]),
                    None => conforms_to(&schema, &schema["$defs"]["RpcError"], &line["error"]),
                }
            }
        }
    }
    for method in ["turn", "due", "event"] {
        assert!(seen.contains(method), "the conversation has no `{method}`");
    }
}

#[test]
fn scenario_144_what_an_agent_launches_in_a_turn_of_a_host_comes_back_to_the_host() {
    let world = World::new();
    let mut host = host(&world);
    host.call("attend", json!({ "session": "s" }));
    let launch = || world.run(args!["launch", "-s", "s", "--", bin("exit-with"), "0"]);
    let before = launch();
    before.says("no sink wakes this session").ok();
    let turn = host.hears("turn");
    // The agent that runs in this turn knows nothing of the host.
    let ran = launch();
    ran.says("this session is woken through `host`: end your turn").ok();
    let job = ran.stdout.trim();
    world.show(job).has("/follow_up/sinks", json!(["host"]));
    close(&mut host, &turn, "done");
    assert_eq!(ids(&host.hears("turn")), [format!("{job}.end")]);
    // A sink that is named, and a session that is in no turn, are as ever.
    let other = world.run(args!["launch", "-q", "-s", "other", "--", bin("exit-with"), "0"]).ok();
    world.show(&other).lacks("/follow_up/sinks");
}

#[test]
fn scenario_144_a_host_runs_turns_and_is_handed_what_is_due_by_token() {
    let world = World::new();
    let mut host = host(&world);
    host.call("events", json!({ "since": "beginning" }));
    host.call("attend", json!({ "session": "s" }));
    // A job ends: its follow-up comes in a turn.
    let job = host.call("launch", json!({ "command": exit_with("0"), "session": "s", "label": "it" }));
    let turn = host.hears("turn");
    assert_eq!(ids(&turn), [format!("{}.end", text(&job["id"]))]);
    assert_eq!(turn["items"][0]["payload"]["data"]["session"], "s");
    assert!(text(&turn["text"]).contains("A background job that you launched has ended"), "{turn}");
    assert_eq!(turn["env"]["HEARBACK_TURN"], "1");
    // Meanwhile another turn is refused, and a message waits.
    assert_eq!(host.fail("turn.open", json!({ "session": "s" }))["data"]["kind"], "busy");
    host.call("send", json!({ "session": "s", "text": "one" }));
    let due = host.hears("due");
    assert_eq!((&due["turn"], &due["count"]), (&turn["turn"], &json!(1)));
    let claimed = host.call("turn.claim", json!({ "turn": turn["turn"] }));
    assert_eq!(ids(&claimed), ["s.message.1"]);
    assert_eq!(claimed["text"], "one");
    assert!(ids(&host.call("turn.claim", json!({ "turn": turn["turn"] }))).is_empty(), "it is taken once");
    host.call("ack", json!({ "token": claimed["items"][0]["token"] }));
    close(&mut host, &turn, "done");
    world.show(&text(&job["id"])).follow_up_is("delivered");
    let over = host.fail("turn.close", json!({ "turn": turn["turn"], "how": "done" }));
    assert_eq!(over["data"]["kind"], "unknown_token");
    // The host begins a turn itself. Another one waits for its end.
    let opened = host.call("turn.open", json!({ "session": "s", "destination": "chat" }));
    assert_eq!((&opened["number"], &opened["destination"]), (&json!(2), &json!("chat")));
    let next = host.send("turn.open", json!({ "session": "s", "wait_ms": 60_000 }));
    assert_eq!(world.json(["sessions", "--json"])["sessions"][0]["turn"], 2);
    close(&mut host, &opened, "done");
    let next = host.answer(next)["result"].take();
    assert_eq!(next["number"], 3);
    // What is not taken comes after the turn. A release spends no attempt.
    host.call("send", json!({ "session": "s", "text": "two" }));
    host.hears("due");
    close(&mut host, &next, "failed");
    let turn = host.hears("turn");
    assert_eq!((ids(&turn), &turn["text"]), (vec!["s.message.2".to_owned()], &json!("two")));
    let token = &turn["items"][0]["token"];
    host.call("release", json!({ "token": token, "how": "busy", "retry_after_ms": 1 }));
    close(&mut host, &turn, "done");
    let turn = host.hears("turn");
    assert_eq!((ids(&turn), &turn["items"][0]["attempt"]), (vec!["s.message.2".to_owned()], &json!(2)));
    close(&mut host, &turn, "done");
    assert_eq!(world.json(["inbox", "--json"])["messages"], json!([]));
    // Errors are those of `--json`; lines that are no requests have those of JSON-RPC.
    assert_eq!(host.fail("show", json!({ "job": "nowhere" }))["data"]["kind"], "unknown_job");
    assert_eq!(host.fail("show", json!({ "nonsense": 1 }))["code"], -32602);
    assert_eq!(host.fail("nonsense", json!({}))["code"], -32601);
    let listed = host.call("list", json!({ "session": "s", "label": "it" }));
    assert_eq!(listed["jobs"][0]["id"], job["id"]);
    host.call("show", json!({ "job": "it" }));
    let output = host.call("output", json!({ "job": "it" }));
    assert_eq!(output["parts"][0]["text"], "hello\n");
    let waited = host.call("wait", json!({ "jobs": ["it"], "timeout_ms": 60_000 }));
    assert_eq!((&waited["timed_out"], &waited["jobs"][0]["state"]), (&json!(false), &json!("done")));
    let never = world.scratch("never");
    let held = host.call("launch", json!({ "command": [bin("hold"), never], "timeout_ms": null }));
    let late = host.call("wait", json!({ "jobs": [held["id"]], "timeout_ms": 0 }));
    assert_eq!((&late["timed_out"], &late["jobs"][0]["state"]), (&json!(true), &json!("running")));
    let waits = host.send("wait", json!({ "jobs": [held["id"]] }));
    host.notify("cancel", json!({ "id": waits }));
    assert_eq!(host.answer(waits)["error"]["data"]["kind"], "cancelled");
    let killed = host.call("kill", json!({ "jobs": [held["id"]], "reason": "enough" }));
    assert_eq!(killed["jobs"][0]["outcome"]["reason"], "enough");
    host.call("unattend", json!({ "session": "s" }));
    // The events tell the same story.
    let settled = format!("job/{}/settled", text(&held["id"]));
    while host.hears("event")["id"] != settled.as_str() {}
    host.call("events.stop", json!({ "subscription": 1 }));
    assert_eq!(host.close(), Some(0));
    fits(&world, &host.lines);
}

#[test]
fn lines_that_are_no_requests_are_answered_and_the_next_one_is_read() {
    let world = World::new();
    let mut host = host(&world);
    for (line, code) in [("{", -32700), ("[]", -32600), ("7", -32600), ("{\"jsonrpc\":\"2.0\"}", -32600)] {
        host.write(line);
        let answer = host.lines.len();
        let listed = host.call("list", json!({}));
        assert!(listed["jobs"].is_array());
        let refused = host.lines[answer..].iter().find(|line| line["id"].is_null()).unwrap();
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["data"]["kind"]),
            (&json!(code), &json!("usage"))
        );
    }
    host.write(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(17 * 1024 * 1024)));
    assert!(host.call("list", json!({}))["jobs"].is_array(), "a line that is too long is skipped");
    // An unknown notification has no answer.
    host.notify("nonsense", json!({}));
    assert_eq!(host.close(), Some(0));
    let mut denied = world.command(["serve"]);
    denied.env("HEARBACK_DENY", "turn,launch");
    let mut host = ServeClient::start(denied);
    for (method, params) in [
        ("attend", json!({ "all": true })),
        ("turn.open", json!({ "session": "s" })),
        ("launch", json!({ "command": ["x"] })),
    ] {
        assert_eq!(host.fail(method, params)["data"]["kind"], "denied", "{method}");
    }
}

#[test]
fn scenario_144_what_goes_to_a_host_waits_for_one_and_costs_nothing_meanwhile() {
    let world = World::new();
    let id = world.launch([
        "-s".as_ref(),
        "s".as_ref(),
        "--sink".as_ref(),
        "host".as_ref(),
        "--".as_ref(),
        bin("exit-with").as_os_str(),
        "0".as_ref(),
    ]);
    world.run(["wait", "--peek", &id]).ok();
    world.run(["send", "-s", "s", "--sink", "host", "hello"]).ok();
    let monitor = KillOnDrop(world.command(["monitor", "run"]).spawn().unwrap());
    eventually("the monitor runs", || {
        (world.json(["monitor", "status", "--json"])["running"] == true).then_some(())
    });
    // The supervisor has ended, and neither it nor the monitor has made an attempt.
    eventually("its supervisor is gone", || (!hearback_tests::alive(world.supervisor(&id))).then_some(()));
    world.show(&id).follow_up_is("pending");
    let shown = world.run(["show", &id]).ok();
    assert!(shown.contains("waits for a host"), "{shown}");
    let inbox = world.json(["inbox", "--json"]);
    assert_eq!(
        (&inbox["messages"][0]["attempts"], &inbox["messages"][0]["dead_letter"]),
        (&json!(0), &json!(false))
    );
    let sessions = world.run(["sessions"]).ok();
    assert!(sessions.contains("1 waiting for a host"), "{sessions}");
    let listed = world.run(["followups"]);
    assert!(listed.stderr.contains("waits for a host"), "{listed:?}");
    let tried = world.run(["sink", "test", "host"]);
    assert!(tried.exits(1).stdout.contains("only a host that attends the session"), "{tried:?}");
    // A host gets both, and one that does not attend the session gets neither.
    let mut other = host(&world);
    other.call("attend", json!({ "session": "t" }));
    let mut host = host(&world);
    host.call("attend", json!({ "all": true }));
    let mut got = Vec::new();
    for _ in 0..2 {
        let turn = host.hears("turn");
        got.extend(ids(&turn));
        close(&mut host, &turn, "done");
    }
    got.sort();
    assert_eq!(got, [format!("{id}.end"), "s.message.1".to_owned()]);
    assert_eq!(other.hears_within("turn", Duration::ZERO), None);
    world.show(&id).follow_up_is("delivered");
    drop(monitor);
}

#[test]
fn scenario_144_several_ends_come_in_one_turn_and_each_is_acknowledged_or_given_back_by_itself() {
    let world = World::new();
    let mut host = host(&world);
    let gates = ["a", "b", "c"].map(|name| world.scratch(name));
    let jobs = gates.clone().map(|gate| hold(&mut host, "s", &gate));
    host.call("attend", json!({ "session": "s" }));
    let opened = host.call("turn.open", json!({ "session": "s" }));
    for (gate, job) in gates.iter().zip(&jobs) {
        fs_err::write(gate, "").unwrap();
        host.call("wait", json!({ "jobs": [job] }));
    }
    eventually("all three are due", || (host.hears("due")["count"] == 3).then_some(()));
    close(&mut host, &opened, "done");
    let turn = host.hears("turn");
    assert_eq!(ids(&turn), jobs.clone().map(|job| format!("{job}.end")));
    let token = |n: usize| turn["items"][n]["token"].clone();
    host.call("ack", json!({ "token": token(0) }));
    host.call("release", json!({ "token": token(1), "how": "busy", "retry_after_ms": 1 }));
    close(&mut host, &turn, "failed");
    let state = |n: usize| world.show(&jobs[n]);
    state(0).follow_up_is("delivered");
    state(2).follow_up_is("pending").has("/follow_up/error", "the host says that it failed");
    let again = host.hears("turn");
    assert_eq!(ids(&again), [format!("{}.end", jobs[1])], "it comes first, and what failed waits longer");
    close(&mut host, &again, "done");
}

#[test]
fn scenario_117_what_kills_its_host_three_times_is_held_and_the_rest_goes_on() {
    let world = World::new();
    for text in ["deadly", "harmless"] {
        world.run(["send", "-s", "s", "--sink", "host", text]).ok();
    }
    for attempt in 1..=3 {
        let mut host = host(&world);
        host.call("attend", json!({ "session": "s" }));
        let turn = host.hears("turn");
        assert_eq!(
            (ids(&turn), &turn["items"][0]["attempt"]),
            (vec!["s.message.1".to_owned()], &json!(attempt))
        );
        assert_eq!(turn["note"].is_object(), attempt > 1, "{turn}");
        host.kill();
    }
    let mut host = host(&world);
    host.call("attend", json!({ "session": "s" }));
    let turn = host.hears("turn");
    assert_eq!(ids(&turn), ["s.message.2"]);
    close(&mut host, &turn, "done");
    let inbox = world.json(["inbox", "--json"]);
    assert_eq!(
        (&inbox["messages"][0]["message"], &inbox["messages"][0]["dead_letter"]),
        (&json!(1), &json!(true))
    );
    assert!(text(&inbox["messages"][0]["error"]).contains("held for a person"), "{inbox}");
}

#[test]
fn scenario_144_a_drain_waits_for_the_turns_of_hosts_and_then_interrupts_them() {
    let world = World::new();
    let monitor = |world: &World| KillOnDrop(world.command(["monitor", "run"]).spawn().unwrap());
    let runs = || {
        eventually("a monitor runs", || {
            (world.json(["monitor", "status", "--json"])["running"] == true).then_some(())
        });
    };
    let mut host = host(&world);
    host.call("attend", json!({ "all": true }));
    // A turn that ends in time is awaited.
    let mut first = monitor(&world);
    runs();
    let turn = host.call("turn.open", json!({ "session": "s" }));
    let drain = world.run(["monitor", "drain", "--no-wait", "--json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&drain).unwrap()["awaited_turns"], 1, "{drain}");
    assert_eq!(host.hears("draining")["over"], false);
    assert_eq!(host.fail("turn.open", json!({ "session": "t" }))["data"]["kind"], "busy");
    assert!(first.0.try_wait().unwrap().is_none(), "it waits");
    close(&mut host, &turn, "done");
    assert!(first.0.wait().unwrap().success());
    assert_eq!(host.hears("draining")["over"], true);
    // One that does not is interrupted, and continued when turns begin again.
    let mut second = monitor(&world);
    runs();
    let turn = host.call("turn.open", json!({ "session": "s" }));
    world.run(["monitor", "drain", "--no-wait", "--timeout", "0s"]).ok();
    let interrupt = host.hears("interrupt");
    assert_eq!((&interrupt["turn"], &interrupt["reason"]), (&turn["turn"], &json!("shutdown")));
    close(&mut host, &turn, "failed");
    assert!(second.0.wait().unwrap().success());
    let resumed = host.hears("turn");
    assert!(ids(&resumed).is_empty() && text(&resumed["text"]).contains("interrupted"), "{resumed}");
    close(&mut host, &resumed, "done");
}

#[test]
fn a_message_that_interrupts_tells_the_host() {
    let world = World::new();
    fs_err::create_dir_all(world.home()).unwrap();
    let mut host = {
        let mut command = world.command(["serve"]);
        command.env("HEARBACK_BUSY", "interrupt");
        ServeClient::start(command)
    };
    host.call("attend", json!({ "session": "s" }));
    let turn = host.call("turn.open", json!({ "session": "s" }));
    let sent = host.call("send", json!({ "session": "s", "text": "stop" }));
    assert_eq!(sent["interrupted"], true);
    let interrupt = host.hears("interrupt");
    assert_eq!((&interrupt["turn"], &interrupt["reason"]), (&turn["turn"], &json!("message")));
    close(&mut host, &turn, "failed");
    let next = host.hears("turn");
    assert_eq!(ids(&next), ["s.message.1"]);
    close(&mut host, &next, "done");
}

/// Two hosts of one store. Each of them is killed at any moment, and another takes its place. Every item is handled, no
/// item comes after its acknowledgement, and never do two hosts hold the same one.
#[test]
fn scenario_144_hosts_that_are_killed_lose_nothing_and_repeat_nothing() {
    let kills = if is_full() { 300 } else { 12 };
    let world = World::new();
    let mut chance = Chance::new("hosts");
    let sessions = ["a", "b", "c"];
    let start = || {
        let mut host = host(&world);
        host.call("attend", json!({ "all": true }));
        host
    };
    let mut hosts = [start(), start()];
    // Which items were acknowledged, and how often each was offered.
    let (mut acknowledged, mut sent) = (BTreeMap::<String, u32>::new(), Vec::new());
    let mut doubtful: Vec<String> = Vec::new();
    // What each of the two holds in turns that it does not close.
    let mut held: [Vec<String>; 2] = Default::default();
    for round in 0..kills {
        for session in sessions {
            if chance.below(2) == 0 {
                let sent_now = world.run(["send", "-s", session, "--sink", "host", "hi"]).ok();
                sent.push(format!("{session}.message.{}", sent_now.trim()));
            } else {
                let args = ["-s", session, "--sink", "host", "--"].map(std::ffi::OsString::from);
                let id = world.launch(args.into_iter().chain([bin("exit-with").into(), "0".into()]));
                sent.push(format!("{id}.end"));
            }
        }
        for (place, host) in hosts.iter_mut().enumerate() {
            let within = Duration::from_millis(chance.below(200));
            while let Some(turn) = host.hears_within("turn", within) {
                for id in ids(&turn) {
                    assert!(
                        !acknowledged.contains_key(&id),
                        "{id} came after its acknowledgement, in round {round}"
                    );
                }
                let others = &held[1 - place];
                assert!(
                    ids(&turn).iter().all(|id| !others.contains(id)),
                    "two hosts hold the same, in round {round}"
                );
                // Some turns end with the death of their host.
                if chance.below(4) == 0 {
                    held[place].extend(ids(&turn));
                    break;
                }
                let request = host.send("turn.close", json!({ "turn": turn["turn"], "how": "done" }));
                if chance.below(6) == 0 {
                    // Killed while it closes: it is acknowledged, or it comes again.
                    doubtful.extend(ids(&turn));
                    break;
                }
                assert!(host.answer(request)["error"].is_null());
                for id in ids(&turn) {
                    *acknowledged.entry(id).or_default() += 1;
                }
            }
        }
        let victim = usize::try_from(chance.below(2)).unwrap();
        std::mem::replace(&mut hosts[victim], start()).kill();
        held[victim].clear();
    }
    // What is left is handled by whoever is there; what was held for a person is released first.
    hosts.into_iter().for_each(|host| drop(host.kill()));
    let mut one = start();
    let is_open = |world: &World| {
        let messages = world.json(["inbox", "--json"])["messages"].as_array().unwrap().len();
        let jobs = world.json(["followups", "--json"])["jobs"].as_array().unwrap().len();
        messages + jobs > 0
    };
    eventually("everything is handled", || {
        while let Some(turn) = one.hears_within("turn", Duration::from_millis(100)) {
            for id in ids(&turn) {
                assert!(!acknowledged.contains_key(&id), "{id} came after its acknowledgement");
                *acknowledged.entry(id).or_default() += 1;
            }
            close(&mut one, &turn, "done");
        }
        for job in world.json(["followups", "--json"])["jobs"].as_array().unwrap() {
            if job["follow_up"]["state"] == "dead_letter" {
                world.run(["followups", "retry", job["id"].as_str().unwrap()]).ok();
            }
        }
        for message in world.json(["inbox", "--json"])["messages"].as_array().unwrap() {
            if message["dead_letter"] == true {
                let (session, n) = (text(&message["session"]), message["message"].to_string());
                world.run(["inbox", "retry", "-s", &session, &n]).ok();
            }
        }
        (!is_open(&world)).then_some(())
    });
    for id in &sent {
        let is_handled = acknowledged.get(id) == Some(&1) || doubtful.contains(id);
        assert!(is_handled, "{id} was lost, or handled twice: {:?}", acknowledged.get(id));
    }
}

// Not on Windows: how often a process slept is read from /proc.
#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    fn status(pid: u32, task: &str, what: &str) -> u64 {
        let path = format!("/proc/{pid}/task/{task}/status");
        let status = fs_err::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn tasks(pid: u32) -> Vec<String> {
        let tasks = fs_err::read_dir(format!("/proc/{pid}/task")).unwrap();
        tasks.map(|task| task.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn wakes(pid: u32) -> u64 {
        tasks(pid).iter().map(|task| status(pid, task, "voluntary_ctxt_switches:")).sum()
    }

    #[test]
    fn scenario_144_two_hundred_sessions_and_fifty_readers_cost_no_thread_and_wake_nobody() {
        let world = World::new();
        let mut host = host(&world);
        let pid = host.server.id();
        for n in 0..200 {
            host.call("attend", json!({ "session": format!("s{n}") }));
        }
        for _ in 0..50 {
            host.call("events", json!({}));
        }
        // One turn, so that everything has been in use.
        host.call("send", json!({ "session": "s7", "text": "hi" }));
        let turn = host.hears("turn");
        close(&mut host, &turn, "done");
        eventually("it does not wake up", || {
            let before = wakes(pid);
            std::thread::sleep(Duration::from_secs(2));
            (wakes(pid) == before).then_some(())
        });
        assert!(tasks(pid).len() < 8, "{:?}", tasks(pid));
    }

    #[test]
    fn a_host_that_does_not_read_makes_nothing_pile_up() {
        use std::io::Write as _;
        let world = World::new();
        let mut command = world.command(["serve"]);
        let server = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let server = KillOnDrop(server.spawn().unwrap());
        let pid = server.0.id();
        let mut stdin = server.0.stdin.as_ref().unwrap();
        let mut ask = |n: u64, method: &str| {
            let line = json!({ "jsonrpc": "2.0", "id": n, "method": method, "params": {} });
            writeln!(stdin, "{line}").unwrap();
        };
        ask(1, "events");
        // Far more than a pipe holds.
        for n in 0..40 {
            world.run(["send", "-s", "s", "--sink", "host", &format!("{n}{}", "x".repeat(1000))]).ok();
        }
        for n in 2..200 {
            ask(n, "schema-of-nothing");
        }
        eventually("it waits for its host", || {
            let before = wakes(pid);
            std::thread::sleep(Duration::from_millis(500));
            (wakes(pid) == before).then_some(())
        });
        let main = pid.to_string();
        assert!(status(pid, &main, "VmRSS:") < 100 * 1024, "{} KiB", status(pid, &main, "VmRSS:"));
        assert!(status(pid, &main, "Threads:") < 150);
    }
}
