//! Text that looks like a credential, and values of variables that hold secrets: what is stored and shown of them.

use std::path::{Path, PathBuf};

use fs_err as fs;
use hearback_tests::{Outbox, Snapshot, World, bin, eventually, run};
use serde_json::Value;

pub(crate) const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
pub(crate) const MASK: &str = "[masked: GitHub token]";

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

/// The log of a job, whose folder moves to the history when it is settled.
fn log_of(world: &World, id: &str) -> String {
    eventually("its log is there", || fs::read_to_string(world.job_dir(id).join("output.log")).ok())
}

/// The files of a store that hold these bytes, by their names alone.
#[track_caller]
fn holding(world: &World, bytes: &str) -> Vec<PathBuf> {
    let seen = Snapshot::of(world.home());
    let names = seen.holding(bytes.as_bytes()).into_iter().map(|path| path.file_name().unwrap().into());
    names.collect()
}

#[test]
fn scenario_133_a_token_in_a_command_reaches_the_job_and_is_stored_only_in_its_log() {
    let outbox = Outbox::new(&[]);
    let world = &outbox.world;
    let exit_with = text(&bin("exit-with"));
    let words = ["launch", "--label", &format!("with {TOKEN}"), "--", &exit_with, "3", "--print", TOKEN];
    let id = outbox.run_as("s", &words).ok();
    outbox.receipt(&id);
    assert_eq!(log_of(world, &id).trim_end(), TOKEN);
    assert_eq!(holding(world, TOKEN), [PathBuf::from("output.log")]);
    let sent = outbox.sent(&id, 1).to_string();
    assert!(!sent.contains(TOKEN) && sent.contains(MASK), "{sent}");
    assert_eq!(world.show(&id)["command"]["argv"][3], MASK);
    let logs = ["logs", "--peek", &id];
    for args in [
        &["show", &id][..],
        &["show", &id, "--json"],
        &["list", "--all"],
        &["list", "--all", "--json"],
        &logs,
        &[&logs[..], &["--raw"]].concat(),
        &[&logs[..], &["--follow"]].concat(),
        &[&logs[..], &["--json"]].concat(),
        &[&logs[..], &["--json", "--follow"]].concat(),
        &[&logs[..], &["--max-bytes", "10"]].concat(),
        &[&logs[..], &["--offset", "9"]].concat(),
        &[&logs[..], &["--json", "--offset", "9"]].concat(),
    ] {
        let shown = outbox.run_as("s", args);
        assert!(!(shown.stdout + &shown.stderr).contains(&TOKEN[9..]), "{args:?}");
    }
    // A reason is recorded with the outcome.
    let go = outbox.gate("go");
    let held = outbox.launch(&[], "hold", &[&go]);
    world.run(["kill", &held, "--reason", &format!("leaked {TOKEN}")]).ok();
    outbox.receipt(&held);
    assert_eq!(world.show(&held)["outcome"]["reason"], format!("leaked {MASK}"));
    assert_eq!(holding(world, TOKEN), [PathBuf::from("output.log")]);
}

#[test]
fn scenario_133_text_for_a_shell_with_a_token_is_not_kept_after_the_end() {
    let outbox = Outbox::pull();
    let world = &outbox.world;
    // Nobody takes the follow-up, so the job stays open.
    let id = outbox.run_as("s", &["launch", "--shell", &format!("echo {TOKEN}")]).ok();
    world.run(["wait", "--peek", &id]).ok();
    eventually("the script is gone", || {
        (holding(world, TOKEN) == [PathBuf::from("output.log")]).then_some(())
    });
    assert_eq!(world.show(&id)["command"]["shell"], format!("echo {MASK}"));
    let log = log_of(world, &id);
    assert_eq!(log.trim_end(), TOKEN, "it ran as it was typed");
}

// Not on Windows: its shell runs each line of padding as a command, which takes minutes.
#[cfg(unix)]
#[test]
fn scenario_133_a_long_command_with_a_token_is_handed_over_whole() {
    let world = World::new();
    // More than a pipe holds.
    let text = format!("echo {TOKEN}\n{}", "# padding\n".repeat(30_000));
    let script = world.scratch("script");
    fs::write(&script, text).unwrap();
    let mut command = world.command(["launch", "--wait", "--quiet", "--shell", "-"]);
    command.stdin(fs::File::open(&script).unwrap().into_file());
    let id = run(command).ok();
    assert_eq!(world.run(["logs", "--peek", &id]).ok().trim_end(), MASK);
    assert_eq!(holding(&world, TOKEN), [PathBuf::from("output.log")]);
}

