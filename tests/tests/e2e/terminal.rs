//! What a person at a terminal relies on: tables that fit, waits that live, names that are easy to type.

use std::collections::BTreeSet;
use std::ffi::OsString;

use hearback_tests::{Outbox, World, args, bin, eventually, run};
use serde_json::Value;

/// Launches a fixture that ends at once, and waits for it.
#[track_caller]
fn ended(world: &World, options: &[&str], fixture: &[OsString]) -> String {
    let id = world.launch(options.iter().map(OsString::from).chain(args!["--"]).chain(fixture.to_vec()));
    world.run(["wait", "--all-sessions", &id]);
    id
}

fn ids(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn scenario_147_a_list_that_is_cut_says_so_and_how_to_see_the_rest() {
    let world = World::new();
    let launched: BTreeSet<String> =
        (0..23).map(|_| ended(&world, &["--quiet"], &args![bin("exit-with"), "0"])).collect();
    // Not all of them may have moved to history yet, where the limit begins to count.
    eventually("all are in history", || {
        let open = fs_err::read_dir(world.home().join("jobs")).unwrap().count();
        world.run(["reconcile"]).ok();
        (open == 0).then_some(())
    });
    let listed = world.run(["list"]);
    assert!(listed.stderr.contains("20 of 23 jobs (more: -n 50, --all)"), "{listed:?}");
    assert_eq!(listed.stdout.lines().count(), 21);
    let document = world.json(["list", "--json"]);
    assert_eq!((&document["truncated"], &document["total"]), (&true.into(), &23.into()));
    let document = world.json(["list", "--all", "--json"]);
    assert_eq!((&document["truncated"], &document["total"]), (&false.into(), &23.into()));

    let all = world.run(["list", "--all", "-q"]);
    assert_eq!(all.stderr, "");
    assert_eq!(ids(&all.stdout).into_iter().collect::<BTreeSet<_>>(), launched);
    let three = world.run(["list", "-n", "3", "-q"]);
    assert_eq!(ids(&three.stdout), ids(&all.stdout)[..3], "the newest");
    assert!(three.stderr.contains("3 of 23 jobs"), "{three:?}");
    // With a filter it is not known how many there are.
    let some = world.run(["list", "--state", "done"]);
    assert!(some.stderr.contains("the newest 20 jobs; there may be more"), "{some:?}");
}

#[test]
fn scenario_147_a_list_is_filtered_by_state_outcome_label_and_age() {
    let world = World::new();
    let exit = |options: &[&str], code: &str| ended(&world, options, &args![bin("exit-with"), code]);
    let done = exit(&["--label", "tests"], "0");
    let failed = exit(&[], "3");
    let late = ended(
        &world,
        &["--timeout", "50ms", "--label", "tests"],
        &args![bin("hold"), world.scratch("never")],
    );
    let held = world.launch(args!["--label", "other", "--", bin("hold"), world.scratch("go")]);
    let killed = world.launch(args!["--", bin("hold"), world.scratch("go")]);
    world.run(["kill", &killed]).ok();
    let listed = |filter: &[&str]| -> BTreeSet<String> {
        ids(&world.run(["list", "-q"].iter().chain(filter)).ok()).into_iter().collect()
    };
    let of = |ids: &[&String]| -> BTreeSet<String> { ids.iter().map(|id| (*id).clone()).collect() };
    assert_eq!(listed(&["--outcome", "killed"]), of(&[&killed]));
    assert_eq!(listed(&["--outcome", "timed-out,killed"]), of(&[&late, &killed]));
    assert_eq!(listed(&["--state", "running,done"]), of(&[&held, &done]));
    assert_eq!(listed(&["--label", "tests"]), of(&[&done, &late]));
    assert_eq!(listed(&["--label", "tests", "--state", "done"]), of(&[&done]));
    assert_eq!(listed(&["--since", "1h"]), of(&[&done, &failed, &late, &held, &killed]));
    let none = world.run(["list", "--outcome", "lost"]);
    assert_eq!((none.stdout.as_str(), none.stderr.trim()), ("", "no jobs match"));
    assert!(world.run(["list", "--since", "0s"]).stderr.contains("no jobs match"));
}

#[test]
fn scenario_150_a_label_names_the_newest_job_with_it() {
    let world = World::new();
    let go = world.scratch("go");
    let exit = |code: &str| ended(&world, &["--label", "the build"], &args![bin("exit-with"), code]);
    let (_, second) = (exit("3"), exit("4"));
    assert_eq!(world.show("the build")["id"], second.as_str());
    assert_eq!(world.run(["wait", "the build"]).code, Some(4));
    assert_eq!(world.show("@last")["id"], second.as_str());
    // One that runs is meant before all that have ended.
    let held = world.launch(args!["--label", "the build", "--", bin("hold"), go]);
    exit("5");
    assert_eq!(world.show("the build")["id"], held.as_str());
    assert!(world.run(["kill", "the build"]).ok().starts_with(&held));
    // Labels are private to their sessions, as jobs are.
    let other = world.run(["show", "the build", "--session", "s"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.starts_with("error: no job `the build`"), "{other:?}");
    assert_eq!(world.run(["show", "@last", "--session", "s"]).code, Some(1));
}

#[test]
fn scenario_150_without_a_name_the_only_job_is_meant() {
    let world = World::new();
    let nobody = world.run(["show"]);
    assert_eq!(nobody.code, Some(2));
    assert!(nobody.stderr.contains("no job is named, and none is running\ntip: "), "{nobody:?}");
    let one = ended(&world, &[], &args![bin("exit-with"), "0", "--print", "hello"]);
    assert_eq!(world.json(["show", "--json"])["id"], one.as_str());
    assert_eq!(world.run(["logs"]).ok(), "hello");
    ended(&world, &[], &args![bin("exit-with"), "0"]);
    assert_eq!(world.run(["logs"]).code, Some(2), "two have ended");
    let held = world.launch(args!["--", bin("hold"), world.scratch("go")]);
    assert_eq!(world.json(["show", "--json"])["id"], held.as_str(), "only one runs");
    let other = world.launch(args!["--", bin("hold"), world.scratch("go")]);
    let both = world.run(["kill"]);
    assert!(both.stderr.contains("no job is named, and 2 are running"), "{both:?}");
    world.run(["kill", &other]).ok();
    assert!(world.run(["kill"]).ok().starts_with(&held));
}

#[test]
fn scenario_150_several_jobs_and_all_that_run_can_be_named() {
    let world = World::new();
    let hold = |options: &[&str]| {
        let options = options.iter().map(OsString::from);
        world.launch(options.chain(args!["--", bin("hold"), world.scratch("go"), "--print", "held"]))
    };
    let (red, blue) = (hold(&["--label", "red"]), hold(&["--label", "blue"]));
    let (theirs, more_red) = (hold(&["--session", "s"]), hold(&["--label", "red"]));
    let stream = world.run(["show", "--json", &red, &blue]).ok();
    let shown: Vec<Value> = stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&shown[0]["id"], &shown[1]["id"]), (&red.as_str().into(), &blue.as_str().into()));
    eventually("both have printed", || {
        let logs = world.run(["logs", &red, &blue]).ok();
        (logs == format!("==> {red} <==\nheld\n==> {blue} <==\nheld")).then_some(())
    });
    let ended = |ran: hearback_tests::Ran| -> BTreeSet<String> {
        ran.ok().lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    assert_eq!(ended(world.run(["kill", "--label", "red"])), BTreeSet::from([red, more_red]));
    assert_eq!(ended(world.run(["kill", "--all", "--session", "s"])), BTreeSet::from([theirs]));
    assert_eq!(ended(world.run(["kill", "--all"])), BTreeSet::from([blue]));
    let nothing = world.run(["kill", "--all"]);
    assert_eq!((nothing.code, nothing.stderr.trim()), (Some(0), "no job is running"));
}

#[test]
fn scenario_151_a_progress_bar_goes_into_a_pipe_as_it_was_printed() {
    let world = World::new();
    let id = ended(&world, &[], &args![bin("exit-with"), "0", "--print", "10%\r50%\r100%"]);
    assert_eq!(world.run(["logs", &id]).stdout, "10%\r50%\r100%\n");
    let card = world.run(["show", &id]).ok();
    assert!(card.contains("13 bytes\n│ 100%\n"), "{card}");
}

#[test]
fn scenario_153_a_dead_letter_says_which_sink_how_often_why_and_what_to_type() {
    let outbox = Outbox::with("attempts = 2\n", "", &["error"]);
    let world = &outbox.world;
    let id = world.launch(args!["--session", "s", "--sink", "fixture", "--", bin("exit-with"), "4"]);
    let job = eventually("it is a dead letter", || {
        let job = world.show(&id);
        (job["follow_up"]["state"] == "dead_letter").then_some(job)
    });
    let follow_up = &job["follow_up"];
    assert_eq!((&follow_up["sink"], &follow_up["attempts"]), (&"fixture".into(), &2.into()));
    assert_eq!(follow_up["sinks"], serde_json::json!(["fixture"]));
    let error = follow_up["error"].as_str().unwrap().to_owned();
    let short = &id[9..];
    let card = world.run(["show", &id]).ok();
    assert!(card.contains("follow-up  dead letter, sink `fixture`, 2 attempts\n"), "{card}");
    assert!(card.contains(&format!("last error  {error}\n")), "{card}");
    assert!(card.contains(&format!("next: hearback followups retry {short}")), "{card}");
    let listed = world.run(["followups"]);
    let why = format!("{short} dead letter, sink `fixture`, 2 attempts: {error}");
    assert!(listed.stderr.contains(&why), "{listed:?}");
    assert!(listed.stdout.contains("dead letter"), "{listed:?}");
    assert!(world.run(["list"]).ok().contains("dead letter"));
}

#[test]
fn scenario_154_a_launch_of_an_agent_says_which_limit_holds() {
    let world = World::new();
    let mut launch = world.command(args!["launch", "--", bin("exit-with"), "0"]);
    launch.env("HEARBACK_SESSION", "s");
    assert!(run(launch).stderr.trim_end().ends_with("; killed after 1 h"));
    let id = world.launch(args![
        "--timeout",
        "90m",
        "--idle-timeout",
        "5m",
        "--",
        bin("hold"),
        world.scratch("go")
    ]);
    let card = world.run(["show", &id]).ok();
    assert!(card.contains("limit  killed after 1 h 30 min, or after 5 min without output (1 h "), "{card}");
    assert!(world.run(["list"]).ok().contains(" of 1 h 30 min "));
    world.run(["kill", &id]).ok();
}

#[test]
fn show_says_why_there_is_no_notification_and_what_would_change_that() {
    let world = World::new();
    for (options, code, expected) in [
        (&[][..], "0", "this job has no session (pass --session S or --sink NAME)"),
        (&["-s", "s", "--notify", "never"], "0", "this job was launched with --notify never"),
        (
            &["-s", "s", "--notify", "failure"],
            "0",
            "it succeeded, and --notify failure is for failures alone",
        ),
        (
            &["-s", "s", "--notify", "success"],
            "3",
            "it did not succeed, and --notify success is for successes",
        ),
    ] {
        let id = ended(&world, options, &args![bin("exit-with"), code]);
        let shown = world.run(["show", &id]).ok();
        assert!(shown.contains(&format!(" follow-up  no notification: {expected}")), "{shown}");
    }
    let id = world.launch(args!["-s", "s", "--", bin("hold"), world.scratch("never")]);
    world.run(["kill", "-s", "s", &id]).ok();
    let shown = world.run(["show", &id]).ok();
    assert!(shown.contains("no notification: its own session killed it"), "{shown}");
}

#[test]
fn a_launch_under_a_known_key_says_that_it_launched_nothing() {
    let world = World::new();
    let launch = || world.json(args!["launch", "--json", "--key", "k", "--", bin("exit-with"), "0"]);
    let (first, second) = (launch(), launch());
    assert_eq!((&first["created"], &first["key"]), (&true.into(), &"k".into()));
    assert_eq!((&second["created"], &second["id"]), (&false.into(), &first["id"]));
}

#[test]
fn options_may_stand_before_a_subcommand_and_other_names_of_commands_work() {
    let world = World::new();
    let id = ended(&world, &["--session", "s"], &args![bin("exit-with"), "0", "--print", "hello"]);
    let closed = world.json(["followups", "--json", "--session", "s", "ack", &id]);
    assert_eq!(closed["delivery"], format!("{id}.end").as_str(), "{closed}");
    assert_eq!(world.json(["inbox", "--json", "list"])["messages"], serde_json::json!([]));
    let same = |one: &[&str], other: &[&str]| assert_eq!(world.run(one).ok(), world.run(other).ok());
    same(&["list", "-q"], &["ps", "-q"]);
    same(&["list", "-q"], &["status", "-q"]);
    same(&["logs", &id], &["log", &id]);
    same(&["logs", &id], &["tail", &id]);
    same(&["kill", &id], &["stop", &id]);
    same(&["prune", "--dry-run"], &["clean", "--dry-run"]);
    world.run(args!["run", "--wait", "--", bin("exit-with"), "0"]).ok();
    // A typo is helped with, and nothing is suggested that is far from it.
    assert!(world.run(["lanch"]).stderr.contains("a similar subcommand exists: 'launch'"));
    assert!(!world.run(["version"]).stderr.contains("similar"));
}

#[test]
fn wrong_input_is_told_what_is_expected() {
    let world = World::new();
    let done = ended(&world, &["--label", "tests"], &args![bin("exit-with"), "0"]);
    let failed = ended(&world, &[], &args![bin("exit-with"), "3"]);
    for (words, code, expected) in [
        (&["show", "th"][..], 1, "no job has the label `th`, and a part of an id has at least 4 characters"),
        (&["show", ""], 1, "no job ``"),
        (&["list", "-n", "0"], 2, "the smallest number is 1"),
        (&["list", "-n", "many"], 2, "not a number: use digits, such as `20`"),
        (&["logs", "--tail", "-3"], 2, "the number cannot be negative"),
        (&["list", "-n", "-1"], 2, "the number cannot be negative"),
        (&["list", "--since", "-2h"], 2, "not a time: use `90s`, `10m` or `2h`"),
        (&["logs", "-20"], 2, "tip: '-n 20'"),
        (&["kill", "-9", "tests"], 2, "tip: '--force' kills at once"),
        (&["kill", "-KILL", "tests"], 2, "tip: '--force' kills at once"),
        (&["wait", "-t", "5s"], 2, "tip: '--timeout TIME' ends the wait"),
        (&["launch", "-x", "ls"], 2, "tip: options before the program are those of hearback"),
        (&["list", "--lable", "x"], 2, "tip: a similar argument exists: '--label'"),
        (&["logs", "--head", "99999999999999999999"], 2, "the number is too large"),
        (&["prune", "--max-jobs", "1k"], 2, "not a number: use digits"),
        (&["inbox", "retry", "first"], 2, "not a number: use digits"),
        (&["list", "--state", "asleep"], 2, "[possible values: starting, running, done, failed, ended]"),
        (&["launch", "--shell", " "], 2, "there is no text to run: `--shell` is empty\ntip: "),
        (&["launch", "--label", "@last", "--", "x"], 2, "`@last` always names the newest job"),
        (&["launch", "--label", " ", "--", "x"], 2, "a label cannot be empty"),
        (
            &["launch", "--wait", "5s", "make", "the docs"],
            2,
            "`hearback launch --wait=5s -- make 'the docs'`",
        ),
        (&["followups", "retyr", "x"], 2, "a similar subcommand exists: 'retry'"),
        (&["monitor", "sttus"], 2, "a similar subcommand exists: 'status'"),
        (
            &["rm", "x"],
            2,
            "'hearback prune' removes old settled jobs, and 'hearback kill JOB' ends one that runs",
        ),
    ] {
        world.run(words).refuses(code).says(expected);
    }
    let unknown = world.run(["show", "-x"]);
    assert!(!unknown.stderr.contains("tip:"), "no job is called `-x`: {unknown}");
    // A state of those that have ended: in whichever way.
    let mut all = ids(&world.run(["list", "-q", "--state", "ended"]).ok());
    all.sort();
    assert_eq!(all, [done, failed]);
    assert!(world.run(["list", "--help"]).ok().contains("ended:"), "the states are explained");
}

// Not on Windows: another error says that a file is no directory.
#[cfg(unix)]
#[test]
fn a_home_that_is_a_file_has_a_tip() {
    let world = World::new();
    let file = world.scratch("file");
    fs_err::write(&file, "").unwrap();
    for words in [&["list"][..], &["launch", "--", "true"]] {
        let mut command = world.command(words);
        command.env("HEARBACK_HOME", &file);
        run(command)
            .refuses(125)
            .says("\ntip: set HEARBACK_HOME to a directory; what it names now is a file");
    }
}

#[test]
fn text_from_standard_input_is_bounded() {
    let world = World::new();
    let large = world.scratch("large");
    fs_err::write(&large, vec![b'x'; 1024 * 1024 + 1]).unwrap();
    for words in [
        &["launch", "--shell", "-"][..],
        &["ask", "--session", "s", "--new", "--prompt", "-", "--", "x"],
        &["send", "--session", "s", "-"],
    ] {
        let mut command = world.command(words);
        command.stdin(fs_err::File::open(&large).unwrap().into_file());
        run(command).refuses(2).says("standard input has more than 1 MiB\ntip: put the text into a file");
    }
    assert_eq!(world.json(["list", "--json"])["jobs"], serde_json::json!([]));
}

#[test]
fn what_only_reads_makes_no_store() {
    let world = World::new();
    for command in [
        &["list"][..],
        &["show", "abcd"],
        &["logs", "abcd"],
        &["wait", "abcd"],
        &["followups"],
        &["sessions"],
    ] {
        let ran = world.run(command);
        assert!(!world.home().exists(), "{command:?}: {ran:?}");
    }
    for waits in [
        &["followups", "next", "--session", "s", "--wait", "1ms"][..],
        &["results", "--session", "s", "--wait", "1ms"],
    ] {
        let world = World::new();
        world.run(waits).exits(1);
    }
    let listed = world.run(["list"]);
    assert_eq!(listed.code, Some(0));
    assert!(listed.stderr.starts_with("no jobs: there is no store at "), "{listed:?}");
    assert_eq!(world.json(["list", "--json"])["jobs"], serde_json::json!([]));
}

#[test]
fn a_variable_without_a_value_is_passed_on_and_another_is_removed() {
    let world = World::new();
    fs_err::create_dir(world.home()).unwrap();
    fs_err::write(world.home().join("config.toml"), "secrets = ['API_TOKEN', 'OTHER_TOKEN']\n").unwrap();
    let mut launch = world.command(args!["launch", "--follow", "-e", "API_TOKEN", "--unset", "GONE", "--"]);
    launch.args(args![bin("show-env"), "API_TOKEN", "OTHER_TOKEN", "GONE"]);
    launch.env("API_TOKEN", "one-is-enough").env("OTHER_TOKEN", "two").env("GONE", "three");
    let shown = run(launch).ok();
    assert!(shown.contains("API_TOKEN=[API_TOKEN]"), "{shown}");
    assert!(!shown.contains("OTHER_TOKEN=[") && !shown.contains("three"), "{shown}");
}

#[test]
fn a_timeline_is_one_page_that_loads_nothing_and_trusts_nothing() {
    let outbox = Outbox::with("attempts = 1\n", "", &["error"]);
    let world = &outbox.world;
    let hostile = "<script>alert(1)</script>\"'&";
    ended(world, &["--label", hostile], &args![bin("exit-with"), "0"]);
    let dead = world.launch(args!["--session", "chat-7", "--", bin("exit-with"), "4"]);
    eventually("it is a dead letter", || {
        (world.show(&dead)["follow_up"]["state"] == "dead_letter").then_some(())
    });
    let page = world.run(["timeline", "--html", "-"]).ok();
    for absent in ["<script", "http://", "https://", "src=", "url(", "@import"] {
        assert!(!page.contains(absent), "{absent}: {page}");
    }
    let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;";
    assert!(page.contains(escaped) && page.contains("Session chat-7"), "{page}");
    assert!(page.contains("class=\"untold\""), "the attempt that failed: {page}");
    let file = world.scratch("page.html");
    assert_eq!(world.run(args!["timeline", "--html", file]).ok(), "");
    assert!(fs_err::read_to_string(&file).unwrap().starts_with("<!doctype html>"));

    let document = world.json(["timeline", "--session", "chat-7", "--json"]);
    let job = &document["jobs"][0];
    assert_eq!((&job["id"], &job["attempts"][0]["sink"]), (&dead.as_str().into(), &"fixture".into()));
    assert!(job["attempts"][0]["error"].is_string(), "{document}");
    let bars = world.run(["timeline"]).ok();
    let row = bars.lines().find(|line| line.contains(&dead[9..])).unwrap_or_else(|| panic!("{bars}"));
    assert!(row.contains('█') && row.contains('×') && row.ends_with("exit 4"), "{bars}");
    assert!(world.run(["timeline", "--outcome", "lost"]).stderr.starts_with("no jobs match"));
}

// Not on Windows: the place is a setting of the system there, and no variable.
#[cfg(unix)]
#[test]
fn times_are_those_of_the_place() {
    let world = World::new();
    let id = ended(&world, &[], &args![bin("exit-with"), "0"]);
    let at = |zone: &str| -> u64 {
        let mut show = world.command(["show", &id]);
        show.env("TZ", zone);
        let card = run(show).ok();
        let launched = card.lines().find_map(|line| line.trim_start().strip_prefix("launched  ")).unwrap();
        let (hour, rest) = launched[11..].split_once(':').unwrap();
        hour.parse::<u64>().unwrap() * 60 + rest[..2].parse::<u64>().unwrap()
    };
    let utc = world.show(&id)["launched_at"].as_str().unwrap().to_owned();
    let minutes = utc[11..13].parse::<u64>().unwrap() * 60 + utc[14..16].parse::<u64>().unwrap();
    let day = 24 * 60;
    assert_eq!((at("UTC0"), at("AAA-3:30")), (minutes, (minutes + 210) % day));
    assert_eq!(at("BBB5"), (minutes + day - 300) % day);
}

/// What a shell offers for the last of these words.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    let mut command = world.command(["--", "hearback"].iter().chain(words));
    command.env("_HEARBACK_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_SPACE", "false");
    ids(&run(command).ok())
}

