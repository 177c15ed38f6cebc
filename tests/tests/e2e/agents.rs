//! Agents: which one launches a job, and waking it where its session is. Real agents are tried by `cargo xtask agents`;
//! here a program stands in for one, so that these rules are tested without any.

use std::path::{Path, PathBuf};

use fs_err as fs;
use hearback_tests::{Outbox, World, bin, copy_program, eventually, lines, skipped};
use serde_json::{Value, json};

const SESSION: &str = "01a1ecaf-0869-7a61-91a7-57c5c9f65cc1";

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

/// A world with a program that is named as an agent is, in a folder that is on no PATH.
struct Stand {
    outbox: Outbox,
    program: PathBuf,
}

impl Stand {
    fn new() -> Stand {
        let outbox = Outbox::pull();
        let folder = outbox.world.scratch("agent");
        fs::create_dir(&folder).unwrap();
        let program = folder.join(format!("gemini{}", std::env::consts::EXE_SUFFIX));
        copy_program("agent", &program);
        Stand { outbox, program }
    }

    /// How it was resumed.
    fn resumed(&self) -> Vec<String> {
        lines(self.program.with_file_name("resumed"))
    }

    /// The agent in its project, open: it has launched a job from a folder below.
    // Not on Windows: the processes above this one are not looked at there.
    #[cfg(target_os = "linux")]
    fn open(&self, sinks: &[&str]) -> (hearback_tests::KillOnDrop, Value) {
        let (project, out) = (self.outbox.world.scratch("project"), self.outbox.world.scratch("launched"));
        fs::create_dir(&project).unwrap();
        let mut agent = std::process::Command::new(&self.program);
        self.outbox.world.settle(&mut agent);
        agent.args(["begin", &text(&self.outbox.world.scratch("gate")), &text(&out)]);
        agent.args([&text(&bin("hearback")), "launch", "--json", "--session", SESSION]);
        agent.args(sinks.iter().flat_map(|sink| ["--sink", sink]));
        agent.args([
            "-C",
            &text(&self.outbox.world.scratch("")),
            "--",
            &text(&bin("hold")),
            &text(&self.outbox.world.scratch("go")),
        ]);
        let agent = agent.current_dir(&project).stdout(std::process::Stdio::null()).spawn().unwrap();
        let agent = hearback_tests::KillOnDrop(agent);
        let launched =
            eventually("it has launched a job", || serde_json::from_slice(&fs::read(&out).ok()?).ok());
        (agent, launched)
    }
}

// Not on Windows: the processes above this one are not looked at there.
#[cfg(target_os = "linux")]
#[test]
fn a_session_is_resumed_when_its_agent_has_ended_and_in_its_own_directory() {
    let stand = Stand::new();
    let (mut agent, launched) = stand.open(&["gemini"]);
    assert_eq!(launched["agent"]["name"], "gemini", "{launched}");
    assert_eq!(launched["agent"]["program"], text(&stand.program));
    assert_eq!(
        launched["expect"]["kind"], "woken_when_closed",
        "its program is known, though it is on no PATH: {launched}"
    );
    let id = launched["id"].as_str().unwrap();

    fs::write(stand.outbox.world.scratch("go"), "").unwrap();
    let waits = eventually("it waits for the open session", || {
        let job = stand.outbox.world.show(id);
        job["follow_up"]["error"].as_str().map(str::to_owned)
    });
    assert!(waits.contains(&format!("open in gemini-cli (pid {})", agent.0.id())), "{waits}");
    assert_eq!(stand.resumed(), [""; 0]);

    fs::write(stand.outbox.world.scratch("gate"), "").unwrap();
    agent.0.wait().unwrap();
    eventually("it is resumed", || (!stand.resumed().is_empty()).then_some(()));
    let line = stand.resumed().remove(0);
    let place = format!("{} {} ", text(&stand.outbox.world.scratch("project")), text(&stand.program));
    assert!(line.starts_with(&place), "{line}");
    assert!(line.contains(&format!("\"--resume\", \"{SESSION}\", \"-p\"")), "{line}");
    eventually("it is delivered", || {
        (stand.outbox.world.show(id)["follow_up"]["state"] == "delivered").then_some(())
    });
}

