//! Sessions: turns, messages, a host that is drained, restarted and killed, and what goes on afterwards.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fs_err as fs;
use hearback_tests::{KillOnDrop, Outbox, Ran, alive, bin, eventually, lines};
use serde_json::Value;

/// A world whose agent waits for its session's gate, with a monitor that looks after it.
pub(crate) struct Host<First = KillOnDrop> {
    pub(crate) outbox: Outbox,
    /// The monitor that was started by hand; its successors are not children of the test.
    pub(crate) first: First,
}

impl Host {
    pub(crate) fn new(settings: &str) -> Host {
        Host::over(world(settings))
    }

    pub(crate) fn over(outbox: Outbox) -> Host {
        let first = start(&outbox);
        Host { outbox, first }
    }

    pub(crate) fn kill_first(&mut self) {
        self.first.0.kill().unwrap();
        self.first.0.wait().unwrap();
    }
}

impl<First> Host<First> {
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.outbox.world.run(args)
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.outbox.world.json([args, &["--json"]].concat())
    }

    /// Sends a message, which is taken; returns its number.
    #[track_caller]
    pub(crate) fn send(&self, session: &str, text: &str) -> u64 {
        self.json(&["send", "--session", session, text])["message"].as_u64().unwrap()
    }

    /// Lets the agent of a session go on, now and from now on.
    pub(crate) fn release(&self, session: &str) {
        self.outbox.release(&format!("go-{session}"));
    }

    /// Sends a message and waits until the agent has it in hand.
    #[track_caller]
    pub(crate) fn make_busy(&self, session: &str) {
        self.send(session, "keep busy");
        self.in_hand(&format!("{session}.message.1"), 1);
    }

    /// Waits until an attempt at a message has begun.
    #[track_caller]
    pub(crate) fn in_hand(&self, id: &str, attempt: u32) -> u32 {
        eventually(&format!("attempt {attempt} at {id} has begun"), || {
            let calls = self.outbox.calls();
            calls.iter().find(|call| call.delivery == id && call.attempt == attempt).map(|call| call.pid)
        })
    }

    /// What a message was sent as.
    #[track_caller]
    pub(crate) fn sent(&self, id: &str, attempt: u32) -> Value {
        self.outbox.read(&format!("{id}.{attempt}."))["data"].clone()
    }

    /// The messages that were taken up, in order, each with its attempt.
    pub(crate) fn taken(&self) -> Vec<(String, u32)> {
        self.outbox.calls().into_iter().map(|call| (call.delivery, call.attempt)).collect()
    }

    #[track_caller]
    pub(crate) fn session(&self, session: &str) -> Value {
        let sessions = self.json(&["sessions", "--session", session]);
        sessions["sessions"].as_array().unwrap().first().cloned().unwrap_or_default()
    }

    /// Waits until nothing waits for a session and it is not in a turn.
    #[track_caller]
    pub(crate) fn until_idle(&self, session: &str) -> Value {
        eventually(&format!("{session} is idle"), || {
            let seen = self.session(session);
            (seen["turn"].is_null() && seen["waiting"] == 0).then_some(seen)
        })
    }

    pub(crate) fn status(&self) -> Value {
        self.json(&["monitor", "status"])
    }

    /// The pid of a monitor that is not this one.
    #[track_caller]
    pub(crate) fn successor_of(&self, before: u32) -> u32 {
        eventually("a successor runs", || pid(&self.status()).filter(|pid| *pid != before))
    }

    /// The facts of the first turns of all sessions that have this name.
    fn facts(&self, name: &str) -> Vec<PathBuf> {
        let sessions = fs::read_dir(self.outbox.world.home().join("sessions")).unwrap();
        let found = sessions.map(|session| session.unwrap().path().join(name));
        found.filter(|path| path.exists()).collect()
    }

    fn request(&self, name: &str) -> PathBuf {
        self.outbox.world.home().join("monitor").join(name)
    }

    fn log(&self) -> String {
        lines(self.request("monitor.log")).join("\n")
    }
}

impl<First> Drop for Host<First> {
    fn drop(&mut self) {
        // The successors of the first are not children of the test.
        let _ = self.outbox.world.command(["monitor", "stop", "--timeout", "0s"]).output();
    }
}

/// A world whose agent waits for its session's gate. `settings` may end with settings of the sink.
fn world(settings: &str) -> Outbox {
    let outbox = Outbox::with("", "", &[]);
    let gate = outbox.gate("go-{session}");
    outbox.configure(settings, "turn = true", &[&format!("until:{gate}:0")]);
    outbox
}

pub(crate) fn start(outbox: &Outbox) -> KillOnDrop {
    let monitor = outbox.monitor();
    eventually("the monitor runs", || {
        let status = outbox.world.json(["monitor", "status", "--json"]);
        pid(&status).filter(|pid| *pid == monitor.0.id() || cfg!(windows))
    });
    monitor
}

