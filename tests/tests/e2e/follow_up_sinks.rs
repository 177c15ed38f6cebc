//! What a sink is started with, and what of it is kept: the right session, the settings of today, no secrets.

use std::path::Path;
#[cfg(any(target_os = "linux", windows))]
use std::path::PathBuf;

use fs_err as fs;
use hearback_tests::{Outbox, Snapshot, bin, eventually, lines, run};
use serde_json::Value;

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

/// Settings with one sink whose command has the session as an argument.
fn configure_session_argument(outbox: &Outbox) {
    let command = outbox.command(&["0"]).replace(", \"0\"]", ", \"0\", \"{session}\"]");
    outbox.write_settings(&format!("[sink.agent]\n{command}\nturn = true\n"));
}

#[test]
fn an_agent_is_woken_in_a_session_that_is_named_or_not_at_all() {
    let outbox = Outbox::new(&[]);
    configure_session_argument(&outbox);
    let exit_with = text(&bin("exit-with"));
    for (options, why) in [
        (&["--sink", "agent"][..], "it has no session to wake"),
        (&["--sink", "agent", "--session=--dangerously-do-anything"], "would be taken for an option"),
    ] {
        let id = outbox.world.launch([options, &["--", &exit_with, "0"]].concat());
        let job = outbox.until(&id, &["dead_letter"]);
        assert!(job["follow_up"]["error"].as_str().unwrap().contains(why), "{job}");
    }
    assert_eq!(outbox.calls(), [], "no agent was woken");
    let id = outbox.world.launch(["--sink", "agent", "--session", "s", "--", &exit_with, "0"]);
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
}

#[test]
fn a_change_of_the_settings_reaches_a_running_deliverer() {
    for monitored in [false, true] {
        let outbox = Outbox::with("attempts = 1000\nretry_most = \"100ms\"", "", &["1"]);
        let _monitor = monitored.then(|| outbox.monitor());
        let id = outbox.launch(&[], "exit-with", &["0"]);
        outbox.called(2);
        outbox.configure("", "", &["0"]);
        assert_eq!(outbox.receipt(&id)["how"], "delivered", "monitored: {monitored}");
    }
}

#[test]
fn a_secret_that_a_sink_complains_with_is_not_recorded() {
    const SECRET: &str = "hush-4711-hush";
    let outbox = Outbox::with("attempts = 1\nsecrets = [\"API_TOKEN\"]", "", &[]);
    for (answer, words) in [
        (format!("1:no way in with {SECRET}"), "no way in with [API_TOKEN]"),
        (format!("69:{SECRET} is unknown"), "[API_TOKEN] is unknown"),
        // Cut short after it was masked, and not within it.
        (format!("1:{}{SECRET}", "x".repeat(480)), "xxx[API_TO"),
    ] {
        outbox.tell(&answer);
        let mut launch = outbox.command_as("s", &["launch", "--", &text(&bin("exit-with")), "0"]);
        launch.env("API_TOKEN", SECRET);
        let id = run(launch).ok();
        // The command that looks does not know the secret, so it leaves the delivery to the supervisor, which does.
        let job = outbox.until(&id, &["dead_letter"]);
        assert!(job["follow_up"]["error"].as_str().unwrap().contains(words), "{job}");
    }
    assert_eq!(Snapshot::of(outbox.world.home()).holding(SECRET.as_bytes()), Vec::<&Path>::new());
}

#[test]
fn a_line_that_was_cut_short_spoils_no_other() {
    let outbox = Outbox::pull();
    let journal = outbox.world.scratch("journal");
    outbox
        .write_settings(&format!("default_sink = 'journal'\n[sink.journal]\nfile = '{}'\n", text(&journal)));
    fs::write(&journal, "{\"specversion\":\"1.0\",\"id\":\"cut").unwrap();
    let jobs: Vec<_> = (0..2).map(|_| outbox.launch(&[], "exit-with", &["0"])).collect();
    for id in &jobs {
        assert_eq!(outbox.receipt(id)["how"], "delivered");
    }
    let told: Vec<_> = lines(&journal)
        .iter()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["subject"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told.len(), 2);
    assert!(jobs.iter().all(|id| told.contains(id)), "{told:?}");
}

/// Puts a new program in the place of one that runs. Windows does not remove that, but lets it be renamed, and so
/// updaters do it. Returns where the old one is, if there still is one.
#[cfg(any(target_os = "linux", windows))]
fn upgrade(program: &Path) -> Option<PathBuf> {
    let (old, new) = (program.with_extension("old"), program.with_extension("new"));
    hearback_tests::copy_program("hearback", &new);
    if cfg!(windows) {
        fs::rename(program, &old).unwrap();
    }
    fs::rename(&new, program).unwrap();
    cfg!(windows).then_some(old)
}

