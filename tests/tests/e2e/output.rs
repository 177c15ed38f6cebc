//! What a job prints: how much of it is kept, and how it is read while it grows and after.
//!
//! By default a flood has 1 GiB; with `HEARBACK_TEST_FULL=1` it has ten.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;

use fs_err as fs;
use hearback_tests::{KillOnDrop, World, args, bin, eventually};
#[cfg(any(target_os = "linux", windows))]
use hearback_tests::{is_full, is_real_windows, is_wine, scaled};
use serde_json::Value;

const MIB: u64 = 1024 * 1024;
/// The lines of `print`.
const LINE: u64 = 80;

fn program(name: &str) -> String {
    bin(name).into_os_string().into_string().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Reads what a follower of `print` printed: every line in its order, and every gap reported to the byte. Returns how
/// many bytes that makes, and how often there was a gap. A line may be cut by a gap that came while it was printed.
fn check_stream(stream: impl Read) -> (u64, u64) {
    let (mut at, mut gaps) = (0, 0);
    for line in BufReader::new(stream).split(b'\n') {
        let line = String::from_utf8(line.unwrap()).unwrap();
        if let Some(mark) = line.strip_prefix("[hearback: ") {
            at += mark.split(' ').next().unwrap().parse::<u64>().unwrap();
            gaps += 1;
        } else {
            assert_eq!(line.get(..10), Some(&format!("{:010}", at / LINE)[..]), "at byte {at}");
            assert_eq!(at % LINE, 0, "a line begins where the last one ended: {line}");
            let whole = line.len() as u64 == LINE - 1;
            at += if whole { LINE } else { line.len() as u64 };
        }
    }
    (at, gaps)
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn a_flood_stays_within_its_cap_and_every_byte_is_accounted_for() {
    let full = is_full();
    let flood = if full { 10_240 } else { scaled(1024, 128) } * MIB / LINE * LINE;
    let world = World::new();
    let bytes = flood.to_string();
    let id = world.launch(["--log-cap", "8MiB", "--", &program("print"), "--bytes", &bytes]);
    let log = world.job_dir(&id).join("output.log");
    let supervisor = world.supervisor(&id);
    // One that reads the first lines and is then held up until everything has ended.
    let mut slow = world.command(["logs", "-f", &id]);
    let mut slow = KillOnDrop(slow.stdout(Stdio::piped()).spawn().unwrap());
    let mut stream = BufReader::new(slow.0.stdout.take().unwrap());
    let mut first = String::new();
    stream.read_line(&mut first).unwrap();
    // Wine ends a program whose large write to a pipe is interrupted, so there no reader is held up.
    let (over, held_up) = std::sync::mpsc::channel::<()>();
    let followed = std::thread::spawn(move || {
        let _ = if is_wine() { Ok(()) } else { held_up.recv() };
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        rest
    });

    let own_kib = own_kib(supervisor, &id);
    // Wine has libraries of its own in there.
    let without_it = if is_wine() { own_kib().unwrap_or(0) } else { 0 };
    let (mut samples, mut most_on_disk, mut most_memory) = (0_u64, 0, 0);
    while log.exists() {
        // At the end it is moved away.
        most_on_disk = most_on_disk.max(hearback_platform::probe::allocated(&log).unwrap_or(0));
        // Where a program has to be started for it, less often.
        if !is_real_windows() || samples % 1000 == 0 {
            most_memory = most_memory.max(own_kib().unwrap_or(0).saturating_sub(without_it));
        }
        samples += 1;
        if !hearback_tests::alive(supervisor) {
            break;
        }
    }
    assert_eq!(world.run(["wait", &id]).code, Some(0));
    println!("{samples} looks: at most {most_on_disk} bytes on disk, {most_memory} KiB of memory");
    assert!(samples > 20, "{samples} looks are no proof");
    assert!(most_on_disk <= 9 * MIB, "{most_on_disk} bytes on disk");
    assert!(most_memory < 8 * 1024, "{most_memory} KiB of its own");

    let job = world.show(&id);
    let printed = &job["output"];
    assert_eq!(number(&printed["bytes"]), flood, "{printed}");
    let gap = &printed["gaps"][0];
    assert_eq!(gap["reason"], "cap", "{printed}");
    assert_eq!(number(&gap["end"]) - number(&gap["start"]), number(&printed["dropped"]), "{printed}");
    let kept = flood - number(&printed["dropped"]);
    assert!((6 * MIB..=8 * MIB).contains(&kept), "{kept} of 8 MiB are used");
    let size = |name| fs::metadata(world.job_dir(&id).join(name)).map_or(0, |found| found.len());
    if is_wine() {
        // It punches no holes.
        assert_eq!(size("output.log") + size("output.tail"), kept);
    } else {
        assert_eq!(size("output.log"), flood, "offsets stay valid");
    }

    assert!(world.run(["logs", &id, "--head", "1"]).ok().starts_with("0000000000 "));
    let last = format!("{:010} ", flood / LINE - 1);
    assert!(world.run(["logs", &id, "--tail", "1"]).ok().starts_with(&last));
    let whole = world.run(["logs", &id]).stdout;
    assert_eq!(check_stream(whole.as_bytes()), (flood, 1));
    let from = (number(&gap["end"]) + 10 * LINE).next_multiple_of(LINE);
    let rest = world.run(["logs", &id, "--offset", &from.to_string()]).stdout;
    assert_eq!(rest.len() as u64, flood - from);
    assert!(rest.starts_with(&format!("{:010} ", from / LINE)));

    drop(over);
    let (seen, gaps) = check_stream(first.as_bytes().chain(&*followed.join().unwrap()));
    assert_eq!(seen, flood);
    assert_eq!(gaps, 1, "what was cut while it was held up is reported once");
    assert!(slow.0.wait().unwrap().success());
}

/// What the supervisor of a job has for itself. The pages of its program, of which a debug build has many, are not
/// among that.
#[cfg(target_os = "linux")]
fn own_kib(supervisor: u32, _id: &str) -> impl Fn() -> Option<u64> {
    move || own_kib_by(&format!("/proc/{supervisor}/status"))
}

#[cfg(windows)]
fn own_kib(supervisor: u32, id: &str) -> Box<dyn Fn() -> Option<u64>> {
    if is_wine() {
        let host = hearback_tests::outside::find(&format!("__supervise {id}"));
        assert_eq!(host.len(), 1, "{host:?}");
        return Box::new(move || own_kib_by(&format!(r"Z:\proc\{}\status", host[0])));
    }
    let script = format!("[long]((Get-Process -Id {supervisor}).PrivateMemorySize64 / 1KB)");
    Box::new(move || {
        let mut command = std::process::Command::new("powershell");
        command.args(["-NoProfile", "-Command", &script]);
        hearback_tests::run(command).stdout.trim().parse().ok()
    })
}

#[cfg(any(target_os = "linux", windows))]
fn own_kib_by(status: &str) -> Option<u64> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn scenario_71_a_job_that_prints_without_end_is_trimmed_or_ended_as_it_was_launched() {
    let world = World::new();
    let endless = u64::MAX.to_string();
    let launch = |over: &str| {
        world.launch(["--log-cap", "1MiB", "--over-cap", over, "--", &program("print"), "--bytes", &endless])
    };
    let (trimmed, ended) = (launch("trim"), launch("kill"));

    let waited = world.run(["wait", &ended]);
    assert!(!matches!(waited.code, Some(0) | None), "{waited:?}");
    let job = world.show(&ended);
    assert_eq!(job["outcome"]["kind"], "killed", "{job}");
    assert_eq!(job["outcome"]["by"], "output_limit", "{job}");
    assert!(
        waited.stdout.starts_with("killed: by its output limit, its output exceeded 1048576 bytes"),
        "{waited:?}"
    );

    // Where holes are punched, a running job reports what it has dropped. Elsewhere only its end does.
    if cfg!(unix) || hearback_tests::is_real_windows() {
        let so_far = eventually("it prints on", || {
            let output = world.show(&trimmed)["output"].clone();
            (number(&output["bytes"]) > 8 * MIB).then_some(output)
        });
        assert!(number(&so_far["dropped"]) >= 7 * MIB, "{so_far}");
        let shown = world.run(["logs", &trimmed]).stdout;
        assert!(
            shown.len() as u64 <= 2 * MIB && shown.contains("dropped here by the log cap"),
            "{}",
            shown.len()
        );
    }
    assert_eq!(world.show(&trimmed)["state"], "running");
    assert_eq!(world.run(["kill", &trimmed]).code, Some(0));
    let (seen, gaps) = check_stream(&*cut_last_line(&world.run(["logs", &trimmed]).stdout));
    assert!(seen > MIB && gaps == 1, "{seen} {gaps}");
}

/// Without the line that an end by force has cut.
fn cut_last_line(text: &str) -> Vec<u8> {
    text[..=text.rfind('\n').unwrap()].into()
}

#[test]
fn scenario_70_a_huge_log_is_read_within_a_budget_and_little_memory() {
    let world = World::new();
    // As much as that is seldom printed; under Wine less will do.
    let gib = hearback_tests::scaled(1024, 32) * MIB;
    let id = world.launch([
        "--log-cap",
        "none",
        "--",
        &program("print"),
        "--bytes",
        &gib.to_string(),
        "--line-length",
        "128",
    ]);
    assert_eq!(world.run(["wait", &id]).code, Some(0));
    // With room for the program and no more than a few blocks, where a limit can be set.
    let limited = |args: &[&str]| {
        if !cfg!(target_os = "linux") {
            return world.run(args);
        }
        let mut command = std::process::Command::new("sh");
        world.settle(&mut command);
        command.args(["-c", "ulimit -v 65536; exec \"$@\"", "sh"]).arg(bin("hearback")).args(args);
        hearback_tests::run(command)
    };
    let ran = limited(&["logs", &id, "--max-bytes", "16000"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.len() <= 16_100, "{}", ran.stdout.len());
    let lines: Vec<_> = ran.stdout.lines().collect();
    let mark = lines.iter().position(|line| line.starts_with("[hearback: ")).unwrap();
    let shown = (lines.len() - 1) as u64 * 128;
    assert_eq!(lines[mark], format!("[hearback: {} bytes left out here]", gib - shown));
    assert!(lines[0].starts_with("0000000000 ") && lines[mark + 1].len() == 127, "whole lines at the cut");
    assert!(lines.last().unwrap().starts_with(&format!("{:010} ", gib / 128 - 1)));

    for (args, lines) in [(&["--tail", "3"][..], 3), (&["--head", "5"], 5)] {
        let ran = limited(&[&["logs", &id], args].concat());
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), lines), "{args:?}");
    }
    let document: Value =
        serde_json::from_str(&limited(&["logs", &id, "--max-bytes", "16000", "--json"]).ok()).unwrap();
    assert_eq!(number(&document["bytes"]), gib);
    let left_out = &document["parts"][1];
    assert_eq!((&left_out["missing"], document["parts"].as_array().unwrap().len()), (&"left_out".into(), 3));
    assert_eq!(number(&left_out["end"]) - number(&left_out["offset"]), gib - shown);
}

