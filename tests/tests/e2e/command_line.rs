//! The contract that scripts, agents and people rely on: names, codes, texts, JSON, and behaviour in a pipe.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hearback_tests::{KillOnDrop, Ran, World, args, bin, eventually, lines, run, scaled};
use serde_json::{Value, json};

use crate::json::{listed_commands, log_text};

/// Hides what differs from run to run and from machine to machine, and keeps every column where it is.
///
/// `ids` are those whose short forms may occur.
pub(crate) fn redacted(world: &World, ids: &[&str]) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    if cfg!(windows) {
        // As JSON has them, and as they are; a backslash before a single letter is an escape.
        settings.add_filter(r"\\\\", "/");
        settings.add_filter(r"\\([\w\[.-]{2,})", "/$1");
        settings.add_filter(r"(?m)\\$", "/");
        settings.add_filter(r"\.exe\b", "");
    }
    let literal = |path: &std::path::Path| -> String {
        let path = path.to_str().unwrap().replace('\\', "/");
        let quoted = |c: char| match c {
            // A folder of a single letter keeps its backslash.
            '/' => r"[/\\]".to_owned(),
            c if c.is_alphanumeric() => c.to_string(),
            c => format!("\\{c}"),
        };
        path.chars().map(quoted).collect()
    };
    settings.add_filter(&literal(bin("hearback").parent().unwrap()), "[bin]");
    settings.add_filter(&literal(world.home().parent().unwrap()), "[world]");
    // Backslashes make a word one that has to be quoted.
    settings.add_filter(r"'(\[(?:bin|world)\][^' ]*)'", "$1");
    settings.add_filter(r"\b[0-9][0-9a-hjkmnp-tv-z]{15}\b", "[-------id-----]");
    for id in ids {
        settings.add_filter(&format!(r"\b{}\b", &id[9..]), "[short]");
    }
    settings.add_filter(r"history/[0-9a-z]{5}/", "history/[era]/");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "[---------time---------]");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "[-----local-----]");
    settings.add_filter(r#""(pid|ran_ms|user_ms|system_ms|peak_memory_bytes)": \d+"#, r#""$1": "[number]""#);
    settings.add_filter(r"\b(process +|pid )\d+", "${1}[pid]");
    // What a job survives is different on each system.
    settings.add_filter(r#""survives": \[[^\]]*\]"#, r#""survives": "[list]""#);
    settings.add_filter(r"\b59 min \d+ s left", "59 min 59 s left");
    settings.add_filter(r"\b\d\.\d s", "0.0 s");
    settings.add_filter(r"\b\d+\.\d [KM]iB at most", "0.0 MiB at most");
    // What a running job uses now is not known on every system.
    settings.add_filter(r", 0\.0 s of CPU, [\d.]+ \w+ now", "");
    // A machine under load takes its time; the column is as wide as its heading.
    settings.add_filter(r"\b\d\d s ago|\b\d s ago |\b\d s ago", "just now");
    settings
}

/// Compares text with the stored one of this name.
macro_rules! same_as_stored {
    ($world:expr, $ids:expr, $name:expr, $text:expr) => {
        redacted($world, $ids).bind(|| insta::assert_snapshot!($name, $text))
    };
}

/// Wine mostly forgets what a process used when it has ended.
fn with_usage(card: String) -> String {
    let line = |line: &str| match line.trim_start().starts_with("ran ") && !line.contains("of CPU") {
        true => format!("{line}, 0.0 s of CPU, 0.0 MiB at most\n"),
        false => format!("{line}\n"),
    };
    if hearback_tests::scaled(false, true) { card.lines().map(line).collect() } else { card }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Launches a fixture that ends at once, and waits for it.
#[track_caller]
fn ended(world: &World, code: &str) -> String {
    let id = world.launch(args!["--", bin("exit-with"), code]);
    assert_eq!(world.run(["wait", &id]).code.unwrap().to_string(), code);
    id
}

#[track_caller]
fn failed(ran: &Ran, code: i32) -> &str {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
    ran.stderr.trim()
}

/// How many characters two ids have in common at their beginning, and how many at their end.
fn in_common(a: &str, b: &str) -> (usize, usize) {
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.take_while(|(a, b)| a == b).count();
    (same(&mut a.chars().zip(b.chars())), same(&mut a.chars().rev().zip(b.chars().rev())))
}

#[test]
fn scenario_41_a_beginning_or_an_end_names_a_job_if_it_is_unique_and_long_enough() {
    let world = World::new();
    // Ids begin with the time: two in a row begin alike, unless the first was the last of nine hours.
    let (one, other) = loop {
        let (one, other) = (ended(&world, "0"), ended(&world, "3"));
        if in_common(&one, &other).0 >= 4 {
            break (one, other);
        }
    };
    let (first, last) = in_common(&one, &other);
    let last = last.max(3);
    let unique = [
        &one[..=first],
        &one[16 - last - 1..],
        &one[9..],
        &one[1..].to_uppercase()[8..],
        &one.to_uppercase(),
        &one,
    ]
    .map(str::to_owned);
    for name in unique {
        assert_eq!(world.show(&name)["id"], one.as_str(), "{name}");
        world.run(["wait", &name]).ok();
        world.run(["logs", &name]).ok();
    }

    let ambiguous = &one[..first];
    let short = &one[13..];
    let unknown = "zzzzzzzz";
    for command in ["show", "logs", "wait"] {
        let both = world.run([command, ambiguous]);
        let told = failed(&both, 1);
        assert!(told.contains(&one) && told.contains(&other), "{told}");
        assert!(told.ends_with("tip: type more characters of the id"), "{told}");
        let told = world.run([command, short]);
        assert!(
            failed(&told, 1)
                .starts_with(&format!("error: no job has the label `{short}`, and a part of an id has")),
            "{told:?}"
        );
        assert!(told.stderr.contains("\ntip: "), "{told:?}");
        let told = world.run([command, unknown]);
        assert!(
            failed(&told, 1).starts_with("error: no job `zzzzzzzz`\ntip: `hearback list --all`"),
            "{told:?}"
        );
        for nonsense in ["../../etc", "0000000000000000x", "", "jóbs"] {
            let told = world.run([command, nonsense]);
            assert!(failed(&told, 1).contains("\ntip: "), "{told:?}");
        }
    }
}

#[test]
fn another_sessions_job_is_not_found_by_any_name() {
    let world = World::new();
    let id = world.launch(args!["--session", "mine", "--", bin("exit-with"), "0"]);
    world.run(["wait", "--session", "mine", &id]).ok();
    for name in [&id, &id[9..]] {
        for command in ["show", "logs", "wait"] {
            let mut other = world.command([command, name]);
            other.env("HEARBACK_SESSION", "other");
            assert!(failed(&run(other), 1).starts_with(&format!("error: no job `{name}`")));
            assert_eq!(world.run([command, name, "--session", "other"]).code, Some(1));
            let mut all = world.command([command, name, "--all-sessions"]);
            all.env("HEARBACK_SESSION", "other");
            run(all).ok();
        }
    }
}

#[test]
fn scenario_65_wait_passes_the_code_on() {
    let world = World::new();
    let [zero, three, four] = ["0", "3", "4"].map(|code| ended(&world, code));
    let code = |args: &[&str]| world.run(["wait"].iter().chain(args)).code;
    assert_eq!(code(&[&zero]), Some(0));
    assert_eq!(code(&[&three]), Some(3));
    assert_eq!(code(&[&zero, &zero]), Some(0));
    // The first that is not zero, in the order of the arguments and not of the ends.
    assert_eq!(code(&[&zero, &four, &three]), Some(4));
    assert_eq!(code(&[&three, &four]), Some(3));
    assert_eq!(code(&["--any", &four, &three]), Some(4));
    assert_eq!(code(&["--any", &zero, &three]), Some(0));
    // A timeout of zero is enough for a job that has ended.
    assert_eq!(code(&["--timeout", "0s", &three]), Some(3));
    assert_eq!(world.show(&three)["state"], "failed");
    assert_eq!(world.show(&three)["outcome"], json!({"kind": "exited", "code": 3}));

    let launch = |code: &str| world.run(args!["launch", "--wait", "--", bin("exit-with"), code]);
    assert_eq!((launch("0").code, launch("3").code, launch("255").code), (Some(0), Some(3), Some(255)));
    assert_eq!(world.run(["launch", "--wait", "--", "no-such-program-here"]).code, Some(127));

    for (args, expected) in [
        (&["zzzzzzzz"][..], 1),
        (&[], 2),
        (&["--timeout", "soon", &zero], 2),
        (&["--no-such-option", &zero], 2),
    ] {
        let ran = world.run(["wait"].iter().chain(args));
        failed(&ran, expected);
    }
}

#[test]
fn scenario_65_a_death_by_signal_is_128_and_the_signal() {
    let world = World::new();
    let died = |signal: u32| {
        let number = signal.to_string();
        let command = args!["--", bin("exit-with"), "0", "--signal", number];
        let ran = world.run([&args!["launch", "--wait", "--json"][..], &command].concat());
        let job: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(world.run(["wait", job["id"].as_str().unwrap()]).code, ran.code);
        assert_eq!(job["state"], "failed", "{job}");
        (ran.code.unwrap().cast_unsigned(), job["outcome"].clone())
    };
    if cfg!(windows) {
        // What a crash there is has a number of its own, which is the code.
        let code = 0xc000_0409_u32;
        assert_eq!(died(6), (code, json!({"kind": "exited", "code": code})));
        if hearback_tests::is_wine() {
            hearback_tests::skipped("Wine ends a process that runs out of stack with the code 0");
        } else {
            let code = 0xc000_00fd_u32;
            assert_eq!(died(11), (code, json!({"kind": "exited", "code": code})));
        }
    } else {
        for signal in [9, 15, 6] {
            let (code, outcome) = died(signal);
            assert_eq!(code, 128 + signal);
            assert_eq!((&outcome["kind"], &outcome["signal"]), (&json!("signaled"), &json!(signal)));
        }
    }
}

#[test]
fn scenario_65_a_wait_that_gives_up_or_wants_any_leaves_the_rest_running() {
    let world = World::new();
    let go = world.scratch("go");
    let held = world.launch(args!["--", bin("hold"), go, "--code", "6"]);
    let five = ended(&world, "5");
    let code = |args: &[&str]| world.run(["wait"].iter().chain(args)).code;
    assert_eq!(code(&["--timeout", "100ms", &held]), Some(75));
    assert_eq!(code(&["--timeout", "0s", &held]), Some(75));
    assert_eq!(code(&["--timeout", "100ms", &five, &held]), Some(75), "all of them were wanted");
    assert_eq!(code(&["--any", &held, &five]), Some(5));
    assert_eq!(code(&["--any", "--timeout", "1h", &held, &five]), Some(5));
    assert_eq!(world.show(&held)["state"], "running");
    fs_err::write(&go, "").unwrap();
    assert_eq!(code(&["--any", &held]), Some(6));
    assert_eq!(code(&["--timeout", "1h", &five, &held]), Some(5));
}

#[test]
fn wait_prints_one_object_a_line_as_jobs_end() {
    let world = World::new();
    let go = world.scratch("go");
    let held = world.launch(args!["--label", "two\nlines", "--", bin("hold"), go, "--code", "6"]);
    let five = ended(&world, "5");
    let mut command = world.command(["wait", "--json", &held, &five]);
    let mut child = KillOnDrop(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut printed = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&printed.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["id"], five.as_str());
    fs_err::write(&go, "").unwrap();
    let last = next();
    assert_eq!((&last["id"], &last["outcome"]["code"]), (&json!(held), &json!(6)));
    assert!(printed.next().is_none());
    assert_eq!(child.0.wait().unwrap().code(), Some(6));
    let schema = schema(&world);
    conforms(&schema, "job", &last);
}

#[test]
fn scenario_27_every_new_process_sees_the_job_alive_and_then_ended() {
    let world = World::new();
    let (go, witness) = (world.scratch("go"), world.scratch("witness"));
    let id = world.launch(args!["--", bin("hold"), go, "--code", "6", "--witness", witness]);
    eventually("the job has started", || (!lines(&witness).is_empty()).then_some(()));
    let listed =
        |state: &str| world.json(["list", "--json", "--state", state])["jobs"].as_array().unwrap().len();
    for _ in 0..3 {
        assert_eq!(world.show(&id)["state"], "running");
        assert_eq!((listed("running"), listed("failed"), listed("done")), (1, 0, 0));
        assert_eq!(world.run(["wait", "--timeout", "0s", &id]).code, Some(75));
        world.run(["reconcile"]).ok();
    }
    let waiting = |args: &[&str]| {
        let mut command = world.command(["wait", "--json"].iter().chain(args));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = KillOnDrop(command.spawn().unwrap());
        let stdout = child.0.stdout.take().unwrap();
        (child, stdout)
    };
    let waits = [waiting(&[&id]), waiting(&["--timeout", "10m", &id]), waiting(&["--any", &id, &id[9..]])];
    fs_err::write(&go, "").unwrap();
    for (mut child, stdout) in waits {
        assert_eq!(child.0.wait().unwrap().code(), Some(6));
        let job: Value = serde_json::from_reader(stdout).unwrap();
        assert_eq!(job["outcome"], json!({"kind": "exited", "code": 6}));
    }
    // Without any interval: a command that looks now sees the end.
    assert_eq!(world.show(&id)["state"], "failed");
    assert_eq!((listed("running"), listed("failed"), listed("done")), (0, 1, 0));
    assert_eq!(world.run(["wait", &id]).code, Some(6));
    assert_eq!(world.run(["wait", "--timeout", "0s", &id]).code, Some(6));
}

#[test]
fn scenario_63_a_reader_sees_no_end_or_a_whole_one() {
    let world = World::new();
    let (mut looks, mut rounds) = (0, 0);
    while looks < 10_000 || rounds < 20 {
        let go = world.scratch(format!("go-{rounds}"));
        // A job whose follow-up is pending is not moved away when it ends.
        let id = world.launch(args!["--session", "s", "--", bin("hold"), go, "--code", "7"]);
        let end = world.job_dir(&id).join("end.json");
        let writer = std::thread::spawn(move || fs_err::write(go, ""));
        loop {
            looks += 1;
            match std::fs::read(&end) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => panic!("look {looks}: {error}"),
                Ok(bytes) => {
                    let end: Value = serde_json::from_slice(&bytes)
                        .unwrap_or_else(|error| panic!("look {looks}: {error} in {bytes:?}"));
                    assert_eq!(end["outcome"], json!({"kind": "exited", "code": 7}), "look {looks}");
                    assert_eq!(end["format"], 1, "look {looks}");
                    break;
                }
            }
        }
        writer.join().unwrap().unwrap();
        rounds += 1;
    }
}

/// What `hearback schema` prints.
pub(crate) fn schema(world: &World) -> Value {
    serde_json::from_str(&world.run(["schema"]).ok()).unwrap()
}

/// Asserts that a document has what the schema of its command requires, of the right types, and nothing else.
#[track_caller]
pub(crate) fn conforms(schema: &Value, command: &str, document: &Value) {
    if let Err(problem) = check(schema, &schema["properties"][command], document) {
        panic!("{command}: {problem}\n{document}");
    }
}

/// The same for a part of the schema.
#[track_caller]
pub(crate) fn conforms_to(schema: &Value, part: &Value, document: &Value) {
    if let Err(problem) = check(schema, part, document) {
        panic!("{problem}\n{document}");
    }
}

/// A schema with the fields of both. Without fields in one of them, it is the second.
fn of_both(one: &Value, other: &Value) -> Value {
    let mut both = other.clone();
    if let (Some(own), Some(more)) = (one["properties"].as_object(), other["properties"].as_object()) {
        both["properties"] =
            own.iter().chain(more).map(|(name, field)| (name.clone(), field.clone())).collect();
        let required = [one, other].map(|one| one["required"].as_array().cloned().unwrap_or_default());
        both["required"] = required.concat().into();
    }
    both
}

fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let definition = reference.strip_prefix("#").and_then(|pointer| root.pointer(pointer));
        let definition = definition.ok_or_else(|| format!("no definition {reference}"))?;
        return check(root, &of_both(schema, definition), value);
    }
    if let (Some(choices), true) = (schema["oneOf"].as_array(), schema["properties"].is_object()) {
        // Each choice has the fields that all have.
        let mut common = schema.clone();
        common.as_object_mut().unwrap().remove("oneOf");
        let is_one = |choice: &&Value| check(root, &of_both(&common, choice), value).is_ok();
        return match choices.iter().filter(is_one).count() {
            1 => Ok(()),
            n => Err(format!("{value} is {n} of {choices:?}")),
        };
    }
    for (several, exactly_one) in [("anyOf", false), ("oneOf", true)] {
        if let Some(choices) = schema[several].as_array() {
            let right = choices.iter().filter(|choice| check(root, choice, value).is_ok()).count();
            if right == 0 || (exactly_one && right > 1) {
                return Err(format!("{value} is {right} of {choices:?}"));
            }
        }
    }
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => panic!("the schema speaks of {other}"),
    };
    let right_kind = match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().any(|kind| is(kind.as_str().unwrap())),
        _ => true,
    };
    if !right_kind || schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{value} is not {schema}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            return Err(format!("{name} is missing in {value}"));
        }
    }
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for (name, field) in fields {
            let known = properties.get(name).ok_or_else(|| format!("{name} is not in the schema"))?;
            check(root, known, field)?;
        }
    }
    for item in value.as_array().into_iter().flatten().filter(|_| schema.get("items").is_some()) {
        check(root, &schema["items"], item)?;
    }
    Ok(())
}

