//! hearback does no harm: not to a foreign process, not to another user, not to a job that is only looked at, and not
//! to the truth when the disk is full or cannot be written.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use fs_err as fs;
use hearback_core::port::process::ProcessControl;
use hearback_platform::Native;
#[cfg(windows)]
use hearback_tests::outside;
use hearback_tests::{
    KillOnDrop, Snapshot, World, alive, bin, eventually, exit_killed, give_away, is_real_windows, lines, me,
    take_back,
};
use serde_json::{Value, json};

#[test]
fn scenario_29_a_stranger_with_the_pid_of_a_lost_job_is_left_alone() {
    let world = World::new();
    let go = world.scratch("go");
    let mut stranger = stranger(&go);
    let real = identity(stranger.0.id());
    let started = real["started"].as_u64().unwrap();
    let with = |field: &str, value: Value| {
        let mut forged = real.clone();
        forged[field] = value;
        forged
    };
    let mut cases = vec![
        ("started later", with("started", json!(started + 1))),
        ("started earlier", with("started", json!(started - 1))),
        ("started long ago", with("started", json!(1))),
    ];
    // Not every system has names for boots and for spaces of pids.
    if real.get("boot").is_some() {
        cases.push(("of another boot", with("boot", json!("another"))));
    }
    if real.get("scope").is_some() {
        cases.push(("of another space of pids", with("scope", json!("another"))));
    }
    for (case, forged) in cases {
        let id = orphan(&world, &forged);
        let job = world.show(&id).in_case(case);
        // Of what is in another space of pids, nothing is known.
        let reason = if job.get("out_of_sight").is_some() { "unswept" } else { "supervisor_died" };
        assert_eq!(reason == "unswept", case == "of another space of pids", "{case}");
        job.state_is("failed").is_lost(reason).follow_up_is("pending");
        // Another process is no survivor of ours.
        job.lacks("/survivors");
        assert_eq!(read(&world.job_dir(&id).join("end.json"))["author"], "reconciler", "{case}");
        assert!(stranger.0.try_wait().unwrap().is_none(), "{case}: the stranger lives");
    }
    // No signal that ends a process has reached it: it ends when its file appears, with its own code.
    fs::write(go, "").unwrap();
    assert_eq!(stranger.0.wait().unwrap().code(), Some(7));
}

/// A record is believed in this one case: it names a process that is there, exactly, and that leads a group as every
/// target does. A process that can write such a record into our store can signal our processes anyway.
#[test]
fn what_a_record_names_exactly_is_ended_and_nothing_but_that() {
    let world = World::new();
    let go = world.scratch("go");
    let mut leader = stranger(&go);
    // Leads no group, so it was never the target of a job. Windows does not say who leads one; there it is not named.
    let mut command = Command::new(bin("hold"));
    command.arg(&go).args(["--code", "7"]).stdin(Stdio::null());
    let mut other = KillOnDrop(command.spawn().unwrap());
    let id = orphan(&world, &identity(leader.0.id()));
    world.show(&id).ended_as("lost");
    assert_eq!(exit_of(leader.0.wait().unwrap()), exit_killed(), "the sweep takes it for the target");

    if cfg!(unix) {
        let id = orphan(&world, &identity(other.0.id()));
        world.show(&id).ended_as("lost");
    }
    assert!(other.0.try_wait().unwrap().is_none());
    fs::write(go, "").unwrap();
    assert_eq!(other.0.wait().unwrap().code(), Some(7));
}

/// How a process ended, as a record has it.
fn exit_of(status: ExitStatus) -> Value {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return json!({"kind": "signaled", "signal": signal, "core": false});
    }
    json!({"kind": "exited", "code": status.code()})
}

#[test]
fn scenario_83_looking_at_a_job_never_disturbs_it() {
    let world = World::new();
    let (go, seen) = (world.scratch("go"), world.scratch("seen"));
    let hold = program("hold");
    let id = world.launch(["--", &hold, &text(&go), "--code", "6", "--witness", &text(&seen)]);
    eventually("the job has started", || (lines(&seen).len() == 1).then_some(()));
    let folder = world.job_dir(&id);
    let supervisor = read(&folder.join("begin.json"))["by"]["supervisor"].clone();
    let target = world.show(&id)["pid"].as_u64().unwrap();
    let before = Snapshot::of(world.home());

    let looks: [&[&str]; 5] =
        [&["list", "--json"], &["show", &id], &["reconcile", "--json"], &["logs", &id], &["prune"]];
    for args in looks.iter().cycle().take(50) {
        world.run(*args).ok();
    }
    let crowd: Vec<KillOnDrop> = (looks.iter().cycle().take(20))
        .map(|args| {
            let mut command = world.command(*args);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            KillOnDrop(command.spawn().unwrap())
        })
        .collect();
    for mut probe in crowd {
        assert!(probe.0.wait().unwrap().success());
    }

    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
    assert_eq!(identity(world.supervisor(&id)), supervisor, "the same process supervises");
    world.show(&id).state_is("running").has("/pid", target);
    let lock = fs::File::options().read(true).write(true).open(folder.join("alive.lock")).unwrap();
    let free = lock.file().try_lock();
    assert!(matches!(free, Err(std::fs::TryLockError::WouldBlock)), "its lock is its own: {free:?}");
    fs::write(go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(6), "it ends with its own code");
    assert_eq!(lines(&seen).len(), 1, "and was started once");
}