#[test]
fn a_follower_sees_everything_as_it_comes_and_ends_with_the_job() {
    let world = World::new();
    let go = world.scratch("go");
    let hold = program("hold");
    let id = world.launch(["--", &hold, &go.to_string_lossy(), "--print", "first", "--code", "3"]);
    let mut follower = world.command(["logs", "--follow", &id]);
    let mut follower = KillOnDrop(follower.stdout(Stdio::piped()).spawn().unwrap());
    let mut stream = BufReader::new(follower.0.stdout.take().unwrap());
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n", "before the job has ended");
    fs::write(&go, "").unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(follower.0.wait().unwrap().success(), "how the job ended is not what was asked");

    // The log of a job that has ended is printed once; an unknown job is not found.
    assert_eq!(world.run(["logs", "-f", &id]).ok(), "first");
    assert_eq!(world.run(["logs", "-f", "zzzz"]).code, Some(1));
    let lines = world.run(["logs", "-f", &id, "--json"]).ok();
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [object, last] = &objects[..] else { panic!("{lines}") };
    assert_eq!((object["offset"].as_u64(), object["end"].as_u64()), (Some(0), Some(6)), "{object}");
    assert_eq!(crate::json::log_text(object), "first\n");
    assert_eq!((&*crate::json::log_text(last), &last["outcome"]["kind"]), ("", &"exited".into()), "{last}");
}

