//! `killat` kills at the given call and no other process: the crash tests rely on it.
// Not on Windows: ptrace.
#![cfg(target_os = "linux")]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use hearback_tests::{KillOnDrop, Ran, World, alive, bin, eventually, lines};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const KILLED: i32 = 128 + 9;

#[test]
fn counting_is_deterministic() {
    let world = World::new();
    let counts: Vec<_> = (0..5).map(|_| count(&world, &["count"], &["0"])).collect();
    assert!(counts[0].0 > 5, "{counts:?}");
    assert_eq!(counts, vec![counts[0]; 5]);
    // One process with one thread: it is all there is.
    assert_eq!(counts[0].1, Some(counts[0].0));
    assert_eq!(count(&world, &["count", "--only", "launcher"], &["0"]), (counts[0].0, None));
}

#[test]
fn killed_at_the_first_call_it_does_nothing() {
    let world = World::new();
    let seen = world.scratch("seen");
    let ran = killat(&world, &["kill", "1"], "exit-with", &witnessed(&seen));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    killed(&ran);
    assert!(lines(&seen).is_empty());
}

#[test]
fn killed_at_the_last_call_it_has_done_everything_but_exit() {
    let world = World::new();
    let seen = world.scratch("seen");
    let (last, _) = count(&world, &["count"], &witnessed(&seen));
    fs_err::remove_file(&seen).unwrap();
    let ran = killat(&world, &["kill", &last.to_string(), "--wait-root"], "exit-with", &witnessed(&seen));
    let pid = killed(&ran);
    assert_eq!(ran.stdout, "hello\n");
    assert_eq!(lines(&seen), [format!("start {pid}"), "end 0".to_owned()]);
    assert!(ran.stderr.contains(&format!("finished {KILLED}\n")), "{ran:?}");
}

#[test]
fn beyond_the_last_call_it_finishes() {
    let world = World::new();
    let (last, _) = count(&world, &["count"], &["0"]);
    let beyond = (last + 1).to_string();
    for follow in [&["kill", &beyond][..], &["kill", &beyond, "--follow"]] {
        let ran = killat(&world, follow, "exit-with", &["0"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "finished 0\n"));
    }
    assert_eq!(killat(&world, &["kill", "100000"], "exit-with", &["7"]).stderr, "finished 7\n");
    assert_eq!(
        killat(&world, &["kill", "100000"], "exit-with", &["0", "--signal", "15"]).stderr,
        "finished 143\n"
    );
}

#[test]
fn each_later_kill_lets_more_happen() {
    let world = World::new();
    let seen = world.scratch("seen");
    let (last, _) = count(&world, &["count"], &witnessed(&seen));
    let mut reached = Vec::new();
    for at in 1..=last {
        fs_err::remove_file(&seen).ok();
        killed(&killat(&world, &["kill", &at.to_string()], "exit-with", &witnessed(&seen)));
        reached.push(lines(&seen).len());
    }
    assert!(reached.is_sorted(), "{reached:?}");
    assert_eq!((reached.first(), reached.last()), (Some(&0), Some(&2)));
    assert!(reached.contains(&1), "{reached:?}");
}

#[test]
fn from_a_path_on_only_what_follows_is_counted() {
    let world = World::new();
    let seen = world.scratch("seen");
    let from = format!("{}/seen", seen.parent().unwrap().file_name().unwrap().display());
    let (all, _) = count(&world, &["count"], &witnessed(&seen));
    let (after, _) = count(&world, &["count", "--from", &from], &witnessed(&seen));
    assert!((4..all).contains(&after), "{after} of {all}");
    assert_eq!(count(&world, &["count", "--from", "no/such/path"], &witnessed(&seen)), (0, Some(0)));
    // It is the opening of that file itself.
    fs_err::remove_file(&seen).unwrap();
    killed(&killat(&world, &["kill", "1", "--from", &from], "exit-with", &witnessed(&seen)));
    assert!(!seen.exists());
    killed(&killat(&world, &["kill", "2", "--from", &from], "exit-with", &witnessed(&seen)));
    assert!(seen.exists() && lines(&seen).is_empty());
}

#[test]
fn writes_alone_can_be_counted() {
    let world = World::new();
    let seen = world.scratch("seen");
    // A line for the witness, the greeting, and another line.
    assert_eq!(count(&world, &["count", "--writes"], &witnessed(&seen)), (3, Some(3)));
    fs_err::remove_file(&seen).unwrap();
    let ran = killat(&world, &["kill", "3", "--writes"], "exit-with", &witnessed(&seen));
    let pid = killed(&ran);
    assert_eq!((ran.stdout.as_str(), lines(&seen)), ("hello\n", vec![format!("start {pid}")]));
    let ran = killat(&world, &["kill", "4", "--writes"], "exit-with", &witnessed(&seen));
    assert_eq!(ran.stderr, "finished 0\n");
}

#[test]
fn descendants_are_not_touched_unless_followed() {
    let world = World::new();
    let tree = Tree::new(&world.scratch("seen"));
    // The process in between starts another, which has a child, and ends without recording itself.
    let args = [&[OsString::from("__between")], &tree.args[..]].concat();
    let (last, _) = counts(&killat(&world, &["count", "--only", "launcher"], "tree", &args));
    tree.placed(2);
    killed(&killat(&world, &["kill", &last.to_string()], "tree", &args));
    for pid in tree.placed(4) {
        assert!(alive(pid));
        assert_eq!(status_of(pid, "TracerPid:"), "0");
    }
}