#[test]
fn the_schema_is_a_contract() {
    let world = World::new();
    let schema = schema(&world);
    insta::assert_snapshot!("schema", pretty(&schema));
    // The checker of these tests notices what is wrong.
    let job = ended(&world, "3");
    let right = world.show(&job);
    conforms(&schema, "job", &right);
    for (name, wrong) in
        [("state", json!("asleep")), ("pid", json!("7")), ("extra", json!(1)), ("id", json!(null))]
    {
        let mut document = right.clone().into_json();
        document[name] = wrong;
        assert!(check(&schema, &schema["properties"]["job"], &document).is_err(), "{name}");
    }
    assert!(check(&schema, &schema["properties"]["job"], &json!({"format": 1})).is_err());
}

#[test]
fn documents_are_as_the_schema_says() {
    let world = World::new();
    let schema = schema(&world);
    let (here, go) = (world.scratch("here"), world.scratch("go"));
    fs_err::create_dir(&here).unwrap();
    let launch = args!["launch", "--json", "-C", here, "--label", "a label", "--", bin("hold"), go];
    let launched = world.json(&launch);
    conforms(&schema, "launch", &launched);
    same_as_stored!(&world, &[], "launch_json", pretty(&launched));
    fs_err::write(&go, "").unwrap();
    world.run(["wait", launched["id"].as_str().unwrap()]).ok();

    let launch = args!["--session", "s", "-C", here, "--", bin("exit-with"), "3", "--print", "hello"];
    let id = &world.launch(launch);
    assert_eq!(world.run(["wait", id]).code, Some(3));
    let shown = world.show(id);
    conforms(&schema, "job", &shown);
    let mut stored = shown.clone().into_json();
    if hearback_tests::scaled(false, true) {
        // Wine forgets what a process used when it has ended.
        stored["usage"] = json!({"peak_memory_bytes": 1, "system_ms": 1, "user_ms": 1});
    }
    same_as_stored!(&world, &[], "show_json", pretty(&stored));

    let failed = world.run(["launch", "--json", "--", "no-such-program-here"]);
    assert_eq!(failed.code, Some(127));
    conforms(&schema, "job", &serde_json::from_str(&failed.stdout).unwrap());
    let mut shell = world.command(["launch", "--wait", "--json", "--notify", "never", "--shell", "exit 0"]);
    shell.current_dir(world.scratch(""));
    let shell = run(shell);
    conforms(&schema, "job", &serde_json::from_str(&shell.ok()).unwrap());

    let listed = world.json(["list", "--json"]);
    conforms(&schema, "list", &listed);
    let states: Vec<_> = listed["jobs"].as_array().unwrap().iter().map(|job| &job["state"]).collect();
    assert_eq!(states, ["done", "failed", "failed", "done"], "newest first");
    assert_eq!(listed["jobs"][2], shown, "one shape everywhere");
    conforms(&schema, "list", &world.json(["list", "--json", "--session", "empty"]));

    let logs = world.json(["logs", "--json", id]);
    conforms(&schema, "logs", &logs);
    same_as_stored!(&world, &[], "logs_json", pretty(&logs));
    conforms(&schema, "doctor", &world.json(["doctor", "--json"]));
}