#[test]
fn scenario_152_a_shell_offers_what_there_is() {
    let world = World::new();
    let options = offered(&world, &["kill", ""]);
    assert!(options.iter().all(|word| word.starts_with("--")), "there is no store: {options:?}");
    assert!(!world.home().exists());
    let done = ended(&world, &["--label", "nightly", "--session", "chat-7"], &args![bin("exit-with"), "0"]);
    fs_err::write(world.home().join("config.toml"), "[sink.phone]\ncommand = ['true']\n").unwrap();
    let held = world.launch(args!["--label", "build", "--", bin("hold"), world.scratch("go")]);
    let (done, held) = (&done[9..], &held[9..]);
    let has = |words: &[&str], expected: &[&str], not: &[&str]| {
        let offered = offered(&world, words);
        let is_offered = |word: &&str| offered.iter().any(|line| line == *word);
        assert!(expected.iter().all(&is_offered), "{words:?}: {offered:?}");
        assert!(!not.iter().any(is_offered), "{words:?}: {offered:?}");
    };
    has(&["show", ""], &[done, held, "nightly", "build", "@last"], &[]);
    has(&["kill", ""], &[held, "build"], &[done, "nightly"]);
    has(&["logs", "nig"], &["nightly"], &["build"]);
    has(&["launch", "--sink", ""], &["phone", "desktop", "claude"], &["Cargo.toml"]);
    has(&["list", "--session", ""], &["chat-7"], &[]);
    has(&["list", "--label", ""], &["build", "nightly"], &[]);
    // The script is one that asks.
    let script = world.run(["completions", "bash"]).ok();
    assert!(script.contains("_HEARBACK_COMPLETE"), "{script}");
}