/// The process that delivers.
// Not on Windows: the processes above this one are not looked at there.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Supervisor,
    Monitor,
    /// The one that a command starts for what no process delivers.
    Deliverer,
}

/// A session of an agent that takes no messages while it is open: the next sink of the chain is told once, and when
/// the agent ends, the session is resumed, long before the next attempt would be due.
// Not on Windows: the processes above this one are not looked at there.
#[cfg(target_os = "linux")]
fn is_told_and_then_woken(by: By) {
    let stand = Stand::new();
    let journal = stand.outbox.world.scratch("journal");
    let file = text(&journal);
    // Nothing is due again within this test, unless the end of the agent makes it so.
    let settings = format!("retry_first = \"1h\"\n[sink.person]\nfile = '{file}'\n");
    stand.outbox.write_settings(&settings);
    let _monitor = (by == By::Monitor).then(|| {
        let monitor = stand.outbox.monitor();
        eventually("a monitor runs", || {
            stand.outbox.world.json(["monitor", "status", "--json"])["pid"].as_u64()
        });
        monitor
    });
    let (mut agent, launched) = stand.open(&["gemini", "person"]);
    let id = launched["id"].as_str().unwrap();
    fs::write(stand.outbox.world.scratch("go"), "").unwrap();
    let told = eventually("the next sink is told", || lines(&journal).pop());
    let told: Value = serde_json::from_str(&told).unwrap();
    let reason = format!("open in gemini-cli (pid {})", agent.0.id());
    assert!(told["data"]["unreached"].as_str().unwrap().contains(&reason), "{told}");
    assert!(
        told["data"]["text"].as_str().unwrap().starts_with("The session that launched this job"),
        "{told}"
    );
    let job = eventually("that is recorded", || {
        let job = stand.outbox.world.show(id);
        (job["follow_up"]["state"] == "pending").then_some(job)
    });
    assert!(job["follow_up"]["error"].as_str().unwrap().contains(&reason), "it waits, and says why: {job:?}");
    if by == By::Deliverer {
        stand.outbox.world.end_supervisor(id);
    }
    assert_eq!(stand.resumed(), [""; 0]);

    fs::write(stand.outbox.world.scratch("gate"), "").unwrap();
    agent.0.wait().unwrap();
    if by != By::Deliverer {
        eventually("it is resumed without another command", || stand.resumed().pop());
    }
    eventually("it is delivered", || {
        (stand.outbox.world.show(id)["follow_up"]["state"] == "delivered").then_some(())
    });
    assert_eq!(stand.resumed().len(), 1);
    assert_eq!(lines(&journal).len(), 1, "a person is told once");
}

// Not on Windows: the processes above this one are not looked at there.
#[cfg(target_os = "linux")]
#[test]
fn scenario_141_an_open_session_without_a_way_in_is_woken_when_it_is_closed() {
    is_told_and_then_woken(By::Supervisor);
}

// Not on Windows: the processes above this one are not looked at there.
#[cfg(target_os = "linux")]
#[test]
fn scenario_141_a_monitor_wakes_a_session_when_it_is_closed() {
    is_told_and_then_woken(By::Monitor);
}

// Not on Windows: the processes above this one are not looked at there.
#[cfg(target_os = "linux")]
#[test]
fn scenario_141_a_session_whose_supervisor_died_is_woken_when_it_is_closed() {
    is_told_and_then_woken(By::Deliverer);
}