#[test]
fn scenario_83_a_crowd_of_looks_keeps_no_job_from_starting() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let jobs: Vec<String> = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    world.run(["list"]).ok();
                    world.run(["reconcile"]).ok();
                }
            });
        }
        // Even if this panics, the other threads have to stop, or the scope would wait for ever.
        let launched = std::panic::catch_unwind(|| {
            (0..8).map(|n| world.launch(["--", &program("exit-with"), &n.to_string()])).collect()
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        launched.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    for (n, id) in jobs.iter().enumerate() {
        let waited = world.run(["wait", id]);
        assert_eq!(waited.code, Some(n as i32), "{waited:?}");
    }
}

#[test]
fn a_name_that_is_no_id_reads_nothing() {
    let world = World::new();
    let program = program("exit-with");
    let id = world.launch(["--session", "s", "--", &program, "0", "--print", "hunter2"]);
    world.leave_alone(&id);
    // A whole job outside the store, in reach of every trick.
    for outside in [world.home().parent().unwrap().join(&id), world.scratch("jobs").join(&id)] {
        fs::create_dir_all(&outside).unwrap();
        for entry in fs::read_dir(world.job_dir(&id)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, outside.join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::remove_dir_all(world.job_dir(&id)).unwrap();
    let before = Snapshot::of(world.home().parent().unwrap());
    let absolute = text(&world.scratch("jobs").join(&id));
    let tricks = [
        "..",
        "../x",
        "../../../..",
        "....",
        ".",
        "/",
        "/etc/passwd",
        &absolute,
        &format!("../../{id}"),
        &format!("..\\..\\{id}"),
        &format!("./{}", &id[..14]),
        &format!("{}/..", &id[..13]),
        "0123456789/../ab",
        "0123456789abcde/",
        "*",
        "",
        "%2e%2e%2f",
        "ääääääää",
        "con",
        "nul.json",
        &"a".repeat(10_000),
    ];
    for trick in tricks {
        for command in ["show", "logs", "wait"] {
            let ran = world.run([command, "--", trick]);
            assert_eq!(ran.code, Some(1), "{command} {trick:?}: {ran:?}");
            assert!(ran.stderr.starts_with("error: ") && !ran.stderr.contains("hunter2"), "{ran:?}");
            assert_eq!(ran.stdout, "", "{command} {trick:?}");
        }
    }
    assert_eq!(before.changes(&Snapshot::of(world.home().parent().unwrap())), Vec::<PathBuf>::new());

    // A session and a key may be any text, and none of it becomes part of a path.
    let named = ["--session", "../../s", "--key", "../../k", "--label", "../l", "--", &program, "0"];
    let id = world.launch(named);
    assert_eq!(world.launch(named), id);
    let keys: Vec<_> = fs::read_dir(world.home().join("keys")).unwrap().collect();
    assert_eq!(keys.len(), 1);
    let strays = before.changes(&Snapshot::of(world.home().parent().unwrap()));
    assert!(strays.iter().all(|path| path.starts_with(world.home())), "{strays:?}");
}

#[track_caller]
fn refused(ran: &hearback_tests::Ran, why: &str) {
    ran.refuses(125);
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(why), "not because it {why}: {ran:?}");
    ran.says("\ntip: ").says("HEARBACK_HOME");
}

/// Whatever is asked of a store that others may write is refused, and nothing is made in there.
#[track_caller]
fn is_refused_for_others(world: &World) {
    let program = program("exit-with");
    let commands: [&[&str]; 5] = [
        &["list"],
        &["show", "0123456789abcdef"],
        &["reconcile"],
        &["prune"],
        &["launch", "--", &program, "0"],
    ];
    for command in commands {
        refused(&world.run(command), "may be written by others");
    }
    assert_eq!(fs::read_dir(world.home()).unwrap().count(), 0, "nothing was made in there");
}

#[test]
fn a_store_that_others_may_write_is_refused() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    hearback_tests::open_to_others(world.home());
    is_refused_for_others(&world);
}

#[test]
fn it_is_enough_that_some_others_may_write_a_store() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    if is_real_windows() {
        // All users with an account, and one right of those that let others change a folder.
        for right in ["(WD)", "(AD)", "(DC)", "(D)", "(WDAC)", "(WO)"] {
            icacls(world.home(), &["/grant", &format!("*S-1-5-11:{right}")]);
            is_refused_for_others(&world);
            icacls(world.home(), &["/remove:g", "*S-1-5-11"]);
        }
        icacls(world.home(), &["/grant", "*S-1-5-11:(OI)(CI)(RX)"]);
    } else {
        // Wine takes the group of its host for its administrators.
        let modes: &[u32] = if cfg!(windows) { &[0o702, 0o1777] } else { &[0o770, 0o702, 0o720, 0o1777] };
        for &mode in modes {
            set_mode(world.home(), mode);
            is_refused_for_others(&world);
        }
        set_mode(world.home(), 0o755);
    }
    // That others may look at its name is no danger: what is inside is closed to them.
    let id = world.launch(["--", &program("exit-with"), "0"]);
    world.run(["wait", &id]).exits(0);
}