/// What a person sees on a terminal, and does there.
#[cfg(any(target_os = "linux", windows))]
mod on_screen {
    use super::*;

    use hearback_tests::Terminal;

    /// How many columns a line takes, colours aside.
    fn width(line: &str) -> usize {
        line.chars().map(|c| if c > '\u{2fff}' { 2 } else { 1 }).sum()
    }

    #[test]
    fn scenario_147_no_row_wraps_whatever_is_in_it() {
        let outbox = Outbox::with("attempts = 1\n", "", &["error"]);
        let world = &outbox.world;
        let exit = |options: &[&str], code: &str| {
            ended(world, options, &args![bin("exit-with"), code, "a long argument"])
        };
        // A fixture that does not understand its arguments fails, which is all that is needed.
        let mut all = vec![
            exit(&["--label", "tab\there"], "0"),
            exit(&["--label", "日本語のとても長いラベルです", "--session", "s"], "3"),
            exit(&["--label", "\u{1b}[2Jhostile\r\n"], "3"),
            ended(world, &["--timeout", "50ms"], &args![bin("hold"), world.scratch("never")]),
        ];
        let dead = world.launch(args!["--session", "s", "--sink", "fixture", "--", bin("exit-with"), "4"]);
        eventually("it is a dead letter", || {
            (world.show(&dead)["follow_up"]["state"] == "dead_letter").then_some(())
        });
        all.push(dead);
        all.push(world.launch(args!["--timeout", "90m", "--", bin("hold"), world.scratch("go")]));
        for columns in [40, 46, 60, 73, 80, 100, 120, 200] {
            let list = world.command(["--color", "never", "list"]);
            let table = Terminal::with_columns(columns, &list).finish().stdout;
            let rows: Vec<_> = table.lines().take(all.len() + 1).collect();
            for row in &rows {
                assert!(width(row) <= usize::from(columns), "{columns}: {table}");
            }
            for (row, id) in rows[1..].iter().zip(all.iter().rev()) {
                assert!(row.contains(&id[9..]), "{columns}: each job has one row: {table}");
            }
            assert!(rows[1].starts_with("▶ running"), "{columns}: {table}");
            assert!(rows[2].starts_with("✗ exit 4") && rows[2].contains("dead letter"), "{columns}: {table}");
            assert!(rows[3].starts_with("✗ timed out"), "{columns}: {table}");
            let timeline = world.command(["--color", "never", "timeline"]);
            let bars = Terminal::with_columns(columns, &timeline).finish().stdout;
            assert!(bars.lines().all(|line| width(line) <= usize::from(columns)), "{columns}: {bars}");
            assert!(all.iter().all(|id| bars.contains(&id[9..])), "{columns}: {bars}");
        }
    }