#[test]
fn a_follower_of_a_silent_job_sleeps_and_hears_that_its_supervisor_was_killed() {
    let world = World::new();
    let go = world.scratch("go");
    let id = world.launch(["--", &program("hold"), &go.to_string_lossy(), "--print", "quiet"]);
    let mut follower = world.command(["logs", "-f", &id]);
    let mut follower = KillOnDrop(follower.stdout(Stdio::piped()).spawn().unwrap());
    let mut stream = BufReader::new(follower.0.stdout.take().unwrap());
    stream.read_line(&mut String::new()).unwrap();
    if cfg!(not(target_os = "linux")) {
        hearback_tests::skipped("how often a follower wakes is counted where `/proc` tells");
    }
    let switches = || {
        if !cfg!(target_os = "linux") {
            return 0;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", follower.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = switches();
    // The span over which is counted, not a wait for anything.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let woken = switches() - before;
    assert!(woken <= 12, "woken {woken} times in three seconds");

    world.end_supervisor(&id);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(follower.0.wait().unwrap().success());
    assert_eq!(world.show(&id)["outcome"]["kind"], "lost");
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn a_file_system_that_cannot_punch_keeps_a_head_and_a_short_tail() {
    use hearback_tests::{Mount, with_private_mounts};

    with_private_mounts(|| {
        let world = World::new();
        fs::create_dir(world.home()).unwrap();
        let _disk = Mount::new("ramfs", "mode=0700", world.home());
        let bytes = 20 * MIB / LINE * LINE;
        let id = world.launch(["--log-cap", "1MiB", "--", &program("print"), "--bytes", &bytes.to_string()]);
        let followed = world.run(["logs", "-f", &id]).stdout;
        assert_eq!(world.run(["wait", &id]).code, Some(0));
        let output = world.show(&id)["output"].clone();
        assert_eq!(number(&output["bytes"]), bytes, "{output}");
        let kept = bytes - number(&output["dropped"]);
        let size = |name| fs::metadata(world.job_dir(&id).join(name)).unwrap().len();
        let stored = size("output.log") + size("output.tail");
        assert_eq!(stored, kept, "nothing is stored for what is not there");
        assert!((MIB - 64 * 1024..=MIB).contains(&kept), "{kept}");
        let (seen, gaps) = check_stream(world.run(["logs", &id]).stdout.as_bytes());
        assert_eq!((seen, gaps), (bytes, 1));
        let last = format!("{:010} ", bytes / LINE - 1);
        assert!(world.run(["logs", &id, "--tail", "1"]).ok().starts_with(&last));
        // A follower saw the head as it came, and then the same end.
        assert_eq!(check_stream(followed.as_bytes()), (bytes, 1));
    });
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn a_terminal_is_spared_what_it_would_obey_and_a_pipe_gets_every_byte() {
    let world = World::new();
    let printed = b"\x1b[31mred\x1b[0m\x07\0 10%\r20%\n\xff\n";
    let hex: String = printed.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = world.launch(["--", &program("print"), "--hex", &hex]);
    world.run(["wait", &id]);
    assert_eq!(world.command(["logs", &id]).output().unwrap().stdout, printed);

    let shown = |args: &[&str]| {
        let logs = world.command([&["logs", &id], args].concat());
        hearback_tests::Terminal::run(&logs).finish().stdout
    };
    for args in [&[][..], &["--max-bytes", "1000"]] {
        assert_eq!(shown(args), "20%\n\u{fffd}\n", "{args:?}: the last state of the bar");
    }
    // While it is followed, the terminal itself overwrites the bar.
    let followed = shown(&["-f"]);
    let is_drawn = !cfg!(unix) || followed.starts_with("\x1b[31mred\x1b[0m 10%\r20%\n\u{fffd}\n");
    assert!(is_drawn && !followed.contains('\x07'), "{followed:?}");
    let raw = shown(&["--raw"]);
    match () {
        () if cfg!(unix) => assert!(raw.starts_with("\x1b[31mred\x1b[0m\x07\0 10%\r20%"), "{raw:?}"),
        // A console takes text only, and obeys: the second figure is over the word.
        () if is_real_windows() => assert!(raw.starts_with("20% 10%\n\u{fffd}\n"), "{raw:?}"),
        // Wine's console puts the sequences among the text instead.
        () => assert!(raw.contains("red 10%\n\u{fffd}\n"), "{raw:?}"),
    }
}

#[test]
fn the_path_of_a_log_is_the_same_before_and_after_the_job_is_settled_and_goes_with_the_job() {
    let world = World::new();
    let go = world.scratch("go");
    let id = world.launch(args!["--", bin("hold"), go, "--print", "held"]);
    let path = |document: &Value| PathBuf::from(document["output"]["path"].as_str().unwrap());
    let while_running = path(&world.show(&id));
    eventually("it has printed", || fs_err::read(&while_running).unwrap().starts_with(b"held").then_some(()));
    fs_err::write(&go, "").unwrap();
    world.run(["wait", &id]).ok();
    eventually("it is in history", || {
        world.run(["reconcile"]).ok();
        world.job_dir(&id).starts_with(world.home().join("history")).then_some(())
    });
    assert!(fs_err::read(&while_running).unwrap().starts_with(b"held"));
    assert_eq!(path(&world.show(&id)), while_running);
    assert_eq!(path(&world.json(["list", "--json"])["jobs"][0]), while_running);
    // A log whose job a person has removed goes with the next prune.
    let orphan = world.home().join("logs").join("1k9xft7g10000001.log");
    let foreign = world.home().join("logs").join("mine.log");
    fs_err::write(&orphan, "").unwrap();
    fs_err::write(&foreign, "").unwrap();
    world.run(["prune", "--older-than", "0s"]).ok();
    assert!(!while_running.exists() && !orphan.exists() && foreign.exists());
}
