//! What programs get with `--json`: a document for every command, and an object with an error for every failure.

use std::collections::BTreeSet;

use hearback_tests::{Outbox, Ran, World, bin, eventually, run};
use serde_json::{Value, json};

use crate::command_line::{conforms, schema};
use crate::plugin::{HELLO, plugin};

/// Every command that does something, as it is typed: those of `--help`, and of the help of each.
fn commands(world: &World, above: &[&str]) -> BTreeSet<String> {
    let help = world.run([above, &["--help"]].concat()).ok();
    let names = listed_commands(&help);
    let mut found: BTreeSet<_> =
        names.iter().flat_map(|name| commands(world, &[above, &[name]].concat())).collect();
    // Some do something without a command below them.
    if names.is_empty() || help.contains(" [COMMAND]\n") {
        found.insert(above.join(" "));
    }
    found
}

/// The commands that a help text lists, in whichever groups. They stand behind the usage: what is indented above it is
/// an example.
pub(crate) fn listed_commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Usage:"));
    let lines = lines.take_while(|line| *line != "Options:");
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()) && *name != "help").collect()
}

/// The objects that it printed, one a line.
#[track_caller]
fn objects(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}"))).collect()
}

/// The one object that it printed.
#[track_caller]
fn object(ran: &Ran) -> Value {
    let mut objects = objects(ran);
    assert_eq!(objects.len(), 1, "{ran:?}");
    objects.remove(0)
}

/// What each kind of error exits with, from the table of `docs/exit-codes.md`.
fn documented_codes() -> Vec<(String, i32)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/exit-codes.md");
    let page = fs_err::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(kind, rest)| (kind.to_owned(), rest.split(':').next().unwrap().parse().unwrap())).collect()
}

