//! hearback harms nobody: not a stranger's process, not another user, not a job that is only looked at, and not the
//! truth when the disk is full or cannot be written.
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use fs_err as fs;
use hearback_core::port::process::ProcessControl;
use hearback_platform::Native;
use hearback_tests::{KillOnDrop, Snapshot, World, bin, eventually, forced, lines};
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
        let job = world.show(&id);
        assert_eq!(job["state"], "failed", "{case}: {job}");
        assert_eq!(job["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}), "{case}");
        assert_eq!(job["follow_up"]["state"], "owed", "its owner hears of it: {case}");
        assert!(job.get("survivors").is_none(), "somebody else is no survivor of ours: {job}");
        assert_eq!(read(&world.job_dir(&id).join("end.json"))["author"], "reconciler", "{case}");
        assert!(stranger.0.try_wait().unwrap().is_none(), "{case}: the stranger lives");
    }
    // No signal that ends a process has reached it: it ends when it is told to, with its own code.
    fs::write(go, "").unwrap();
    assert_eq!(stranger.0.wait().unwrap().code(), Some(7));
}

/// A record is believed in this one case: it names a process that is there, exactly, and that leads a group as every
/// target does. Whoever can write such a record into our store can signal our processes anyway.
#[test]
fn what_a_record_names_exactly_is_ended_and_nothing_but_that() {
    let world = World::new();
    let go = world.scratch("go");
    let mut leader = stranger(&go);
    // Leads no group, so it was never the target of a job. Windows does not tell who leads one; there it is not named.
    let mut command = Command::new(bin("hold"));
    command.arg(&go).args(["--code", "7"]).stdin(Stdio::null());
    let mut other = KillOnDrop(command.spawn().unwrap());
    let id = orphan(&world, &identity(leader.0.id()));
    assert_eq!(world.show(&id)["outcome"]["kind"], "lost");
    assert_eq!(exit_of(leader.0.wait().unwrap()), forced(), "the sweep takes it for the target");

    if cfg!(unix) {
        let id = orphan(&world, &identity(other.0.id()));
        assert_eq!(world.show(&id)["outcome"]["kind"], "lost");
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
    let job = world.show(&id);
    assert_eq!((job["state"].as_str(), job["pid"].as_u64()), (Some("running"), Some(target)));
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
    world.run(["list"]).ok();
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
        // Whatever happens here, the others have to stop, or the scope would wait for ever.
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

/// The user that owns nothing, on every Unix that the tests are run on as root.
#[cfg(unix)]
const NOBODY: u32 = 65534;

#[track_caller]
fn refused(ran: &hearback_tests::Ran, why: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(why), "not because it {why}: {ran:?}");
    assert!(ran.stderr.contains("\ntip: ") && ran.stderr.contains("HEARBACK_HOME"), "{ran:?}");
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

// Not on Windows: modes of directories.
#[cfg(unix)]
#[test]
fn it_is_enough_that_some_others_may_write_a_store() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    for mode in [0o770, 0o702, 0o720, 0o1777] {
        set_mode(world.home(), mode);
        is_refused_for_others(&world);
    }
    // That others may look at its name is no danger: what is inside is closed to them.
    set_mode(world.home(), 0o755);
    let id = world.launch(["--", &program("exit-with"), "0"]);
    assert_eq!(world.run(["wait", &id]).code, Some(0));
}

// Not on Windows: links take a privilege that nobody has by default.
#[cfg(unix)]
#[test]
fn a_link_to_the_store_is_followed_if_it_is_ours() {
    let world = World::new();
    let id = world.launch(["--", &program("exit-with"), "3"]);
    settled(world.home(), &id);
    let link = world.scratch("link");
    fs::os::unix::fs::symlink(world.home(), &link).unwrap();
    let through = |path: &str, args: &[&str]| {
        let mut command = world.command(args);
        command.env("HEARBACK_HOME", path);
        hearback_tests::run(command)
    };
    let shown = through(&text(&link), &["show", &id, "--json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), world.show(&id), "by its real name");
    let launched = through(&text(&link), &["launch", "--", &program("exit-with"), "4"]).ok();
    assert_eq!(world.run(["wait", &launched]).code, Some(4));
    settled(world.home(), &launched);

    if !nix::unistd::geteuid().is_root() {
        hearback_tests::skipped("only root can make links in the name of others");
        return;
    }
    fs::os::unix::fs::lchown(&link, Some(NOBODY), None).unwrap();
    let before = Snapshot::of(world.home());
    for path in [text(&link), format!("{}/", text(&link)), format!("{}/.", text(&link))] {
        refused(&through(&path, &["list"]), "is a link that somebody else made");
        refused(&through(&path, &["launch", "--", &program("exit-with"), "4"]), "is a link");
    }
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
}

// Not on Windows: another user takes a privilege that nobody has by default.
#[cfg(unix)]
#[test]
fn the_store_of_another_user_is_refused() {
    use std::os::unix::process::CommandExt;
    if !nix::unistd::geteuid().is_root() {
        hearback_tests::skipped("it takes root to be two users");
        return;
    }
    let world = World::new();
    let id = world.launch(["--", &program("exit-with"), "0"]);
    assert_eq!(world.run(["wait", &id]).code, Some(0));
    settled(world.home(), &id);

    // Root in a user's store would leave files behind that the user can never change.
    fs::os::unix::fs::chown(world.home(), Some(NOBODY), None).unwrap();
    let before = Snapshot::of(world.home());
    let program = program("exit-with");
    for command in
        [&["list"][..], &["show", &id], &["prune", "--max-jobs", "0"], &["launch", "--", &program, "0"]]
    {
        refused(&world.run(command), &format!("belongs to user {NOBODY}, and you are user 0"));
    }
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
    fs::os::unix::fs::chown(world.home(), Some(0), None).unwrap();

    // And a user in root's.
    let elsewhere = World::new();
    for path in [elsewhere.home().parent().unwrap(), world.home().parent().unwrap(), world.home()] {
        set_mode(path, 0o755);
    }
    let copy = elsewhere.home().with_file_name("hearback");
    fs::copy(bin("hearback"), &copy).unwrap();
    let as_user = |args: &[&str]| {
        let mut command = Command::new(&copy);
        world.settle(&mut command);
        command.args(args).current_dir("/").uid(NOBODY).gid(NOBODY);
        hearback_tests::run(command)
    };
    refused(&as_user(&["list"]), &format!("belongs to user 0, and you are user {NOBODY}"));
    refused(&as_user(&["launch", "--", "/bin/true"]), "belongs to user 0");
    set_mode(world.home().parent().unwrap(), 0o700);
    refused(&as_user(&["list"]), "Permission denied");
    assert_eq!(world.show(&id)["state"], "done", "its owner is not disturbed");
}

// Not on Windows: another owner takes a privilege that nobody has by default.
#[cfg(unix)]
#[test]
fn settings_that_somebody_else_wrote_are_ignored() {
    if !nix::unistd::geteuid().is_root() {
        hearback_tests::skipped("only root can give files away");
        return;
    }
    let world = World::new();
    world.run(["list"]).ok();
    let config = world.home().join("config.toml");
    fs::write(&config, "max_jobs = 0\n").unwrap();
    let id = world.launch(["--", &program("exit-with"), "0"]);
    settled(world.home(), &id);
    fs::os::unix::fs::chown(&config, Some(NOBODY), None).unwrap();
    let pruned = world.run(["prune"]);
    assert_eq!((pruned.code, pruned.stdout.as_str()), (Some(0), ""), "{pruned:?}");
    assert!(pruned.stderr.contains("config.toml` was ignored: owned by user"), "{pruned:?}");
    fs::os::unix::fs::chown(&config, Some(0), None).unwrap();
    assert_eq!(world.run(["prune"]).ok(), id, "it is only about who wrote them");
}

// Not on Windows: umask.
#[cfg(unix)]
#[test]
fn what_hearback_makes_is_private_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    for umask in ["000", "022", "077"] {
        let world = World::new();
        let above = world.scratch("new");
        let home = above.join("deep/home");
        let launch = |args: &[&str]| {
            // The mask is inherited, and setting ours would set it for every other test.
            let mut command = Command::new("sh");
            command.args(["-c", "umask $0; exec \"$@\"", umask]).arg(bin("hearback"));
            world.settle(&mut command);
            command.args(args).env("HEARBACK_HOME", &home);
            hearback_tests::run(command)
        };
        let (go, made) = (world.scratch("go"), world.scratch("made"));
        let script = format!("echo hello; : > '{}'", text(&made));
        let shell = launch(&["launch", "--key", "k", "--shell", &script]).ok();
        assert_eq!(launch(&["launch", "--", &text(&world.scratch("missing"))]).code, Some(127));
        let held = launch(&["launch", "--session", "s", "--", &program("hold"), &text(&go)]).ok();
        settled(&home, &shell);

        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        for path in [&above, &above.join("deep"), &home] {
            assert_eq!(mode(path), 0o700, "umask {umask}: {}", path.display());
        }
        let all = Snapshot::of(&home);
        assert!(all.paths().count() > 20, "{all:?}");
        for path in all.paths() {
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(path), wanted, "umask {umask}: {}", path.display());
        }
        let inherited = 0o666 & !u32::from_str_radix(umask, 8).unwrap();
        assert_eq!(mode(&made), inherited, "what the job makes is its own affair");
        fs::write(go, "").unwrap();
        let begin = read(&home.join("jobs").join(&held).join("begin.json"));
        let supervisor = begin["by"]["supervisor"]["pid"].as_u64().unwrap().try_into().unwrap();
        eventually("nobody uses the store any more", || (!hearback_tests::alive(supervisor)).then_some(()));
    }
}

#[test]
fn a_secret_reaches_the_target_and_nobody_else() {
    let world = World::new();
    let go = world.scratch("go");
    // Spelled in halves, so that neither is in the command line that is stored for people to see.
    let (given, inherited) = (["hunter2", "given"].concat(), ["hunter2", "inherited"].concat());
    let mut command = world.command(["launch", "--session", "s", "-e", &format!("SECRET={given}")]);
    command.args(["-e", "GONE", "--", &program("hold"), &text(&go), "--print", "quiet"]);
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
    assert_eq!(world.run(["wait", &id]).code, Some(0));
    nowhere(&world);

    // Neither does a start that fails tell.
    let missing = text(&world.scratch("missing"));
    let failed = world.run(["launch", "-e", &format!("SECRET={given}"), "--", &missing]);
    assert_eq!(failed.code, Some(127));
    assert!(!format!("{failed:?}").contains("hunter2"), "{failed:?}");
    nowhere(&world);
}

/// Somebody whom hearback knows nothing about: `hold` in a group of its own, as a target would be.
fn stranger(go: &Path) -> KillOnDrop {
    let mut command = Command::new(bin("hold"));
    command.arg(go).args(["--code", "7"]).stdin(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    KillOnDrop(command.spawn().unwrap())
}

/// Who a living process is, as a record would name it.
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
    target["process"] = process.clone();
    fs::write(folder.join("target.json"), target.to_string()).unwrap();
    let mut begin = read(&folder.join("begin.json"));
    // Its supervisor's number belongs to the stranger as well; a supervisor that lived would keep the job its own.
    begin["by"]["supervisor"]["pid"] = process["pid"].clone();
    begin["by"]["supervisor"]["started"] = json!(1);
    fs::write(folder.join("begin.json"), begin.to_string()).unwrap();
    id
}

/// Waits until a job is in history.
#[cfg(unix)]
fn settled(home: &Path, id: &str) {
    let folder = home.join("history").join(&id[..5]).join(id);
    eventually("the job is settled", || folder.is_dir().then_some(()));
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn program(name: &str) -> String {
    text(&bin(name))
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

// Not on Windows: private mounts.
#[cfg(target_os = "linux")]
mod full_and_read_only {
    //! Disks that are full or cannot be written. Each test has mounts of its own.

    use hearback_tests::{Mount, alive, with_private_mounts};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::os::unix::fs::MetadataExt;

    use super::*;

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

    fn empty(world: &World) {
        fs::remove_dir_all(world.home().join("filler")).unwrap();
    }

    /// Launches on a disk with room for almost nothing, and holds what was answered against what is there.
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
            let left = Snapshot::of(world.home());
            let is_expected = |path: &Path| {
                let inside = path.strip_prefix(world.home()).unwrap();
                inside.components().count() == 1 || inside.starts_with("keys")
            };
            let left: Vec<_> = left.paths().filter(|path| !is_expected(path)).collect();
            assert!(left.is_empty(), "{case}: {left:?}");
        } else {
            assert_eq!(jobs.len(), 1, "{case}: {listed}");
            assert_eq!(jobs[0]["id"], id, "{case}");
            let wanted = if launched.code == Some(0) {
                json!({"kind": "exited", "code": 3})
            } else {
                // Everything was ready but the log: the job is recorded, and says why it did not run.
                json!({"kind": "failed_to_start", "error": jobs[0]["outcome"]["error"]})
            };
            assert_eq!(jobs[0]["outcome"], wanted, "{case}: {listed}");
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
            let went_well: Vec<bool> = (1..=most).map(|n| launch_in(&limits(n), args)).collect();
            assert!(!went_well[0] && went_well[most - 1], "from nothing to enough: {went_well:?}");
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
    fn an_end_finds_room_on_a_full_disk() {
        with_private_mounts(|| {
            let disk = SmallDisk::new("size=256k,nr_inodes=200");
            let world = &disk.world;
            let go = world.scratch("go");
            let hold = program("hold");
            let launch = |owner: &[&str], code: &str| {
                world.launch(owner.iter().chain(&["--", &hold, &text(&go), "--code", code]))
            };
            let (owed, unowned) = (launch(&["--session", "s"], "7"), launch(&[], "8"));
            let orphaned = launch(&["--session", "s"], "9");
            fill(world);

            kill(Pid::from_raw(world.supervisor(&orphaned).cast_signed()), Signal::SIGKILL).unwrap();
            assert_eq!(world.run(["wait", &orphaned]).code, Some(125));
            assert_eq!(read(&world.job_dir(&orphaned).join("end.json"))["outcome"]["kind"], "lost");

            fs::write(&go, "").unwrap();
            for (id, code) in [(&owed, 7), (&unowned, 8)] {
                assert_eq!(world.run(["wait", id]).code, Some(code));
                let outcome = json!({"kind": "exited", "code": code});
                assert_eq!(read(&world.job_dir(id).join("end.json"))["outcome"], outcome);
                // The disk is as full as ever, and whoever asks is told.
                assert_eq!(world.show(id)["outcome"], outcome);
            }
            let listed = world.json(["list", "--json"]);
            assert!(listed.get("problems").is_none(), "{listed}");
            assert_eq!(listed["jobs"].as_array().unwrap().len(), 3, "{listed}");
            world.run(["list"]).ok();
            world.run(["logs", &owed]).ok();
            let refused = world.run(["launch", "--", &program("exit-with"), "0"]);
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
            assert!(
                refused.stderr.contains("No space left") && refused.stderr.contains("tip: make room"),
                "{refused:?}"
            );

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
            let log = fs::metadata(world.job_dir(&id).join("output.log")).unwrap();
            assert!(log.len() == 1_000_000 && log.blocks() * 512 <= 256 * 1024, "{log:?}");
            assert_eq!(job["output"]["bytes"], 1_000_000, "{job}");
            let kept = 1_000_000 - job["output"]["dropped"].as_u64().unwrap();
            assert!(kept > 0 && kept <= log.blocks() * 512, "{job}");
            assert!(world.run(["logs", &id, "--head", "1"]).ok().starts_with("0000000000 "));
            let printed = world.run(["logs", &id]).stdout;
            let lost = job["output"]["dropped"].as_u64().unwrap();
            let mark = format!("[hearback: {lost} bytes lost here, they could not be written]\n");
            assert!(printed.ends_with(&mark), "{}", &printed[printed.len() - 200..]);

            // One that goes on printing finds the room that is made meanwhile.
            let go = world.scratch("go");
            let shell = format!("'{}' '{}'; echo after", program("hold"), text(&go));
            fs::remove_dir_all(world.job_dir(&id)).unwrap();
            let id = world.launch(["--session", "s", "--shell", &shell]);
            fill(world);
            empty(world);
            fs::write(go, "").unwrap();
            assert_eq!(world.run(["wait", &id]).code, Some(0));
            assert_eq!(world.run(["logs", &id]).ok(), "after");
        });
    }

    #[test]
    fn what_comes_after_a_loss_is_at_its_place() {
        with_private_mounts(|| {
            let disk = SmallDisk::new(PLENTY);
            let world = &disk.world;
            let (full, more) = (world.scratch("full"), world.scratch("more"));
            let hold = |go: &Path| format!("'{}' '{}'", program("hold"), text(go));
            let waiting = world.scratch("waiting");
            let shell = format!(
                "{}; '{}' --bytes 640000; {} --witness '{}'; echo after",
                hold(&full),
                program("print"),
                hold(&more),
                text(&waiting)
            );
            let id = world.launch(["--session", "s", "--shell", &shell]);
            fill(world);
            fs::write(full, "").unwrap();
            // A pipe holds less than half of that, so at least the rest has been read, and lost.
            eventually("it has printed", || (!hearback_tests::lines(&waiting).is_empty()).then_some(()));
            empty(world);
            fs::write(more, "").unwrap();
            assert_eq!(world.run(["wait", &id]).code, Some(0));
            let output = world.show(&id)["output"].clone();
            assert_eq!(output["bytes"], 640_006, "{output}");
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
            let owed = world.launch(["--session", "s", "--", &exit_with, "4"]);
            let runs = world.launch(["--", &hold, &text(&go), "--code", "5"]);
            let orphaned = world.launch(["--session", "s", "--", &hold, &text(&go)]);
            settled(world.home(), &past);
            world.leave_alone(&owed);
            let target = |id: &str| u32::try_from(world.show(id)["pid"].as_u64().unwrap()).unwrap();
            let (lost, target) = (target(&orphaned), target(&runs));
            kill(Pid::from_raw(world.supervisor(&orphaned).cast_signed()), Signal::SIGKILL).unwrap();
            eventually("the orphan is ended with its supervisor", || (!alive(lost)).then_some(()));
            let mount = Mount::over_itself(world.home());
            mount.change("bind,ro");
            let before = Snapshot::of(world.home());

            let states = |world: &World| {
                let listed = world.json(["list", "--json"]);
                assert!(listed.get("problems").is_none(), "{listed}");
                let jobs = listed["jobs"].as_array().unwrap().clone();
                let find = |id: &String| jobs.iter().find(|job| job["id"] == **id).unwrap()["state"].clone();
                [&past, &owed, &runs, &orphaned].map(find)
            };
            assert_eq!(states(&world), ["failed", "failed", "running", "failed"]);
            assert_eq!(world.show(&orphaned)["outcome"]["reason"], "supervisor_died");
            assert_eq!(world.run(["logs", &past]).ok(), "hello");
            for (id, code) in [(&past, 3), (&owed, 4), (&orphaned, 125)] {
                world.run(["show", id]).ok();
                assert_eq!(world.run(["wait", id]).code, Some(code));
            }
            let refused = world.run(["launch", "--", &exit_with, "0"]);
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
            assert!(refused.stderr.contains("Read-only file system"), "{refused:?}");
            assert!(refused.stderr.contains("tip: point HEARBACK_HOME"), "{refused:?}");
            for args in [&["reconcile"][..], &["prune", "--max-jobs", "0"]] {
                let ran = world.run(args);
                assert_eq!(ran.code, Some(125), "what cannot be done is not said to be: {ran:?}");
            }

            // A job that ends now keeps its result until it can be written.
            fs::write(&go, "").unwrap();
            eventually("the job has ended", || (!alive(target)).then_some(()));
            assert_eq!(states(&world)[2], "running", "nobody but its supervisor may say how");
            assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
            mount.change("bind,rw");
            assert_eq!(world.run(["wait", &runs]).code, Some(5));
            assert_eq!(states(&world), ["failed"; 4]);
            assert_eq!(
                read(&world.job_dir(&orphaned).join("end.json"))["outcome"]["reason"],
                "supervisor_died"
            );
        });
    }
}