/// A program of this world that can be upgraded.
#[cfg(any(target_os = "linux", windows))]
fn installed(outbox: &Outbox) -> PathBuf {
    let program = outbox.world.scratch(format!("hearback{}", std::env::consts::EXE_SUFFIX));
    hearback_tests::copy_program("hearback", &program);
    program
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn an_upgrade_while_a_job_runs_stops_no_follow_up() {
    let outbox = Outbox::pull();
    let journal = outbox.world.scratch("journal");
    outbox
        .write_settings(&format!("default_sink = 'journal'\n[sink.journal]\nfile = '{}'\n", text(&journal)));
    let old = installed(&outbox);
    let mut launch = std::process::Command::new(&old);
    outbox.world.settle(&mut launch);
    launch.args(["launch", "--session", "s", "--"]).arg(bin("hold")).arg(outbox.gate("go"));
    let id = run(launch).ok();
    upgrade(&old);
    // What Windows does not allow, Linux gets along with.
    if cfg!(target_os = "linux") {
        fs::remove_file(&old).unwrap();
    }
    outbox.release("go");
    eventually("it is delivered", || lines(&journal).pop());
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
}

#[test]
fn a_sink_does_not_get_the_session_of_the_caller_that_starts_it() {
    for session in [None, Some("owner")] {
        let outbox = Outbox::new(&[]);
        outbox.tell("hang");
        let owner = session.map_or(vec![], |session| vec!["--session", session]);
        let exit_with = text(&bin("exit-with"));
        let words = [&owner[..], &["--sink", "fixture", "--", &exit_with, "0"]].concat();
        let id = outbox.world.launch(words);
        outbox.called(1);
        outbox.tell("0");
        outbox.world.end_supervisor(&id);
        eventually("a command of another session finds it", || {
            let mut list = outbox.command_as("stranger", &["list"]);
            list.env("CLAUDE_CODE_SESSION_ID", "stranger-too");
            run(list).ok();
            (outbox.calls().len() == 2).then_some(())
        });
        outbox.receipt(&id);
        assert_eq!(outbox.calls()[1].session, session.unwrap_or("-"));
        let environment = outbox.said("agent");
        assert_eq!(environment, Vec::<String>::new(), "no variable of an agent is left");
    }
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn a_monitor_that_is_restarted_after_an_upgrade_is_the_new_program() {
    let outbox = Outbox::pull();
    let program = installed(&outbox);
    let mut monitor = std::process::Command::new(&program);
    outbox.world.settle(&mut monitor);
    monitor.args(["monitor", "run"]).stdout(std::process::Stdio::null());
    let mut monitor = hearback_tests::KillOnDrop(monitor.spawn().unwrap());
    let status = || outbox.world.json(["monitor", "status", "--json"]);
    eventually("the monitor runs", || (status()["pid"] == monitor.0.id()).then_some(()));
    let old = upgrade(&program);
    outbox.world.run(["monitor", "restart", "--wait"]).ok();
    monitor.0.wait().unwrap();
    let successor = status()["pid"].as_u64().unwrap();
    match old {
        // What runs cannot be removed there.
        Some(old) => {
            fs::remove_file(old).unwrap();
            fs::remove_file(&program).unwrap_err();
        }
        None => assert_eq!(fs::read_link(format!("/proc/{successor}/exe")).unwrap(), program),
    }
    outbox.world.run(["monitor", "stop"]).ok();
    eventually("it is gone", || (!hearback_tests::alive(u32::try_from(successor).unwrap())).then_some(()));
}

#[test]
fn the_documentation_lists_every_agent_as_the_table_has_it() {
    let docs = |name: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        fs::read_to_string(root.join("docs").join(name)).unwrap()
    };
    let (sinks, ask) = (docs("sinks.md"), docs("ask.md"));
    for agent in hearback::core::agents::AGENTS {
        if let Some(door) = agent.headless() {
            let command = door.argv.join(" ").replace("{session}", "SESSION");
            let command = command.replace("{text}", "TEXT").replace("{directory}", "DIRECTORY");
            let input = if door.takes_text_as_argument() { "an argument" } else { "standard input" };
            let row = format!("| `{}` | `{command}` | {input} |", agent.name);
            assert!(sinks.contains(&row), "docs/sinks.md lacks: {row}");
        }
        let Some(transcript) = agent.transcript else { continue };
        let options = transcript.options.replace('|', "` or `");
        let listed = |row: &&str| row.split(" | ").next().is_some_and(|titles| titles.contains(agent.title));
        let row = ask.lines().filter(|line| line.starts_with("| ")).find(listed);
        assert!(
            row.is_some_and(|row| row.contains(&options)),
            "docs/ask.md: {} {options}: {row:?}",
            agent.title
        );
    }
}
