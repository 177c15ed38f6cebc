//! Always hear back: what an owner gets when a job has ended, when, how often, and what settles it.

use std::path::Path;
use std::process::Stdio;

use fs_err as fs;
use hearback_tests::{Job, KillOnDrop, Outbox, Snapshot, bin, eventually, lines, run, scaled};
use serde_json::{Value, json};

use crate::json::log_text;

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

fn ids(jobs: &[String]) -> Vec<String> {
    let mut ids: Vec<_> = jobs.to_vec();
    ids.sort();
    ids
}

#[track_caller]
fn is_in_state(outbox: &Outbox, id: &str, state: &str) {
    outbox.world.show(id).follow_up_is(state);
}

#[test]
fn scenario_1_a_launch_that_says_nothing_gets_the_default() {
    let outbox = Outbox::pull();
    let never = outbox.gate("never");
    let owned = outbox.launch(&[], "hold", &[&never]);
    outbox.world.show(&owned).has("/follow_up/policy", "auto");
    is_in_state(&outbox, &owned, "waiting");
    let unowned = outbox.world.launch(["--", &text(&bin("hold")), &never]);
    outbox.world.show(&unowned).has("/follow_up", json!({"policy": "auto", "state": "not_wanted"}));
    // The JSON answer of the launch says it, too.
    let hold = text(&bin("hold"));
    let answer = outbox.world.json(["launch", "--session", "s", "--json", "--", &hold, &never]);
    Job::new(answer).follow_up_is("waiting");
    let answer = outbox.world.json(["launch", "--json", "--", &hold, &never]);
    Job::new(answer).follow_up_is("not_wanted");
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn scenario_1_a_person_is_told_in_plain_words_whether_a_follow_up_will_come() {
    let world = hearback_tests::World::new();
    let exit = text(&bin("exit-with"));
    for (option, words) in [
        ("--session=s", "no sink wakes this session when it ends"),
        ("--label=x", "no notification: this job has no session"),
    ] {
        let launch = world.command(["launch", option, "--", &exit, "0"]);
        let shown = hearback_tests::Terminal::run(&launch).finish();
        shown.prints(words);
    }
}

#[test]
fn scenario_2_the_choice_is_recorded_and_every_reader_sees_it() {
    let outbox = Outbox::pull();
    for policy in ["auto", "always", "failure", "success", "never"] {
        let id = outbox.launch(&["--notify", policy], "hold", &[&outbox.gate(policy)]);
        let spec = fs::read(outbox.world.job_dir(&id).join("spec.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&spec).unwrap()["notify"], policy);
        outbox.world.show(&id).has("/follow_up/policy", policy);
        outbox.release(policy);
        outbox.world.run(["wait", &id]).ok();
        outbox.world.show(&id).because("after the end as well").has("/follow_up/policy", policy);
        let wanted = ["auto", "always", "success"].contains(&policy);
        is_in_state(&outbox, &id, if wanted { "pending" } else { "not_wanted" });
    }
}

#[test]
fn scenario_3_a_fresh_store_has_nothing_pending_and_asking_changes_nothing() {
    let outbox = Outbox::pull();
    assert_eq!(outbox.pending("s"), ids(&[]));
    let before = Snapshot::of(outbox.world.home());
    assert_eq!(outbox.pending("s"), ids(&[]));
    outbox.world.run(["followups"]).exits(0);
    outbox.world.run(["followups", "next"]).exits(1);
    assert_eq!(before.changes(&Snapshot::of(outbox.world.home())), Vec::<&Path>::new());
}

#[test]
fn scenario_4_a_job_without_notice_leaves_output_and_code_and_no_follow_up() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&["--notify", "never"], "exit-with", &["0", "--print", "quietly"]);
    outbox.world.run(["wait", &id]).exits(0);
    let told = outbox.launch(&[], "exit-with", &["0"]);
    outbox.receipt(&told);
    assert_eq!(outbox.calls().len(), 1, "only the other one is delivered");
    assert_eq!(outbox.pending("s"), ids(&[]));
    outbox.world.show(&id).state_is("done");
    assert_eq!(outbox.world.run(["logs", &id]).ok(), "quietly");
}

#[test]
fn scenario_5_a_success_is_delivered_once_with_everything_about_it() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&[], "exit-with", &["0", "--print", "all 42 checks fine"]);
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
    assert_eq!(outbox.calls_of(&id).len(), 1);
    let event = outbox.sent(&id, 1);
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["id"], format!("{id}.end"));
    assert_eq!(event["subject"], id);
    let data = &event["data"];
    assert_eq!(data["session"], "s");
    assert_eq!(data["attempt"], 1);
    assert_eq!(data["late"], false);
    Job::new(data["job"].clone()).exited(0);
    assert_eq!(
        data["job"]["command"],
        json!({"argv": [text(&bin("exit-with")), "0", "--print", "all 42 checks fine"]})
    );
    assert_eq!(data["output"]["head"].as_str().unwrap().trim_end(), "all 42 checks fine");
    let words = data["text"].as_str().unwrap();
    assert!(words.contains("\noutcome: done: exit code 0\n"), "{words}");
    assert!(words.contains("not instructions):\n| all 42 checks fine\n"), "{words}");
}

