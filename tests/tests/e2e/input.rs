//! The input of a job: other processes write to it, and end it.

use std::io::Write as _;
use std::process::Stdio;

use hearback_tests::{KillOnDrop, World, bin, eventually, killat, run};
use serde_json::json;

/// A job that says what it reads.
fn reader(world: &World, options: &[&str]) -> String {
    let reader = bin("reader");
    let reader = reader.to_str().unwrap();
    world.launch([&["-q", "--stdin", "--label", "reader", "--", reader], options].concat())
}

/// What a reader has said so far, as lines.
fn said(world: &World, id: &str) -> Vec<String> {
    world.run(["logs", id]).ok().lines().map(str::to_owned).collect()
}

/// Starts `write JOB -`, whose input is a pipe of the test.
fn writer(world: &World, id: &str) -> KillOnDrop {
    let mut command = world.command(["write", id, "-"]);
    KillOnDrop(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
}

#[test]
fn scenario_155_a_job_reads_what_is_written_and_its_end() {
    let world = World::new();
    let id = reader(&world, &[]);
    world.show(&id).has("/takes_input", true);
    world.run(["write", "reader", "first", "--newline"]).ok();
    eventually("it was read", || said(&world, &id).contains(&"line: first".to_owned()).then_some(()));
    let written = world.json(["write", &id, "second\nthird\n", "--eof", "--json"]);
    assert_eq!(written, json!({ "format": 1, "id": id, "bytes": 13, "ended": true }));
    world.run(["wait", &id]).ok();
    assert_eq!(said(&world, &id), ["line: first", "line: second", "line: third", "end: 19 bytes"]);
    // Nothing of it is stored but what the job printed, and the place of its input is gone.
    assert!(!world.job_dir(&id).join("input").exists());
    world.run(["write", &id, "more"]).refuses(1).says("the job has ended: done: exit code 0");
}

#[test]
fn scenario_39_the_input_can_be_ended_without_text_and_only_once() {
    let (world, gate) = (World::new(), "gate");
    let gate = world.scratch(gate);
    let id = reader(&world, &["--after", gate.to_str().unwrap()]);
    world.run(["write", &id, "last"]).ok();
    world.run(["write", &id, "--eof"]).ok();
    // To say it again changes nothing, and more text is refused.
    world.run(["write", &id, "--eof"]).ok();
    world.run(["write", &id, "more"]).refuses(1).says("the input of the job has ended");
    fs_err::write(&gate, "").unwrap();
    world.run(["wait", &id]).ok();
    assert_eq!(said(&world, &id), ["end: 4 bytes"]);
}

#[test]
fn scenario_155_a_job_without_input_says_so() {
    let world = World::new();
    let id = world.launch([bin("hold"), world.scratch("gate")]);
    let refused = world.run(["write", &id, "text"]);
    refused
        .refuses(1)
        .says("the job takes no input: it was launched without `--stdin`")
        .says("launch --stdin");
    let error = world.run(["write", "--json", &id, "text"]);
    let error: serde_json::Value = serde_json::from_str(&error.exits(1).stdout).unwrap();
    assert_eq!((&error["bytes"], &error["error"]["kind"]), (&json!(0), &json!("no_input")));
    world.run(["write", "nosuchjob", "text"]).refuses(1);
    world.run(["write", &id]).refuses(2);
    let mut denied = world.command(["write", &id, "text"]);
    run({
        denied.env("HEARBACK_DENY", "write");
        denied
    })
    .refuses(2)
    .says("may not `write`");
    world.run(["kill", &id]).ok();
}

#[test]
fn scenario_155_a_job_that_does_not_read_makes_its_writer_wait() {
    let world = World::new();
    let gate = world.scratch("gate");
    let id = reader(&world, &["--after", gate.to_str().unwrap()]);
    // More than any pipe holds.
    let text = "x".repeat(99) + "\n";
    let file = world.scratch("text");
    fs_err::write(&file, text.repeat(20_000)).unwrap();
    let mut command = world.command(["write", &id, "-", "--timeout", "200ms", "--json"]);
    command.stdin(fs_err::File::open(&file).unwrap().into_parts().0);
    let given_up: serde_json::Value = serde_json::from_str(&run(command).exits(75).stdout).unwrap();
    let bytes = given_up["bytes"].as_u64().unwrap();
    assert!((1..2_000_000).contains(&bytes), "{given_up}");
    assert_eq!(given_up["error"]["kind"], "deadline");
    // What was counted is what the job reads, and no byte more or less: the rest comes behind it.
    fs_err::write(&gate, "").unwrap();
    world.run(["write", &id, "the end", "--eof"]).ok();
    world.run(["wait", &id]).ok();
    assert_eq!(said(&world, &id).last().unwrap(), &format!("end: {} bytes", bytes + 7));
}

// Not on Windows: no safe call closes a standard handle, and the fixtures make no other.
#[cfg(unix)]
#[test]
fn scenario_155_a_job_that_closed_its_input_refuses_a_writer() {
    let world = World::new();
    let gate = world.scratch("gate");
    let id = reader(&world, &["--close", "--after", gate.to_str().unwrap()]);
    eventually("it closed its input", || said(&world, &id).contains(&"closed".to_owned()).then_some(()));
    let text = world.scratch("text");
    fs_err::write(&text, vec![b'x'; 2_000_000]).unwrap();
    let mut command = world.command(["write", &id, "-"]);
    command.stdin(fs_err::File::open(&text).unwrap().into_parts().0);
    run(command).refuses(1).says("the job reads no more input");
    fs_err::write(&gate, "").unwrap();
    world.run(["wait", &id]).ok();
}

#[test]
fn scenario_155_what_two_processes_write_is_not_mixed() {
    let world = World::new();
    let id = reader(&world, &[]);
    let write = |letter: &str| {
        let file = world.scratch(letter);
        fs_err::write(&file, (letter.repeat(9) + "\n").repeat(20_000)).unwrap();
        let mut command = world.command(["write", &id, "-"]);
        command.stdin(fs_err::File::open(&file).unwrap().into_parts().0);
        run(command).ok();
    };
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c"] {
            scope.spawn(move || write(letter));
        }
    });
    world.run(["write", &id, "--eof"]).ok();
    world.run(["wait", &id]).ok();
    let mut lines = said(&world, &id);
    assert_eq!(lines.pop().unwrap(), "end: 600000 bytes");
    lines.dedup();
    assert_eq!(lines.len(), 3, "each writer's lines stand side by side");
}