#[test]
fn prune_says_what_is_gone() {
    let world = World::new();
    let schema = schema(&world);
    let ids = [ended(&world, "0"), ended(&world, "1")];
    let would = world.json(["prune", "--json", "--dry-run", "--max-jobs", "0"]);
    conforms(&schema, "prune", &would);
    same_as_stored!(&world, &[], "prune_json", pretty(&would));
    assert_eq!(would["pruned"], json!(ids), "oldest first");
    assert_eq!(world.json(["list", "--json"])["jobs"].as_array().unwrap().len(), 2);
    let did = world.json(["prune", "--json", "--max-jobs", "0"]);
    conforms(&schema, "prune", &did);
    assert_eq!((&did["pruned"], &did["dry_run"]), (&json!(ids), &json!(false)));
    assert_eq!(world.json(["list", "--json", "--all"])["jobs"], json!([]));
    assert_eq!(world.run(["prune"]).ok(), "");
}

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let help = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("COLUMNS", "100");
        run(command)
    };
    same_as_stored!(&world, &[], "help", help(&["--help"]).ok());
    let commands = [
        "launch",
        "ask",
        "results",
        "list",
        "show",
        "logs",
        "wait",
        "kill",
        "write",
        "followups",
        "turn",
        "send",
        "sessions",
        "inbox",
        "monitor",
        "agent",
        "sink",
        "plugin",
        "mcp",
        "serve",
        "reconcile",
        "prune",
        "settings",
        "doctor",
        "schema",
        "completions",
        "timeline",
        "events",
        "top",
    ];
    for command in commands {
        let long = help(&[command, "--help"]).ok();
        same_as_stored!(&world, &[], format!("help_{command}"), &long);
        assert_eq!(help(&["help", command]).ok(), long);
    }
    let listed = help(&["--help"]).ok();
    let listed = BTreeSet::from_iter(listed_commands(&listed));
    assert_eq!(listed, BTreeSet::from(commands), "a command without a stored help");
    assert!(help(&["help", "exit-codes"]).ok().contains("124    the job reached its time limit"));
    assert!(help(&["--version"]).ok().starts_with("hearback "));
    // Without a command it is said on stderr, and is no success.
    assert!(failed(&help(&[]), 2).contains("Usage: hearback"));
}