#[test]
fn a_link_to_the_store_is_followed_if_it_is_ours() {
    let world = World::new();
    let id = world.launch(["--", &program("exit-with"), "3"]);
    settled(world.home(), &id);
    let link = world.scratch("link");
    if !hearback_tests::link_folder(world.home(), &link) {
        return;
    }
    let through = |path: &str, args: &[&str]| {
        let mut command = world.command(args);
        command.env("HEARBACK_HOME", path);
        hearback_tests::run(command)
    };
    let shown = through(&text(&link), &["show", &id, "--json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), world.show(&id), "by its real name");
    let launched = through(&text(&link), &["launch", "--", &program("exit-with"), "4"]).ok();
    world.run(["wait", &launched]).exits(4);
    settled(world.home(), &launched);

    let Some(other) = give_away(&link) else { return };
    let why = match cfg!(windows) {
        true => format!("is a link that belongs to user {other}, and you are user {}", me()),
        false => "is a link that another user made".to_owned(),
    };
    let before = Snapshot::of(world.home());
    let separator = std::path::MAIN_SEPARATOR;
    for end in [String::new(), separator.to_string(), format!("{separator}.")] {
        let path = format!("{}{end}", text(&link));
        refused(&through(&path, &["list"]), &why);
        refused(&through(&path, &["launch", "--", &program("exit-with"), "4"]), "is a link");
    }
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
}

#[test]
fn the_store_of_another_user_is_refused() {
    let world = World::new();
    let id = world.launch(["--", &program("exit-with"), "0"]);
    world.run(["wait", &id]).exits(0);
    settled(world.home(), &id);

    // It still looks after the store for a moment, and would say in its log that it may not.
    let supervisor = world.supervisor(&id);
    eventually("its supervisor is gone", || (!alive(supervisor)).then_some(()));

    // Root in a user's store would leave files behind that the user can never change.
    let Some(other) = give_away(world.home()) else { return };
    let before = Snapshot::of(world.home());
    let program = program("exit-with");
    for command in
        [&["list"][..], &["show", &id], &["prune", "--max-jobs", "0"], &["launch", "--", &program, "0"]]
    {
        refused(&world.run(command), &format!("belongs to user {other}, and you are user {}", me()));
    }
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
    take_back(world.home());
    world.show(&id).because("it is only about whose it is").state_is("done");

    // And a user in root's. Elsewhere it takes that user's password to be another.
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        const NO_OWNER: u32 = 65534;
        let elsewhere = World::new();
        for path in [elsewhere.home().parent().unwrap(), world.home().parent().unwrap(), world.home()] {
            set_mode(path, 0o755);
        }
        let copy = elsewhere.home().with_file_name("hearback");
        hearback_tests::copy_program("hearback", &copy);
        let as_user = |args: &[&str]| {
            let mut command = Command::new(&copy);
            world.settle(&mut command);
            command.args(args).current_dir("/").uid(NO_OWNER).gid(NO_OWNER);
            hearback_tests::run(command)
        };
        refused(&as_user(&["list"]), &format!("belongs to user 0, and you are user {NO_OWNER}"));
        refused(&as_user(&["launch", "--", "/bin/true"]), "belongs to user 0");
        set_mode(world.home().parent().unwrap(), 0o700);
        refused(&as_user(&["list"]), "Permission denied");
        world.show(&id).because("its owner is not disturbed").state_is("done");
    }
}

#[test]
fn settings_of_another_user_are_ignored() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    let config = world.home().join("config.toml");
    fs::write(&config, "max_jobs = 0\n").unwrap();
    let id = world.launch(["--", &program("exit-with"), "0"]);
    settled(world.home(), &id);
    let Some(other) = give_away(&config) else { return };
    let pruned = world.run(["prune"]);
    pruned.refuses(0);
    let why = format!("config.toml` was ignored: owned by user {other}");
    assert!(pruned.stderr.contains(&why), "{pruned:?}");
    take_back(&config);
    assert_eq!(world.run(["prune"]).ok(), id, "only the owner of the file matters");
}

// Not on Windows: Wine shows a mode of the host as no right of a file.
#[cfg(unix)]
#[test]
fn settings_that_others_may_write_are_ignored() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    let config = world.home().join("config.toml");
    fs::write(&config, "max_jobs = 0\n").unwrap();
    set_mode(&config, 0o600);
    let id = world.launch(["--", &program("exit-with"), "0"]);
    settled(world.home(), &id);
    for mode in [0o666, 0o620] {
        set_mode(&config, mode);
        let pruned = world.run(["prune"]);
        pruned.refuses(0);
        let why = "config.toml` was ignored: it names programs to run, and may be written by others";
        assert!(pruned.stderr.contains(why), "{pruned:?}");
        let doctor = world.run(["doctor"]).stdout;
        assert!(doctor.contains(why), "{doctor}");
    }
    set_mode(&config, 0o644);
    assert_eq!(world.run(["prune"]).ok(), id, "others may read it");
}

// Not on Windows: there a file has the rights that its folder hands down.
#[cfg(unix)]
#[test]
fn a_file_sink_makes_a_private_file_and_leaves_the_mode_of_another() {
    use std::os::unix::fs::MetadataExt;
    let outbox = hearback_tests::Outbox::pull();
    let journal = outbox.world.scratch("journal");
    let settings = format!("default_sink = 'journal'\n[sink.journal]\nfile = '{}'\n", journal.display());
    outbox.write_settings(&settings);
    let deliver = || {
        let id = outbox.launch(&[], "exit-with", &["0"]);
        outbox.receipt(&id);
        fs::metadata(&journal).unwrap().mode() & 0o777
    };
    assert_eq!(deliver(), 0o600);
    set_mode(&journal, 0o640);
    assert_eq!(deliver(), 0o640);
}