#[test]
fn a_launch_says_whether_its_session_will_be_woken() {
    let world = World::new();
    let program = text(&bin("exit-with"));
    let expects = |options: &[&str]| {
        let job = world.json([&["launch", "--json"], options, &["--", &program, "0"]].concat());
        job["expect"].clone()
    };
    assert_eq!(expects(&[])["kind"], "nothing");
    let fetched = expects(&["--session", "s"]);
    assert_eq!(fetched["kind"], "fetch");
    assert!(fetched["text"].as_str().unwrap().contains("use `hearback wait`"), "{fetched}");
    let lost = expects(&["--sink", "gemini"]);
    assert_eq!(
        (&lost["kind"], &lost["reason"]),
        (&json!("unreachable"), &json!("it has no session to wake"))
    );
    let other = expects(&["--session", "1", "--sink", "codex"]);
    assert_eq!(other["reason"], "a session of Codex is a UUID, and `1` is not");
    let absent = expects(&["--session", SESSION, "--sink", "gemini"]);
    assert_eq!(absent["reason"], "`gemini` was not found on the PATH", "{absent}");

    // An agent reads it without a terminal.
    let ran = world.run(["launch", "--session", "s", "--", &program, "0"]);
    assert!(ran.stderr.contains("no sink wakes this session"), "{ran}");
    let ran = world.run(["launch", "--quiet", "--session", "s", "--", &program, "0"]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_session_that_an_agent_does_not_know_is_gone() {
    let stand = Stand::new();
    let folder = text(stand.program.parent().unwrap());
    let path = std::env::join_paths(
        [PathBuf::from(&folder)]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut launch = stand.outbox.world.command(["launch", "--session", SESSION, "--sink", "gemini"]);
    launch.args(["--label", "missing", "--", &text(&bin("exit-with")), "0"]).env("PATH", path.unwrap());
    let id = hearback_tests::run(launch).ok();
    let job = eventually("it is given up", || {
        let job = stand.outbox.world.show(&id);
        (job["follow_up"]["state"] == "dead_letter").then_some(job)
    });
    let error = job["follow_up"]["error"].as_str().unwrap();
    assert!(error.contains("Invalid session identifier"), "{error}");
    assert_eq!(stand.resumed().len(), 1, "once");
}

#[test]
fn scenario_142_a_set_up_is_shown_written_once_and_taken_back() {
    let world = World::new();
    let home = world.scratch("person");
    fs::create_dir(&home).unwrap();
    let run = |args: &[&str]| {
        let mut command = world.command([&["agent", "setup", "opencode"], args].concat());
        command.env("HOME", &home).env("USERPROFILE", &home);
        hearback_tests::run(command)
    };
    let plugin = home.join(".config").join("opencode").join("plugin").join("hearback.js");
    assert!(run(&[]).ok().contains("would be written") && !plugin.exists());
    assert!(run(&["--write"]).ok().contains("written"));
    let written = fs::read_to_string(&plugin).unwrap();
    assert!(written.contains("followups") && !written.contains("{hearback}"), "{written}");
    let again = run(&["--write", "--json"]).ok();
    let again: Value = serde_json::from_str(&again).unwrap();
    assert!(again["files"].as_array().unwrap().iter().all(|file| file["changed"] == false), "{again}");
    fs::write(plugin.with_file_name("mine.js"), "").unwrap();
    run(&["--remove"]).ok();
    assert!(!plugin.exists() && plugin.with_file_name("mine.js").exists());
    fs::write(&plugin, "the user's own").unwrap();
    let refused = run(&["--write"]);
    refused.exits(125);
    assert!(refused.stderr.contains("hearback did not write it"), "{refused}");
    assert_eq!(fs::read_to_string(&plugin).unwrap(), "the user's own");
    let unknown = world.run(["agent", "setup", "gemeni"]);
    assert!(unknown.stderr.contains("there is no agent `gemeni`"), "{unknown}");
}

/// What a user may have in the configuration of an agent, with something in it that must stay.
fn own_text(path: &Path) -> &'static str {
    match path.extension().and_then(|it| it.to_str()) {
        Some("toml") => "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"y\"\n",
        _ => {
            "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": {\"command\": \"y\"}\n  }\n}\n"
        }
    }
}

#[test]
fn scenario_142_each_agent_is_set_up_and_what_the_user_has_stays() {
    let names = ["claude", "codex", "qwen", "gemini", "opencode", "copilot", "goose", "cursor", "hermes"];
    for (name, scope) in names.iter().flat_map(|name| [(*name, None), (*name, Some("--project"))]) {
        let world = World::new();
        let (home, project) = (world.scratch("person"), world.scratch("project"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&project).unwrap();
        let run = |args: &[&str]| {
            let words = [&["agent", "setup", name, "--json"], args].concat();
            let mut command = world.command(words.into_iter().chain(scope));
            command.env("HOME", &home).env("USERPROFILE", &home).current_dir(&project);
            hearback_tests::run(command)
        };
        let files = |args: &[&str]| {
            let told: Value = serde_json::from_str(&run(args).ok()).unwrap();
            told["files"].as_array().unwrap().clone()
        };
        if scope.is_some() && ["goose", "hermes"].contains(&name) {
            run(&[]).exits(125); // There is no such file.
            continue;
        }
        let shown = files(&[]);
        let path = |file: &Value| PathBuf::from(file["path"].as_str().unwrap());
        let server = shown.iter().rfind(|file| file["text"].as_str().unwrap().contains("mcp")).cloned();
        let edited = server.as_ref().filter(|file| file["state"] == "absent").map(path);
        assert!(server.is_some() || (name, scope) == ("copilot", Some("--project")), "{name} {shown:?}");
        assert!(shown.iter().all(|file| !path(file).exists()), "nothing is written without --write");
        if let Some(path) = &edited {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, own_text(path)).unwrap();
        }

        let written = files(&["--write"]);
        for file in &written {
            let by_hand = file["state"] == "by_hand";
            assert_eq!(file["changed"], !by_hand, "{name} {file}");
            assert_eq!(path(file).exists(), !by_hand, "{name} {file}");
        }
        if let Some(path) = &edited {
            let text = fs::read_to_string(path).unwrap();
            assert!(text.contains("hearback") && text.contains("mine") && text.contains("other"), "{text}");
        }
        let again = files(&["--write"]);
        assert!(again.iter().all(|file| file["changed"] == false), "{name} {again:?}");
        // Once is enough: doctor takes its time.
        if (name, scope) == ("codex", None) {
            let mut doctor = world.command(["doctor", "--json"]);
            doctor.env("HOME", &home).env("USERPROFILE", &home).current_dir(&project);
            let told: Value = serde_json::from_str(&hearback_tests::run(doctor).stdout).unwrap();
            let checks = told["checks"].as_array().unwrap();
            let check = checks.iter().find(|check| check["name"] == "agents").unwrap();
            assert_eq!(check["message"], "set up: codex", "{check}");
        }

        files(&["--remove"]);
        for file in &written {
            let path = path(file);
            if Some(&path) == edited.as_ref() {
                assert_eq!(fs::read_to_string(&path).unwrap(), own_text(&path), "{name}");
            } else {
                assert!(!path.exists(), "{name} {}", path.display());
            }
        }
    }
}

/// An open session of Claude Code that has no messaging socket is woken through hearback's hook, once, and counts as
/// told when its transcript has the text.
// Not on Windows: the processes above this one are not looked at there.
#[cfg(target_os = "linux")]
#[test]
fn scenario_141_an_open_session_without_a_socket_is_woken_by_the_hook() {
    let world = World::new();
    let config = world.scratch("claude");
    let (sessions, project) = (config.join("sessions"), config.join("projects").join("p"));
    fs::create_dir_all(&sessions).unwrap();
    fs::create_dir_all(&project).unwrap();
    // This process stands in for the agent.
    let me = std::process::id();
    let open = json!({"pid": me, "sessionId": SESSION, "kind": "interactive", "status": "idle"});
    fs::write(sessions.join("1.json"), open.to_string()).unwrap();
    let command = |words: &[&str]| {
        let mut command = world.command(words);
        command.env("CLAUDE_CONFIG_DIR", &config);
        command
    };
    let start = || {
        let mut hook = command(&["agent", "hook", "claude"]);
        hook.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut hook = hook.spawn().unwrap();
        let input = json!({"session_id": SESSION, "hook_event_name": "Stop"});
        std::io::Write::write_all(&mut hook.stdin.take().unwrap(), input.to_string().as_bytes()).unwrap();
        hook
    };
    let first = start();
    let waits = config.join("hearback").join(format!("{SESSION}.json"));
    eventually("the hook waits", || waits.exists().then_some(()));
    assert!(start().wait().unwrap().success(), "one hook waits in a session");

    let test = command(&["agent", "test", "claude", "--session", SESSION]).spawn().unwrap();
    let said = first.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(2), "the code that wakes a session");
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(text.contains("this is a sample"), "{text}");
    assert!(!waits.exists(), "the next turn has a hook of its own");
    // As Claude Code notes what it was told.
    let note = json!({"type": "queue-operation", "content": text}).to_string();
    fs::write(project.join(format!("{SESSION}.jsonl")), note).unwrap();
    assert!(test.wait_with_output().unwrap().status.success(), "the transcript has it");

    // Without a hook there is no way in; with a socket there is no need for one.
    let refused = hearback_tests::run(command(&["agent", "test", "claude", "--session", SESSION]));
    assert!(refused.to_string().contains("takes no messages there"), "{refused}");
    let open = json!({"pid": me, "sessionId": SESSION, "kind": "interactive", "messagingSocketPath": "/x"});
    fs::write(sessions.join("1.json"), open.to_string()).unwrap();
    assert!(start().wait().unwrap().success() && !waits.exists());

    // A hook ends with its agent.
    let agent = std::process::Command::new(bin("hold")).arg(world.scratch("go")).spawn().unwrap();
    let agent = hearback_tests::KillOnDrop(agent);
    let open = json!({"pid": agent.0.id(), "sessionId": SESSION, "kind": "interactive"});
    fs::write(sessions.join("1.json"), open.to_string()).unwrap();
    let mut left = start();
    eventually("the hook waits", || waits.exists().then_some(()));
    drop(agent);
    assert!(left.wait().unwrap().success() && !waits.exists());
}

#[test]
fn scenario_142_an_entry_of_the_user_and_a_file_that_cannot_be_read_are_left_alone() {
    let world = World::new();
    let home = world.scratch("person");
    let settings = home.join(".gemini").join("settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    for (text, state) in [
        ("{\"mcpServers\": {\"hearback\": {\"command\": \"mine\"}}}", "foreign"),
        ("{\"mcpServers\": ", "by_hand"),
        ("{\"mcpServers\": []}", "by_hand"),
    ] {
        fs::write(&settings, text).unwrap();
        for args in [["--write"], ["--remove"]] {
            let mut command = world.command(["agent", "setup", "gemini", "--json"].into_iter().chain(args));
            command.env("HOME", &home).env("USERPROFILE", &home);
            let told: Value = serde_json::from_str(&hearback_tests::run(command).ok()).unwrap();
            assert_eq!(told["files"][1]["state"], state, "{told}");
            assert_eq!(fs::read_to_string(&settings).unwrap(), text);
        }
    }
}

#[test]
fn scenario_142_what_the_user_put_into_the_lines_of_hearback_is_not_lost() {
    let world = World::new();
    let home = world.scratch("person");
    let config = home.join(".codex").join("config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let run = |args: &[&str]| {
        let mut command = world.command([&["agent", "setup", "codex", "--json"], args].concat());
        command.env("HOME", &home).env("USERPROFILE", &home);
        let told: Value = serde_json::from_str(&hearback_tests::run(command).ok()).unwrap();
        told["files"].as_array().unwrap().last().unwrap()["state"].clone()
    };
    let before = "model = \"x\"\n";
    fs::write(&config, before).unwrap();
    run(&["--write"]);
    let written = fs::read_to_string(&config).unwrap();
    let end = "# end of what hearback wrote";
    for added in [
        "\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n",
        "\n[mcp_servers.other]\ncommand = \"y\"\n",
        "startup_timeout_sec = 20\n",
        "\n[mcp_servers.hearback.env]\nA = \"b\"\n",
    ] {
        let text = written.replace(end, &format!("{added}{end}"));
        // As it is, and with the path of a hearback that was there before.
        for text in [text.clone(), text.replace("command = \"", "command = \"/older")] {
            fs::write(&config, &text).unwrap();
            for args in ["--write", "--remove"] {
                assert_eq!(run(&[args]), "foreign", "{text}");
                assert_eq!(fs::read_to_string(&config).unwrap(), text);
            }
        }
    }
    fs::write(&config, written.replace("command = \"", "command = \"/older")).unwrap();
    run(&["--write"]);
    assert_eq!(fs::read_to_string(&config).unwrap(), written);
    run(&["--remove"]);
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
}

// Not on Windows: there is no limit for the size of a file.
#[cfg(unix)]
#[test]
fn scenario_142_a_set_up_that_cannot_be_written_leaves_no_half_of_a_file() {
    let world = World::new();
    let home = world.scratch("person");
    for (name, path) in [("gemini", ".gemini/skills/hearback/SKILL.md"), ("cursor", ".cursor/mcp.json")] {
        let mut command = std::process::Command::new("sh");
        world.settle(&mut command);
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]).arg(bin("hearback"));
        command.args(["agent", "setup", name, "--write"]).env("HOME", &home);
        hearback_tests::run(command).exits(125);
        let folder = home.join(path).parent().unwrap().to_owned();
        let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn doctor_names_the_configuration_of_an_agent_that_cannot_be_read() {
    let world = World::new();
    let home = world.scratch("person");
    let config = home.join(".codex").join("config.toml");
    // A folder is no file, also for a person who may read everything.
    fs::create_dir_all(&config).unwrap();
    let mut doctor = world.command(["doctor", "--json"]);
    doctor.env("HOME", &home).env("USERPROFILE", &home).current_dir(&home);
    let told: Value = serde_json::from_str(&hearback_tests::run(doctor).stdout).unwrap();
    let check = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == "agents").unwrap();
    let message = check["message"].as_str().unwrap();
    assert_eq!(check["level"], "warn", "{check}");
    assert!(message.starts_with("cannot be read: ") && message.contains("config.toml"), "{check}");
    // Only what it is about.
    assert!(!message.contains("gemini"), "{check}");
}

/// A call of hearback by a plugin leaves nothing behind in the agent, which lives for days.
#[test]
fn a_plugin_listens_to_the_end_of_its_agent_only_while_it_waits() {
    let node = || std::process::Command::new("node");
    if node().arg("--version").output().is_err() {
        return skipped("it needs Node.js");
    }
    let world = World::new();
    let script = world.scratch("calls.mjs");
    let plugin = include_str!("../../../crates/hearback/src/setup/follow_ups.js");
    for program in [text(&bin("exit-with")), text(&world.scratch("no-such-program"))] {
        let program = serde_json::to_string(&program).unwrap();
        let calls = plugin.replace("\"{hearback}\"", &program);
        let count = "process.listenerCount('exit')";
        fs::write(
            &script,
            format!(
                "{calls}\nconst before = {count}\nlet during = 0\nfor (let n = 0; n < 20; n++) {{\n  \
                 const call = hearback('0')\n  during = Math.max(during, {count})\n  await call\n}}\n\
                 console.log(during - before, {count} - before)\n"
            ),
        )
        .unwrap();
        let mut command = node();
        command.arg(&script);
        assert_eq!(hearback_tests::run(command).ok().trim(), "1 0");
    }
}