#[test]
fn scenario_133_the_same_key_with_a_fresh_token_is_the_same_job() {
    let world = World::new();
    let exit_with = text(&bin("exit-with"));
    let launch = |token: &str, more: &str| {
        world.run(["launch", "--key", "k", "--", &exit_with, "0", "--print", token, "--eprint", more])
    };
    let id = launch(TOKEN, "x").ok();
    assert_eq!(launch(&TOKEN.to_uppercase().replace("GHP_", "ghp_"), "x").ok(), id);
    assert_eq!(launch(TOKEN, "y").code, Some(2), "another command is another command");
}

#[test]
fn scenario_133_a_setting_keeps_credentials_as_they_are() {
    let outbox = Outbox::with("mask_credentials = false", "", &[]);
    let exit_with = text(&bin("exit-with"));
    let id = outbox.run_as("s", &["launch", "--", &exit_with, "0", "--print", TOKEN]).ok();
    outbox.receipt(&id);
    assert_eq!(outbox.world.show(&id)["command"]["argv"][3], TOKEN);
    assert!(outbox.sent(&id, 1).to_string().contains(&format!("| {TOKEN}")));
    assert_eq!(outbox.run_as("s", &["logs", "--peek", &id]).ok().trim_end(), TOKEN);
    let mut command = outbox.command_as("s", &["show", "--json", &id]);
    command.env("HEARBACK_MASK_CREDENTIALS", "true");
    let shown: Value = serde_json::from_str(&run(command).ok()).unwrap();
    assert_eq!(shown["command"]["argv"][3], MASK, "what was stored before is masked when it is shown");
}

#[test]
fn scenario_133_a_variable_that_a_launch_sets_reaches_the_job_though_it_is_a_secret() {
    const VALUE: &str = "hush-4711-hush";
    let outbox = Outbox::with("secrets = [\"API_TOKEN\", \"OTHER_TOKEN\"]", "", &[]);
    let (set, named, show_env) = (format!("API_TOKEN={VALUE}"), format!("x-{VALUE}"), text(&bin("show-env")));
    let words = ["launch", "-e", &set, "--", &show_env, "API_TOKEN", "OTHER_TOKEN", &named];
    let mut command = outbox.command_as("s", &words);
    command.env("API_TOKEN", "another-one").env("OTHER_TOKEN", "inherited");
    let id = run(command).ok();
    outbox.receipt(&id);
    let log = log_of(&outbox.world, &id);
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[..2], [format!("API_TOKEN={VALUE}").as_str(), "OTHER_TOKEN unset"]);
    // The supervisor delivers, and knows the value as well as the launcher.
    let sent = outbox.sent(&id, 1).to_string();
    assert!(!sent.contains(VALUE) && sent.contains("API_TOKEN=[API_TOKEN]"), "{sent}");
    assert_eq!(holding(&outbox.world, VALUE), [PathBuf::from("output.log")]);
    assert_eq!(outbox.world.show(&id)["command"]["argv"][3], "x-[API_TOKEN]");
    // A process without the value knows it by its form.
    assert!(!outbox.run_as("s", &["logs", "--peek", &id]).ok().contains(&format!("API_TOKEN={VALUE}")));
}

/// A private key, whose lines are no credentials by themselves.
fn key() -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", format!("{line}\n").repeat(25))
}

#[test]
fn scenario_133_a_key_is_masked_wherever_its_block_is_cut() {
    let outbox = Outbox::with("notice_bytes = '1KiB'", "", &[]);
    let printed = format!("first\n{}{}last\n", key(), "x\n".repeat(300));
    let exit_with = text(&bin("exit-with"));
    let id = outbox.run_as("s", &["launch", "--", &exit_with, "0", "--print", &printed]).ok();
    outbox.receipt(&id);
    let sent = outbox.sent(&id, 1).to_string();
    assert!(!sent.contains("MIIEvQ") && sent.contains("last"), "{sent}");
    for args in [
        &["show", &id][..],
        &["logs", "--peek", &id],
        &["logs", "--peek", &id, "--tail", "310"],
        &["logs", "--peek", &id, "--offset", "200"],
        &["logs", "--peek", &id, "--json", "--offset", "1000"],
        &["logs", "--peek", &id, "--max-bytes", "3000"],
        &["logs", "--peek", &id, "--json", "--max-bytes", "3000"],
        &["logs", "--peek", &id, "--follow"],
    ] {
        let shown = outbox.run_as("s", args).ok();
        assert!(!shown.contains("kqhkiG9w0BAQ") && shown.contains('x'), "{args:?}: {shown}");
    }
}