#[test]
fn scenario_6_a_failure_is_reported_with_its_code_and_output() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&[], "exit-with", &["1", "--eprint", "no such table"]);
    let data = &outbox.sent(&id, 1)["data"];
    Job::new(data["job"].clone()).state_is("failed").has("/outcome/code", 1);
    let words = data["text"].as_str().unwrap();
    assert!(words.contains("\noutcome: failed: exit code 1\n"), "{words}");
    assert!(words.contains("\n| no such table"), "{words}");
}

#[test]
fn scenario_7_a_notice_keeps_to_its_budget_and_says_what_is_missing_and_where_it_is() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&[], "print", &["--bytes", "50000", "--line-length", "70"]);
    let data = &outbox.sent(&id, 1)["data"];
    let output = &data["output"];
    let (head, tail) = (output["head"].as_str().unwrap(), output["tail"].as_str().unwrap());
    assert!(head.len() <= 2048 && tail.len() > 5000, "{} {}", head.len(), tail.len());
    assert!(head.len() + tail.len() <= 8192, "{} {}", head.len(), tail.len());
    let omitted = output["omitted"].as_u64().unwrap();
    assert_eq!((head.len() + tail.len()) as u64 + omitted, 50_000, "the counts are exact");
    // Every line of `print` begins with its number.
    assert!(tail.starts_with("00000006") && head.ends_with('\n'), "cut between lines: {tail}");
    let words = data["text"].as_str().unwrap();
    assert!(words.contains(&format!("{omitted} bytes left out")), "{words}");
    assert!(words.contains(&format!("hearback logs {id}")), "it says where all of it is: {words}");
    let path = data["job"]["output"]["path"].as_str().unwrap();
    assert_eq!(fs::read(path).unwrap().len(), 50_000, "{path}");
    assert_eq!(outbox.world.run(["logs", &id]).stdout.len(), 50_000);
}

#[test]
fn scenario_7_the_budget_of_a_notice_is_a_setting() {
    let outbox = Outbox::with("notice_bytes = 2000", "", &[]);
    let kept = |data: &Value| {
        let output = &data["output"];
        let (head, tail) = (output["head"].as_str().unwrap(), output["tail"].as_str().unwrap());
        (head.len() + tail.len(), output["omitted"].as_u64().unwrap())
    };
    let id = outbox.launch(&[], "print", &["--bytes", "5000", "--line-length", "70"]);
    let data = outbox.sent(&id, 1)["data"].clone();
    let (shown, omitted) = kept(&data);
    assert!((1500..=2000).contains(&shown), "{shown}");
    assert_eq!(shown as u64 + omitted, 5000, "the counts are exact");

    // The environment of the deliverer comes before the file.
    let mut launch = outbox.world.command(["launch", "--session", "s", "--"]);
    launch.arg(bin("print")).args(["--bytes", "5000"]).env("HEARBACK_NOTICE_BYTES", "0");
    let id = run(launch).ok();
    let data = outbox.sent(&id, 1)["data"].clone();
    assert_eq!(kept(&data), (0, 5000));
    let words = data["text"].as_str().unwrap();
    assert!(words.ends_with(&format!("[5000 bytes left out; more: hearback logs {id}]\n")), "{words}");

    // What is no text becomes more text than it was, and keeps to the budget all the same.
    let id = outbox.launch(&[], "print", &["--hex", &"ff".repeat(3000)]);
    let (shown, omitted) = kept(&outbox.sent(&id, 1)["data"]);
    assert!(shown <= 2000 && shown as u64 / 3 + omitted == 3000, "{shown} {omitted}");
}