pub(crate) fn pid(status: &Value) -> Option<u32> {
    status["pid"].as_u64()?.try_into().ok()
}

fn text(path: PathBuf) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

#[test]
fn messages_are_on_disk_when_send_returns_and_are_taken_in_order_without_a_monitor() {
    let outbox = world("");
    let sent = |text: &str| outbox.world.run(["send", "--session", "s", text]).ok();
    for n in 1..=5 {
        assert_eq!(sent(&format!("number {n}")), n.to_string());
    }
    assert_eq!(outbox.world.json(["inbox", "--json"])["messages"].as_array().unwrap().len(), 5);
    outbox.release("go-s");
    let calls = outbox.called(5);
    let ids: Vec<_> = calls.iter().map(|call| call.delivery.clone()).collect();
    assert_eq!(ids, (1..=5).map(|n| format!("s.message.{n}")).collect::<Vec<_>>());
    let event = outbox.read("s.message.3.1.");
    assert_eq!(
        (&event["type"], &event["data"]["message"]),
        (&"dev.hearback.message.v1".into(), &"number 3".into())
    );
    eventually("all are taken", || {
        let inbox = outbox.world.json(["inbox", "--json"]);
        inbox["messages"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn a_message_that_cannot_arrive_is_refused_with_a_reason() {
    let outbox = Outbox::pull();
    let refused = |args: &[&str], words: &str| {
        let ran = outbox.world.run([&["send"], args].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{ran:?}");
    };
    refused(&["hi"], "--session");
    refused(&["--session", "s", "hi"], "default_sink");
    refused(&["--session", "s", "--sink", "unknown", "hi"], "there is no sink `unknown`");
    refused(&["--session", "s", "  \n"], "empty");
    assert_eq!(outbox.world.run(["sessions"]).ok(), "");
    assert_eq!(outbox.world.run(["inbox", "discard", "--session", "s", "1"]).code, Some(1));
}

#[test]
fn a_message_that_no_sink_takes_becomes_a_dead_letter_and_blocks_no_other() {
    let outbox = Outbox::with("attempts = 2", "turn = true", &["1:no luck", "1:no luck"]);
    outbox.world.run(["send", "--session", "s", "lost"]).ok();
    let given_up = eventually("it is given up", || {
        let inbox = outbox.world.json(["inbox", "--json"]);
        Some(inbox["messages"][0].clone()).filter(|message| message["dead_letter"] == true)
    });
    assert!(given_up["error"].as_str().unwrap().contains("no luck"), "{given_up}");
    outbox.tell("0");
    outbox.world.run(["send", "--session", "s", "found"]).ok();
    let calls = outbox.called(3);
    assert_eq!(calls[2].delivery, "s.message.2");
    outbox.world.run(["inbox", "discard", "--session", "s", "1"]).ok();
    eventually("nothing is left", || {
        let inbox = outbox.world.json(["inbox", "--json"]);
        inbox["messages"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn a_damaged_message_costs_only_itself_and_keeps_no_messenger_running() {
    let outbox = Outbox::with("", "turn = true", &["0"]);
    outbox.world.run(["send", "--session", "s", "first"]).ok();
    outbox.called(1);
    let session = fs::read_dir(outbox.world.home().join("sessions")).unwrap().next().unwrap().unwrap().path();
    let receipt = session.join("inbox").join("message.1.receipt");
    eventually("it is taken", || receipt.exists().then_some(()));
    let damaged = session.join("inbox").join("message.2");
    fs::copy(&receipt, &damaged).unwrap();
    fs::write(&damaged, "{").unwrap();
    outbox.world.run(["send", "--session", "s", "third"]).ok();
    assert_eq!(outbox.called(2)[1].delivery, "s.message.3");
    let receipt = session.join("inbox").join("message.3.receipt");
    eventually("the third is taken", || receipt.exists().then_some(()));
    let inbox = outbox.world.json(["inbox", "--json"]);
    let [shown] = &inbox["messages"].as_array().unwrap()[..] else { panic!("{inbox}") };
    assert!(shown["error"].as_str().unwrap().contains("cannot be read"), "{shown}");
    // The messenger has nothing more to do, and has ended.
    outbox.world.settle_down();
}

#[test]
fn a_message_can_interrupt_the_turn_that_is_under_way() {
    let host = Host::new("busy = \"interrupt\"");
    host.make_busy("s");
    let agent = host.in_hand("s.message.1", 1);
    let sent = host.json(&["send", "--session", "s", "stop that"]);
    assert_eq!((&sent["interrupted"], &sent["in_turn"]), (&true.into(), &true.into()));
    assert!(!alive(agent), "its agent is gone before the request is answered");
    host.release("s");
    host.in_hand("s.message.2", 1);
    host.until_idle("s");
    let letter = host.sent("s.message.2", 1);
    assert_eq!((&letter["message"], &letter["note"]["reason"]), (&"stop that".into(), &"message".into()));
    assert_eq!(host.taken().len(), 2, "the first was overtaken, and does not come again");
}

#[test]
fn a_turn_inside_a_turn_of_the_same_session_is_refused() {
    let outbox = Outbox::pull();
    let hearback = text(bin("hearback"));
    let inner =
        [hearback.as_str(), "turn", "--session", "s", "--", &text(bin("exit-with")), "0"].map(str::to_owned);
    let args: Vec<_> = ["turn", "--session", "s", "--"].map(str::to_owned).into_iter().chain(inner).collect();
    let ran = outbox.world.run(&args);
    assert!(ran.code == Some(75) && ran.stderr.contains("already"), "{ran:?}");
}

#[test]
fn an_agent_that_is_not_there_is_said_to_be_missing() {
    let outbox = Outbox::pull();
    let ran = outbox.world.run(["turn", "--session", "s", "--", "no-such-agent"]);
    assert!(ran.code == Some(127) && ran.stderr.contains("could not be started"), "{ran:?}");
}

#[test]
fn scenario_84_a_restart_reports_the_busy_turns_and_interrupts_none() {
    let host = Host::new("");
    host.make_busy("a");
    host.make_busy("b");
    let before = host.first.0.id();
    let asked = host.json(&["monitor", "restart"]);
    assert_eq!(asked["awaited_turns"], 2, "{asked}");
    assert_eq!(host.status()["stopping"], "restart");
    let agents = [host.in_hand("a.message.1", 1), host.in_hand("b.message.1", 1)];
    assert!(agents.into_iter().all(alive), "no turn is interrupted");
    host.release("a");
    host.release("b");
    host.successor_of(before);
    for session in ["a", "b"] {
        assert!(host.until_idle(session)["interrupted"].is_null());
    }
    assert_eq!(host.taken().len(), 2, "and nothing is done twice");
}

#[test]
fn scenario_85_a_second_request_is_refused_and_one_stop_runs() {
    let host = Host::new("");
    host.make_busy("s");
    let before = host.first.0.id();
    host.run(&["monitor", "restart"]).ok();
    for args in
        [&["monitor", "restart"][..], &["monitor", "stop", "--no-wait"], &["monitor", "drain", "--no-wait"]]
    {
        let again = host.run(args);
        assert!(again.code == Some(75) && again.stderr.contains("in progress"), "{again:?}");
    }
    host.release("s");
    host.successor_of(before);
    assert!(!host.request("request.2").exists(), "there was one request");
    assert!(host.request("begin.2").exists() && !host.request("begin.3").exists(), "and one successor");
}

#[test]
fn scenario_86_messages_for_the_busy_are_queued_during_a_drain_and_taken_in_order_after_it() {
    let host = Host::new("");
    host.make_busy("s");
    let before = host.first.0.id();
    host.run(&["monitor", "restart"]).ok();
    for n in 2..=6 {
        assert_eq!(host.send("s", &format!("number {n}")), n);
    }
    assert_eq!(host.taken().len(), 1, "no turn is interrupted by them");
    host.release("s");
    host.successor_of(before);
    host.until_idle("s");
    let expected: Vec<_> = (1..=6).map(|n| (format!("s.message.{n}"), 1)).collect();
    assert_eq!(host.taken(), expected);
}

#[test]
fn scenario_87_idle_and_new_sessions_are_refused_during_a_drain() {
    let host = Host::new("");
    host.release("idle");
    host.send("idle", "hello");
    host.until_idle("idle");
    host.make_busy("busy");
    host.run(&["monitor", "restart"]).ok();
    for session in ["idle", "new"] {
        let refused = host.run(&["send", "--session", session, "now"]);
        assert!(refused.code == Some(75) && refused.stderr.contains("takes nothing new"), "{refused:?}");
    }
    assert_eq!(host.json(&["inbox", "--session", "idle"])["messages"].as_array().unwrap().len(), 0);
    assert!(host.session("new").is_null(), "nothing is kept of it");
    host.release("busy");
}

#[test]
fn scenario_88_a_shutdown_or_interrupt_mode_takes_no_further_turn_and_says_so() {
    for (settings, stop) in [("", "stop"), ("", "drain"), ("busy = \"interrupt\"", "restart")] {
        let host = Host::new(settings);
        host.make_busy("s");
        let no_wait: &[&str] = if stop == "restart" { &[] } else { &["--no-wait"] };
        host.run(&[&["monitor", stop], no_wait].concat()).ok();
        let refused = host.run(&["send", "--session", "s", "one more"]);
        assert!(
            refused.code == Some(75) && refused.stderr.contains("no further turn"),
            "{stop}: {refused:?}"
        );
        host.release("s");
    }
}

#[test]
fn scenario_90_the_busy_are_marked_before_the_wait_and_the_rest_is_interrupted_with_a_reason() {
    let host = Host::new("");
    host.make_busy("quick");
    host.make_busy("slow");
    let before = host.first.0.id();
    let agent = host.in_hand("slow.message.1", 1);
    host.run(&["monitor", "restart", "--timeout", "2s"]).ok();
    // The request is answered when the marks are there, and the wait has only begun.
    assert_eq!(host.facts("turn.1.resumable").len(), 2);
    assert!(alive(agent));
    host.release("quick");
    host.successor_of(before);
    assert!(!alive(agent), "its time had passed");
    assert!(
        host.until_idle("quick")["interrupted"].is_null(),
        "a session whose turn has ended is not marked any more"
    );
    host.in_hand("slow.message.1", 2);
    let seen = host.session("slow");
    assert_eq!(
        (&seen["interrupted"]["turn"], &seen["interrupted"]["reason"]),
        (&1.into(), &"restart".into())
    );
    host.release("slow");
    host.until_idle("slow");
    let letter = host.sent("slow.message.1", 2);
    let said = letter["text"].as_str().unwrap();
    assert!(said.starts_with("[hearback: ") && said.ends_with("\n\nkeep busy"), "{said}");
    assert_eq!((&letter["message"], &letter["note"]["turn"]), (&"keep busy".into(), &1.into()));
}

#[test]
fn scenario_91_marks_survive_a_host_that_is_killed_while_it_drains() {
    let mut host = Host::new("");
    host.make_busy("s");
    host.run(&["monitor", "restart"]).ok();
    host.kill_first();
    assert_eq!(host.facts("turn.1.resumable").len(), 1);
    let seen = host.session("s");
    assert_eq!(
        (&seen["interrupted"]["turn"], &seen["interrupted"]["reason"]),
        (&1.into(), &"restart".into())
    );
    host.release("s");
    host.first = start(&host.outbox);
    host.until_idle("s");
    assert_eq!(host.taken(), [("s.message.1".to_owned(), 1), ("s.message.1".to_owned(), 2)]);
    assert_eq!(host.sent("s.message.1", 2)["note"]["reason"], "restart");
    assert!(host.status()["stopping"].is_null(), "the request died with the monitor that was asked");
}

#[test]
fn scenario_92_a_restart_from_inside_a_turn_does_not_wait_for_that_turn_until_the_limit() {
    let host = Host::over(Outbox::with("drain_timeout = \"10m\"", "turn = true", &["restart", "0"]));
    let before = host.first.0.id();
    let began = Instant::now();
    host.send("s", "restart yourself");
    host.successor_of(before);
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "not until the limit of ten minutes: {:?}",
        began.elapsed()
    );
    host.until_idle("s");
    assert!(host.outbox.said("asked")[0].contains("\"awaited_turns\":0"), "{:?}", host.outbox.said("asked"));
    let note = &host.sent("s.message.1", 2)["note"];
    assert_eq!(note["requested_restart"], true);
    assert!(note["text"].as_str().unwrap().contains("do not request it again"), "{note}");
}

#[test]
fn scenario_93_a_restart_leaves_jobs_alone_but_for_those_that_are_bound_to_the_host() {
    let host = Host::new("");
    let before = host.first.0.id();
    let outbox = &host.outbox;
    let free = outbox.launch(&[], "hold", &[&outbox.gate("free")]);
    let bound = outbox.launch(&["--bound"], "hold", &[&outbox.gate("never")]);
    host.release("s");
    host.run(&["monitor", "restart"]).ok();
    host.successor_of(before);
    assert_eq!(outbox.world.show(&free)["state"], "running");
    let ended = outbox.world.show(&bound);
    assert_eq!((&ended["outcome"]["kind"], &ended["outcome"]["by"]), (&"killed".into(), &"host".into()));
    assert_eq!(outbox.receipt(&bound)["how"], "delivered", "and its owner is notified");
    outbox.release("free");
    outbox.world.run(["wait", &free]).ok();
    assert_eq!(outbox.receipt(&free)["how"], "delivered");
}

#[test]
fn scenario_94_the_successor_is_detached_and_begins_when_its_predecessor_is_gone() {
    let mut host = Host::new("");
    let before = host.first.0.id();
    assert_eq!(host.run(&["monitor", "restart", "--wait"]).ok(), "restarted");
    let after = host.successor_of(before);
    assert_eq!(host.first.0.try_wait().unwrap().and_then(|status| status.code()), Some(0), "gone by then");
    #[cfg(target_os = "linux")]
    {
        let stat = fs::read_to_string(format!("/proc/{after}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let (parent, session) = (fields[1], fields[3]);
        let test = fs::read_to_string("/proc/self/stat").unwrap();
        let ours = test.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().to_owned();
        assert!(parent != std::process::id().to_string() && session != ours, "a session of its own");
        for stream in 0..3 {
            let to = fs::read_link(format!("/proc/{after}/fd/{stream}")).unwrap();
            assert_eq!(to, PathBuf::from("/dev/null"), "stream {stream}");
        }
    }
    let _ = after;
}

#[test]
fn scenario_94_under_a_service_manager_the_agreed_code_is_used_instead() {
    let outbox = Outbox::pull();
    let mut command = outbox.world.command(["monitor", "run", "--service"]);
    let monitor = KillOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut host = Host { outbox, first: monitor };
    eventually("the monitor runs", || host.status()["service"].as_bool().filter(|service| *service));
    host.run(&["monitor", "restart"]).ok();
    assert_eq!(host.first.0.wait().unwrap().code(), Some(85));
    assert!(!host.request("begin.2").exists(), "its service manager starts the next one");
}

/// Notices go to a file; what is in there, by destination.
fn noticed(host: &Host) -> Vec<(String, String, usize)> {
    let notices = lines(host.outbox.world.scratch("notices"));
    let mut notices: Vec<_> = notices
        .iter()
        .map(|line| {
            let data = serde_json::from_str::<Value>(line).unwrap()["data"].clone();
            let field = |name: &str| data[name].as_str().unwrap().to_owned();
            (field("destination"), field("kind"), data["sessions"].as_array().unwrap().len())
        })
        .collect();
    notices.sort();
    notices
}

/// A world with a sink for notices of this kind.
fn noticing(sink: &str) -> Outbox {
    let outbox = world("");
    let told = fs::read_to_string(outbox.world.home().join("config.toml")).unwrap();
    let sink = sink.replace("FILE", &format!("{:?}", outbox.gate("notices")));
    outbox.write_settings(&format!("notice_sink = \"notices\"\n{told}\n[sink.notices]\n{sink}\n"));
    outbox
}

#[test]
fn scenario_95_each_destination_is_notified_once_and_only_a_restart_promises_to_go_on() {
    for kind in ["restart", "stop"] {
        let host = Host::over(noticing("file = FILE"));
        for (session, destination) in [("a", "chat"), ("b", "chat"), ("c", "chat/1"), ("d", "chat/2")] {
            host.json(&["send", "--session", session, "--destination", destination, "hello"]);
            host.in_hand(&format!("{session}.message.1"), 1);
        }
        let no_wait: &[&str] = if kind == "stop" { &["--no-wait"] } else { &[] };
        host.run(&[&["monitor", kind, "--timeout", "100ms"], no_wait].concat()).ok();
        eventually("three are notified", || (noticed(&host).len() == 3).then_some(()));
        let kind = |to: &str, n| (to.to_owned(), kind.to_owned(), n);
        assert_eq!(noticed(&host), [kind("chat", 2), kind("chat/1", 1), kind("chat/2", 1)]);
        let words = fs::read_to_string(host.outbox.world.scratch("notices")).unwrap();
        assert_eq!(words.contains("will continue"), words.contains("\"restart\""), "{words}");
        for session in ["a", "b", "c", "d"] {
            host.release(session);
        }
    }
}

#[test]
fn scenario_95_without_active_sessions_there_are_no_notices() {
    let host = Host::over(noticing("file = FILE"));
    host.release("s");
    host.send("s", "hello");
    host.until_idle("s");
    assert_eq!(host.run(&["monitor", "stop"]).ok(), "stopped");
    assert_eq!(noticed(&host), []);
}

#[test]
fn scenario_97_a_destination_that_hangs_or_fails_holds_nothing_up_and_is_logged() {
    for (answer, why) in [("hang", "no answer in time"), ("1:out of paper", "out of paper")] {
        let sink = text(bin("sink"));
        let outbox = world("");
        let witness = outbox.gate("notice-calls");
        let command = format!("command = {:?}", [&sink, "--witness", &witness, answer]);
        let told = fs::read_to_string(outbox.world.home().join("config.toml")).unwrap();
        outbox.write_settings(&format!("notice_sink = \"notices\"\n{told}\n[sink.notices]\n{command}\n"));
        let host = Host::over(outbox);
        host.make_busy("s");
        let began = Instant::now();
        assert_eq!(host.run(&["monitor", "stop", "--timeout", "100ms"]).ok(), "stopped");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        let log = host.log();
        assert!(log.contains("notice not delivered destination=s ") && log.contains(why), "{log}");
    }
}

/// What the agent of a turn finds in `HEARBACK_NOTE`.
fn note_of(outbox: &Outbox, session: &str, options: &[&str]) -> Option<String> {
    let show_env = text(bin("show-env"));
    let words = [&["turn", "--session", session][..], options, &["--", &show_env, "HEARBACK_NOTE"]].concat();
    let ran = outbox.world.run(&words);
    let shown = ran.ok();
    shown.lines().next()?.strip_prefix("HEARBACK_NOTE=").map(str::to_owned)
}

#[test]
fn scenario_98_what_the_history_ends_with_decides_about_the_note() {
    let outbox = Outbox::pull();
    assert_eq!(note_of(&outbox, "s", &[]), None);
    let note = note_of(&outbox, "s", &["--history", "tool-results"]).unwrap();
    assert!(note.contains("interrupted") && note.contains("Verify"), "{note}");
    for history in ["text", "empty"] {
        assert_eq!(note_of(&outbox, "s", &["--history", history]), None, "{history}");
    }
}

/// Kills a turn hard while its agent runs; the agent is gone as well when this returns, or is ended by the next turn.
#[track_caller]
fn kill_a_turn(outbox: &Outbox, session: &str, n: usize) -> u32 {
    let (hold, never) = (text(bin("hold")), outbox.gate("never"));
    let witness = outbox.gate(&format!("killed-{session}"));
    let words = ["turn", "--session", session, "--", &hold, &never, "--witness", &witness];
    let mut command = outbox.world.command(words);
    let mut turn = KillOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let started = eventually("the agent runs", || lines(&witness).get(n).cloned());
    turn.0.kill().unwrap();
    turn.0.wait().unwrap();
    started.strip_prefix("start ").unwrap().parse().unwrap()
}

#[test]
fn two_turns_never_overlap_after_a_kill() {
    let outbox = Outbox::pull();
    let agent = kill_a_turn(&outbox, "s", 0);
    assert!(note_of(&outbox, "s", &[]).unwrap().contains("the process that ran it died"));
    assert!(!alive(agent), "what was left of the turn before is gone when the next one runs");
    assert_eq!(note_of(&outbox, "s", &[]), None, "a good turn clears it");
}

#[test]
fn a_stray_file_among_the_sessions_disturbs_no_session() {
    let outbox = Outbox::with("", "turn = true", &[]);
    assert_eq!(note_of(&outbox, "s", &[]), None);
    fs::write(outbox.world.home().join("sessions/.DS_Store"), "x").unwrap();
    let sessions = outbox.world.json(["sessions", "--json"]);
    assert_eq!(sessions["sessions"][0]["session"], "s", "{sessions}");
    outbox.world.run(["send", "--session", "s", "--sink", "fixture", "hello"]).ok();
    outbox.world.run(["monitor", "run", "--once"]).ok();
    eventually("the message is delivered", || (outbox.calls().len() == 1).then_some(()));
}

#[test]
fn scenario_100_an_interruption_that_is_too_old_gets_no_note() {
    let outbox = Outbox::pull();
    outbox.write_settings("resume_window = \"1ms\"");
    kill_a_turn(&outbox, "s", 0);
    assert_eq!(note_of(&outbox, "s", &[]), None);
    outbox.write_settings("resume_window = 0");
    kill_a_turn(&outbox, "t", 0);
    assert!(note_of(&outbox, "t", &[]).is_some(), "zero means always");
}

#[test]
fn scenario_102_three_interruptions_in_a_row_suspend_and_a_good_turn_resets() {
    let outbox = Outbox::pull();
    let suspended = || {
        let sessions = outbox.world.json(["sessions", "--json"]);
        sessions["sessions"][0]["suspended"].as_str().map(str::to_owned)
    };
    for n in 0..2 {
        kill_a_turn(&outbox, "s", n);
        assert_eq!(suspended(), None, "after {}", n + 1);
    }
    kill_a_turn(&outbox, "s", 2);
    assert!(suspended().unwrap().contains("3 times in a row"), "{:?}", suspended());
    assert_eq!(note_of(&outbox, "s", &[]), None, "suspended beats resumable: it starts afresh");
    assert_eq!(suspended(), None, "and that turn was a good one");
    kill_a_turn(&outbox, "s", 3);
    assert_eq!(suspended(), None);
    assert!(note_of(&outbox, "s", &[]).is_some());
}

#[test]
fn scenario_102_a_host_that_is_restarted_three_times_does_not_continue_a_fourth() {
    let host = Host::over(Outbox::with("", "turn = true", &["until:nowhere:0"]));
    let mut before = host.first.0.id();
    host.send("s", "go in circles");
    for attempt in 1..=3 {
        host.in_hand("s.message.1", attempt);
        host.run(&["monitor", "restart", "--timeout", "0s"]).ok();
        before = host.successor_of(before);
    }
    let seen = eventually("it is suspended", || {
        let seen = host.session("s");
        (!seen["suspended"].is_null()).then_some(seen)
    });
    assert!(seen["suspended"].as_str().unwrap().contains("in a row"), "{seen}");
    host.outbox.tell("0");
    host.send("s", "something else");
    host.until_idle("s");
    assert_eq!(host.sent("s.message.2", 1)["note"], Value::Null, "new work starts afresh");
    assert!(host.session("s")["suspended"].is_null(), "and that was a good turn");
}

#[test]
fn scenario_103_a_clean_stop_flags_nothing_and_a_crash_flags_the_recently_active() {
    let mut host = Host::new("");
    host.release("done");
    host.send("done", "hello");
    host.until_idle("done");
    assert_eq!(host.run(&["monitor", "stop"]).ok(), "stopped");
    host.first = start(&host.outbox);
    assert!(host.session("done")["interrupted"].is_null());
    host.make_busy("cut");
    host.kill_first();
    let cut = host.session("cut");
    assert_eq!(cut["interrupted"]["reason"], "crash", "{cut}");
    assert!(host.session("done")["interrupted"].is_null());
    host.release("cut");
    host.first = start(&host.outbox);
    host.until_idle("cut");
    assert_eq!(host.sent("cut.message.1", 2)["note"]["reason"], "crash");
}

#[test]
fn an_interrupted_turn_of_an_agent_is_continued_by_the_next_host_where_the_last_one_went() {
    let mut host = Host::new("");
    host.release("s");
    host.send("s", "so that it is known how to reach it");
    host.until_idle("s");
    kill_a_turn(&host.outbox, "s", 0);
    host.kill_first();
    host.first = start(&host.outbox);
    host.in_hand("s.turn.2.resume", 1);
    let letter = host.sent("s.turn.2.resume", 1);
    assert_eq!((&letter["note"]["reason"], &letter["message"]), (&"crash".into(), &Value::Null));
    assert!(host.until_idle("s")["interrupted"].is_null(), "it went well");
}

#[test]
fn scenario_104_only_success_clears_the_mark() {
    let mut host = Host::over(Outbox::with("", "turn = true", &["0"]));
    host.send("s", "so that it is known how to reach it");
    host.until_idle("s");
    kill_a_turn(&host.outbox, "s", 0);
    host.kill_first();
    host.outbox.tell("1:not yet");
    host.first = start(&host.outbox);
    host.in_hand("s.turn.2.resume", 1);
    let seen = eventually("it has failed", || Some(host.session("s")).filter(|seen| seen["turn"].is_null()));
    assert_eq!(seen["interrupted"]["turn"], 2, "{seen}");
    host.outbox.tell("0");
    host.send("s", "now?");
    assert!(host.until_idle("s")["interrupted"].is_null());
    assert_eq!(host.sent("s.message.2", 1)["note"]["turn"], 2);
}

#[test]
fn scenario_105_a_request_that_comes_again_with_an_old_number_is_ignored() {
    let host = Host::new("");
    let before = host.first.0.id();
    let restart = |n: &str| host.json(&["monitor", "restart", "--wait", "--sequence", n]);
    assert_eq!(restart("7")["ignored"], false);
    let second = host.successor_of(before);
    for old in ["7", "6"] {
        assert_eq!(restart(old)["ignored"], true, "{old}");
    }
    assert_eq!(pid(&host.status()), Some(second), "nothing was done");
    assert_eq!(restart("8")["ignored"], false);
    host.successor_of(second);
}

#[test]
fn scenario_106_an_automatic_loop_of_restarts_is_stopped_by_the_counter() {
    // An agent that asks for a restart in every turn.
    let host = Host::over(Outbox::with("drain_timeout = \"1s\"", "turn = true", &["restart"]));
    host.send("s", "restart yourself");
    let held = eventually("the loop is stopped", || {
        let inbox = host.json(&["inbox"]);
        Some(inbox["messages"][0].clone()).filter(|message| message["dead_letter"] == true)
    });
    assert_eq!(held["attempts"], 3, "{held}");
    let notes: Vec<_> =
        (1..=3).map(|n| host.sent("s.message.1", n)["note"]["requested_restart"].clone()).collect();
    assert_eq!(notes, [Value::Null, true.into(), true.into()], "told each time that it comes again");
    eventually("the last restart is over", || {
        let status = host.status();
        (status["stopping"].is_null() && pid(&status).is_some()).then_some(())
    });
    // The host after that hands over everything else, and not this.
    host.outbox.tell("0");
    host.send("s", "are you there?");
    host.until_idle("s");
    let attempts = |id| host.taken().into_iter().filter(|(taken, _)| taken == id).count();
    assert_eq!((attempts("s.message.1"), attempts("s.message.2")), (3, 1));
}

#[test]
fn scenario_107_a_stop_without_signals_goes_the_way_of_every_drain() {
    let mut host = Host::new("");
    host.make_busy("s");
    let stop = host.run(&["monitor", "stop", "--timeout", "200ms"]);
    assert_eq!(stop.ok(), "stopped");
    assert_eq!(host.first.0.wait().unwrap().code(), Some(0));
    assert_eq!(host.session("s")["interrupted"]["reason"], "shutdown");
    for fact in ["request.1", "request.1.taken", "request.1.done"] {
        assert!(host.request(fact).exists(), "{fact}");
    }
    let idle = host.run(&["monitor", "stop"]);
    assert!(idle.code == Some(1) && idle.stderr.contains("no monitor is running"), "{idle:?}");
}

/// The monitor has ended in good order, with the turn of this agent.
#[track_caller]
fn has_drained<First>(host: &Host<First>, code: Option<i32>, agent: u32) {
    assert_eq!(code, Some(0), "{}", host.log());
    assert!(host.request("request.1.done").exists() && !alive(agent));
    assert_eq!(host.session("s")["interrupted"]["reason"], "shutdown");
}

#[test]
fn a_signal_starts_the_same_drain_as_a_command() {
    let settings = "drain_timeout = \"200ms\"";
    #[cfg(unix)]
    {
        let mut host = Host::new(settings);
        host.make_busy("s");
        let agent = host.in_hand("s.message.1", 1);
        let monitor = nix::unistd::Pid::from_raw(i32::try_from(host.first.0.id()).unwrap());
        nix::sys::signal::kill(monitor, nix::sys::signal::Signal::SIGTERM).unwrap();
        let code = host.first.0.wait().unwrap().code();
        has_drained(&host, code, agent);
    }
    #[cfg(any(target_os = "linux", windows))]
    {
        let outbox = world(settings);
        let terminal = hearback_tests::Terminal::run(&outbox.world.command(["monitor", "run"]));
        let mut host = Host { outbox, first: Some(terminal) };
        eventually("the monitor runs", || pid(&host.status()));
        host.make_busy("s");
        let agent = host.in_hand("s.message.1", 1);
        let mut terminal = host.first.take().unwrap();
        terminal.interrupt();
        has_drained(&host, terminal.finish().code, agent);
    }
}

/// Kills the monitor at a point that can be seen from outside, and lets the next one take over.
#[track_caller]
fn killed_when(point: &str, seen: impl Fn(&Host) -> bool) {
    let mut host = Host::new("drain_timeout = \"100ms\"");
    host.make_busy("s");
    let id = host.outbox.launch(&[], "hold", &[&host.outbox.gate("job")]);
    let mut restart = KillOnDrop(
        host.outbox
            .world
            .command(["monitor", "restart"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    while !seen(&host) {
        assert!(Instant::now() < deadline, "{point} never came");
        std::thread::yield_now();
    }
    host.kill_first();
    restart.0.kill().unwrap();
    host.release("s");
    // A successor may be starting, or may never come: both cases are covered.
    let next = host.outbox.monitor();
    for text in ["second", "third"] {
        // The next monitor may itself be asked to restart, by a request that is still unanswered.
        eventually("it is taken", || {
            let sent = host.run(&["send", "--session", "s", text]);
            assert!(matches!(sent.code, Some(0 | 75)), "{point}: {sent:?}");
            (sent.code == Some(0)).then_some(())
        });
    }
    host.outbox.release("job");
    assert_eq!(host.outbox.receipt(&id)["how"], "delivered", "{point}");
    host.until_idle("s");
    let taken: Vec<_> = host.taken().into_iter().filter(|(id, _)| id.contains("message")).collect();
    let mut once = taken.clone();
    once.dedup_by(|a, b| a.0 == b.0);
    let expected: Vec<_> = (1..=3).map(|n| format!("s.message.{n}")).collect();
    assert_eq!(once.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), expected, "{point}: {taken:?}");
    for (id, attempt) in taken.iter().filter(|(_, attempt)| *attempt > 1) {
        assert!(!host.sent(id, *attempt)["note"].is_null(), "{point}: what comes again says why");
    }
    drop(next);
}

#[test]
fn nothing_is_lost_or_repeated_when_the_host_is_killed_at_any_point_of_a_restart() {
    killed_when("the request", |host| host.request("request.1").exists());
    killed_when("the mark", |host| !host.facts("turn.1.resumable").is_empty());
    killed_when("the answer", |host| host.request("request.1.taken").exists());
    killed_when("the interruption", |host| !host.facts("turn.1.interrupt").is_empty());
    killed_when("the end of the turn", |host| !host.facts("turn.1.end").is_empty());
    killed_when("the end of the request", |host| host.request("request.1.done").exists());
}