    /// The commands about jobs that a text tells a person to type: after `next:`, and within backticks.
    fn told_to_type(text: &str) -> Vec<String> {
        let listed =
            text.lines().filter_map(|line| line.strip_prefix("next: ")).flat_map(|line| line.split(", "));
        let quoted = text.split('`').skip(1).step_by(2);
        let commands = listed
            .chain(quoted)
            .filter(|command| command.starts_with("hearback ") && !command.contains("monitor install"));
        commands.map(str::to_owned).collect()
    }

    #[test]
    fn what_a_caller_in_another_session_is_told_to_type_works() {
        let outbox = Outbox::with("attempts = 1\n", "", &["error"]);
        let world = &outbox.world;
        let seen = |args: &[OsString]| {
            let mut command = world.command(args!["--color", "never"]);
            command.args(args).env("HEARBACK_SESSION", "mine");
            Terminal::run(&command).finish().stdout
        };
        let id_of = |text: &str| text.lines().next().unwrap().to_owned();
        let hold = args![bin("hold"), world.scratch("go"), "--print", "x"];
        let launched =
            seen(&args!["launch", "--session", "theirs"].into_iter().chain(hold).collect::<Vec<_>>());
        let held = id_of(&launched);
        let exit = args!["launch", "--session", "theirs", "--", bin("exit-with"), "4", "--print", "x"];
        let dead = id_of(&seen(&exit));
        eventually("it is a dead letter", || {
            (world.show(&dead)["follow_up"]["state"] == "dead_letter").then_some(())
        });
        outbox.write_settings("");
        let pending = id_of(&seen(&exit));
        eventually("it is pending", || {
            (world.show(&pending)["follow_up"]["state"] == "pending").then_some(())
        });
        let everywhere = |args: &[&str]| {
            let args = args.iter().chain(&["--all-sessions"]).map(OsString::from).collect::<Vec<_>>();
            seen(&args)
        };
        let mut told = told_to_type(&launched);
        for args in [
            &["show", &held][..],
            &["show", &dead],
            &["followups"],
            &["followups", "next"],
            &["list"],
            &["wait", "--timeout", "1ms", &held],
        ] {
            let text = everywhere(args);
            let commands = told_to_type(&text);
            assert!(!commands.is_empty(), "{args:?}: {text}");
            told.extend(commands);
        }
        told.extend(told_to_type(&seen(&args![
            "launch",
            "--wait",
            "--session",
            "theirs",
            "--",
            bin("exit-with"),
            "0",
            "--print",
            "x"
        ])));
        // To retry twice is nothing to do, and one that waits would wait for ever.
        told.sort();
        told.dedup();
        let (mut last, mut tried): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|command| command.contains(" kill "));
        tried.retain(|command| !command.contains(" -f ") && !command.contains(" wait "));
        last.push(format!("hearback wait {} --all-sessions", &held[9..]));
        for command in tried.iter().chain(&last) {
            let words = command.split(' ').skip(1);
            let mut typed = world.command(words);
            typed.env("HEARBACK_SESSION", "mine");
            let ran = run(typed);
            assert!(!ran.stderr.contains("error:") && !ran.stderr.contains("nothing is"), "{command}: {ran}");
            assert!(!ran.stdout.contains("nothing to do"), "{command}: {ran}");
        }
        for part in ["wait", "logs", "show", "followups ack", "followups retry", "followups"] {
            assert!(
                tried.iter().chain(&last).any(|command| command.starts_with(&format!("hearback {part} "))),
                "{part}: {tried:?}"
            );
        }
        // To the owner, and to a person without a session, they are short.
        assert!(!world.run(["show", &held]).ok().contains("--all-sessions"));
        assert!(!outbox.run_as("theirs", &["show", &held]).ok().contains("--all-sessions"));
    }

    #[test]
    fn scenario_151_on_a_terminal_a_bar_is_one_line_and_colours_are_shown() {
        let world = World::new();
        let bar = "10%\r50%\r100%\n\u{1b}[32mgreen\u{1b}[0m \u{1b}[2Jtame";
        let id = ended(&world, &[], &args![bin("exit-with"), "0", "--print", bar]);
        let seen = Terminal::run(&world.command(["logs", &id])).finish().stdout;
        assert!(seen.starts_with("100%\n"), "{seen:?}");
        assert!(seen.contains("\u{1b}[32mgreen") && seen.contains(" tame"), "{seen:?}");
        assert!(!seen.contains("[2J"), "{seen:?}");
        let plain = Terminal::run(&world.command(["--color", "never", "logs", &id])).finish().stdout;
        assert_eq!(plain, "100%\ngreen tame\n");
    }
}