/// Asserts that a call failed in this way, and said so in every object or in the last one.
#[track_caller]
fn fails(schema: &Value, ran: &Ran, kind: &str) -> Value {
    let objects = objects(ran);
    let last = objects.last().unwrap_or_else(|| panic!("no JSON: {ran:?}")).clone();
    assert_eq!(last["error"]["kind"], kind, "{ran:?}");
    assert!(last["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{ran:?}");
    assert!(!ran.stderr.contains("error:"), "it is said once: {ran:?}");
    let (_, code) =
        documented_codes().into_iter().find(|(known, _)| known == kind).expect("it is documented");
    ran.exits(code);
    if last.as_object().unwrap().len() == 2 {
        conforms(schema, "error", &last);
    }
    last
}

/// One call of a command that succeeds, and the name of its document in the schema.
struct Success {
    command: &'static str,
    args: Vec<String>,
    document: &'static str,
}

fn successes(outbox: &Outbox) -> Vec<Success> {
    let world = &outbox.world;
    let path = |name: &str| bin(name).to_str().unwrap().to_owned();
    let (exit_with, act) = (path("exit-with"), path("act"));
    let ended = outbox.launch(&[], "exit-with", &["0", "--print", "hello"]);
    world.run(["wait", "--peek", &ended]).ok();
    outbox.until(&ended, &["delivered"]);
    let reads = world.launch(["-q", "--stdin", "--", &path("reader")]);
    let asked = ["ask", "--session", "p", "--new", "--notify", "never", "--prompt", "x", "--", &act, "print"];
    let asked = world.run(asked).ok();
    world.run(["wait", &asked]).ok();
    // The session is gone there, so that it is given up at once.
    outbox.tell("69");
    let given_up = world.run(["send", "--session", "gone", "hi"]).ok();
    eventually("it is a dead letter", || {
        let inbox = world.json(["inbox", "-s", "gone", "--json"]);
        (inbox["messages"][0]["dead_letter"] == true).then_some(())
    });
    // Nothing delivers it: there is no such sink any more.
    outbox.tell("75");
    let sent = world.run(["send", "--session", "held", "hi"]).ok();
    let good = plugin(world, &format!("{HELLO}\nanswer rightly")).to_str().unwrap().to_owned();
    let calls: Vec<(&str, Vec<&str>, &str)> = vec![
        ("launch", vec!["launch", "--", &exit_with, "0"], "launch"),
        ("ask", vec!["ask", "-s", "p", "--prompt", "x", "--", &act, "print"], "launch"),
        ("results", vec!["results", "-s", "p"], "results"),
        ("list", vec!["list"], "list"),
        ("timeline", vec!["timeline"], "timeline"),
        ("events", vec!["events", "--once"], "happening"),
        ("show", vec!["show", &ended, "--output", "1KB"], "show"),
        ("logs", vec!["logs", &ended], "logs"),
        ("wait", vec!["wait", &ended], "job"),
        ("kill", vec!["kill", &ended], "kill"),
        ("write", vec!["write", &reads, "text", "--eof"], "write"),
        ("followups", vec!["followups"], "followups"),
        ("followups list", vec!["followups", "list"], "followups"),
        ("followups ack", vec!["followups", "ack", &ended], "followups_closed"),
        ("followups retry", vec!["followups", "retry", &ended], "followups_closed"),
        ("followups discard", vec!["followups", "discard", &ended], "followups_closed"),
        ("turn", vec!["turn", "-s", "t", "--", &exit_with, "0", "--print", "no line break"], "turn"),
        ("send", vec!["send", "-s", "t", "hi"], "send"),
        ("sessions", vec!["sessions"], "sessions"),
        ("inbox", vec!["inbox"], "inbox"),
        ("inbox list", vec!["inbox", "list"], "inbox"),
        ("inbox retry", vec!["inbox", "retry", "-s", "gone", &given_up], "inbox_change"),
        ("inbox discard", vec!["inbox", "discard", "-s", "held", &sent], "inbox_change"),
        ("monitor run", vec!["monitor", "run", "--once"], "monitor_run"),
        ("monitor status", vec!["monitor", "status"], "monitor"),
        ("agent list", vec!["agent", "list"], "agent_list"),
        ("agent setup", vec!["agent", "setup", "claude"], "agent_setup"),
        ("sink list", vec!["sink", "list"], "sink_list"),
        ("sink test", vec!["sink", "test", "fixture"], "sink_test"),
        ("plugin check", vec!["plugin", "check", &good], "plugin_check"),
        ("reconcile", vec!["reconcile"], "reconcile"),
        ("prune", vec!["prune"], "prune"),
        ("settings", vec!["settings"], "settings"),
        ("doctor", vec!["doctor"], "doctor"),
        ("schema", vec!["schema"], ""),
        ("completions", vec!["completions", "bash"], "completions"),
    ];
    let owned = |args: Vec<&str>| {
        // What follows `--` is not for hearback.
        let at = args.iter().position(|word| *word == "--").unwrap_or(args.len());
        let (before, after) = args.split_at(at);
        [before, &["--json"], after].concat().into_iter().map(str::to_owned).collect()
    };
    calls
        .into_iter()
        .map(|(command, args, document)| Success { command, args: owned(args), document })
        .collect()
}

/// Commands whose success is tried elsewhere: they need a monitor, a service manager or a pending follow-up.
/// `agent test` is `sink test` of an agent, `mcp` speaks a protocol of its own, and `top` is for people alone.
const ELSEWHERE: [&str; 11] = [
    "agent test",
    "followups claim",
    "followups next",
    "followups release",
    "mcp",
    "monitor drain",
    "monitor install",
    "monitor restart",
    "monitor stop",
    "serve",
    "top",
];

#[test]
fn scenario_132_every_command_prints_json_and_so_does_every_failure() {
    let outbox = Outbox::new(&[]);
    let world = &outbox.world;
    let schema = schema(world);
    let calls = successes(&outbox);
    let walked = commands(world, &[]);
    let tried: BTreeSet<_> =
        calls.iter().map(|call| call.command).chain(ELSEWHERE).map(str::to_owned).collect();
    assert_eq!(walked, tried, "a command whose JSON is not tried");
    for Success { command, args, document } in &calls {
        if *command == "sink test" {
            outbox.tell("0");
        }
        let ran = world.run(args);
        let printed: Vec<_> = match *command {
            // What the agent of a turn prints comes first.
            "turn" => ran.stdout.lines().last().into_iter().collect(),
            "events" => ran.stdout.lines().collect(),
            _ => vec![ran.stdout.as_str()],
        };
        ran.exits(0);
        assert!(!printed.is_empty(), "{command}: {ran:?}");
        for printed in printed {
            let printed: Value =
                serde_json::from_str(printed).unwrap_or_else(|error| panic!("{command}: {error}: {ran:?}"));
            assert!(printed.get("error").is_none(), "{command}: {ran:?}");
            if !document.is_empty() {
                conforms(&schema, document, &printed);
            }
        }
    }
    // Those that no help lists, and those that find nothing to do.
    for (words, document) in [
        (&["exit-codes", "--json"][..], "exit_codes"),
        (&["--version", "--json"], "version"),
        (&["--json", "-V"], "version"),
        (&["kill", "--all", "--json"], "list"),
        (&["wait", "--all", "--json"], "list"),
        (&["kill", "--label", "nope", "--json"], "list"),
        (&["list", "--label", "nope", "--json"], "list"),
        (&["timeline", "--label", "nope", "--json"], "timeline"),
        (&["sessions", "-s", "nope", "--json"], "sessions"),
        (&["inbox", "-s", "nope", "--json"], "inbox"),
        (&["followups", "-s", "nope", "--json"], "followups"),
    ] {
        eventually("every job has ended", || {
            world.run(["wait", "--all"]).stderr.starts_with("no job").then_some(())
        });
        let ran = world.run(words);
        let printed = object(ran.exits(0));
        assert!(printed["format"] == 1 && ran.stderr.is_empty(), "{words:?}: {ran}");
        conforms(&schema, document, &printed);
    }
    let broken = world.scratch("broken");
    fs_err::write(&broken, "a file is no store").unwrap();
    let all = calls.iter().map(|call| (call.command, call.args.clone()));
    let bare = |command: &'static str| {
        let name = match command {
            "agent test" => Some("claude"),
            "followups release" => Some("1m7qe04w2t0r10jw.end.1.x"),
            _ => None,
        };
        (command, command.split(' ').chain(name).chain(["--json"]).map(str::to_owned).collect())
    };
    for (command, args) in all.chain(ELSEWHERE.map(bare)) {
        let words: Vec<_> = command.split(' ').chain(["--no-such-option", "--json"]).collect();
        fails(&schema, &world.run(&words), "usage");
        // `mcp` and `serve` speak protocols: what keeps them from beginning is printed as for people.
        if ["schema", "completions", "mcp", "serve"].contains(&command) {
            continue;
        }
        let mut nowhere = world.command(&args);
        nowhere.env("HEARBACK_HOME", &broken);
        let nowhere =
            fails(&schema, &run(nowhere), if command == "doctor" { "check_failed" } else { "store" });
        assert!(nowhere["format"] == 1, "{nowhere}");
        if command != "doctor" {
            let mut denied = world.command(&args);
            denied.env("HEARBACK_DENY", "no-such-word");
            fails(&schema, &run(denied), "denied");
        }
    }
}

