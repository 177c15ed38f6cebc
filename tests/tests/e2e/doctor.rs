//! `doctor` finds out by trying, says what it found wherever the store is, and leaves nothing behind.
#![cfg(any(target_os = "linux", windows))]

use std::io::Write;
use std::path::PathBuf;

use fs_err as fs;
use hearback_tests::{
    Mount, Snapshot, Terminal, World, bin, carrying, eventually, give_away, killat, me, open_to_others, run,
    scaled, with_private_mounts,
};
use serde_json::Value;

/// Checks whose answer depends on the machine.
const OF_THE_MACHINE: [&str; 8] =
    ["file_system", "room", "holes", "logout", "survives_service", "pids", "oom_score", "descriptors"];

/// What is tried of detachment.
const DEATHS: &[&str] = &["survives_parent", "survives_terminal", "survives_process_group"];

/// Checks that need a store that can be written.
const OF_THE_STORE: [&str; 5] = ["publish", "flush", "locks", "holes", "bell"];

/// Hides what differs from machine to machine.
fn redacted(world: &World) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(world.home().parent().unwrap().to_str().unwrap(), "[world]");
    let of_the_machine = format!(r"(?m)^\w{{2,4}} +({})( +).*$", OF_THE_MACHINE.join("|"));
    settings.add_filter(&of_the_machine, "[--]  $1$2[what was seen]");
    settings.add_filter(r"(?m)^ +tip: .*\n", "");
    settings.add_filter(r"\d+ checks: .*", "[n] checks: [sum]");
    settings
}

/// The same for what programs read.
fn without_machine(mut told: Value) -> String {
    told["version"] = "[version]".into();
    for check in told["checks"].as_array_mut().unwrap() {
        if OF_THE_MACHINE.iter().any(|name| check["name"] == *name) {
            *check = serde_json::json!({"name": check["name"], "[what was seen]": null});
        }
    }
    serde_json::to_string_pretty(&told).unwrap()
}

/// What `doctor --json` said, and with which code it ended.
#[track_caller]
fn doctor(world: &World) -> (Option<i32>, Value) {
    // Where jobs are launched if the store will not have them.
    let elsewhere = world.scratch("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let mut command = world.command(["doctor", "--json"]);
    command.envs(["TMPDIR", "TMP"].map(|name| (name, &elsewhere)));
    let ran = run(command);
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0, "nothing is left there");
    assert_eq!(ran.stderr, "", "{ran:?}");
    let told = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran.code, told)
}

#[track_caller]
fn check<'a>(told: &'a Value, name: &str) -> &'a Value {
    let found = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check `{name}` in {told}"))
}

#[track_caller]
fn levels(told: &Value, names: &[&str], level: &str) {
    for name in names {
        assert_eq!(check(told, name)["level"], level, "{}", check(told, name));
    }
}

/// No process is left of what was started in this world.
fn no_process_is_left(world: &World) {
    let home = format!("HEARBACK_HOME={}", world.home().display());
    eventually("no process is left", || carrying(&home).is_empty().then_some(()));
}

