//! What a person sees at 40, 60, 80 and 120 columns: every view, with wide characters, with colours and without.

// Not on Windows: paths, and what a process has used, are of other lengths there, so that lines end elsewhere.
#![cfg(target_os = "linux")]

use std::env;
use std::process::Command;

use hearback_tests::{Outbox, Terminal, World, bin, eventually};

use crate::command_line::redacted;

const WIDTHS: [u16; 4] = [40, 60, 80, 120];
/// Two columns for each character.
const WIDE: &str = "日本語のビルド";

/// How many columns a line takes, colours aside.
fn columns(line: &str) -> usize {
    let mut columns = 0;
    let mut is_escape = false;
    for c in line.chars() {
        match c {
            '\u{1b}' => is_escape = true,
            'm' if is_escape => is_escape = false,
            _ if is_escape => {}
            c => columns += if c > '\u{2fff}' { 2 } else { 1 },
        }
    }
    columns
}

/// hearback as a person types it, with the fixtures on the PATH.
fn typed(world: &World, words: &[&str]) -> Command {
    let mut command = world.command(words);
    let folders = [bin("hearback").parent().unwrap().to_owned()];
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(folders.into_iter().chain(env::split_paths(&path))).unwrap();
    // Without an agent of this machine, whose version would be listed.
    command.env("PATH", path).env("TZ", "UTC0").current_dir(world.scratch(""));
    command
}

/// Asserts that no line is wider than the window, unless it is one word that fits nowhere.
#[track_caller]
fn fits(name: &str, width: u16, text: &str) {
    for line in text.lines() {
        let line = line.rsplit('\r').next().unwrap();
        let words = line.trim_start_matches(['│', ' ']).split(' ').filter(|word| !word.is_empty()).count();
        assert!(columns(line) <= usize::from(width) || words == 1, "{name} at {width}: {line:?}\n{text}");
    }
}