#[test]
fn scenario_132_what_a_capability_refuses_is_refused_before_anything_is_looked_up() {
    let world = World::new();
    let schema = schema(&world);
    let exit_with = bin("exit-with").to_str().unwrap().to_owned();
    for (word, args) in [
        ("launch", &["launch", "--json", "--", &exit_with, "0"][..]),
        ("launch", &["ask", "--session", "p", "--new", "--json", "--prompt", "x", "--", &exit_with]),
        ("kill", &["kill", "nope", "--json"]),
        ("write", &["write", "nope", "text", "--json"]),
        ("ack", &["followups", "ack", "nope", "--json"]),
        ("ack", &["followups", "discard", "nope", "--json"]),
        ("ack", &["followups", "retry", "nope", "--json"]),
        ("notify", &["followups", "retry", "nope", "--json"]),
        ("ack", &["results", "--session", "p", "--ack", "nope", "--json"]),
        ("turn", &["turn", "--session", "t", "--json", "--", &exit_with, "0"]),
        ("send", &["send", "--session", "t", "hi", "--json"]),
        ("send", &["inbox", "discard", "--session", "t", "7", "--json"]),
        ("monitor", &["monitor", "run", "--once", "--json"]),
        ("monitor", &["monitor", "stop", "--json"]),
        ("monitor", &["monitor", "restart", "--json"]),
        ("monitor", &["monitor", "drain", "--json"]),
        ("prune", &["prune", "--json"]),
        ("sink", &["sink", "test", "nope", "--json"]),
        ("sink", &["plugin", "check", "nope", "--json"]),
    ] {
        let mut denied = world.command(args);
        denied.env("HEARBACK_DENY", word);
        let denied = fails(&schema, &run(denied), "denied");
        assert!(denied["error"]["tip"].as_str().unwrap().contains("HEARBACK_DENY"), "{args:?}: {denied}");
    }
}