/// What happens on the screen while a command waits.
// Not on Windows: a pseudo console sends what draws its screen, and only when it likes.
#[cfg(target_os = "linux")]
mod live {
    use super::*;

    use hearback_tests::Terminal;

    #[test]
    fn scenario_148_a_wait_shows_that_the_job_lives_and_how_far_it_is() {
        let world = World::new();
        let go = world.scratch("go");
        let id = world.launch(args![
            "--label",
            "build",
            "--",
            bin("hold"),
            go,
            "--print",
            "compiling 45% of it",
            "--code",
            "6"
        ]);
        let mut wait = Terminal::with_columns(80, &world.command(["wait", &id]));
        wait.until_seen("45% · compiling 45% of it");
        fs_err::write(&go, "").unwrap();
        let ran = wait.finish();
        assert_eq!(ran.code, Some(6));
        assert!(ran.stdout.contains("\r▶ build · "), "{ran:?}");
        let last = ran.stdout.rsplit('\r').next().unwrap();
        assert!(last.starts_with("failed: exit code 6 after"), "the line is gone: {last:?}");
        // A pipe gets how the job ended and nothing else.
        let piped = world.run(["wait", &id]);
        assert!(!piped.stdout.contains('\r') && piped.stderr.is_empty(), "{piped:?}");
    }

