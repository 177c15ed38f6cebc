//! The settings in force, and where each comes from.

use fs_err as fs;
use hearback_tests::{World, bin, run};
use serde_json::{Value, json};

/// What `settings --json` says with these variables.
fn settings(world: &World, variables: &[(&str, &str)]) -> Value {
    let mut command = world.command(["settings", "--json"]);
    command.envs(variables.iter().copied());
    serde_json::from_str(&run(command).ok()).unwrap()
}

/// One of them.
fn one(settings: &Value, name: &str) -> Value {
    let all = settings["settings"].as_array().unwrap();
    all.iter().find(|setting| setting["name"] == name).unwrap().clone()
}

#[test]
fn scenario_89_each_setting_says_where_it_comes_from_and_a_bad_one_is_named() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    let nothing = settings(&world, &[]);
    let drain = json!({ "name": "drain_timeout", "value": "1m", "source": "default",
        "variable": "HEARBACK_DRAIN_TIMEOUT" });
    assert_eq!(one(&nothing, "drain_timeout"), drain);
    assert_eq!(one(&nothing, "busy")["value"], "queue");
    assert!(one(&nothing, "notice_sink").get("value").is_none(), "none is absent");
    assert!(nothing.get("warnings").is_none());

    fs::write(world.home().join("config.toml"), "busy = 'interrupt'\ndrain_timeout = '5s'\n").unwrap();
    let file = settings(&world, &[]);
    let named = fs::canonicalize(file["file"].as_str().unwrap()).unwrap();
    assert_eq!(named, fs::canonicalize(world.home().join("config.toml")).unwrap());
    assert_eq!(
        (&one(&file, "busy")["value"], &one(&file, "busy")["source"]),
        (&"interrupt".into(), &"file".into())
    );
    assert_eq!(one(&file, "drain_timeout")["value"], "5s");

    let both = settings(&world, &[("HEARBACK_BUSY", "queue"), ("HEARBACK_DRAIN_TIMEOUT", "0")]);
    assert_eq!(one(&both, "busy")["source"], "environment");
    assert_eq!(one(&both, "drain_timeout")["value"], "0s");

    let bad = settings(&world, &[("HEARBACK_BUSY", "panic"), ("HEARBACK_DRAIN_TIMEOUT", "-3s")]);
    assert_eq!(one(&bad, "busy")["value"], "interrupt", "what would hold without it does");
    assert_eq!(one(&bad, "drain_timeout")["value"], "0s", "less than zero is zero");
    let warnings = bad["warnings"].as_array().unwrap();
    for (warning, name) in warnings.iter().zip(["HEARBACK_BUSY", "HEARBACK_DRAIN_TIMEOUT"]) {
        assert!(warning.as_str().unwrap().contains(name), "{warnings:?}");
    }
    assert_eq!(warnings.len(), 2);

    let mut person = world.command(["settings"]);
    person.env("HEARBACK_BUSY", "panic").env("HEARBACK_RESUME_WINDOW", "2h");
    let person = run(person);
    let line = |name: &str| {
        let line = person.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("busy"), "busy interrupt file");
    assert_eq!(line("resume_window"), "resume_window 2h environment HEARBACK_RESUME_WINDOW");
    assert_eq!(line("default_sink"), "default_sink none default");
    assert!(person.stderr.contains("HEARBACK_BUSY"), "{}", person.stderr);
}

#[test]
fn what_is_wrong_in_the_file_is_named_with_its_place_and_the_rest_holds() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    fs::write(world.home().join("config.toml"), "busy = 'interrupt'\nmax_job = 5\nretention = 'soon'\n")
        .unwrap();
    let ran = world.run(["settings"]);
    let warnings: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("warning: `max_job` in "), "{warnings:?}");
    let place = "config.toml:2:1 is no setting and was ignored; did you mean `max_jobs`?";
    assert!(warnings[0].ends_with(place), "{warnings:?}");
    assert!(warnings[1].contains("config.toml:3:13 is `soon`"), "{warnings:?}");
    let busy = ran.stdout.lines().find(|line| line.starts_with("busy")).unwrap();
    assert!(busy.contains("interrupt"), "{busy}");
}

#[test]
fn a_sink_that_is_defined_wrongly_is_not_called_missing_and_the_list_says_which_can_be_used() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    let file = world.scratch("told.jsonl");
    let config = format!(
        "[sink.broken]\ncommand = 'x'\n[sink.here]\nfile = 'told.jsonl'\n[sink.file]\nfile = '{}'\n\
         [sink.gone]\ncommand = ['no-such-program-here']\n[sink.resume]\ncommand = ['{}', '{{session}}']\n",
        file.display(),
        bin("exit-with").display(),
    );
    fs::write(world.home().join("config.toml"), config).unwrap();
    for words in [
        &["launch", "--sink", "broken", "--", "x"][..],
        &["send", "--session", "s", "--sink", "broken", "hello"],
        &["sink", "test", "broken"],
    ] {
        let ran = world.run(words);
        assert_eq!(ran.code, Some(2), "{words:?}: {ran}");
        let error = ran.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(error.starts_with("error: sink `broken` is defined, but invalid: "), "{words:?}: {ran}");
        assert!(error.contains("config.toml:2:11: `command`: expected a sequence"), "{words:?}: {ran}");
        assert!(ran.stderr.contains("tip: correct it there"), "{words:?}: {ran}");
    }
    let missing = world.run(["launch", "--sink", "nope", "--", "x"]);
    assert!(missing.stderr.contains("error: there is no sink `nope`"), "{missing}");

    let listed = world.json(["sink", "list", "--json"]);
    let of = |name: &str| {
        let details = listed["details"].as_array().unwrap();
        details.iter().find(|sink| sink["name"] == name).unwrap().clone()
    };
    assert_eq!(of("file"), json!({ "name": "file", "usable": true, "needs_session": false }));
    assert_eq!(of("resume"), json!({ "name": "resume", "usable": true, "needs_session": true }));
    let gone = "`no-such-program-here` was not found on the PATH";
    assert_eq!(
        of("gone"),
        json!({ "name": "gone", "usable": false, "problem": gone, "needs_session": false })
    );
    assert_eq!(of("claude")["needs_session"], true);
    for (name, what) in [("broken", "expected a sequence"), ("here", "`file` has to be an absolute path")] {
        let problem = of(name)["problem"].as_str().unwrap().to_owned();
        assert!(problem.starts_with("it is invalid: ") && problem.contains(what), "{name}: {problem}");
        assert!(!listed["sinks"].as_array().unwrap().iter().any(|sink| sink == name), "{name} is no sink");
    }
    let names = world.run(["sink", "list"]).ok();
    assert!(names.lines().any(|line| line == "gone"), "a script reads the names alone: {names}");
}