#[test]
fn scenario_108_no_log_shows_a_secret_wherever_it_is_cut() {
    const BLOCK: usize = 64 * 1024;
    let outbox = Outbox::pull();
    outbox.write_settings("secrets = [\"API_TOKEN\"]");
    let id = outbox.launch(&[], "print", &["--bytes", "200000", "--line-length", "70"]);
    outbox.world.run(["wait", "--peek", &id]).ok();
    let log = fs::read(outbox.world.job_dir(&id).join("output.log")).unwrap();
    // The line that the first block ends in, but for its end.
    let line = BLOCK / 70 * 70;
    let secret = str::from_utf8(&log[line..line + 60]).unwrap();
    let plain = str::from_utf8(&log).unwrap();
    let masked = plain.replace(secret, "[API_TOKEN]");
    let shown = |args: &[&str]| {
        let mut command = outbox.world.command([&["logs", "--peek", &id], args].concat());
        command.env("API_TOKEN", secret);
        run(command).ok()
    };
    for args in [&[][..], &["--raw"], &["--follow"], &["--follow", "--raw"]] {
        assert!(shown(args).trim_end() == masked.trim_end(), "{args:?}");
    }
    let document = |args: &[&str]| -> Vec<Value> {
        let text = shown(args);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let whole = &document(&["--json"])[0];
    assert_eq!(whole["end"], 200_000, "offsets count what was printed");
    assert_eq!(log_text(whole), masked);
    // One document a piece, and every byte is in one.
    let pieces = document(&["--json", "--follow"]);
    let mut end = 0;
    for piece in &pieces {
        assert_eq!(piece["offset"], end, "{pieces:?}");
        end = piece["end"].as_u64().unwrap();
    }
    let text: String = pieces.iter().map(log_text).collect();
    assert!(end == 200_000 && text == masked && pieces.len() > 1, "{} pieces to {end}", pieces.len());
    // A reader that begins within it, or cuts it, does not see the other half either.
    let within = line + 20;
    for args in [&["--json"][..], &["--json", "--follow"]] {
        let found = document(&[args, &["--offset", &within.to_string()]].concat());
        let text: String = found.iter().map(log_text).collect();
        assert_eq!(found[0]["offset"], within, "{args:?}");
        assert_eq!(text, format!("[API_TOKEN]{}", &plain[line + 60..]), "{args:?}");
    }
    let id = outbox.launch(&[], "print", &["--bytes", "3000", "--line-length", "4000"]);
    outbox.world.run(["wait", "--peek", &id]).ok();
    let cut = |token: &str| {
        let mut command = outbox.world.command(["logs", "--peek", "--max-bytes", "12", &id]);
        command.env("API_TOKEN", token);
        run(command).stdout.lines().next().map(str::to_owned)
    };
    assert_eq!(cut("another"), Some("000000".into()));
    assert_eq!(cut("0000000000 x"), Some("[API_TOKEN]".into()));
}

#[test]
fn scenario_8_jobs_that_end_together_are_delivered_once_each() {
    let outbox = Outbox::new(&[]);
    let go = outbox.gate("go");
    let jobs: Vec<_> = (0..3).map(|_| outbox.launch(&[], "hold", &[&go])).collect();
    outbox.release("go");
    for id in &jobs {
        outbox.receipt(id);
    }
    let told: Vec<_> = outbox.calls().iter().map(|call| call.delivery.replace(".end", "")).collect();
    assert_eq!(ids(&told), ids(&jobs));

    let outbox = Outbox::pull();
    let go = outbox.gate("go");
    let mut jobs: Vec<_> = (0..3).map(|_| outbox.launch(&[], "hold", &[&go])).collect();
    outbox.release("go");
    eventually("all are pending", || (outbox.pending("s").len() == 3).then_some(()));
    assert_eq!(ids(&outbox.pending("s")), ids(&jobs));
    while let Some(id) = jobs.pop() {
        outbox.run_as("s", &["followups", "ack", &format!("{id}.end")]).ok();
        assert_eq!(ids(&outbox.pending("s")), ids(&jobs), "each is acknowledged on its own");
    }
}

#[test]
fn scenario_9_the_record_of_a_running_job_says_whether_a_notice_is_wanted() {
    let outbox = Outbox::pull();
    let never = outbox.gate("never");
    for (options, wanted) in [(&[][..], true), (&["--notify", "never"][..], false)] {
        let id = outbox.launch(options, "hold", &[&never]);
        let job = outbox.world.show(&id);
        job.state_is("running").follow_up_is(if wanted { "waiting" } else { "not_wanted" });
        assert_eq!(job["follow_up"].get("delivery").is_some(), wanted, "{job}");
    }
}

#[test]
fn scenario_11_a_new_monitor_adopts_what_runs_and_its_choice() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&["--notify", "success"], "hold", &[&outbox.gate("go")]);
    for _ in 0..2 {
        drop(outbox.monitor());
    }
    let _monitor = outbox.monitor();
    let listed = outbox.world.json(["list", "--session", "s", "--state", "running", "--json"]);
    let running = listed["jobs"].as_array().unwrap();
    assert_eq!(running.len(), 1, "{listed}");
    Job::new(running[0].clone()).has("/follow_up/policy", "success");
    outbox.release("go");
    outbox.receipt(&id);
    assert_eq!(outbox.calls().len(), 1);
}

#[test]
fn a_monitor_notices_every_launch_and_takes_over_after_the_first_attempt() {
    let outbox = Outbox::new(&["1", "0"]);
    let _monitor = outbox.monitor();
    let lock = outbox.world.home().join("monitor").join("run.lock");
    eventually("a monitor is there", || lock.exists().then_some(()));
    for _ in 0..5 {
        let id = outbox.launch(&[], "exit-with", &["0"]);
        // Long before its own next look.
        assert_eq!(outbox.receipt(&id)["how"], "delivered");
    }
    assert_eq!(outbox.calls().len(), 10);
}