    #[test]
    fn scenario_148_ctrl_c_ends_the_wait_and_says_that_the_job_continues() {
        let world = World::new();
        let held = args![bin("hold"), world.scratch("go"), "--print", "begun"];
        for option in ["--wait", "--follow"] {
            let words = args!["launch", option, "--"].into_iter().chain(held.clone());
            let mut terminal = Terminal::run(&world.command(words));
            terminal.until_seen("begun");
            terminal.interrupt();
            let ran = terminal.finish();
            let id = world.only_job();
            let short = &id[9..];
            assert_eq!(ran.code, Some(130), "{ran:?}");
            assert!(
                ran.stdout.contains(&format!("stopped waiting; job {short} is still running\n")),
                "{ran:?}"
            );
            assert!(ran.stdout.contains(&format!("hearback wait {short}")), "{ran:?}");
            assert_eq!(world.show(&id)["state"], "running");
            world.run(["kill", &id]).ok();
            eventually("it is in history", || {
                world.run(["reconcile"]).ok();
                fs_err::read_dir(world.home().join("jobs")).unwrap().next().is_none().then_some(())
            });
        }
    }

    #[test]
    fn a_kill_shows_how_long_its_grace_lasts_and_continues_after_ctrl_c() {
        let world = World::new();
        let launch = |label: &str| {
            let witness = world.scratch(label);
            let tree = args![bin("tree"), "--depth", "0", "--breadth", "0", "--ignore-term"];
            let words = args!["--label", label, "--"].into_iter().chain(tree);
            let id = world.launch(words.chain(args!["--witness", witness]));
            eventually("it ignores SIGTERM", || witness.exists().then_some(()));
            id
        };
        let id = launch("brief");
        let mut kill = Terminal::with_columns(80, &world.command(["kill", "--grace", "3s", &id]));
        kill.until_seen("▶ brief · terminating, killed in ");
        let ran = kill.finish();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let last = ran.stdout.rsplit('\r').find(|line| !line.trim().is_empty()).unwrap();
        assert!(last.starts_with(&format!("{id} killed")), "the line is gone: {ran:?}");

        let id = launch("long");
        let short = &id[9..];
        let mut kill = Terminal::with_columns(80, &world.command(["kill", "--grace", "60s", &id]));
        kill.until_seen("▶ long · terminating, killed in ");
        kill.interrupt();
        let ran = kill.finish();
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(
            ran.stdout.contains(&format!("stopped waiting; the kill of job {short} continues")),
            "{ran:?}"
        );
        assert!(
            ran.stdout.contains(&format!("next: hearback show {short}, hearback wait {short}")),
            "{ran:?}"
        );
        let shown = world.run(["show", &id]).ok();
        assert!(shown.contains("      kill  terminating, killed in "), "{shown}");
        let forced = world.run(["kill", "--force", &id]).ok();
        assert!(forced.contains("killed: by a person or a script"), "{forced}");
    }