#[test]
fn what_hearback_makes_is_private_whatever_the_umask() {
    // On Windows it is the folder above that says what is handed down to what is made in it.
    let masks: &[&str] = if cfg!(windows) { &[""] } else { &["000", "022", "077"] };
    for umask in masks {
        let world = World::new();
        let shared = world.scratch("shared");
        fs::create_dir(&shared).unwrap();
        hearback_tests::open_to_others(&shared);
        let above = shared.join("new");
        let home = above.join("deep").join("home");
        let launch = |args: &[&str]| {
            let mut command = if cfg!(windows) {
                Command::new(bin("hearback"))
            } else {
                // The mask is inherited, and setting ours would set it for every other test.
                let mut command = Command::new("sh");
                command.args(["-c", "umask $0; exec \"$@\"", umask]).arg(bin("hearback"));
                command
            };
            world.settle(&mut command);
            command.args(args).env("HEARBACK_HOME", &home);
            hearback_tests::run(command)
        };
        let (go, made) = (world.scratch("go"), shared.join("made"));
        let script = if cfg!(windows) {
            format!("echo hello > \"{}\"", text(&made))
        } else {
            format!("echo hello; : > '{}'", text(&made))
        };
        let shell = launch(&["launch", "--key", "k", "--shell", &script]).ok();
        assert_eq!(launch(&["launch", "--", &text(&world.scratch("missing"))]).code, Some(127));
        let held = launch(&["launch", "--session", "s", "--", &program("hold"), &text(&go)]).ok();
        settled(&home, &shell);

        let all = Snapshot::of(&home);
        assert!(all.paths().count() > 20, "{all:?}");
        let leading = [above.clone(), above.join("deep"), home.clone()];
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
            for path in leading.iter().map(PathBuf::as_path).chain(all.paths()) {
                let wanted = if path.is_dir() { 0o700 } else { 0o600 };
                assert_eq!(mode(path), wanted, "umask {umask}: {}", path.display());
            }
            let inherited = 0o666 & !u32::from_str_radix(umask, 8).unwrap();
            assert_eq!(mode(&made), inherited, "what the job makes is its own affair");
        }
        #[cfg(windows)]
        windows::are_private(&leading, &all, &made);
        fs::write(go, "").unwrap();
        let begin = read(&home.join("jobs").join(&held).join("begin.json"));
        let supervisor = begin["by"]["supervisor"]["pid"].as_u64().unwrap().try_into().unwrap();
        eventually("no process uses the store any more", || {
            (!hearback_tests::alive(supervisor)).then_some(())
        });
    }
}

#[cfg(windows)]
mod windows {
    //! Access rights, as Windows has them, or as its host has them under Wine.

    use super::*;

    /// Only the owner may do anything in the folders that lead to a store, and to what is in it.
    #[track_caller]
    pub(super) fn are_private(leading: &[PathBuf], all: &Snapshot, made: &Path) {
        if is_real_windows() {
            for path in leading.iter().map(PathBuf::as_path).chain(all.paths()) {
                assert_eq!(others(path), [""; 0], "{}", path.display());
            }
            assert_ne!(others(made), [""; 0], "what the job makes is its own affair");
            return;
        }
        // Wine keeps of the rights of a folder what a mode can say, with administrators for the group, and hands
        // nothing down: what is inside is behind folders that no other user can enter.
        let modes = |paths: &[&Path]| -> Vec<u32> {
            let paths: Vec<String> = paths.iter().map(|path| outside::unix(path)).collect();
            let args: Vec<&str> = ["-c", "%a"].into_iter().chain(paths.iter().map(String::as_str)).collect();
            let told = outside::run("stat", &args).ok();
            told.lines().map(|mode| u32::from_str_radix(mode, 8).unwrap()).collect()
        };
        let paths: Vec<&Path> = leading.iter().map(PathBuf::as_path).collect();
        for mode in modes(&paths) {
            assert_eq!(mode & 0o027, 0, "{mode:o}: {leading:?}");
        }
        let paths: Vec<&Path> = all.paths().collect();
        for (path, mode) in paths.iter().zip(modes(&paths)) {
            assert_eq!(mode & 0o022, 0, "{mode:o} {}", path.display());
        }
    }

    /// The users with rights to a file besides the system, its administrators and one more, which is us.
    fn others(path: &Path) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        icacls(path, &["/save", &text(&list), "/L"]);
        // Lines of UTF-16: a name, and then `D:PAI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;FA;;;S-1-5-21-…)`.
        let bytes = fs::read(&list).unwrap();
        let units: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let saved = String::from_utf16(&units).unwrap();
        let entries = saved.split('(').skip(1).map(|entry| entry.split(')').next().unwrap());
        let who = entries.filter_map(|entry| entry.rsplit(';').next());
        let mut who: Vec<String> = who.filter(|who| !["SY", "BA"].contains(who)).map(str::to_owned).collect();
        who.sort();
        who.dedup();
        let ours = who.iter().position(|who| *who == me() || who == "LA");
        who.remove(ours.unwrap_or_else(|| panic!("not even we: {saved}")));
        who
    }
}