#[test]
fn a_healthy_store_is_reported_as_healthy_and_left_as_it_is() {
    let world = World::new();
    let id = world.launch(["--session", "s", "--", bin("exit-with").to_str().unwrap(), "0"]);
    world.leave_alone(&id);
    let before = Snapshot::of(world.home());

    let shown = world.run(["doctor"]);
    let (code, told) = doctor(&world);
    // Another system tries something else, and has another name for every path.
    if cfg!(target_os = "linux") {
        redacted(&world).bind(|| insta::assert_snapshot!("doctor", shown.ok()));
        redacted(&world).bind(|| insta::assert_snapshot!("doctor_json", without_machine(told.clone())));
    }

    assert_eq!(code, Some(0), "{told}");
    levels(&told, &["store", "publish", "flush", "locks", "bell", "identity"], "ok");
    levels(&told, DEATHS, "ok");
    for check in told["checks"].as_array().unwrap() {
        let bad = check["level"] == "warn" || check["level"] == "fail";
        assert_eq!(check.get("tip").is_some(), bad, "every bad finding has a tip: {check}");
    }
    let sum = shown.stdout.lines().last().unwrap();
    let count = told["checks"].as_array().unwrap().len();
    assert!(sum.starts_with(&format!("{count} checks: ")) && sum.contains(" 0 failed"), "{sum}");

    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
    no_process_is_left(&world);
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let world = World::new();
    let deep = world.scratch("not").join("yet").join("there");
    for home in [world.home(), &deep] {
        let mut command = world.command(["doctor", "--json"]);
        command.env("HEARBACK_HOME", home);
        let told: Value = serde_json::from_str(&run(command).ok()).unwrap();
        assert_eq!(told["store"], home.to_str().unwrap());
        levels(&told, &["store", "publish", "flush", "locks", "bell", "survives_parent"], "ok");
        assert!(check(&told, "store")["message"].as_str().unwrap().contains("does not exist yet"), "{told}");
    }
    assert_eq!(fs::read_dir(world.home().parent().unwrap()).unwrap().count(), 1, "the scratch folder alone");
    assert_eq!(fs::read_dir(world.scratch("")).unwrap().count(), 0);
}

#[test]
fn settings_are_those_of_the_store() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    fs::write(world.home().join("config.toml"), "durability = \"process\"\nmax_jobs = \"many\"\n").unwrap();
    let ran = world.run(["doctor", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.ok()).unwrap()["durability"], "process");
    assert!(ran.stderr.starts_with("warning: max_jobs in "), "{ran:?}");
}

#[test]
fn what_in_the_store_needs_a_person_is_reported() {
    let outbox = hearback_tests::Outbox::with("attempts = 1\nmax_jobs = \"many\"", "", &["1:no such chat"]);
    let world = &outbox.world;
    let given_up = outbox.launch(&[], "exit-with", &["0"]);
    outbox.until(&given_up, &["dead_letter"]);
    outbox.run_as("t", &["send", "hi"]).ok();
    eventually("the message is given up", || {
        let listed = world.json(["inbox", "--json"]);
        (listed["messages"][0]["dead_letter"] == true).then_some(())
    });
    let broken = world.launch(["--session", "s", "--", bin("exit-with").to_str().unwrap(), "0"]);
    outbox.until(&broken, &["dead_letter"]);
    world.leave_alone(&broken);
    let lock = world.job_dir(&broken).join("alive.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    for stray in ["jobs/notes.txt", "history/.DS_Store"] {
        fs::write(world.home().join(stray), "").unwrap();
    }
    world.settle_down();
    let before = Snapshot::of(world.home());

    let ran = world.run(["doctor", "--json"]);
    let told: Value = serde_json::from_str(&ran.exits(1).stdout).unwrap();
    let says = |name: &str, level: &str, parts: &[&str]| {
        let found = check(&told, name);
        assert_eq!(found["level"], level, "{found}");
        for part in parts {
            assert!(found["message"].as_str().unwrap().contains(part), "{part} in {found}");
        }
    };
    says("settings", "warn", &["max_jobs"]);
    says("records", "fail", &[&broken, "alive.lock"]);
    says("entries", "warn", &["notes.txt", ".DS_Store"]);
    says("dead_letters", "warn", &[&format!("{given_up}.end"), "no such chat", "message 1 to session `t`"]);
    // Other systems do not report changes of many folders to one process.
    says("watch", if cfg!(target_os = "linux") { "ok" } else { "skip" }, &[]);
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
}

#[test]
fn a_follow_up_that_no_process_delivers_is_reported() {
    let outbox = hearback_tests::Outbox::with("", "", &["hang"]);
    let world = &outbox.world;
    let id = outbox.launch(&[], "exit-with", &["0"]);
    outbox.called(1);
    levels(&doctor(world).1, &["follow_ups"], "ok");
    // The sink goes with its supervisor, and nobody tries again.
    world.end_supervisor(&id);
    no_process_is_left(world);
    let (code, told) = doctor(world);
    assert_eq!(code, Some(0), "{told}");
    levels(&told, &["follow_ups"], "warn");
    assert!(check(&told, "follow_ups")["message"].as_str().unwrap().contains(&id), "{told}");
}