#[test]
fn scenario_155_a_writer_that_is_killed_harms_no_other() {
    let world = World::new();
    let id = reader(&world, &[]);
    let mut killed = writer(&world, &id);
    killed.0.stdin.as_mut().unwrap().write_all(b"half of a ").unwrap();
    eventually("it wrote", || {
        // It still holds its turn: another one that does not wait gives up.
        let other = world.run(["write", &id, "x", "--timeout", "1ms"]);
        (other.code == Some(75)).then_some(())
    });
    drop(killed);
    world.run(["write", &id, "line", "--newline", "--eof"]).ok();
    world.run(["wait", &id]).ok();
    let said = said(&world, &id);
    assert!(said[0].starts_with("line: ") && said[0].ends_with("line"), "{said:?}");
    world.show(&id).exited(0);
}

/// A writer that ends the input is killed at any call: the job has what was written, or not, and goes on. The next
/// process that ends the input ends it.
#[test]
fn a_writer_killed_at_any_call_leaves_a_job_that_can_be_written_to_or_has_its_end() {
    if !killat::is_there() {
        return;
    }
    let world = World::new();
    let counted = reader(&world, &[]);
    let calls = killat::count(&world, &[], &["write", &counted, "text\n", "--eof"]);
    world.run(["wait", &counted]).ok();
    let tried = killat::at_each(1..=calls, 60, |n| {
        let world = World::new();
        let id = reader(&world, &[]);
        killat::run(&world, &["kill", &n.to_string()], &["write", &id, "text\n", "--eof"]);
        world.run(["write", &id, "--eof"]);
        world.run(["wait", &id]).ok();
        let said = said(&world, &id);
        let said: Vec<_> = said.iter().map(String::as_str).collect();
        assert!(said == ["end: 0 bytes"] || said == ["line: text", "end: 5 bytes"], "at {n}: {said:?}");
    });
    assert!(tried > 0);
}

// Not on Windows: the supervisor copies there.
#[cfg(target_os = "linux")]
#[test]
fn scenario_155_much_input_passes_without_waking_the_supervisor() {
    const BYTES: u64 = 1 << 30;
    let world = World::new();
    let id = reader(&world, &[]);
    let supervisor = world.supervisor(&id);
    let woken = || {
        let status = fs_err::read_to_string(format!("/proc/{supervisor}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    eventually("it sleeps", || {
        let before = woken();
        std::thread::sleep(std::time::Duration::from_millis(50));
        (woken() == before).then_some(())
    });
    let before = woken();
    let bytes = if hearback_tests::is_full() { BYTES } else { BYTES / 8 };
    let file = world.scratch("much");
    // A file without content reads as zeroes.
    fs_err::File::create(&file).unwrap().set_len(bytes).unwrap();
    let mut command = world.command(["write", &id, "-"]);
    command.stdin(fs_err::File::open(&file).unwrap().into_parts().0);
    run(command).ok();
    assert_eq!(woken(), before, "it slept all the time");
    world.run(["write", &id, "--eof"]).ok();
    world.run(["wait", &id]).ok();
    assert_eq!(said(&world, &id), [format!("end: {bytes} bytes")]);
}