#[test]
fn scenario_132_what_a_job_needs_is_named_by_its_kind() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    let schema = schema(world);
    let held = outbox.launch(&["--key", "k"], "hold", &[&outbox.gate("go")]);
    let path = |name: &str| bin(name).to_str().unwrap().to_owned();
    let (exit_with, hold) = (path("exit-with"), path("hold"));
    for (kind, args) in [
        ("unknown_job", &["show", "zzzzzzzz", "--json"][..]),
        ("unknown_job", &["logs", "zzzz", "--json"]),
        ("unknown_job", &["wait", "zzzz", "--json"]),
        ("unknown_job", &["kill", "zzzz", "--json"]),
        ("unknown_job", &["followups", "ack", "zzzz", "--json"]),
        ("not_ended", &["followups", "ack", &held, "--json"]),
        ("no_answer", &["results", "--session", "s", &held, "--json"]),
        ("nothing", &["results", "--session", "s", "--json"]),
        ("nothing", &["followups", "next", "--json"]),
        ("nothing", &["inbox", "discard", "--session", "t", "7", "--json"]),
        ("usage", &["send", "hi", "--json"]),
        ("usage", &["send", "--session", "t", " ", "--json"]),
        ("no_sink", &["send", "--session", "t", "hi", "--json"]),
        ("no_sink", &["launch", "--sink", "nope", "--json", "--", &exit_with, "0"]),
        ("no_sink", &["sink", "test", "nope", "--json"]),
        ("unknown_session", &["ask", "--session", "q", "--prompt", "x", "--json", "--", &exit_with]),
        ("key_taken", &["launch", "-s", "s", "--key", "k", "--json", "--", &exit_with, "0"]),
        ("not_found", &["launch", "--json", "--", "no-such-program-here"]),
        ("not_found", &["turn", "--session", "t", "--json", "--", "no-such-program-here"]),
        ("no_monitor", &["monitor", "stop", "--json"]),
        ("usage", &["monitor", "install", "--json", "--print", "--remove"]),
        ("usage", &["launch", "--timeout", "soon", "--json", "--", &hold]),
        ("usage", &["launch", "--label", "--json"]),
        ("usage", &["no-such-command", "--json"]),
        ("usage", &["--json"]),
        ("usage", &["list", "-n", "0", "--json"]),
        ("usage", &["list", "--state", "asleep", "--json"]),
        ("usage", &["followups", "retyr", "--json"]),
        ("usage", &["rm", "--json"]),
        ("usage", &["inbox", "retry", "first", "--json"]),
        ("usage", &["launch", "--cwd", "no/such/place", "--json", "--", &exit_with, "0"]),
        ("usage", &["launch", "--label", "@last", "--json", "--", &exit_with, "0"]),
        ("usage", &["launch", "--shell", "", "--json"]),
        ("usage", &["launch", "--json", "--wait", "5s", &exit_with]),
        ("usage", &["logs", "--follow", "--json", "zzzz", "yyyy"]),
        ("usage", &["monitor", "run", "--once", "--service", "--json"]),
        ("unknown_job", &["show", "zz", "--json"]),
        ("unknown_job", &["results", "--session", "s", "zzzz", "--json"]),
        ("unknown_job", &["followups", "retry", "zzzz.end", "--json"]),
        ("unknown_job", &["followups", "discard", "zzzz", "--json"]),
        ("no_sink", &["agent", "test", "nope", "--json"]),
        ("no_sink", &["agent", "setup", "nope", "--json"]),
    ] {
        let failed = fails(&schema, &world.run(args), kind);
        // What the caller typed for a job, whether it named one or several, and nothing where it named none.
        let job = args.iter().find(|word| word.starts_with("zz") || **word == held && kind != "key_taken");
        let subject = if kind == "usage" { None } else { job };
        assert_eq!(failed["error"]["subject"].as_str(), subject.copied(), "{args:?}: {failed}");
    }
    // These are not for hearback: the program of a job has options of its own, and an option may have this value.
    for args in [
        &["launch", "--timeout", "soon", "--", &exit_with, "--json"][..],
        &["launch", "--timeout", "soon", &exit_with, "--json"],
        &["launch", "--timeout", "soon", "--shell", "--json"],
    ] {
        world.run(args).refuses(2).says("error: invalid value 'soon'");
    }
    // A job that is recorded is shown together with what was wrong.
    let failed = object(&world.run(["launch", "--json", "--", "no-such-program-here"]));
    conforms(&schema, "job", &failed);
    assert_eq!((&failed["state"], &failed["error"]["kind"]), (&json!("failed"), &json!("not_found")));
    assert_eq!(failed["follow_up"]["state"], "not_wanted", "without an owner there is nothing to read");
}