#[test]
fn completions_know_the_commands() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        // What there is to complete is asked for when it is needed.
        let script = world.run(["completions", shell]).ok();
        assert!(script.contains("hearback") && script.contains("_HEARBACK_COMPLETE"), "{shell}: {script}");
    }
    // As a file of zsh's `fpath` it completes the first time, too.
    let zsh = world.run(["completions", "zsh"]).ok();
    assert!(zsh.contains("$funcstack[1] == _hearback") && zsh.starts_with("#compdef hearback"), "{zsh}");
    failed(&world.run(["completions", "tcsh"]), 2);
    // Neither needs a store.
    assert!(!world.home().exists());
}

#[test]
fn people_see_a_table_and_a_card() {
    let world = World::new();
    assert!(failed(&world.run(["list"]), 0).ends_with("; try: hearback launch -- sleep 5"));
    let go = world.scratch("go");
    let launch = |args: &[OsString]| {
        let mut command = world.command(["launch"].map(OsString::from).iter().chain(args));
        command.current_dir(world.scratch(""));
        let ran = run(command);
        ran.stdout.trim().to_owned()
    };
    let printing = args!["--session", "s", "--", bin("exit-with"), "3", "--print", "it's done"];
    let three = launch(&printing);
    world.run(["wait", &three]);
    let done = launch(&args!["--label", "größe 日本", "--", bin("exit-with"), "0"]);
    world.run(["wait", &done]).ok();
    let unstarted = launch(&args!["--", "no-such-program-here", "a b", ""]);
    let shell = launch(&args!["--shell", "exit 0\n# two lines"]);
    world.run(["wait", &shell]).ok();
    let held = launch(&args!["--session", "s", "--", bin("hold"), go]);

    let ids = [&three, &done, &unstarted, &shell, &held].map(String::as_str);
    same_as_stored!(&world, &ids, "list", world.run(["list"]).ok());
    same_as_stored!(&world, &ids, "list_of_session", world.run(["list", "--session", "s"]).ok());
    same_as_stored!(&world, &ids, "show_running", world.run(["show", &held]).ok());
    same_as_stored!(&world, &ids, "show_failed", with_usage(world.run(["show", &three]).ok()));
    same_as_stored!(&world, &ids, "show_unstarted", world.run(["show", &unstarted]).ok());
    same_as_stored!(&world, &ids, "wait_one", world.run(["wait", &three]).stdout);
    same_as_stored!(&world, &ids, "wait_several", world.run(["wait", &three, &done]).stdout);
    fs_err::write(&go, "").unwrap();
    world.run(["wait", &held]).ok();
    let empty = world.run(["list", "--session", "empty"]);
    assert_eq!(
        failed(&empty, 0),
        "no jobs in session `empty`; --all-sessions shows the jobs of every session"
    );
}