/// The problem of the store is reported with a tip; nothing is tried in it, and it is not changed. Returns the whole
/// document.
#[track_caller]
fn is_refused(world: &World, because: &str, tip: &str) -> Value {
    let before = Snapshot::of(world.home());
    let (code, told) = doctor(world);
    assert_eq!(code, Some(1), "{told}");
    let store = check(&told, "store");
    assert_eq!(store["level"], "fail");
    assert!(store["message"].as_str().unwrap().contains(because), "{store}");
    assert!(store["tip"].as_str().unwrap().contains(tip), "{store}");
    levels(&told, &OF_THE_STORE, "skip");
    levels(&told, DEATHS, "ok");
    levels(&told, &["identity"], "ok");
    let human = world.run(["doctor"]);
    assert_eq!((human.code, human.stderr.as_str()), (Some(1), ""), "{human:?}");
    assert!(human.stdout.starts_with("fail  store ") && !human.stdout.contains(" 0 failed"), "{human:?}");
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
    no_process_is_left(world);
    told
}

#[test]
fn a_store_that_others_may_write_is_reported() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    open_to_others(world.home());
    is_refused(&world, "may be written by others", "chmod go-w");
}

#[test]
fn a_store_behind_a_file_is_reported_as_impossible() {
    let world = World::new();
    fs::write(world.home(), "").unwrap();
    let (code, told) = doctor(&world);
    assert_eq!((code, &check(&told, "store")["level"]), (Some(1), &Value::from("fail")), "{told}");
    let mut command = world.command(["doctor"]);
    command.env("HEARBACK_HOME", world.home().join("below"));
    let ran = run(command);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stdout.starts_with("fail  store "), "{ran:?}");
}

/// The folders that were made to try things in.
fn workshops(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.home()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("tmp.")).collect()
}

#[test]
fn an_interrupted_doctor_cleans_up_first() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    let is_clean = |code: Option<i32>, how: &str| {
        assert!(matches!(code, Some(130 | 0)), "{how}: {code:?}");
        assert_eq!(workshops(&world), Vec::<PathBuf>::new(), "{how}");
        no_process_is_left(&world);
    };
    let mut terminal = Terminal::run(&world.command(["doctor"]));
    eventually("it has begun, or is done", || {
        (!workshops(&world).is_empty() || terminal.is_over()).then_some(())
    });
    terminal.interrupt();
    is_clean(terminal.finish().code, "Ctrl-C");
    #[cfg(unix)]
    for signal in linux::SIGNALS {
        is_clean(linux::interrupted(&world, signal), signal.as_str());
    }
}

#[test]
fn a_store_of_another_user_is_reported() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    let Some(other) = give_away(world.home()) else { return };
    is_refused(&world, &format!("belongs to user {other}, and you are user {}", me()), "HEARBACK_HOME");
}

#[test]
fn a_store_that_cannot_be_written_is_reported() {
    with_private_mounts(|| {
        let world = World::new();
        world.run(["reconcile"]).ok();
        let mount = Mount::over_itself(world.home());
        mount.change("bind,ro");
        // Wine says of its host's what Windows says of a folder, and not of a disk.
        let because = if cfg!(windows) { "(os error 5)" } else { "Read-only file system" };
        is_refused(&world, because, "set HEARBACK_HOME to");
    });
}

#[test]
fn a_full_disk_is_reported() {
    with_private_mounts(|| {
        // Side by side, because what is waited for under Wine takes long.
        std::thread::scope(|scope| {
            for few in ["bytes", "files"] {
                scope.spawn(move || is_reported_full(few));
            }
        });
    });
}