#[test]
fn scenario_132_a_wait_that_gives_up_prints_the_job_as_it_is() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    let schema = schema(world);
    let ended = outbox.launch(&[], "exit-with", &["3"]);
    world.run(["wait", &ended]).exits(3);
    let held = outbox.launch(&[], "hold", &[&outbox.gate("go")]);
    let ran = world.run(["wait", "--json", "--timeout", "0s", &held]);
    let late = fails(&schema, &ran, "deadline");
    conforms(&schema, "job", &late);
    assert_eq!((&late["id"], &late["state"]), (&json!(held), &json!("running")));
    // Each of several has its answer.
    let ran = world.run(["wait", "--json", "--timeout", "0s", &held, "zzzz", &ended]);
    ran.exits(75);
    let told: Vec<_> = objects(&ran);
    let told: Vec<_> =
        told.iter().map(|one| (&one["id"], &one["error"]["kind"], &one["error"]["subject"])).collect();
    let none = &Value::Null;
    assert_eq!(
        told,
        [
            (none, &json!("unknown_job"), &json!("zzzz")),
            (&json!(ended), none, none),
            (&json!(held), &json!("deadline"), &json!(held)),
        ]
    );
    // A label is what the caller typed, so it is the subject.
    let labelled = outbox.launch(&["--label", "the build"], "hold", &[&outbox.gate("go")]);
    let late = fails(&schema, &world.run(["wait", "--json", "--timeout", "0s", "the build"]), "deadline");
    assert_eq!((&late["id"], &late["error"]["subject"]), (&json!(labelled), &json!("the build")));
    let open = fails(&schema, &world.run(["followups", "ack", "--json", "the build"]), "not_ended");
    assert_eq!(open["error"]["subject"], "the build", "{open}");
    outbox.release("go");
    eventually("it has ended", || world.show(&held)["ended_at"].as_str().map(drop));
}

#[test]
fn scenario_131_each_of_several_jobs_has_its_own_object() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    let schema = schema(world);
    let held = outbox.launch(&[], "hold", &[&outbox.gate("never")]);
    let ran = world.run(["kill", "--json", "zzzz", &held, "yyyy"]);
    ran.exits(1);
    let told = objects(&ran);
    let subjects: BTreeSet<_> = told.iter().filter_map(|one| one["error"]["subject"].as_str()).collect();
    assert_eq!(subjects, BTreeSet::from(["yyyy", "zzzz"]), "{told:?}");
    let killed: Vec<_> = told.iter().filter(|one| one.get("id").is_some()).collect();
    assert_eq!(killed.len(), 1, "{told:?}");
    conforms(&schema, "kill", killed[0]);
    let ran = world.run(["followups", "ack", "--json", "zzzz", &held]);
    ran.exits(1);
    let told = objects(&ran);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|one| one["delivery"] == format!("{held}.end")), "{told:?}");
}