#[test]
fn a_secret_reaches_only_the_target() {
    let world = World::new();
    let go = world.scratch("go");
    // Spelled in halves, so that neither is in the command line that is stored for people to see.
    let (given, inherited) = (["hunter2", "given"].concat(), ["hunter2", "inherited"].concat());
    let mut command = world.command(["launch", "--session", "s", "-e", &format!("SECRET={given}")]);
    command.args(["--unset", "GONE", "--", &program("hold"), &text(&go), "--print", "quiet"]);
    command.env("TOKEN", &inherited).env("GONE", &given);
    let id = hearback_tests::run(command).ok();
    // Where others can see what a process was given.
    #[cfg(target_os = "linux")]
    {
        let target = world.show(&id)["pid"].as_u64().unwrap();
        let environ = fs::read(format!("/proc/{target}/environ")).unwrap();
        let environ: Vec<&[u8]> = environ.split(|byte| *byte == 0).collect();
        assert!(environ.contains(&format!("SECRET={given}").as_bytes()));
        assert!(environ.contains(&format!("TOKEN={inherited}").as_bytes()));
        assert!(!environ.iter().any(|entry| entry.starts_with(b"GONE=")));

        let supervisor = world.supervisor(&id);
        let cmdline = fs::read(format!("/proc/{supervisor}/cmdline")).unwrap();
        let words: Vec<_> = cmdline.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        assert_eq!(words[1..], ["__supervise", &id, ""], "only the id");
    }

    let nowhere = |world: &World| {
        assert_eq!(Snapshot::of(world.home()).holding(b"hunter2"), Vec::<&Path>::new());
        for args in [&["show", &id][..], &["show", &id, "--json"], &["list", "--json"], &["logs", &id]] {
            let ran = world.run(args);
            assert!(!format!("{ran:?}").contains("hunter2"), "{args:?}: {ran:?}");
        }
    };
    nowhere(&world);
    fs::write(go, "").unwrap();
    world.run(["wait", &id]).exits(0);
    nowhere(&world);

    // Neither does a start that fails tell.
    let missing = text(&world.scratch("missing"));
    let failed = world.run(["launch", "-e", &format!("SECRET={given}"), "--", &missing]);
    assert_eq!(failed.code, Some(127));
    assert!(!format!("{failed:?}").contains("hunter2"), "{failed:?}");
    nowhere(&world);
}