#[track_caller]
fn is_reported_full(few: &str) {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    let limits = if few == "bytes" { "size=64k,nr_inodes=1000" } else { "size=4m,nr_inodes=20" };
    let _mount = Mount::new("tmpfs", &format!("{limits},mode=700"), world.home());
    let mut file = fs::File::create(world.home().join("blocks")).unwrap();
    if few == "bytes" {
        while file.write(&[b'x'; 4096]).is_ok_and(|written| written > 0) {}
    } else {
        (0..).find(|n| fs::File::create(world.home().join(n.to_string())).is_err()).unwrap();
    }
    let because = if cfg!(windows) { "(os error 112)" } else { "No space left" };
    let told = is_refused(&world, because, "prune");
    // Windows does not count how many more files there can be.
    if few == "bytes" || cfg!(target_os = "linux") {
        levels(&told, &["room"], "fail");
    }
    levels(&told, &["file_system"], "warn");
}

#[test]
fn a_disk_that_makes_no_holes_is_reported_to_keep_less() {
    with_private_mounts(|| {
        let world = World::new();
        fs::create_dir(world.home()).unwrap();
        // The one file system of every kernel that cannot.
        let _mount = Mount::new("ramfs", "mode=700", world.home());
        let (code, told) = doctor(&world);
        assert_eq!(code, Some(0), "hearback works there: {told}");
        levels(&told, &["holes", "file_system"], "warn");
        levels(&told, &["publish", "flush", "locks", "bell", "store"], "ok");
        levels(&told, &["room"], "skip");
        assert_eq!(fs::read_dir(world.home()).unwrap().count(), 0, "it is gone again");
    });
}

// Not on Windows: limits on descriptors, and signals.
#[cfg(target_os = "linux")]
mod linux {
    use std::process::{Command, Stdio};

    use hearback_tests::{KillOnDrop, Ran};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn few_descriptors_are_counted() {
        let world = World::new();
        let with = |limit: &str| -> Ran {
            let mut command = Command::new("sh");
            world.settle(&mut command);
            command
                .args(["-c", "ulimit -n $0; exec \"$@\"", limit])
                .arg(bin("hearback"))
                .args(["doctor", "--json"]);
            run(command)
        };
        let few = with("40");
        levels(&serde_json::from_str(&few.ok()).unwrap(), &["descriptors"], "warn");
        let too_few = with("12");
        assert_eq!(too_few.code, Some(1), "{too_few:?}");
        levels(&serde_json::from_str(&too_few.stdout).unwrap(), &["descriptors"], "fail");
    }

    /// By which a process is asked to end.
    pub(super) const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

    /// How a doctor ends that is signalled in the middle of it.
    pub(super) fn interrupted(world: &World, signal: Signal) -> Option<i32> {
        let mut command = world.command(["doctor"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut doctor = KillOnDrop(command.spawn().unwrap());
        let pid = Pid::from_raw(doctor.0.id().try_into().unwrap());
        eventually("it has begun, or is done", || {
            (!workshops(world).is_empty() || doctor.0.try_wait().unwrap().is_some()).then_some(())
        });
        let _ = kill(pid, signal); // It may be done.
        doctor.0.wait().unwrap().code()
    }
}

#[test]
fn a_doctor_killed_at_any_call_leaves_no_process_behind() {
    if !killat::is_there() {
        return;
    }
    let world = World::new();
    world.run(["reconcile"]).ok();
    let last = killat::count(&world, &["--only", "launcher"], &["doctor"]);
    let points = killat::points(1..=last, scaled(20, 30));
    // All of them would take hours.
    for point in points.iter().step_by(points.len().div_ceil(200)) {
        killat::run(&world, &["kill", &point.to_string()], &["doctor"]);
        no_process_is_left(&world);
    }
    // What is left on disk is recognised as unfinished, and removed when it is old. It disturbs no later doctor.
    let (code, told) = doctor(&world);
    assert_eq!(code, Some(0), "{told}");
}