#[test]
fn the_kinds_of_errors_are_documented_and_in_the_schema() {
    let world = World::new();
    let schema = schema(&world);
    let kinds = schema["$defs"]["ErrorKind"]["oneOf"].as_array().unwrap().iter();
    let known: BTreeSet<_> = kinds.map(|kind| kind["const"].as_str().unwrap().to_owned()).collect();
    let documented: BTreeSet<_> = documented_codes().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(known, documented);
}

/// Makes it impossible to say whether a job has ended.
fn damage(world: &World, id: &str) {
    let lock = world.job_dir(id).join("alive.lock");
    fs_err::remove_file(&lock).unwrap();
    fs_err::create_dir(lock).unwrap();
}

#[test]
fn nothing_is_said_to_be_pending_only_if_every_job_could_be_read() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    let schema = schema(world);
    let broken = outbox.launch(&[], "exit-with", &["3"]);
    let other = world.launch(["--session", "other", "--", bin("exit-with").to_str().unwrap(), "0"]);
    for id in [&broken, &other] {
        world.leave_alone(id);
        damage(world, id);
    }
    // Every reader names the job, and says that its list is not complete. The job of another session is not named.
    for args in [&["list"][..], &["followups"], &["followups", "list"], &["followups", "next"], &["results"]]
    {
        let ran = outbox.run_as("s", args);
        ran.exits(125).says(&format!("job `{broken}` cannot be read"));
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.contains("nothing is pending") && !all.contains("no jobs"), "{args:?}: {ran:?}");
        assert!(!all.contains("no unread answers") && !all.contains(&other), "{args:?}: {ran:?}");
        let ran = outbox.run_as("s", &[args, &["--json"]].concat());
        let told = fails(&schema, &ran, "partly");
        assert_eq!(told["problems"][0]["id"], broken, "{args:?}: {told}");
        assert_eq!(told["problems"].as_array().unwrap().len(), 1, "{args:?}: {told}");
        conforms(
            &schema,
            match args[0] {
                "list" => "list",
                "results" => "results",
                _ => "followups",
            },
            &told,
        );
    }
    // What can be read is printed, and is what the caller asked for.
    let fine = outbox.launch(&[], "exit-with", &["0"]);
    eventually("it is pending", || (world.show(&fine)["follow_up"]["state"] == "pending").then_some(()));
    let next = outbox.run_as("s", &["followups", "next", "--json"]);
    conforms(&schema, "event", &object(&next));
    outbox.run_as("s", &["followups", "next"]).exits(0).prints("exit code 0").says(&broken);
    outbox.run_as("s", &["followups"]).exits(125).prints(&fine[9..]).says(&broken);
}

#[test]
fn a_caller_that_may_not_acknowledge_reads_and_is_told_all_the_same() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    let act = bin("act").to_str().unwrap().to_owned();
    let id = outbox.launch(&[], "exit-with", &["3", "--print", "x"]);
    let asked = ["ask", "--session", "s", "--json", "--wait", "--prompt", "x", "--", &act, "print"];
    for args in [&["wait", &id][..], &["logs", &id], &["logs", "--json", &id], &["logs", "-f", &id], &asked] {
        let mut command = outbox.command_as("s", args);
        command.env("HEARBACK_DENY", "ack");
        let ran = run(command);
        assert!(!ran.stderr.contains("HEARBACK_DENY"), "{ran:?}");
        let id = match args[0] {
            "ask" => object(&ran)["id"].as_str().unwrap().to_owned(),
            _ => id.clone(),
        };
        world.show(&id).in_case(format!("{args:?}")).follow_up_is("pending");
    }
}