    #[test]
    fn scenario_145_a_person_is_told_how_to_read_on() {
        let world = World::new();
        let first = ended(&world, &[], &args![bin("exit-with"), "0"]);
        let told = |text: &str| {
            let next = text.lines().find_map(|line| line.strip_prefix("next: hearback events --since "));
            next.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
        };
        let once = Terminal::with_columns(80, &world.command(["events", "--once"])).finish().stdout;
        assert!(once.contains(&first), "{once}");
        let cursor = told(&once);
        let second = ended(&world, &[], &args![bin("exit-with"), "0"]);
        let later = world.run(["events", "--once", "--since", &cursor]).ok();
        assert!(later.contains(&second) && !later.contains(&first), "{later}");

        let mut follow = Terminal::with_columns(80, &world.command(["events"]));
        follow.until_seen("Ctrl-C ends this");
        let third = ended(&world, &[], &args![bin("exit-with"), "0"]);
        follow.until_seen(&format!("{third}: settled"));
        follow.interrupt();
        let ran = follow.finish();
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let rest = world.run(["events", "--once", "--since", &told(&ran.stdout)]).ok();
        assert!(!rest.contains(&second) && !rest.contains(&third), "{rest}");
    }

    #[test]
    fn a_watched_list_is_drawn_again_in_place() {
        let world = World::new();
        let go = world.scratch("go");
        let id = world.launch(args!["--", bin("hold"), go]);
        let mut list = Terminal::with_columns(60, &world.command(["list", "--watch"]));
        list.until_seen("Ctrl-C leaves; 1 running");
        fs_err::write(&go, "").unwrap();
        list.until_seen("0 running");
        list.interrupt();
        let ran = list.finish();
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains(&format!("✓ done\u{1b}[0m  {}", &id[9..])), "{ran:?}");
        assert!(ran.stdout.contains("\u{1b}[3A"), "over the picture before: {ran:?}");
        let piped = world.run(["list", "--watch"]);
        assert_eq!(piped.code, Some(2));
        assert!(piped.stderr.starts_with("error: --watch needs a terminal"), "{piped:?}");
    }

    #[test]
    fn scenario_149_a_followed_launch_shows_output_as_it_comes_and_passes_the_code_on() {
        let world = World::new();
        let go = world.scratch("go");
        let launch = args!["launch", "--follow", "--", bin("hold"), go, "--print", "first", "--code", "9"];
        let mut terminal = Terminal::run(&world.command(launch));
        terminal.until_seen("first");
        fs_err::write(&go, "").unwrap();
        let ran = terminal.finish();
        assert_eq!(ran.code, Some(9));
        assert!(ran.stdout.contains(": no time limit\nfirst\nfailed: exit code 9 after"), "{ran:?}");
        let mut logs = Terminal::run(&world.command(["logs", "--follow", "--exit-code", "@last"]));
        logs.until_seen("failed: exit code 9");
        assert_eq!(logs.finish().code, Some(9));
        assert_eq!(world.run(["logs", "--follow", "@last"]).code, Some(0), "only if it was asked for");
    }
}