#[test]
fn out_of_time_everything_runs_on_untraced() {
    let world = World::new();
    let tree = Tree::new(&world.scratch("seen"));
    let ran = killat(&world, &["kill", "100000", "--follow", "--for", "1"], "tree", &tree.args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), "killat: out of time\n"));
    for pid in tree.placed(2) {
        assert!(alive(pid));
        assert_eq!(status_of(pid, "TracerPid:"), "0");
    }
}

#[test]
fn match_kills_only_the_process_that_matches() {
    let world = World::new();
    let tree = Tree::new(&world.scratch("seen"));
    let ran = killat(&world, &["kill", "1", "--match", "tree __child --depth 0"], "tree", &tree.args);
    let child = killed(&ran);
    let [root] = tree.placed(1)[..] else { panic!("the child had no time to record itself") };
    assert_ne!(root, child);
    assert!(alive(root) && !alive(child));
    assert_eq!(status_of(root, "TracerPid:"), "0");
}

#[test]
fn whole_kills_everything_traced() {
    let world = World::new();
    let tree = Tree::new(&world.scratch("seen"));
    let options = ["kill", "1", "--whole", "--match", "tree __child --depth 0", "--wait-root"];
    let ran = killat(&world, &options, "tree", &tree.args);
    let child = killed(&ran);
    let root = tree.placed(1)[0];
    assert!(!alive(child) && !alive(root), "{ran:?}");
    assert!(ran.stderr.contains(&format!("finished {KILLED}\n")), "{ran:?}");
}

#[test]
fn following_sees_threads_children_and_stops() {
    let world = World::new();
    // A tracer has a thread and a child, and the child stops itself. It fails, because the child is already
    // traced.
    let inner = [
        OsString::from("count"),
        OsString::from("--"),
        bin("exit-with").into_os_string(),
        OsString::from("0"),
    ];
    let ran = killat(&world, &["count"], "killat", &inner);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("cannot trace the program") && ran.stderr.ends_with("finished 4\n"),
        "{ran:?}"
    );
    let (root, all) = counts(&ran);
    assert!(all.is_some_and(|all| all > root + 10), "{ran:?}");
}

#[test]
fn a_stopped_program_stays_stopped_until_it_is_continued() {
    let world = World::new();
    let (go, seen) = (world.scratch("go"), world.scratch("seen"));
    let mut command = Command::new(bin("killat"));
    world.settle(&mut command);
    command.args(["count", "--"]).arg(bin("hold")).arg(&go).arg("--witness").arg(&seen);
    let mut killat = KillOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let started = eventually("hold has started", || lines(&seen).pop());
    let pid = started.strip_prefix("start ").unwrap().parse().unwrap();

    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    // Between two calls it is in such a stop only for a moment, so ten looks in a row are proof enough.
    let mut looks = 0;
    eventually("hold rests", || {
        looks = if status_of(pid.cast_unsigned(), "State:").starts_with('t') { looks + 1 } else { 0 };
        (looks == 10).then_some(())
    });
    fs_err::write(&go, "").unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(killat.0.try_wait().unwrap(), None);

    kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    let status = eventually("killat has ended", || killat.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

/// A root with one child; both are ended with the test.
struct Tree {
    seen: PathBuf,
    args: Vec<OsString>,
}

impl Tree {
    fn new(seen: &Path) -> Tree {
        let shape = ["--depth", "1", "--breadth", "1", "--witness"].map(OsString::from);
        Tree { seen: seen.to_owned(), args: [&shape[..], &[seen.into()]].concat() }
    }

    /// The pids that are in place, once there are so many.
    fn placed(&self, count: usize) -> Vec<u32> {
        let seen =
            eventually("the tree is in place", || Some(lines(&self.seen)).filter(|seen| seen.len() >= count));
        seen.iter().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()).collect()
    }
}

/// Runs `killat OPTIONS -- PROGRAM ARGS` until it has ended, even if a process lives on with its output.
fn killat(world: &World, options: &[&str], program: &str, args: &[impl AsRef<OsStr>]) -> Ran {
    let (stdout, stderr) = (world.scratch("stdout"), world.scratch("stderr"));
    let mut command = Command::new(bin("killat"));
    world.settle(&mut command);
    command.args(options).arg("--").arg(bin(program)).args(args);
    command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
    let code = command.status().unwrap().code();
    let text = |path| fs_err::read_to_string(path).unwrap();
    Ran { code, stdout: text(stdout), stderr: text(stderr) }
}

/// What `killat count` printed: the calls of the root, and those of all.
fn counts(ran: &Ran) -> (u64, Option<u64>) {
    let field = |name| ran.stdout.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
    (field("syscalls ").unwrap_or_else(|| panic!("no count: {ran:?}")), field("all "))
}

fn count(world: &World, options: &[&str], args: &[impl AsRef<OsStr>]) -> (u64, Option<u64>) {
    counts(&killat(world, options, "exit-with", args))
}

/// The process that was killed.
fn killed(ran: &Ran) -> u32 {
    let pid = ran.stderr.lines().find_map(|line| line.strip_prefix("killed ")?.parse().ok());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    pid.unwrap_or_else(|| panic!("nothing was killed: {ran:?}"))
}

fn witnessed(seen: &Path) -> [&OsStr; 5] {
    [OsStr::new("0"), OsStr::new("--print"), OsStr::new("hello"), OsStr::new("--witness"), seen.as_os_str()]
}

fn status_of(pid: u32, field: &str) -> String {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| Some(line.strip_prefix(field)?.trim().to_owned())).unwrap()
}