#[test]
fn requests_to_a_monitor_and_its_end_are_documents() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    let schema = schema(world);
    for request in ["drain", "stop", "restart"] {
        let monitor = world.command(["monitor", "run", "--json"]);
        let monitor = std::thread::spawn(move || run(monitor));
        eventually("it runs", || {
            (world.json(["monitor", "status", "--json"])["running"] == true).then_some(())
        });
        let ran = world.run(["monitor", request, "--json"]);
        conforms(&schema, "monitor_request", &object(ran.exits(0)));
        let ended = object(&monitor.join().unwrap());
        conforms(&schema, "monitor_run", &ended);
        assert_eq!(ended["stopped"], request);
    }
    // The successor of the restart.
    eventually("it runs", || (world.json(["monitor", "status", "--json"])["running"] == true).then_some(()));
    world.run(["monitor", "stop"]).ok();
}

/// The text of a document of `logs`, of which nothing is missing.
#[track_caller]
pub(crate) fn log_text(document: &Value) -> String {
    let parts = document["parts"].as_array().unwrap().iter();
    parts.map(|part| part["text"].as_str().unwrap_or_else(|| panic!("{part}"))).collect()
}

/// Puts the output together from a document and, for what it leaves out, from further ones. What the log has dropped is
/// empty.
#[track_caller]
fn put_together(world: &World, schema: &Value, id: &str, args: &[&str]) -> Vec<(u64, String)> {
    let document = world.json([&["logs", "--json", id], args].concat());
    conforms(schema, "logs", &document);
    let number = |value: &Value| value.as_u64().unwrap();
    let (mut at, mut found) = (number(&document["offset"]), Vec::new());
    for part in document["parts"].as_array().unwrap() {
        let (offset, end) = (number(&part["offset"]), number(&part["end"]));
        assert!(offset == at && end > at, "the parts adjoin each other: {document}");
        at = end;
        match (part["text"].as_str(), part["missing"].as_str()) {
            (Some(text), None) => found.push((offset, text.to_owned())),
            (None, Some("left_out")) => {
                let rest = put_together(world, schema, id, &["--offset", &offset.to_string()]);
                let rest = rest.into_iter().map(|(from, mut text)| {
                    text.truncate(usize::try_from(end.saturating_sub(from)).unwrap().min(text.len()));
                    (from, text)
                });
                found.extend(rest.filter(|(_, text)| !text.is_empty()));
            }
            (None, Some("cap")) => found.push((offset, String::new())),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(number(&document["end"]), at, "{document}");
    assert!(number(&document["bytes"]) >= at, "{document}");
    found
}

#[test]
fn the_output_can_be_put_together_from_its_parts() {
    let world = World::new();
    let schema = schema(&world);
    let path = |name: &str| bin(name).to_str().unwrap().to_owned();
    let words: String = (0..40).map(|n| format!("{n:02} größer, 日本\n")).collect();
    let small = world.launch(["--", &path("exit-with"), "0", "--print", &words]);
    let print = [&path("print"), "--bytes", "3000000", "--line-length", "100"];
    let capped = world.launch(["--log-cap", "1MiB", "--"].iter().chain(&print));
    for id in [&small, &capped] {
        world.run(["wait", id]).ok();
    }
    // Nothing was dropped, so nothing is said to be. Every offset is that of its text.
    let plain = world.run(["logs", &small]).stdout;
    for most in [1, 7, 64, 65, 66, 67, 500, 2000] {
        let found = put_together(&world, &schema, &small, &["--max-bytes", &most.to_string()]);
        for (offset, text) in &found {
            let offset = usize::try_from(*offset).unwrap();
            assert_eq!(plain.get(offset..offset + text.len()), Some(&**text), "--max-bytes {most}");
        }
        assert_eq!(found.into_iter().map(|(_, text)| text).collect::<String>(), plain, "--max-bytes {most}");
    }
    // What the cap has dropped is told from what is only left out.
    let line = |n: u64| format!("{n:010} ");
    for most in ["1000", "1200000"] {
        let found = put_together(&world, &schema, &capped, &["--max-bytes", most]);
        let dropped = found.iter().filter(|(_, text)| text.is_empty()).count();
        assert_eq!(dropped, 1, "--max-bytes {most}");
        for (offset, text) in found.iter().filter(|(_, text)| !text.is_empty()) {
            assert_eq!(offset % 100, 0, "whole lines");
            assert!(text.starts_with(&line(offset / 100)), "--max-bytes {most}: {offset}");
        }
    }
}