#[test]
fn scenario_14_a_restricted_caller_is_refused_with_the_reason() {
    let outbox = Outbox::new(&[]);
    let running = outbox.launch(&[], "hold", &[&outbox.gate("go")]);
    let denied = |deny: &str, args: &[&str]| {
        let mut command = outbox.command_as("s", args);
        command.env("HEARBACK_DENY", deny);
        run(command)
    };
    let exit_with = text(&bin("exit-with"));
    let launch = ["launch", "--", &exit_with, "0"];
    for (deny, args) in [
        ("notify", &launch[..]),
        ("kill,launch", &launch),
        ("all", &launch),
        (" kill , prune ", &["kill", &running]),
        ("ack", &["followups", "ack", &running]),
        ("ack", &["followups", "discard", &running]),
        ("notify", &["followups", "retry", &running]),
        ("turn", &["turn", "--", &exit_with, "0"]),
        ("monitor", &["monitor", "run", "--once"]),
        ("sink", &["sink", "test", "fixture"]),
        ("prune", &["prune"]),
    ] {
        let ran = denied(deny, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{deny} {args:?}: {ran:?}");
        assert!(ran.stderr.contains("HEARBACK_DENY") && ran.stderr.contains("tip: "), "{deny}: {ran:?}");
    }
    // An unknown word may be meant to deny anything.
    let ran = denied("lauch", &launch);
    ran.exits(2).says("`lauch`");
    // What is left is what was not denied.
    let quiet = denied("notify,kill", &["launch", "--notify", "never", "--", &exit_with, "0"]).ok();
    is_in_state(&outbox, &quiet, "not_wanted");
    denied("all", &["list"]).ok();
    denied("all", &["followups"]).ok();
    assert_eq!(outbox.world.json(["list", "--all", "--json"])["jobs"].as_array().unwrap().len(), 2);
    outbox.world.show(&running).state_is("running");
    assert_eq!(outbox.calls(), []);
}

#[test]
fn what_follow_ups_launch_is_bounded_in_an_hour() {
    let outbox = Outbox::pull();
    outbox.write_settings("max_rate = 2\n");
    let exit_with = text(&bin("exit-with"));
    let launch = |session: &str, options: &[&str]| {
        let words = [&["launch"], options, &["--", &exit_with, "0"]].concat();
        let mut command = outbox.command_as(session, &words);
        command.env("HEARBACK_DEPTH", "1");
        run(command)
    };
    for _ in 0..2 {
        launch("s", &[]).ok();
    }
    let third = launch("s", &[]);
    assert!(third.code != Some(0) && third.stderr.contains("max_rate"), "{third:?}");
    launch("s", &["--notify", "never"]).ok();
    launch("other", &[]).ok();
    // A caller that no follow-up has woken is not bounded.
    outbox.launch(&[], "exit-with", &["0"]);
}

#[test]
fn scenario_15_a_session_without_a_sink_learns_how_to_ask_and_nothing_stays_pending_for_ever() {
    let outbox = Outbox::pull();
    let id = outbox.world.launch(["--", &text(&bin("exit-with")), "0", "--print", "here"]);
    outbox.world.run(["wait", &id]).ok();
    is_in_state(&outbox, &id, "not_wanted");
    assert_eq!(outbox.world.run(["logs", &id]).ok(), "here");

    // What a session never fetches does not stay pending for ever, and that is shown.
    let id = outbox.launch(&[], "exit-with", &["0"]);
    outbox.world.run(["wait", &id]).ok();
    is_in_state(&outbox, &id, "pending");
    outbox.write_settings("expire_after = \"1ms\"\n");
    outbox.world.run(["monitor", "run", "--once"]).ok();
    is_in_state(&outbox, &id, "expired");
    assert_eq!(outbox.pending("s"), ids(&[]));
}

/// Starts a waiting command of the owner, closes both of its pipes while the job runs, and lets the job end.
fn leave_a_waiting_command(outbox: &Outbox, args: &[&str]) -> String {
    let (gate, started) = (outbox.gate("go"), outbox.gate("started"));
    let hold = text(&bin("hold"));
    let words = [args, &["--", &hold, &gate, "--witness", &started, "--code", "3"]].concat();
    let mut command = outbox.command_as("s", &words);
    let mut child = KillOnDrop(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    eventually("the job runs", || (!lines(Path::new(&started)).is_empty()).then_some(()));
    drop((child.0.stdout.take(), child.0.stderr.take()));
    fs::write(&gate, "").unwrap();
    child.0.wait().unwrap();
    let listed = outbox.world.json(["list", "--all", "--json"]);
    listed["jobs"][0]["id"].as_str().unwrap().to_owned()
}

// With `--quiet` nothing is written. Windows does not tell whether a reader is there, so nothing is settled there.
#[test]
fn scenario_112_a_waiting_caller_that_is_gone_has_read_nothing() {
    for form in [&["launch", "--wait"][..], &["launch", "--wait", "--json"], &["launch", "--wait", "--quiet"]]
    {
        let outbox = Outbox::new(&[]);
        let id = leave_a_waiting_command(&outbox, &[form, &["--sink", "fixture"]].concat());
        outbox.until(&id, &["delivered"]);
        assert_eq!(outbox.calls_of(&id).len(), 1, "{form:?}");
    }
    let outbox = Outbox::new(&[]);
    let there = ["launch", "--wait", "--sink", "fixture", "--", &text(&bin("exit-with")), "3"];
    outbox.run_as("s", &there).exits(3);
    let jobs = outbox.world.json(["list", "--all", "--json"]);
    assert_eq!(jobs["jobs"][0]["follow_up"]["state"], "read", "a caller that is there has read it");
    assert_eq!(outbox.calls().len(), 0);
}

#[test]
fn scenario_113_reading_a_log_settles_only_if_the_outcome_was_part_of_it() {
    let outbox = Outbox::pull();
    let gate = outbox.gate("go");
    let id = outbox.launch(&[], "hold", &[&gate, "--print", "compiling...", "--code", "3"]);
    eventually("it has printed", || {
        (outbox.run_as("s", &["logs", &id]).stdout == "compiling...\n").then_some(())
    });
    let early = outbox.run_as("s", &["logs", &id]);
    assert_eq!((early.stdout.as_str(), early.stderr.as_str()), ("compiling...\n", ""));
    fs::write(&gate, "").unwrap();
    outbox.world.run(["wait", &id]).exits(3);
    outbox
        .world
        .show(&id)
        .because("a log that was read while the job ran settles nothing")
        .follow_up_is("pending");
    // No process reads standard error, where the outcome would be.
    let mut command = outbox.command_as("s", &["logs", &id]);
    if let Some(unread) = crate::command_line::unread().filter(|_| cfg!(unix)) {
        command.stdout(Stdio::null()).stderr(unread).status().unwrap();
        outbox.world.show(&id).because("its outcome reached no reader").follow_up_is("pending");
    }
    let told = outbox.run_as("s", &["logs", &id]);
    told.says("failed: exit code 3");
    assert_eq!(told.stdout, "compiling...\n");
    is_in_state(&outbox, &id, "read");
    assert_eq!(outbox.run_as("s", &["logs", &id]).stderr, "", "it is said once");
    let last = outbox.run_as("s", &["logs", "-f", "--json", &id]).ok();
    let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!(last["outcome"], json!({"kind": "exited", "code": 3}));
}

#[test]
fn scenario_131_one_unknown_job_keeps_no_other_from_being_handled() {
    let outbox = Outbox::pull();
    let (one, two) =
        (outbox.launch(&[], "hold", &[&outbox.gate("a")]), outbox.launch(&[], "hold", &[&outbox.gate("b")]));
    let killed = outbox.run_as("s", &["kill", &one, "zzzz", &two, "yyyy"]);
    killed.exits(1).says("no job `zzzz`").says("no job `yyyy`");
    for id in [&one, &two] {
        outbox.world.show(id).ended_as("killed");
    }
    let waited = outbox.run_as("s", &["wait", "--peek", &one, "zzzz", &two]);
    waited.says("no job `zzzz`").prints(&format!("{one} killed")).prints(&format!("{two} killed"));
    assert_ne!(waited.code, Some(0));
    let three = outbox.launch(&["--notify", "always"], "exit-with", &["0"]);
    outbox.world.run(["wait", &three]).ok();
    let acked = outbox.run_as("s", &["followups", "ack", "zzzz", &three]);
    acked.exits(1).says("no job `zzzz`").prints(&format!("{three}.end acknowledged"));
}

#[test]
fn scenario_17_waiting_or_reading_to_the_end_settles_and_a_glance_does_not() {
    let outbox = Outbox::pull();
    let job = || {
        let id = outbox.launch(&[], "exit-with", &["0", "--print", "one\ntwo\nthree"]);
        outbox.world.run(["wait", &id]).ok();
        outbox.world.show(&id).because("the waiting caller has no session").follow_up_is("pending");
        id
    };
    let id = job();
    for glance in [
        &["show", &id][..],
        &["list"],
        &["followups"],
        &["followups", "next"],
        &["followups", "next", "--json"],
        &["wait", "--peek", &id],
        &["logs", "--peek", &id],
        &["logs", "--head", "1", &id],
        &["logs", "--tail", "1", &id],
        &["logs", "--offset", "4", &id],
        &["logs", "--max-bytes", "3", &id],
    ] {
        outbox.run_as("s", glance).ok();
        outbox.world.show(&id).in_case(format!("{glance:?}")).follow_up_is("pending");
    }
    for stranger in [&["wait", &id][..], &["logs", &id]] {
        outbox.world.run(stranger).ok();
        let words = [stranger, &["--all-sessions"]].concat();
        outbox.run_as("other", &words).ok();
        outbox.world.show(&id).in_case(format!("{stranger:?} by another session")).follow_up_is("pending");
    }
    assert_eq!(outbox.run_as("s", &["logs", &id]).ok(), "one\ntwo\nthree");
    is_in_state(&outbox, &id, "read");
    for seen in [&["wait"][..], &["logs", "--follow"], &["logs", "--json"]] {
        let id = job();
        outbox.run_as("s", &[seen, &[id.as_str()]].concat()).ok();
        outbox.world.show(&id).in_case(format!("{seen:?}")).follow_up_is("read");
    }
    let id = job();
    outbox.world.run(["wait", "--session", "s", &id]).ok();
    outbox.world.show(&id).because("a session can be named as well").follow_up_is("read");
}

#[test]
fn scenario_18_an_end_during_the_owners_turn_is_delivered_in_it_or_right_after_it() {
    let outbox = Outbox::with("", "turn = true", &[]);
    let (hold, leave) = (text(&bin("hold")), outbox.gate("leave"));
    let mut turn = outbox.command_as("s", &["turn", "--", &hold, &leave, "--witness", &outbox.gate("in")]);
    let mut turn = KillOnDrop(turn.spawn().unwrap());
    eventually("the turn has begun", || lines(outbox.world.scratch("in")).pop());
    let id = outbox.launch(&[], "exit-with", &["3"]);
    // The agent in the turn can ask at once.
    let next = outbox.run_as("s", &["followups", "next", "--wait", "20s", "--json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&next).unwrap()["subject"], id);
    assert_eq!(outbox.calls(), [], "no second turn is started");
    outbox.release("leave");
    assert_eq!(turn.0.wait().unwrap().code(), Some(0));
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
    assert_eq!((outbox.calls().len(), outbox.calls()[0].attempt), (1, 1), "delivered once, right after it");
}

#[test]
fn scenario_19_no_text_is_broken_by_colours_borders_or_bytes() {
    let outbox = Outbox::new(&[]);
    // One endless line of characters with two bytes each, so that every border is inside one of them.
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let print = |bytes: &[u8]| outbox.launch(&[], "print", &["--hex", &hex(bytes)]);
    let endless = print(format!("a{}", "é".repeat(6_000)).as_bytes());
    let colours = print(b"\x1b[31mred\x1b[0m \x1b]0;title\x07sch\xc3\xb6n \xff \0end\n");
    let sent = outbox.sent(&endless, 1);
    let output = &sent["data"]["output"];
    let (head, tail) = (output["head"].as_str().unwrap(), output["tail"].as_str().unwrap());
    assert!(!head.contains('\u{fffd}') && !tail.contains('\u{fffd}'), "{head} {tail}");
    assert!(!sent["data"]["text"].as_str().unwrap().contains('\u{fffd}'));
    assert_eq!((head.len() + tail.len()) as u64 + output["omitted"].as_u64().unwrap(), 12_001);
    let sent = outbox.sent(&colours, 1);
    let words = sent["data"]["text"].as_str().unwrap();
    assert!(words.ends_with("| red schön \u{fffd} end\n"), "{words:?}");
    assert_eq!(sent["data"]["output"]["head"], "red schön \u{fffd} end\n");
}

#[test]
fn scenario_22_a_kill_by_the_owner_wakes_it_only_if_it_wants_to_hear_everything() {
    let outbox = Outbox::new(&[]);
    let never = outbox.gate("never");
    let job = |policy| outbox.launch(&["--notify", policy], "hold", &[&never]);
    let (own, always, others) = (job("auto"), job("always"), job("auto"));
    outbox.run_as("s", &["kill", &own]).ok();
    outbox.run_as("s", &["kill", &always]).ok();
    outbox.world.run(["kill", &others]).ok();
    for id in [&always, &others] {
        assert_eq!(outbox.receipt(id)["how"], "delivered");
        Job::new(outbox.sent(id, 1)["data"]["job"].clone()).ended_as("killed");
    }
    is_in_state(&outbox, &own, "not_wanted");
    assert_eq!(outbox.calls_of(&own), []);
}

#[test]
fn scenario_77_a_finished_job_that_is_killed_again_wakes_no_agent() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&[], "hold", &[&outbox.gate("never")]);
    outbox.run_as("s", &["kill", &id]).ok();
    outbox.run_as("s", &["kill", &id]).ok();
    outbox.run_as("s", &["kill", "zzzzzzzz"]).exits(1);
    let other = outbox.launch(&[], "exit-with", &["0"]);
    outbox.receipt(&other);
    outbox.world.run(["kill", &other]).ok();
    outbox.world.run(["monitor", "run", "--once"]).ok();
    assert_eq!(outbox.calls().len(), 1);
}

#[test]
fn scenario_32_the_route_is_fixed_at_the_launch() {
    let outbox = Outbox::with("", "", &["until:nowhere:0"]);
    let settings = |default: &str| {
        let (one, two) = (outbox.command(&["1", "1", "0"]), outbox.command(&["1:wrong"]));
        outbox.write_settings(&format!(
            "default_sink = \"{default}\"\nretry_first = \"10ms\"\nattempts = 3\n[sink.one]\n{one}\n[sink.two]\n{two}\n"
        ));
    };
    settings("one");
    let id = outbox.launch(&[], "hold", &[&outbox.gate("go")]);
    settings("two");
    let _monitor = outbox.monitor();
    outbox.release("go");
    assert_eq!(outbox.receipt(&id)["how"], "delivered", "the second sink never would have");
    assert!(outbox.calls().iter().all(|call| call.session == "s"));
    let unknown = outbox.world.run(["launch", "--sink", "nowhere", "--", "true"]);
    unknown.exits(2).says("nowhere");
}

#[test]
fn scenario_35_nothing_reaches_another_conversation() {
    let outbox = Outbox::with("attempts = 2", "turn = true", &[]);
    let go = outbox.gate("go");
    let hold = text(&bin("hold"));
    // The same command in two sessions, and a monitor that itself belongs to a third.
    let jobs: Vec<_> = ["a", "b", "a", "b"]
        .iter()
        .map(|session| {
            let id = outbox.run_as(session, &["launch", "--", &hold, &go]).ok();
            (id, *session)
        })
        .collect();
    let mut monitor = outbox.command_as("c", &["monitor", "run"]);
    let _monitor = KillOnDrop(monitor.spawn().unwrap());
    outbox.release("go");
    for (id, session) in &jobs {
        outbox.receipt(id);
        let calls = outbox.calls_of(id);
        assert_eq!((calls.len(), calls[0].session.as_str()), (1, *session));
        assert_eq!(outbox.sent(id, 1)["data"]["session"], *session);
    }
    assert_eq!(outbox.calls().len(), 4);

    // A follow-up for a session that is gone reaches no other session.
    outbox.tell("69:deleted");
    let id = outbox.run_as("a", &["launch", "--", &hold, &go]).ok();
    let job = outbox.until(&id, &["dead_letter"]);
    job.has("/follow_up/error", "deleted");
    assert_eq!(outbox.pending("b"), ids(&[]));
    outbox.run_as("b", &["followups", "next"]).exits(1);
    assert_eq!(outbox.run_as("b", &["followups", "ack", &id]).code, Some(1), "and cannot be acknowledged");
}

#[test]
fn scenario_57_what_ends_during_a_turn_comes_after_it_in_order() {
    let outbox = Outbox::with("", "turn = true", &[]);
    let (hold, leave) = (text(&bin("hold")), outbox.gate("leave"));
    let mut turn = outbox.command_as("s", &["turn", "--", &hold, &leave, "--witness", &outbox.gate("in")]);
    let mut turn = KillOnDrop(turn.spawn().unwrap());
    eventually("the turn has begun", || lines(outbox.world.scratch("in")).pop());
    let jobs: Vec<_> = (0..4)
        .map(|n| {
            let id = outbox.launch(&[], "exit-with", &[&n.to_string()]);
            outbox.world.run(["wait", &id]);
            id
        })
        .collect();
    assert_eq!(outbox.calls(), []);
    outbox.release("leave");
    assert_eq!(turn.0.wait().unwrap().code(), Some(0));
    let told: Vec<_> = outbox.called(4).into_iter().map(|call| call.delivery.replace(".end", "")).collect();
    for id in &jobs {
        outbox.receipt(id);
    }
    assert_eq!(told, jobs);
    assert_eq!(outbox.calls().len(), 4, "none twice");
    outbox.check_turns();
}

#[test]
fn scenario_58_busy_costs_no_attempt() {
    let outbox = Outbox::with("attempts = 1\nretry_first = \"10ms\"", "", &["75", "75", "75", "0"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
    assert_eq!(outbox.calls_of(&id).len(), 4);
    outbox.check_order();
}

#[test]
fn scenario_59_a_sink_that_keeps_refusing_is_tried_less_often_and_gets_all_when_it_recovers() {
    let outbox = Outbox::with("attempts = 4\nretry_first = \"100ms\"", "", &["1:no credentials"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    let calls = outbox.called(4);
    let job = outbox.until(&id, &["dead_letter"]);
    job.has("/follow_up/error", "the sink failed: exit code 1: no credentials");
    job.has("/follow_up/attempts", 4);
    let gaps: Vec<_> = calls.windows(2).map(|pair| (pair[1].at - pair[0].at) / 1_000_000).collect();
    // 100 ms, 200 ms, 400 ms, each a quarter more or less.
    for (gap, least) in gaps.iter().zip([75, 150, 300]) {
        assert!(*gap >= least, "{gaps:?}");
    }
    // People are notified once, however often it was tried.
    let shown = outbox.world.run(["followups"]).ok() + &outbox.world.run(["followups"]).stderr;
    assert_eq!(shown.matches("no credentials").count(), 1, "{shown}");
    outbox.tell("0");
    outbox.run_as("s", &["followups", "retry", &id]).ok();
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
    let last = outbox.calls().pop().unwrap();
    assert_eq!((last.delivery, last.attempt), (format!("{id}.end"), 5), "the same identity, counted on");
}

#[test]
fn scenario_60_late_news_is_marked_as_late() {
    let settings = scaled(
        "late_after = \"300ms\"\nretry_first = \"600ms\"",
        "late_after = \"5s\"\nretry_first = \"8s\"",
    );
    let outbox = Outbox::with(settings, "", &["1", "0"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    assert_eq!(outbox.sent(&id, 1)["data"]["late"], false);
    outbox.receipt(&id);
    let second = &outbox.sent(&id, 2)["data"];
    assert_eq!(second["late"], true);
    assert_eq!(second["id"], format!("{id}.end"));
    assert!(second["text"].as_str().unwrap().contains("\nThis comes late: it ended at "), "{second}");
}

#[test]
fn scenario_67_a_follow_up_names_the_limit_that_ended_the_job() {
    let outbox = Outbox::new(&[]);
    let never = outbox.gate("never");
    let id = outbox.launch(&["--timeout", "200ms", "--grace", "0s"], "hold", &[&never]);
    let data = &outbox.sent(&id, 1)["data"];
    Job::new(data["job"].clone()).ended_as("timed_out").has("/outcome/limit_ms", 200);
    let words = data["text"].as_str().unwrap();
    assert!(words.contains("\noutcome: timed out: exceeded its limit of 200 ms"), "{words}");
}

#[test]
fn scenario_72_an_undelivered_follow_up_is_never_pruned() {
    let outbox = Outbox::with("attempts = 1", "", &["1"]);
    let dead = outbox.launch(&[], "exit-with", &["0"]);
    outbox.until(&dead, &["dead_letter"]);
    let prune = || outbox.world.run(["prune", "--older-than", "0s", "--max-jobs", "0"]).ok();
    prune();
    assert_eq!(outbox.pending("s"), ids(std::slice::from_ref(&dead)));
    outbox.run_as("s", &["followups", "discard", &dead]).ok();
    is_in_state(&outbox, &dead, "discarded");
    prune();
    assert_eq!(outbox.world.run(["show", &dead]).code, Some(1), "what is settled goes");
}

#[test]
fn scenario_73_what_fails_is_tried_again_then_a_dead_letter_that_can_be_sent_by_hand() {
    let outbox = Outbox::with("attempts = 3\nretry_first = \"20ms\"", "", &["1", "2", "3"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    let job = outbox.until(&id, &["dead_letter"]);
    job.has("/follow_up/error", "the sink failed: exit code 3");
    assert_eq!(outbox.calls().iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    outbox.world.run(["monitor", "run", "--once"]).ok();
    assert_eq!(outbox.calls().len(), 3, "it is left to people");
    assert!(outbox.world.run(["followups"]).ok().contains("dead"), "and they see it");
    outbox.tell("0");
    let said = outbox.run_as("s", &["followups", "retry", &id]).ok();
    assert!(said.contains("will be retried"), "{said}");
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
    let again = outbox.run_as("s", &["followups", "retry", &id]).ok();
    assert!(again.contains("nothing to do"), "{again}");
    assert_eq!(outbox.calls().len(), 4);
    outbox.check_order();
}

#[test]
fn scenario_74_what_was_delivered_is_never_offered_again() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    outbox.receipt(&id);
    let _monitor = outbox.monitor();
    for args in [&["list"][..], &["reconcile"], &["monitor", "run", "--once"], &["followups"]] {
        outbox.world.run(args).ok();
    }
    for args in [&["followups", "retry", &id][..], &["followups", "ack", &id], &["followups", "discard", &id]]
    {
        assert!(outbox.run_as("s", args).ok().contains("nothing to do"));
    }
    outbox.run_as("s", &["followups", "next"]).exits(1);
    let other = outbox.launch(&[], "exit-with", &["0"]);
    outbox.receipt(&other);
    assert_eq!(outbox.calls_of(&id).len(), 1);
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
}

#[test]
fn scenario_75_an_owner_that_is_gone_costs_no_retries() {
    let outbox = Outbox::new(&["69:no such conversation"]);
    let id = outbox.launch(&[], "exit-with", &["0", "--print", "still here"]);
    let job = outbox.until(&id, &["dead_letter"]);
    job.has("/follow_up/error", "no such conversation");
    outbox.world.run(["monitor", "run", "--once"]).ok();
    assert_eq!(outbox.calls().len(), 1);
    assert_eq!(outbox.world.run(["logs", &id]).ok(), "still here");

    // With another sink in the chain it falls to that one.
    let file = outbox.world.scratch("others");
    outbox.write_settings(&format!(
        "[sink.gone]\n{}\n[sink.file]\nfile = {:?}\n",
        outbox.command(&["69"]),
        text(&file)
    ));
    let id = outbox.launch(&["--sink", "gone", "--sink", "file"], "exit-with", &["0"]);
    outbox.receipt(&id);
    let line: Value = serde_json::from_str(&lines(&file)[0]).unwrap();
    assert_eq!(line["id"], format!("{id}.end"));
    assert_eq!(line["data"]["session"], "s");
}

#[test]
fn scenario_79_launching_acknowledging_and_reconciling_at_once_delivers_each_job_once() {
    use std::sync::atomic::{AtomicBool, Ordering};
    for outbox in [Outbox::new(&[]), Outbox::pull()] {
        let launching = AtomicBool::new(true);
        let jobs: Vec<String> = std::thread::scope(|scope| {
            for args in [&["reconcile"][..], &["prune"], &["monitor", "run", "--once"]] {
                let (outbox, launching) = (&outbox, &launching);
                scope.spawn(move || {
                    while launching.load(Ordering::Relaxed) {
                        outbox.world.run(args).ok();
                    }
                });
            }
            let launch = || (0..2).map(|_| outbox.launch(&[], "exit-with", &["0"])).collect::<Vec<_>>();
            let launchers: Vec<_> = (0..20).map(|_| scope.spawn(launch)).collect();
            let launched = launchers.into_iter().flat_map(|launcher| launcher.join().unwrap()).collect();
            launching.store(false, Ordering::Relaxed);
            launched
        });
        if outbox.world.run(["sink", "list"]).ok().contains("fixture") {
            jobs.iter().for_each(|id| drop(outbox.receipt(id)));
            let told: Vec<_> = outbox.calls().iter().map(|call| call.delivery.replace(".end", "")).collect();
            assert_eq!(ids(&told), ids(&jobs), "each once");
            outbox.check_order();
            continue;
        }
        outbox.world.run(["wait"].into_iter().chain(jobs.iter().map(String::as_str))).ok();
        assert_eq!(ids(&outbox.pending("s")), ids(&jobs));
        std::thread::scope(|scope| {
            for part in jobs.chunks(14) {
                let outbox = &outbox;
                scope.spawn(move || {
                    let names = part.iter().map(String::as_str);
                    let ack: Vec<_> = ["followups", "ack"].into_iter().chain(names).collect();
                    outbox.run_as("s", &ack).ok()
                });
            }
        });
        assert_eq!(outbox.pending("s"), ids(&[]));
        assert!(jobs.iter().all(|id| outbox.receipt(id)["how"] == "delivered"));
    }
}

// Not on Windows: a name is no text there by other units. Not on macOS: its file systems allow no such name.
#[cfg(target_os = "linux")]
#[test]
fn a_log_path_that_is_not_unicode_is_whole_for_sinks_and_for_next() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let world = hearback_tests::World::new();
    let home = world.scratch(std::ffi::OsString::from_vec(b"caf\xe9".to_vec()));
    let sent = world.scratch("sent.jsonl");
    let run_there = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("HEARBACK_HOME", &home);
        run(command).ok()
    };
    run_there(&["list"]);
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), format!("[sink.paper]\nfile = \"{}\"\n", text(&sent))).unwrap();
    let exit = text(&bin("exit-with"));
    let told = run_there(&["launch", "--session", "s", "--sink", "paper", "--", &exit, "0"]);
    let line = eventually("it is delivered", || {
        let lines = fs::read_to_string(&sent).unwrap_or_default();
        lines.ends_with('\n').then_some(lines)
    });
    let asked = run_there(&["launch", "--session", "t", "--", &exit, "0"]);
    let next = run_there(&["followups", "next", "--session", "t", "--wait", "20s", "--json"]);
    for (id, json) in [(told, line), (asked, next)] {
        let event: Value = serde_json::from_str(&json).unwrap();
        let job = event.pointer("/data/job").or_else(|| event.get("job")).unwrap();
        let log = home.join("logs").join(format!("{id}.log"));
        assert_eq!(job["id"], id, "{event}");
        assert_eq!(job["output"]["path"], json!({"bytes": log.as_os_str().as_bytes()}), "{event}");
    }
}
