//! The escape zoo: processes that are hard to get rid of, and three ways to end a job. Nothing of it may be left.
//!
//! Each process names itself in a witness, so that its death is proved without asking hearback. By default each
//! animal is ended five times in each way, under Wine once; with `HEARBACK_TEST_FULL=1` fifty times.
#![cfg(any(target_os = "linux", windows))]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hearback_tests::{
    World, bin, carrying, eventually, is_full, kill_hard, lines, rounds, scaled, start_ticks,
};
use serde_json::json;

/// A storm ends by itself after this long, on Linux. It is watched that long when it should have ended: each link of it
/// lives for far less.
const STORM: Duration = Duration::from_secs(4);
const AT_ONCE: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Kill,
    Limit,
    /// The supervisor is killed, and the next command cleans up.
    Orphan,
}

/// How often each animal is ended in each way.
fn times() -> usize {
    if is_full() { 50 } else { scaled(5, 1) }
}

/// Those of a witness that are there, each by its pid and its start.
fn left(witness: &Path) -> Vec<u32> {
    let named = lines(witness);
    let named = named.iter().filter_map(|line| {
        let parsed =
            line.split_once(' ').and_then(|(pid, started)| Some((pid.parse().ok()?, started.parse().ok()?)));
        // Only under Wine a process that is killed while it writes leaves half a line. Its mark is looked for besides.
        assert!(parsed.is_some() || hearback_tests::is_wine(), "two numbers: {line}");
        parsed
    });
    named.filter(|(pid, started)| start_ticks(*pid) == Some(*started)).map(|(pid, _)| pid).collect()
}

/// One job with the animal in it, ended in one way. Returns its witness, and how many processes there were.
fn round(world: &World, kind: &str, grown: usize, way: Way, n: usize) -> (PathBuf, usize) {
    let what = format!("{kind} {way:?} {n}");
    let witness = world.scratch(format!("{kind}-{way:?}-{n}"));
    let (animal, witness_text) = (bin("animal").display().to_string(), witness.display().to_string());
    let limit = if way == Way::Limit { scaled("400ms", "3s") } else { "none" };
    let options = ["--grace", "100ms", "--timeout", limit, "--"];
    // Under Wine it takes longer to become many, and to be killed.
    let life: &[_] = if kind.starts_with("storm") { &["--life-ms", scaled("4000", "60000")] } else { &[] };
    let words = [&animal, kind, "--witness", &witness_text].into_iter().chain(life.iter().copied());
    let id = world.launch(options.into_iter().chain(words));
    let grow = || eventually(&what, || (lines(&witness).len() >= grown).then_some(()));
    match way {
        Way::Kill => {
            grow();
            let told = world.run(["kill", "--json", &id]);
            let survivors = told.stdout.contains("survivors");
            assert_eq!(told.code, Some(i32::from(survivors)), "{what}: {told:?}");
        }
        // However far it has grown by then.
        Way::Limit => assert_eq!(world.run(["wait", &id]).code, Some(124), "{what}"),
        Way::Orphan => {
            grow();
            kill_hard(world.supervisor(&id));
            // It is gone a moment after the signal; the waiting command notices that, and sweeps.
            assert_eq!(world.run(["wait", &id]).code, Some(125), "{what}");
        }
    }
    let job = world.show(&id);
    if let Some(named) = job.get("survivors") {
        // A machine that is too busy to let a storm die in time. Then it is named, and the next kill ends it.
        assert!(kind.starts_with("storm"), "{what}: {job}");
        eprintln!("{what}: {named} were named");
        eventually(&what, || (world.run(["kill", &id]).code == Some(0)).then_some(()));
    }
    let marked = carrying(&format!("HEARBACK_JOB={id}"));
    let (left, count) = (left(&witness), lines(&witness).len());
    assert_eq!((left, marked), (vec![], vec![]), "{what}");
    let expected = match way {
        Way::Kill => json!("killed"),
        Way::Limit => json!("timed_out"),
        Way::Orphan => json!("lost"),
    };
    assert_eq!(job["outcome"]["kind"], expected, "{what}: {job}");
    (witness, count)
}