/// A process that hearback knows nothing about: `hold` in a group of its own, as a target would be.
fn stranger(go: &Path) -> KillOnDrop {
    let mut command = Command::new(bin("hold"));
    command.arg(go).args(["--code", "7"]).stdin(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    KillOnDrop(command.spawn().unwrap())
}

/// The identity of a living process, as a record would name it.
fn identity(pid: u32) -> Value {
    let identity = Native::default().identify(pid).unwrap().expect("it lives");
    serde_json::to_value(identity).unwrap()
}

/// A job whose supervisor is gone and left no end, and whose target is said to be `process`.
fn orphan(world: &World, process: &Value) -> String {
    let id = world.launch(["--session", "s", "--", &program("exit-with"), "0"]);
    world.leave_alone(&id);
    let folder = world.job_dir(&id);
    fs::remove_file(folder.join("end.json")).unwrap();
    let mut target = read(&folder.join("target.json"));
    target["handle"] = process.clone();
    fs::write(folder.join("target.json"), target.to_string()).unwrap();
    let mut begin = read(&folder.join("begin.json"));
    // Its supervisor's number belongs to the stranger as well; a supervisor that lived would keep the job its own.
    begin["by"]["supervisor"]["pid"] = process["pid"].clone();
    begin["by"]["supervisor"]["started"] = json!(1);
    fs::write(folder.join("begin.json"), begin.to_string()).unwrap();
    id
}

/// Waits until a job is in history.
fn settled(home: &Path, id: &str) {
    let folder = home.join("history").join(&id[..5]).join(id);
    eventually("the job is settled", || folder.is_dir().then_some(()));
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What a mode means to Windows is what Wine makes of it.
fn set_mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    #[cfg(windows)]
    outside::run("chmod", &[&format!("{mode:o}"), &outside::unix(path)]).ok();
}

/// Changes the access rights of Windows.
fn icacls(path: &Path, args: &[&str]) {
    let mut command = Command::new("icacls");
    command.arg(path).args(args);
    hearback_tests::run(command).ok();
}

fn program(name: &str) -> String {
    text(&bin(name))
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

#[cfg(any(target_os = "linux", windows))]
mod full_and_read_only {
    //! Disks that are full or cannot be written. Each test has mounts of its own.

    use hearback_platform::probe::allocated;
    use hearback_tests::{Mount, is_wine, scaled, start_ticks, with_private_mounts};

    use super::*;

    /// How the system says that there is no room, and that nothing may be written. Wine has its own words for numbers,
    /// and says of its host's disk what Windows says of a folder.
    const FULL: &str = if cfg!(windows) { "(os error 112)" } else { "No space left" };
    const READ_ONLY: &str = if cfg!(windows) { "(os error 5)" } else { "Read-only file system" };

    /// More than any test needs.
    const PLENTY: &str = "size=4m,nr_inodes=4000";

    /// A store on a small disk of its own.
    struct SmallDisk {
        // Undone first, because what is mounted cannot be removed.
        mount: Mount,
        world: World,
    }

    impl SmallDisk {
        fn new(limits: &str) -> SmallDisk {
            let world = World::new();
            fs::create_dir(world.home()).unwrap();
            let options = format!("{limits},mode=700");
            SmallDisk { mount: Mount::new("tmpfs", &options, world.home()), world }
        }

        fn limit(&self, limits: &str) {
            self.mount.change(limits);
        }
    }

    /// Uses up every block and every file of the store's disk.
    fn fill(world: &World) {
        use std::io::Write;
        let folder = world.home().join("filler");
        fs::create_dir(&folder).unwrap();
        let mut file = fs::File::create(folder.join("blocks")).unwrap();
        while file.write(&[b'x'; 4096]).is_ok_and(|written| written > 0) {}
        (0..).find(|n| fs::File::create(folder.join(n.to_string())).is_err()).unwrap();
    }

    /// Text for a shell that runs these one after the other, and then prints a word.
    fn shell(commands: &[&[&str]]) -> String {
        let (quote, then) = if cfg!(windows) { ('"', "&") } else { ('\'', ";") };
        let line = |words: &&[&str]| {
            let words: Vec<_> = words.iter().map(|word| format!("{quote}{word}{quote}")).collect();
            format!("{} {then} ", words.join(" "))
        };
        commands.iter().map(line).chain(["echo after".to_owned()]).collect()
    }

    fn empty(world: &World) {
        fs::remove_dir_all(world.home().join("filler")).unwrap();
    }

    /// Launches on a disk with room for almost nothing, and compares the answer with what is there.
    fn launch_in(limits: &str, args: &[&str]) -> bool {
        let disk = SmallDisk::new(limits);
        let world = &disk.world;
        let launched = world.run(["launch"].iter().chain(args));
        let id = launched.stdout.trim();
        let case = format!("{limits} {args:?}: {launched:?}");
        if launched.code == Some(0) {
            assert_eq!(world.run(["wait", id]).code, Some(3), "{case}");
        } else {
            assert_eq!(launched.code, Some(125), "{case}");
            assert!(launched.stderr.starts_with("error: "), "{case}");
        }
        disk.limit(PLENTY);
        let listed = world.json(["list", "--all", "--json"]);
        assert!(listed.get("problems").is_none(), "{case}: {listed}");
        let jobs = listed["jobs"].as_array().unwrap();
        if id.is_empty() {
            assert_eq!(jobs.len(), 0, "{case}: {listed}");
            world.empty_trash(world.home());
            let left = Snapshot::of(world.home());
            let is_expected = |path: &Path| {
                let inside = path.strip_prefix(world.home()).unwrap();
                inside.components().count() == 1 || inside.starts_with("keys")
            };
            let left: Vec<_> = left.paths().filter(|path| !is_expected(path)).collect();
            assert!(left.is_empty(), "{case}: {left:?}");
        } else {
            assert_eq!(jobs.len(), 1, "{case}: {listed}");
            let job = hearback_tests::Job::new(jobs[0].clone()).in_case(&case);
            job.has("/id", id);
            if launched.code == Some(0) {
                job.exited(3);
            } else {
                // Everything was ready but the log: the job is recorded, and says why it did not run.
                job.outcome_is(json!({"kind": "failed_to_start", "error": job["outcome"]["error"]}));
            }
        }
        let unfinished: Vec<_> = Snapshot::of(world.home())
            .paths()
            .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"tmp.")))
            .map(Path::to_owned)
            .collect();
        assert!(unfinished.is_empty(), "{case}: {unfinished:?}");
        // Once there is room, the same launch goes well, also under a key that a failed one has claimed. A key whose
        // job is recorded as not started names that job, as ever.
        let again = world.run(["launch"].iter().chain(args)).ok();
        let code = if launched.code != Some(0) && again == id { 125 } else { 3 };
        assert_eq!(world.run(["wait", &again]).code, Some(code), "{case}");
        launched.code == Some(0)
    }

    fn launch_with_more_and_more(limits: impl Fn(usize) -> String, most: usize) {
        let program = program("exit-with");
        for args in [&["--", &program, "3"][..], &["--key", "k", "--shell", "exit 3"]] {
            let steps = (1..most).step_by(scaled(1, 6)).chain([most]);
            let went_well: Vec<bool> = steps.map(|n| launch_in(&limits(n), args)).collect();
            assert_eq!((went_well.first(), went_well.last()), (Some(&false), Some(&true)), "{went_well:?}");
        }
    }

    #[test]
    fn a_launch_on_a_disk_without_room_for_files_works_or_leaves_nothing() {
        with_private_mounts(|| launch_with_more_and_more(|n| format!("size=1m,nr_inodes={n}"), 18));
    }

    #[test]
    fn a_launch_on_a_disk_without_room_for_bytes_works_or_leaves_nothing() {
        with_private_mounts(|| {
            launch_with_more_and_more(|n| format!("size={}k,nr_inodes=1000", 4 * n), 12);
        });
    }

    #[test]
    fn scenario_120_a_job_can_be_killed_on_a_full_disk() {
        with_private_mounts(|| {
            for how in [&[][..], &["--force"]] {
                let disk = SmallDisk::new("size=256k,nr_inodes=200");
                let world = &disk.world;
                let never = world.scratch("never");
                let id = world.launch(["--", &program("hold"), &text(&never)]);
                let target = world.show(&id)["pid"].as_u64().unwrap().try_into().unwrap();
                fill(world);
                let reason = "it fills the disk ".repeat(500);
                let killed = world.run(["kill", &id, "--reason", &reason].iter().chain(how));
                assert_eq!(killed.code, Some(0), "{how:?}: {killed:?}");
                assert!(
                    killed.stdout.contains("killed: by a person or a script, it fills the disk"),
                    "{how:?}: {killed:?}"
                );
                assert!(!alive(target), "{how:?}");
                world.show(&id).in_case(format!("{how:?}")).ended_as("killed").has("/outcome/by", "person");
                empty(world);
                world.run(["reconcile"]).ok();
                let left = fs::read_dir(world.job_dir(&id)).unwrap();
                let reserves =
                    left.filter(|entry| entry.as_ref().unwrap().path().to_string_lossy().contains("reserve"));
                assert_eq!(reserves.count(), 0, "what was reserved is gone");
            }
        });
    }

    #[test]
    fn scenario_120_a_second_kill_on_a_full_disk_is_more_urgent_too() {
        with_private_mounts(|| {
            let disk = SmallDisk::new("size=256k,nr_inodes=200");
            let world = &disk.world;
            let ready = world.scratch("ready");
            let tree = ["--depth", "0", "--breadth", "1", "--ignore-term", "--witness", &text(&ready)];
            let id = world.launch(["--grace", "10m", "--", &program("tree")].iter().chain(&tree));
            eventually("it ignores termination", || (!lines(&ready).is_empty()).then_some(()));
            let target = world.show(&id)["pid"].as_u64().unwrap().try_into().unwrap();
            fill(world);
            let mut patient = world.command(["kill", &id]);
            let mut patient =
                KillOnDrop(patient.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            let kill = world.job_dir(&id).join("kill.1.json");
            eventually("the first request has the room that was kept for it", || kill.exists().then_some(()));
            let killed = world.run(["kill", "--force", &id]);
            assert_eq!(killed.code, Some(0), "{killed:?}");
            assert!(!alive(target), "{killed:?}");
            assert!(patient.0.wait().unwrap().success(), "the first one hears of it, too");
        });
    }

    #[test]
    fn an_end_finds_room_on_a_full_disk() {
        with_private_mounts(|| {
            let disk = SmallDisk::new("size=256k,nr_inodes=200");
            let world = &disk.world;
            let go = world.scratch("go");
            let hold = program("hold");
            let launch = |owner: &[&str], code: &str| {
                world.launch(owner.iter().chain(&["--", &hold, &text(&go), "--code", code]))
            };
            let (pending, unowned) = (launch(&["--session", "s"], "7"), launch(&[], "8"));
            let orphaned = launch(&["--session", "s"], "9");
            fill(world);

            world.end_supervisor(&orphaned);
            world.run(["wait", &orphaned]).exits(125);
            assert_eq!(read(&world.job_dir(&orphaned).join("end.json"))["outcome"]["kind"], "lost");

            fs::write(&go, "").unwrap();
            for (id, code) in [(&pending, 7), (&unowned, 8)] {
                world.run(["wait", id]).exits(code);
                let outcome = json!({"kind": "exited", "code": code});
                assert_eq!(read(&world.job_dir(id).join("end.json"))["outcome"], outcome);
                // The disk is as full as before, and every reader gets the outcome.
                world.show(id).outcome_is(outcome);
            }
            let listed = world.json(["list", "--json"]);
            assert!(listed.get("problems").is_none(), "{listed}");
            assert_eq!(listed["jobs"].as_array().unwrap().len(), 3, "{listed}");
            world.run(["list"]).ok();
            world.run(["logs", &pending]).ok();
            let refused = world.run(["launch", "--", &program("exit-with"), "0"]);
            refused.refuses(125).says(FULL).says("tip: make room");

            empty(world);
            world.run(["reconcile"]).ok();
            let past = world.home().join("history").join(&unowned[..5]).join(&unowned);
            assert!(past.join("settled.json").exists(), "with room, what was left undone is done");
            assert_eq!(world.json(["list", "--all", "--json"])["jobs"].as_array().unwrap().len(), 3);
        });
    }

    #[test]
    fn a_full_disk_loses_output_and_counts_it() {
        with_private_mounts(|| {
            let disk = SmallDisk::new("size=256k,nr_inodes=200");
            let world = &disk.world;
            let id = world.launch(["--session", "s", "--", &program("print"), "--bytes", "1000000"]);
            assert_eq!(world.run(["wait", &id]).code, Some(0), "what it printed is not what it is about");
            let job = world.show(&id);
            let log = world.job_dir(&id).join("output.log");
            let (size, taken) = (fs::metadata(&log).unwrap().len(), allocated(&log).unwrap());
            assert_eq!(job["output"]["bytes"], 1_000_000, "{job}");
            let kept = 1_000_000 - job["output"]["dropped"].as_u64().unwrap();
            assert!(kept > 0 && kept <= taken && taken <= 256 * 1024, "{taken} bytes are stored: {job}");
            // Wine makes no file larger than there is room for, and then the record alone says it.
            assert_eq!(size, if is_wine() { kept } else { 1_000_000 }, "{job}");
            assert!(world.run(["logs", &id, "--head", "1"]).ok().starts_with("0000000000 "));
            let printed = world.run(["logs", &id]).stdout;
            let lost = job["output"]["dropped"].as_u64().unwrap();
            let mark = format!("[hearback: {lost} bytes lost here, they could not be written]\n");
            assert!(printed.ends_with(&mark), "{}", &printed[printed.len() - 200..]);

            // One that goes on printing finds the room that is made meanwhile.
            let go = world.scratch("go");
            let shell = shell(&[&[&program("hold"), &text(&go)]]);
            fs::remove_dir_all(world.job_dir(&id)).unwrap();
            fs::remove_file(world.home().join("logs").join(format!("{id}.log"))).unwrap();
            let id = world.launch(["--session", "s", "--shell", &shell]);
            fill(world);
            empty(world);
            fs::write(go, "").unwrap();
            world.run(["wait", &id]).exits(0);
            assert_eq!(world.run(["logs", &id]).ok(), "after");
        });
    }

    #[test]
    fn what_comes_after_a_loss_is_at_its_place() {
        with_private_mounts(|| {
            let disk = SmallDisk::new("size=2m,nr_inodes=400");
            let world = &disk.world;
            let (full, more) = (world.scratch("full"), world.scratch("more"));
            let (hold, print, waiting) = (program("hold"), program("print"), world.scratch("waiting"));
            let shell = shell(&[
                &[&hold, &text(&full)],
                &[&print, "--bytes", "640000"],
                &[&hold, &text(&more), "--witness", &text(&waiting)],
            ]);
            let id = world.launch(["--session", "s", "--shell", &shell]);
            fill(world);
            fs::write(full, "").unwrap();
            // A pipe holds less than half of that, so at least the rest has been read, and lost.
            eventually("it has printed", || (!hearback_tests::lines(&waiting).is_empty()).then_some(()));
            empty(world);
            fs::write(more, "").unwrap();
            world.run(["wait", &id]).exits(0);
            let output = world.show(&id)["output"].clone();
            assert_eq!(output["bytes"], if cfg!(windows) { 640_007 } else { 640_006 }, "{output}");
            assert!(output["dropped"].as_u64().unwrap() > 300_000, "{output}");
            assert_eq!(world.run(["logs", &id, "--offset", "640000"]).ok(), "after");
            assert!(
                world.run(["logs", &id]).stdout.contains(" bytes lost here, they could not be written]\n")
            );
        });
    }

    #[test]
    fn a_store_that_cannot_be_written_still_tells_the_truth() {
        with_private_mounts(|| {
            let world = World::new();
            let go = world.scratch("go");
            let (exit_with, hold) = (program("exit-with"), program("hold"));
            let past = world.launch(["--", &exit_with, "3", "--print", "hello"]);
            let pending = world.launch(["--session", "s", "--", &exit_with, "4"]);
            let runs = world.launch(["--", &hold, &text(&go), "--code", "5"]);
            let orphaned = world.launch(["--session", "s", "--", &hold, &text(&go)]);
            settled(world.home(), &past);
            world.leave_alone(&pending);
            // With its start, because a pid is soon reused.
            let target = |id: &str| {
                let pid = u32::try_from(world.show(id)["pid"].as_u64().unwrap()).unwrap();
                (pid, start_ticks(pid).expect("it runs"))
            };
            let alive = |(pid, start): (u32, u64)| start_ticks(pid) == Some(start);
            let (lost, target) = (target(&orphaned), target(&runs));
            world.end_supervisor(&orphaned);
            eventually("the orphan is ended with its supervisor", || (!alive(lost)).then_some(()));
            let mount = Mount::over_itself(world.home());
            mount.change("bind,ro");
            let before = Snapshot::of(world.home());

            let states = |world: &World| {
                let listed = world.json(["list", "--json"]);
                assert!(listed.get("problems").is_none(), "{listed}");
                let jobs = listed["jobs"].as_array().unwrap().clone();
                let find = |id: &String| jobs.iter().find(|job| job["id"] == **id).unwrap()["state"].clone();
                [&past, &pending, &runs, &orphaned].map(find)
            };
            assert_eq!(states(&world), ["failed", "failed", "running", "failed"]);
            world.show(&orphaned).has("/outcome/reason", "unswept");
            assert_eq!(world.run(["logs", &past]).ok(), "hello");
            for (id, code) in [(&past, 3), (&pending, 4), (&orphaned, 125)] {
                world.run(["show", id]).ok();
                world.run(["wait", id]).exits(code);
            }
            let refused = world.run(["launch", "--", &exit_with, "0"]);
            refused.refuses(125).says(READ_ONLY).says("tip: set HEARBACK_HOME");
            for args in [&["reconcile"][..], &["prune", "--max-jobs", "0"]] {
                let ran = world.run(args);
                assert_eq!(ran.code, Some(125), "what cannot be done is not said to be: {ran:?}");
            }

            // A job that ends now keeps its result until it can be written.
            fs::write(&go, "").unwrap();
            eventually("the job has ended", || (!alive(target)).then_some(()));
            assert_eq!(states(&world)[2], "running", "only its supervisor may say how");
            assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
            mount.change("bind,rw");
            world.run(["wait", &runs]).exits(5);
            assert_eq!(states(&world), ["failed"; 4]);
            assert_eq!(
                read(&world.job_dir(&orphaned).join("end.json"))["outcome"]["reason"],
                "supervisor_died"
            );
        });
    }
}