#[test]
fn errors_say_what_failed_and_what_to_try() {
    let world = World::new();
    let id = ended(&world, "0");
    world.launch(args!["--key", "k", "--", bin("exit-with"), "0"]);
    let settings = redacted(&world, &[&id]);
    let _bound = settings.bind_to_scope();
    let told = |args: &[OsString]| world.run(args).stderr;
    insta::assert_snapshot!(told(&args!["show", "zzzzzzzz"]), @r"
    error: no job `zzzzzzzz`
    tip: `hearback list --all` lists the jobs; with a session, add `--all-sessions` for those of others
    ");
    insta::assert_snapshot!(told(&args!["logs", "abc"]), @r"
    error: no job has the label `abc`, and a part of an id has at least 4 characters
    tip: `hearback list` shows the jobs and their ids
    ");
    insta::assert_snapshot!(told(&args!["launch", "--", "no-such-program-here"]), @r"
    error: job `[-------id-----]` could not be started
      cause: `no-such-program-here` was not found on the PATH
    tip: for shell syntax such as pipes or built-ins, use `--shell 'TEXT'`
    ");
    insta::assert_snapshot!(told(&args!["launch", "--key", "k", "--", "other"]), @r"
    error: key `k` already names job `[-------id-----]`, which has another command, directory, executor or kind
    tip: use another key, or see the job that has it: hearback show [-------id-----]
    ");
    let nameless = told(&args!["launch", "-e", "=1", "--", "x"]);
    insta::assert_snapshot!(nameless, @"error: `=1` names no variable: use NAME=VALUE or NAME");
}

#[test]
fn logs_are_what_was_printed_whole_or_in_part() {
    let world = World::new();
    // Its last line is cut short, and is one all the same.
    const SIZE: usize = 5 * 1024 * 1024 + 40;
    let id = world.launch(args!["--", bin("print"), "--bytes", SIZE.to_string()]);
    world.run(["wait", &id]).ok();
    let logs = |args: &[&str]| {
        let output = world.command(["logs", &id].iter().chain(args)).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {:?}", output.stderr);
        output.stdout
    };
    let whole =
        std::process::Command::new(bin("print")).args(["--bytes", &SIZE.to_string()]).output().unwrap();
    let whole = whole.stdout;
    assert_eq!(whole.len(), SIZE);
    assert!(logs(&[]) == whole, "the whole log differs");
    let parts: &[(&[&str], &[u8])] = &[
        (&["--head", "0"], &[]),
        (&["--head", "1"], &whole[..80]),
        (&["--head", "3"], &whole[..240]),
        (&["--head", "10000000"], &whole),
        (&["--tail", "0"], &[]),
        (&["--tail", "1"], &whole[SIZE - 40..]),
        (&["-n", "3"], &whole[SIZE - 200..]),
        (&["--tail", "10000000"], &whole),
        (&["--offset", "0"], &whole),
        (&["--offset", "5242870"], &whole[5_242_870..]),
        (&["--offset", "5242920"], &[]),
        (&["--offset", "99999999999"], &[]),
    ];
    for (args, expected) in parts {
        assert!(logs(args) == *expected, "{args:?}");
    }
    for args in
        [["--head", "1", "--tail", "1"], ["--head", "1", "--offset", "1"], ["--tail", "1", "--offset", "1"]]
    {
        failed(&world.run(["logs", &id].iter().chain(&args)), 2);
    }

    // A document is bounded; read on from its end.
    let (mut offset, mut text, mut documents) = (0, String::new(), 0);
    while offset < SIZE as u64 {
        let document = world.json(["logs", "--json", &id, "--offset", &offset.to_string()]);
        assert_eq!((&document["offset"], &document["bytes"]), (&json!(offset), &json!(SIZE)));
        text += &log_text(&document);
        offset = document["end"].as_u64().unwrap();
        documents += 1;
    }
    assert!(text.as_bytes() == whole && documents > 1);
}

#[test]
fn logs_of_nothing_are_empty_and_of_a_running_job_what_there_is() {
    let world = World::new();
    let silent = ended(&world, "0");
    for part in [&[][..], &["--head", "5"], &["--tail", "5"], &["--offset", "5"]] {
        let ran = world.run(["logs", &silent].iter().chain(part));
        assert_eq!((ran.ok().as_str(), ran.stderr.as_str()), ("", ""));
    }
    let document = world.json(["logs", "--json", &silent]);
    assert_eq!((&document["bytes"], &document["parts"]), (&json!(0), &json!([])));

    let go = world.scratch("go");
    let held = world.launch(args!["--", bin("hold"), go, "--print", "so far"]);
    eventually("it has printed", || (world.run(["logs", &held]).ok() == "so far").then_some(()));
    assert_eq!(world.show(&held)["output"]["bytes"], 7);
    fs_err::write(&go, "").unwrap();
    world.run(["wait", &held]).ok();

    let unstarted = world.run(["launch", "--", "no-such-program-here"]);
    assert_eq!(world.run(["logs", unstarted.stdout.trim()]).ok(), "");
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let world = World::new();
    let big = world.launch(args!["--", bin("print"), "--bytes", "5000000"]);
    world.run(["wait", &big]).ok();
    for args in [&["logs", &big][..], &["logs", "--json", &big], &["list"], &["list", "--json"], &["schema"]]
    {
        let mut command = world.command(args);
        let mut child = KillOnDrop(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut line = Vec::new();
        // And closes the pipe after the first line, as `head -1` does.
        BufReader::with_capacity(128, child.0.stdout.take().unwrap()).read_until(b'\n', &mut line).unwrap();
        assert!(!line.is_empty(), "{args:?}");
        let stderr = std::io::read_to_string(child.0.stderr.take().unwrap()).unwrap();
        assert_eq!((child.0.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_reader_that_is_gone_does_not_change_the_exit_code() {
    let world = World::new();
    let three = ended(&world, "3");
    let launch = |wait: &[&str], code: &str| {
        let words = ["launch"].iter().chain(wait).chain(&["--"]).map(OsString::from);
        words.chain(args![bin("exit-with"), code]).collect::<Vec<_>>()
    };
    for (args, code, said) in [
        (args!["wait", three].to_vec(), 3, ""),
        (args!["wait", "--json", three].to_vec(), 3, ""),
        (launch(&[], "5"), 0, ""),
        (launch(&["--json"], "5"), 0, ""),
        (launch(&["--wait"], "5"), 5, "failed: exit code 5"),
        (launch(&["--wait", "--quiet"], "5"), 5, ""),
        (launch(&["--wait", "--json"], "5"), 5, ""),
        (args!["launch", "--", "no-such-program-here"].to_vec(), 127, "error: job"),
        (args!["launch", "--json", "--", "no-such-program-here"].to_vec(), 127, "error: job"),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = world.command(&args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(stderr.starts_with(said) && (said.is_empty() == stderr.is_empty()), "{args:?}: {stderr}");
    }
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"].as_array().unwrap().len(), 8);
}

#[test]
fn colour_is_for_terminals_and_on_request() {
    let world = World::new();
    let id = ended(&world, "3");
    let coloured = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = world.command(args);
        command.envs(variables.iter().copied()).env_remove("CLICOLOR_FORCE");
        let output = command.output().unwrap();
        output.stdout.contains(&0x1b) || output.stderr.contains(&0x1b)
    };
    for args in [&["list"][..], &["show", &id], &["show", "zzzzzzzz"]] {
        let with = |color: &'static str| [args, &["--color", color]].concat();
        assert!(!coloured(args, &[]), "{args:?}");
        assert!(!coloured(&with("auto"), &[]), "{args:?}");
        assert!(coloured(&with("always"), &[]), "{args:?}");
        assert!(coloured(&with("always"), &[("NO_COLOR", "1")]), "what was typed wins: {args:?}");
        assert!(!coloured(&with("never"), &[]), "{args:?}");
    }
    // Programs and logs never get any.
    assert!(!coloured(&["list", "--json", "--color", "always"], &[]));
    assert!(!coloured(&["logs", &id, "--color", "always"], &[]));
    failed(&world.run(["list", "--color", "sometimes"]), 2);
}

/// Text that a terminal would obey, in every way that is known to work on one.
const HOSTILE: &str = "a\u{1b}[31mred\u{1b}]0;title\u{7}b\u{8}c\rd\u{9b}2Je\u{202e}f\u{2066}g\u{7f}h\u{0b}i\
                       \u{1b}Pq\u{1b}\\j\u{1b}cz";

/// The text contains nothing that a terminal would obey.
#[track_caller]
fn is_tame(text: &str) {
    let is_wild = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let wild: Vec<char> = text.chars().filter(|c| is_wild(*c)).collect();
    assert!(wild.is_empty(), "{wild:?} in {text:?}");
}

#[test]
fn what_is_shown_cannot_take_over_a_terminal() {
    let world = World::new();
    let argument = format!("{HOSTILE}\ndone: exit code 0");
    let launch = ["launch", "--session", HOSTILE, "--label", HOSTILE, "--"].map(OsString::from);
    let launch =
        launch.into_iter().chain(args![bin("exit-with"), "3", "--print", argument, "--eprint", HOSTILE]);
    let id = world.run(launch).ok();
    world.run(["wait", &id]);
    // With colours, so that nothing is removed on the way into this pipe that a terminal would get to see.
    let shown = |args: &[&str]| {
        let output = world.command(args).args(["--color", "always"]).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        // Our own.
        ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[36m"]
            .iter()
            .fold(text, |text, ours| text.replace(ours, ""))
    };
    for args in [&["list"][..], &["show", &id], &["wait", &id], &["list", "--session", HOSTILE]] {
        let text = shown(args);
        is_tame(&text);
        assert!(!text.lines().any(|line| line.starts_with("done: exit code 0")), "{text}");
    }
    let table = shown(&["list"]);
    assert_eq!(table.lines().count(), 2, "one line a job: {table}");
    for args in [
        &["list", "--json"][..],
        &["show", "--json", &id],
        &["wait", "--json", &id],
        &["logs", "--json", &id],
        &["show", HOSTILE],
        &["list", "--session", "\u{1b}[2J empty"],
        &["launch", "--", HOSTILE],
        &["launch", "-C", HOSTILE, "--", "x"],
    ] {
        is_tame(&shown(args));
    }
    // Programs get it as it was.
    let job = world.show(&id);
    assert_eq!((&job["label"], &job["session"]), (&json!(HOSTILE), &json!(HOSTILE)));
    assert_eq!(job["command"]["argv"][3], argument.as_str());
    assert_eq!(log_text(&world.json(["logs", "--json", &id])), format!("{argument}\n{HOSTILE}\n"));
}

#[test]
fn bytes_pass_unchanged() {
    let world = World::new();
    let expected = b"\x00\x01\xff\xfe\x1b[31m\r\n\x80 no newline";
    let hex: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = world.launch(args!["--", bin("print"), "--hex", hex]);
    world.run(["wait", &id]).ok();
    for color in ["always", "never"] {
        let logs = world.command(["logs", &id, "--color", color]).output().unwrap();
        assert_eq!(logs.stdout, expected);
    }
    let tail = world.command(["logs", &id, "--tail", "1"]).output().unwrap();
    assert_eq!(tail.stdout, b"\x80 no newline");
    assert_eq!(world.show(&id)["output"]["bytes"], expected.len());
}

#[test]
fn heads_in_a_pipe_get_what_they_want() {
    use std::io::{BufRead, BufReader, Read};
    let world = World::new();
    let id = world.launch(args!["--", bin("print"), "--bytes", "5000000"]);
    world.run(["wait", &id]).ok();
    let head = |args: &[&str]| {
        let mut command = world.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // The reader is gone: a quiet end.
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!((child.wait().unwrap().code(), complaint.as_str()), (Some(0), ""), "{args:?}");
        line
    };
    assert_eq!(head(&["logs", &id]).len(), 80);
    assert!(head(&["list"]).starts_with("STATE "));
    assert!(head(&["schema"]).starts_with('{'));
}

#[test]
fn a_reconcile_says_what_it_did() {
    let world = World::new();
    let schema = schema(&world);
    let id = world.launch(args!["-C", world.scratch(""), "--", bin("hold"), world.scratch("never")]);
    assert_eq!(world.json(["reconcile", "--json"])["steps"], json!([]));
    let supervisor = world.supervisor(&id);
    hearback_tests::kill_hard(supervisor);
    eventually("the supervisor is gone", || (!hearback_tests::alive(supervisor)).then_some(()));

    let would = world.json(["reconcile", "--json", "--dry-run"]);
    conforms(&schema, "reconcile", &would);
    assert_eq!(would["steps"], json!([{"id": id, "step": "lose"}]));
    let did = world.json(["reconcile", "--json"]);
    conforms(&schema, "reconcile", &did);
    same_as_stored!(&world, &[], "reconcile_json", pretty(&did));
    assert_eq!(world.json(["reconcile", "--json"])["steps"], json!([]));
    conforms(&schema, "job", &world.show(&id));
    same_as_stored!(&world, &[&id], "show_lost", world.run(["show", &id]).ok());
}

/// Runs hearback with an output that takes nothing.
fn run_into(mut command: Command, stdout: Option<Stdio>, stderr: Option<Stdio>) -> Ran {
    for (stream, put) in
        [(stdout, Command::stdout as fn(&mut Command, Stdio) -> &mut Command), (stderr, Command::stderr)]
    {
        stream.map(|stream| put(&mut command, stream));
    }
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// A pipe without a reader.
pub(crate) fn unread() -> Option<Stdio> {
    Some(io::pipe().unwrap().1.into())
}

/// A place where nothing can be written for lack of room.
struct Full {
    path: PathBuf,
    #[cfg(windows)]
    _disk: hearback_tests::Mount,
}

impl Full {
    #[cfg(unix)]
    fn new(_world: &World) -> Option<Full> {
        Some(Full { path: "/dev/full".into() })
    }

    /// Nothing, with the reason printed, where no disk can be made for it.
    #[cfg(windows)]
    fn new(world: &World) -> Option<Full> {
        let mut full = None;
        hearback_tests::with_private_mounts(|| {
            let disk = world.scratch("disk");
            fs_err::create_dir(&disk).unwrap();
            let mount = hearback_tests::Mount::new("tmpfs", "size=4k", &disk);
            let path = disk.join("output");
            fs_err::write(&path, "").unwrap();
            fs_err::write(disk.join("filling"), [0; 4096]).unwrap();
            full = Some(Full { path, _disk: mount });
        });
        full
    }

    fn stream(&self) -> Option<Stdio> {
        Some(fs_err::File::options().append(true).open(&self.path).unwrap().into_parts().0.into())
    }
}

#[test]
fn a_closed_or_full_output_is_no_crash() {
    let world = World::new();
    let full = Full::new(&world);
    let id = world.launch(args!["--", bin("exit-with"), "3", "--print", "hello"]);
    world.run(["wait", &id]);
    let commands: [(&[&str], i32); 12] = [
        (&["list"], 0),
        (&["list", "--json"], 0),
        (&["show", &id], 0),
        (&["show", "--json", &id], 0),
        (&["logs", &id], 0),
        (&["logs", "--json", &id], 0),
        (&["wait", &id], 3),
        (&["wait", "--json", &id], 3),
        (&["reconcile", "--json"], 0),
        (&["prune", "--json"], 0),
        (&["schema"], 0),
        (&["completions", "bash"], 0),
    ];
    for (args, code) in commands.into_iter().step_by(scaled(1, 2)) {
        for (stdout, stderr) in [(unread(), None), (None, unread()), (unread(), unread())] {
            let ran = run_into(world.command(args), stdout, stderr);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{args:?}");
        }
        for closed in [">&-", "2>&-", "<&-", "<&- >&- 2>&-"] {
            let Some(ran) = with_closed(&world, args, closed) else { continue };
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{args:?} {closed}");
        }
        let Some(full) = &full else { continue };
        let ran = run_into(world.command(args), full.stream(), None);
        assert_eq!(ran.code, Some(125), "{args:?}: {ran:?}");
        assert!(
            ran.stderr.starts_with("error: the output cannot be written\n  cause: "),
            "{args:?}: {ran:?}"
        );
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        // Not even the error can be printed.
        let ran = run_into(world.command(args), full.stream(), full.stream());
        assert_eq!(ran.code, Some(125), "{args:?}: {ran:?}");
    }
}

/// Runs hearback with streams that a shell has closed, where one can: under Wine its host has a shell, whose programs
/// begin without them.
fn with_closed(world: &World, args: &[&str], closed: &str) -> Option<Ran> {
    #[cfg(unix)]
    {
        let mut command = Command::new("sh");
        world.settle(&mut command);
        let script = format!("exec \"$0\" \"$@\" {closed}");
        command.args(["-c", &script]).arg(bin("hearback")).args(args);
        Some(run(command))
    }
    #[cfg(windows)]
    {
        use hearback_tests::{is_wine, outside};
        // Each takes three programs, so one command shows it for all.
        let script = format!("exec env \"HEARBACK_HOME=$0\" wine \"$@\" {closed}");
        let (home, hearback) = (world.home().to_str().unwrap(), bin("hearback"));
        let words = [&["-c", &script, home, hearback.to_str().unwrap()], args].concat();
        (is_wine() && args[0] == "logs").then(|| outside::run("sh", &words))
    }
}

#[test]
fn a_launch_that_cannot_print_its_id_names_the_job_in_its_error() {
    let world = World::new();
    let Some(full) = Full::new(&world) else { return };
    for options in [&[][..], &["--json"], &["--wait"], &["--wait", "--json"]] {
        let words = ["launch"].iter().chain(options).chain(&["--"]).map(OsString::from);
        let words = words.chain(args![bin("exit-with"), "0"]);
        let ran = run_into(world.command(words), full.stream(), None);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        let id = ran.stderr.split('`').nth(1).unwrap_or_else(|| panic!("{ran:?}"));
        world.run(["wait", id]).ok();
    }
}

/// What a person sees on a terminal.
#[cfg(any(target_os = "linux", windows))]
mod terminal {
    use super::*;

    use std::process::Command;

    use hearback_tests::Terminal;

    fn screen(command: &Command) -> String {
        let ran = Terminal::run(command).finish();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    }

    #[test]
    fn launch_says_what_happens_next() {
        let world = World::new();
        let exit = args!["--", bin("exit-with"), "0"];
        let launch = |options: &[&str]| {
            let mut command = world.command(["--color", "never", "launch"]);
            command.args(options).args(&exit);
            screen(&command)
        };
        for (name, options) in [
            ("launch_unowned", &[][..]),
            ("launch_owned", &["--session", "s"]),
            ("launch_quiet", &["--quiet"]),
        ] {
            let text = launch(options);
            let id = text.lines().next().unwrap();
            same_as_stored!(&world, &[id], name, &text);
        }
        // A session that a sink will wake learns what that depends on.
        let config = world.home().join("config.toml");
        let notes = world.scratch("notes");
        fs_err::write(config, format!("[sink.notes]\nfile = '{}'\n", notes.display())).unwrap();
        let text = launch(&["--session", "s", "--sink", "notes"]);
        same_as_stored!(&world, &[text.lines().next().unwrap()], "launch_told", &text);
        // A caller that keeps the id for a script gets the text all the same; one that redirects both streams does not.
        let redirected = |how: &[OsString]| {
            let mut command = Command::new(bin("act"));
            world.settle(&mut command);
            command.args(how).args(args![bin("hearback"), "launch"]).args(&exit).arg(";");
            screen(&command)
        };
        let kept = redirected(&args!["run", world.scratch("id")]);
        assert!(kept.contains("started in the background"), "{kept}");
        assert!(!kept.contains(&lines(world.scratch("id"))[0]), "{kept}");
        assert_eq!(redirected(&args!["unheard"]), "");
    }

    #[test]
    fn colour_can_be_refused() {
        let world = World::new();
        let id = ended(&world, "3");
        let coloured = |args: &[&str], variables: &[(&str, &str)]| {
            let mut command = world.command(args);
            command.envs(variables.iter().copied());
            Terminal::run(&command).finish().stdout.contains('\u{1b}')
        };
        for command in [&["list"][..], &["show", &id], &["show", "zzzzzzzz"]] {
            assert!(coloured(command, &[]), "{command:?}");
            assert!(!coloured(command, &[("NO_COLOR", "1")]), "{command:?}");
            assert!(!coloured(command, &[("TERM", "dumb")]), "{command:?}");
            assert!(!coloured(&[&["--color", "never"], command].concat(), &[]), "{command:?}");
        }
        assert!(!coloured(&["list", "--json"], &[]));
    }

    #[test]
    fn a_table_fits_the_window() {
        let world = World::new();
        let id = world.launch(args!["--", bin("exit-with"), "0", "--print", "日本".repeat(60)]);
        world.run(["wait", &id]).ok();
        let list = world.command(["--color", "never", "list"]);
        let table = Terminal::with_columns(100, &list).finish().stdout;
        // Each of those characters is two columns wide.
        let width = |line: &str| line.chars().map(|c| if c > '\u{2fff}' { 2 } else { 1 }).sum::<usize>();
        assert!(table.lines().all(|line| width(line) <= 100), "{table}");
        assert_eq!(table.lines().count(), 2, "one line a job: {table}");
        assert!(table.lines().last().unwrap().ends_with('…'), "{table}");
    }

    #[test]
    fn a_document_is_laid_out_for_reading_and_stays_tame() {
        let world = World::new();
        let launch = ["launch", "--label", HOSTILE, "--"].map(OsString::from).into_iter();
        let id = world.run(launch.chain(args![bin("exit-with"), "0", "--print", HOSTILE])).ok();
        world.run(["wait", &id]).ok();
        for (command, place) in [
            (&["show", "--json", &id][..], "/label"),
            (&["list", "--json"], "/jobs/0/label"),
            (&["logs", "--json", &id], "/parts/0/text"),
        ] {
            let text = screen(&world.command(command));
            assert!(text.lines().count() > 3, "{text}");
            is_tame(&text);
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["format"], 1);
            // All of it is there to be read, so the terminal has obeyed none of it.
            assert_eq!(document.pointer(place).unwrap().as_str().unwrap().trim_end(), HOSTILE, "{text}");
        }
    }
}