/// Ends the animal in these ways, as often as is wanted, some at once.
fn ended_by(kind: &str, grown: usize, ways: &[Way]) {
    let world = World::new();
    let wanted = times() * ways.len();
    let done = rounds(wanted, AT_ONCE, |n| round(&world, kind, grown, ways[n % ways.len()], n));
    assert_eq!(done.len(), wanted);
    if kind.starts_with("storm") {
        // One that was missed would have gone on.
        let end = Instant::now() + STORM;
        while Instant::now() < end {
            for (witness, count) in &done {
                assert_eq!(lines(witness).len(), *count, "{}: it goes on", witness.display());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

const ALL: [Way; 3] = [Way::Kill, Way::Limit, Way::Orphan];

#[test]
fn an_orphan_of_its_own_making_does_not_escape() {
    ended_by("double-fork", 7, &ALL);
}

#[test]
fn a_session_of_its_own_is_no_escape() {
    ended_by("session", 7, &ALL);
}

#[test]
fn a_group_of_its_own_is_no_escape() {
    ended_by("group", 7, &ALL);
}

#[cfg(windows)]
#[test]
fn to_leave_the_job_object_is_no_escape() {
    ended_by("breakaway", 7, &ALL);
}

#[test]
fn closed_streams_are_no_escape() {
    ended_by("closed", 7, &ALL);
}

#[test]
fn a_shell_within_a_shell_is_no_escape() {
    ended_by("shells", 7, &ALL);
}

/// Without a mark and in another group, only the supervisor, which becomes its parent, knows to which job it belongs.
#[test]
fn an_empty_environment_is_no_escape_from_a_living_supervisor() {
    ended_by("bare", 7, &[Way::Kill, Way::Limit]);
}

#[test]
fn a_storm_of_forks_is_no_escape() {
    ended_by("storm", 5, &ALL);
}

#[test]
fn a_storm_of_sessions_is_no_escape() {
    ended_by("storm-sessions", 5, &ALL);
}

#[test]
fn a_storm_that_grows_is_no_escape() {
    ended_by("storm-growing", scaled(40, 20), &ALL);
}

#[test]
fn ignoring_termination_is_no_escape() {
    ended_by("deaf", 7, &ALL);
}

#[test]
fn to_be_stopped_is_no_escape() {
    ended_by("stopped", 7, &ALL);
}

// Not on Windows: a process that cannot be ended waits for a driver there, and Wine takes a terminated one for ended.
#[cfg(target_os = "linux")]
mod linux {
    use std::process::{Command, Stdio};

    use hearback_tests::{KillOnDrop, Outbox, args, with_private_mounts};
    use serde_json::Value;

    use super::*;

    /// A file system that never answers, until it is dropped.
    struct Mute {
        _server: KillOnDrop,
        folder: PathBuf,
        witness: PathBuf,
    }

    impl Mute {
        /// Nothing, with the reason printed, where there is no FUSE.
        fn mount(world: &World) -> Option<Mute> {
            let (folder, witness) = (world.scratch("mute"), world.scratch("asked"));
            fs_err::create_dir(&folder).unwrap();
            if !Path::new("/dev/fuse").exists() {
                hearback_tests::skipped("there is no /dev/fuse");
                return None;
            }
            let server = Command::new(bin("mute")).arg(&folder).arg(&witness).stdin(Stdio::null()).spawn();
            let server = KillOnDrop(server.unwrap());
            let mute = Mute { _server: server, folder, witness };
            eventually("it is mounted", || (!lines(&mute.witness).is_empty()).then_some(()));
            Some(mute)
        }

        /// The process that asked it for a file and waits for the answer.
        fn waiting(&self) -> u32 {
            eventually("a process asks", || {
                lines(&self.witness).iter().find_map(|line| line.strip_prefix("1 ")?.parse().ok())
            })
        }
    }

    #[test]
    fn scenario_125_a_sink_that_cannot_be_killed_is_named_and_the_turn_is_free() {
        with_private_mounts(|| {
            let outbox = Outbox::new(&[]);
            let Some(mute) = Mute::mount(&outbox.world) else { return };
            let file = mute.folder.join("file");
            outbox.write_settings(&format!(
                "default_sink = \"stuck\"\nretry_first = \"1h\"\n\
                 [sink.stuck]\ncommand = [\"cat\", {file:?}]\ntimeout = \"1s\"\nturn = true\n"
            ));
            let id = outbox.launch(&[], "exit-with", &["0"]);
            let stuck = mute.waiting();
            let began = Instant::now();
            let job = eventually("the attempt is recorded", || {
                Some(outbox.world.show(&id)).filter(|job| job.pointer("/follow_up/error").is_some())
            });
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
            let told = job["follow_up"]["error"].as_str().unwrap();
            assert!(told.contains("in time") && told.contains(&stuck.to_string()), "{told}");
            assert!(start_ticks(stuck).is_some(), "this test proves nothing");
            let turn = args!["turn", "--session", "s", "--", bin("exit-with"), "0"];
            outbox.world.run(turn).ok();
            drop(mute);
            eventually("it is let go", || start_ticks(stuck).is_none().then_some(()));
        });
    }

    #[test]
    fn a_process_that_cannot_be_killed_is_named_and_killed_later() {
        with_private_mounts(|| {
            std::thread::scope(|scope| {
                for way in ALL {
                    scope.spawn(move || is_named_and_killed_later(way));
                }
            });
        });
    }

    fn is_named_and_killed_later(way: Way) {
        let world = World::new();
        let Some(mute) = Mute::mount(&world) else { return };
        let file = mute.folder.join("file").display().to_string();
        let limit = if way == Way::Limit { "1s" } else { "none" };
        let id = world.launch(["--grace", "100ms", "--timeout", limit, "--", "cat", &file]);
        let stuck = mute.waiting();
        let began = Instant::now();
        match way {
            Way::Kill => {
                let told = world.run(["kill", "--json", &id]);
                let answer: Value = serde_json::from_str(&told.stdout).unwrap();
                let expected = (Some(1), &json!([stuck]), &json!(false));
                assert_eq!((told.code, &answer["survivors"], &answer["already_ended"]), expected, "{told:?}");
            }
            Way::Limit => assert_eq!(world.run(["wait", &id]).code, Some(124)),
            Way::Orphan => {
                kill_hard(world.supervisor(&id));
                assert_eq!(world.run(["wait", &id]).code, Some(125));
            }
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{way:?}: {:?}", began.elapsed());
        assert!(start_ticks(stuck).is_some(), "{way:?}: this test proves nothing");
        let job = world.show(&id);
        assert_eq!(job["survivors"], json!([stuck]), "{way:?}: {job}");
        assert_eq!(job["outcome"].get("exit"), None, "{way:?}: no process has seen it end: {job}");
        assert!(world.run(["list"]).ok().contains(&id[9..]), "{way:?}: it is still listed");

        // Again, while it still waits; then the file system gives up.
        let told = world.run(["kill", &id]);
        assert_eq!(told.code, Some(1), "{way:?}: {told:?}");
        assert!(format!("{}{}", told.stdout, told.stderr).contains(&stuck.to_string()), "{told:?}");
        drop(mute);
        eventually("it is let go", || start_ticks(stuck).is_none().then_some(()));
        let told = world.run(["kill", "--json", &id]);
        let answer: Value = serde_json::from_str(&told.ok()).unwrap();
        assert_eq!((&answer["already_ended"], answer.get("survivors")), (&json!(true), None), "{answer}");
    }
}