// Not on Windows: no samples are taken there, nor on macOS and FreeBSD.
#[cfg(target_os = "linux")]
#[test]
fn show_draws_what_a_job_used_over_its_life_from_a_file_that_is_bounded() {
    let world = World::new();
    let row = |card: &str, name: &str| -> Option<String> {
        card.lines().find_map(|line| line.trim_start().strip_prefix(name).map(|rest| rest.trim().to_owned()))
    };
    // One that prints a line every tenth of a second, and is long enough for a few samples.
    let prints = args![bin("print"), "--bytes", "3600", "--line-length", "80", "--pause-ms", "100"];
    let id = world.launch(args!["--"].into_iter().chain(prints));
    let silent = world.launch(args!["--", bin("hold"), world.scratch("never")]);
    let samples = |id: &str| world.job_dir(id).join("samples");
    eventually("a running job has a picture", || {
        let card = world.run(["show", &id]).ok();
        row(&card, "used").filter(|used| used.starts_with("CPU ▁") || used.starts_with("CPU █")).map(drop)
    });
    world.run(["wait", &id]).ok();
    let card = world.run(["show", &id]).ok();
    let used = row(&card, "used").unwrap_or_else(|| panic!("{card}"));
    assert!(used.contains(" %, memory ") && used.ends_with("iB"), "{card}");
    assert!(row(&card, "ran").unwrap().contains(" of CPU, "), "{card}");
    assert_eq!(fs_err::metadata(samples(&id)).unwrap().len(), 64 * 24);
    // A silent job is looked at and not sampled: its supervisor sleeps.
    let card = world.run(["show", &silent]).ok();
    assert!(row(&card, "ran").unwrap().ends_with(" now"), "what it uses now: {card}");
    assert_eq!(row(&card, "used"), None, "{card}");
    assert!(!samples(&silent).exists());
    // Whatever the job puts there is read within bounds.
    fs_err::write(samples(&id), "nonsense ".repeat(100_000)).unwrap();
    world.run(["show", &id]).ok();
}