struct Scene {
    outbox: Outbox,
    ids: Vec<(&'static str, String)>,
}

impl Scene {
    fn id(&self, name: &str) -> &str {
        &self.ids.iter().find(|(known, _)| *known == name).unwrap().1
    }
}

/// One job for each way in which a job can be.
fn scene() -> Scene {
    let outbox = Outbox::with("attempts = 1\n", "", &["69"]);
    let world = &outbox.world;
    let launch = |words: &[&str]| {
        let ran = hearback_tests::run(typed(world, &[&["launch", "--quiet"], words].concat()));
        ran.stdout.trim().to_owned()
    };
    let text = "a line of output that is a good deal longer than the narrowest of these windows is wide";
    let mut ids = vec![
        ("done", launch(&["--label", "tests", "--", "exit-with", "0", "--print", "ok"])),
        ("failed", launch(&["--label", WIDE, "--", "exit-with", "3", "--print", text])),
        ("killed", launch(&["--key", "nightly", "--", "hold", "never"])),
        ("unstarted", launch(&["--", "no-such-program-here"])),
    ];
    world.run(["kill", "--reason", "it took longer than anybody wanted to wait", &ids[2].1]).ok();
    let dead = launch(&["--session", "chat-7", "--sink", "fixture", "--", "exit-with", "4"]);
    eventually("it is a dead letter", || {
        (world.show(&dead)["follow_up"]["state"] == "dead_letter").then_some(())
    });
    ids.push(("dead", dead));
    ids.push((
        "running",
        launch(&["--label", WIDE, "--timeout", "90m", "--", "hold", "never", "--print", WIDE]),
    ));
    for (name, id) in &ids {
        if *name != "running" {
            world.run(["wait", "--peek", id]);
        }
    }
    world
        .run([
            "send",
            "--session",
            "chat-7",
            "--sink",
            "fixture",
            "Are you still there? Nobody has heard of you.",
        ])
        .ok();
    eventually("the message is a dead letter", || {
        let inbox = world.json(["inbox", "-s", "chat-7", "--json"]);
        (inbox["messages"][0]["dead_letter"] == true).then_some(())
    });
    eventually("it has printed", || (world.show(&ids[5].1)["output"]["bytes"] != 0).then_some(()));
    Scene { outbox, ids }
}

#[test]
fn scenario_147_every_view_fits_every_window() {
    let scene = scene();
    let world = &scene.outbox.world;
    let id = |name: &str| scene.id(name);
    let file = world.scratch("a file");
    fs_err::write(&file, "").unwrap();
    let shorts: Vec<&str> = scene.ids.iter().map(|(_, id)| id.as_str()).collect();
    let views: Vec<(&str, Vec<&str>)> = vec![
        ("list", vec!["list"]),
        ("show_running", vec!["show", id("running")]),
        ("show_done", vec!["show", id("done")]),
        ("show_failed", vec!["show", id("failed")]),
        ("show_killed", vec!["show", id("killed")]),
        ("show_dead_letter", vec!["show", id("dead")]),
        ("show_unstarted", vec!["show", id("unstarted")]),
        ("wait", vec!["wait", id("done"), id("failed")]),
        ("wait_deadline", vec!["wait", "--timeout", "1ms", id("running")]),
        ("kill", vec!["kill", id("killed")]),
        ("followups", vec!["followups"]),
        ("inbox", vec!["inbox"]),
        ("sessions", vec!["sessions"]),
        ("sink_list", vec!["sink", "list"]),
        ("timeline", vec!["timeline"]),
        ("exit_codes", vec!["exit-codes"]),
        ("help_exit_codes", vec!["help", "exit-codes"]),
        ("settings", vec!["settings"]),
        ("monitor_stop", vec!["monitor", "stop"]),
        ("error_unknown_job", vec!["show", "no-such-job"]),
        ("error_usage", vec!["list", "--state", "asleep"]),
        ("error_sink", vec!["launch", "--sink", "nope", "--", "exit-with", "0"]),
    ];
    // Whatever agents this machine has, `sink list` finds none. Only what the terminal of the tests needs is there.
    let folder = world.scratch("programs");
    fs_err::create_dir(&folder).unwrap();
    let path = env::var_os("PATH").unwrap();
    for name in ["setsid", "sh", "stty"] {
        let program = env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
        std::os::unix::fs::symlink(program.unwrap(), folder.join(name)).unwrap();
    }
    let path = env::join_paths([bin("hearback").parent().unwrap(), &folder]).unwrap();
    let typed = |words: &[&str]| {
        let mut command = typed(world, words);
        command.env("PATH", &path);
        command
    };
    for (name, words) in &views {
        let mut all = String::new();
        for width in WIDTHS {
            let command = typed(words);
            let text = Terminal::with_columns(width, &command).finish().stdout;
            fits(name, width, &text);
            let mut plain = typed(words);
            plain.env("NO_COLOR", "1");
            let plain = Terminal::with_columns(width, &plain).finish().stdout;
            assert!(!plain.contains('\u{1b}'), "{name}: {plain:?}");
            fits(name, width, &plain);
            all.push_str(&format!("--- {width} columns\n{}", plain.replace('\r', "")));
            all.push_str(&format!("--- {width} columns, coloured\n{}", text.replace('\u{1b}', "␛")));
        }
        let mut settings = redacted(world, &shorts);
        settings.set_omit_expression(true);
        // Times, and what depends on them, wherever a line ends.
        settings.add_filter(r"\((?:just\s+now|\d+\s+s\s+ago)\)", "(just now)");
        settings.add_filter(r"\b\d+\.\d [KM]iB\s+at\s+most", "0.0 MiB at most");
        settings.add_filter(r",\s+\d+\.\d\s+s\s+of\s+CPU,\s+\d+\.\d\s+[KM]iB\s+now", ", [now]");
        settings.add_filter(r"(process␛\[0m +)\d+", "${1}[pid]");
        settings.add_filter(r"(?:just now|\d+ s ago) *─+ now", "[axis]");
        let legend = r"(?:·\s+waits\s+to\s+start,\s+)?█\s+runs,\s+×\s+telling\s+its\s+owner\s+failed";
        settings.add_filter(legend, "[legend]");
        settings.add_filter(r"[ ·█▸×]*[·█][ ·█▸×]*", " [bar] ");
        settings.bind(|| insta::assert_snapshot!(*name, all));
    }
}

#[test]
fn what_differs_from_machine_to_machine_fits_as_well() {
    let world = World::new();
    let broken = world.scratch("a file");
    fs_err::write(&broken, "").unwrap();
    for width in WIDTHS {
        for words in [
            &["doctor"][..],
            &["agent", "list"],
            &["agent", "setup", "claude"],
            &["launch", "--", "exit-with", "0"],
            &["launch", "--session", "s", "--", "exit-with", "0"],
            &["launch", "--wait", "--", "exit-with", "3", "--print", "x"],
            &["monitor", "status"],
            &["events", "--once"],
        ] {
            let text = Terminal::with_columns(width, &typed(&world, words)).finish().stdout;
            // The text of a file is to be copied.
            let text = text.lines().take_while(|line| *line != "---").collect::<Vec<_>>().join("\n");
            fits(&words.join(" "), width, &text);
        }
        let mut nowhere = typed(&world, &["list"]);
        nowhere.env("HEARBACK_HOME", &broken);
        fits("a store that is a file", width, &Terminal::with_columns(width, &nowhere).finish().stdout);
    }
}

/// A pipe gets each sentence in one line.
#[test]
fn nothing_is_broken_in_a_pipe() {
    let world = World::new();
    let ran = world.run(["launch", "--sink", "nope", "--", "x"]);
    assert_eq!(ran.stderr.lines().count(), 2, "{ran}");
    assert!(ran.stderr.lines().any(|line| line.len() > 120), "{ran}");
}
