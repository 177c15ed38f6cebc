//! A launcher of servers: `hearback-platform` without a store, a job or a supervisor.
//!
//! It starts a detached tree of processes and writes down how to find it. Another process reads that, proves that the
//! tree is there, and ends it. Every step asserts what it did, so that running this is a test.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hearback_platform::{Detached, DetachedTree, Presence};

const LONG: Duration = Duration::from_secs(60);
/// Our own mark. hearback knows nothing of it.
const MARK: &str = "REUSE_PLATFORM_SERVER";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => test(),
        ["start", folder] => start(Path::new(folder)),
        ["stop", folder] => stop(Path::new(folder)),
        ["nest", folder] => nest(Path::new(folder)),
        ["serve", generations, folder] => serve(generations.parse()?, Path::new(folder)),
        other => Err(format!("unknown arguments: {other:?}").into()),
    }
}

fn test() -> Outcome {
    let folder = std::env::temp_dir().join(format!("reuse-platform-{}", std::process::id()));
    fs::create_dir(&folder)?;
    a_tree_is_ended_by_another_process(&folder)?;
    a_stranger_is_left_alone(&folder)?;
    an_orphan_is_found_by_its_mark(&folder)?;
    a_tree_ends_where_another_begins(&folder)?;
    what_ends_at_once_was_identified()?;
    fs::remove_dir_all(folder)?;
    println!("reuse-platform: all as promised");
    Ok(())
}

/// The launcher ends before the second process begins: the file is all that they share.
fn a_tree_is_ended_by_another_process(folder: &Path) -> Outcome {
    assert!(myself(["start".as_ref(), folder.as_os_str()])?.status()?.success());
    assert!(myself(["stop".as_ref(), folder.as_os_str()])?.status()?.success());
    let tree = stored(folder)?;
    assert_eq!(tree.presence(), Presence::Gone);
    assert!(tree.members()?.is_empty());
    let again = tree.end(Duration::ZERO, LONG)?;
    assert_eq!((again.ended, again.survivors.len()), (0, 0), "ending it again is no error");
    Ok(())
}

/// One process: starts the tree, and writes down how to find it.
fn start(folder: &Path) -> Outcome {
    let output = fs::File::create(folder.join("output"))?;
    let tree = Detached::new(std::env::current_exe()?)
        .args(["serve".as_ref(), "3".as_ref(), folder.as_os_str()])
        .mark(MARK, format!("{}", folder.display()))
        .output(output)
        .start()?;
    fs::write(folder.join("tree.json"), serde_json::to_vec(&tree)?)?;
    Ok(())
}

/// Another process, later: finds the tree, and ends it.
fn stop(folder: &Path) -> Outcome {
    let tree = stored(folder)?;
    assert_eq!(tree.presence(), Presence::Same);
    let pids = serving(folder, 3);
    let mut found: Vec<_> = tree.members()?.iter().map(|who| who.pid).collect();
    found.sort_unstable();
    assert_eq!(found, pids);

    let report = tree.end(Duration::ZERO, LONG)?;
    assert_eq!((report.ended, report.terminated), (3, 0), "{report:?}");
    assert!(report.survivors.is_empty(), "{report:?}");
    assert_eq!(tree.presence(), Presence::Gone);
    assert!(tree.members()?.is_empty());
    let output = fs::read_to_string(folder.join("output"))?;
    assert_eq!(output.lines().count(), 3, "each has printed its line: {output}");
    Ok(())
}

/// A process with the pid of ours that was started at another time is not ours, and is not signalled.
fn a_stranger_is_left_alone(folder: &Path) -> Outcome {
    let stranger = Detached::new(std::env::current_exe()?)
        .args(["serve".as_ref(), "1".as_ref(), folder.as_os_str()])
        .start()?;
    let mut reused = stored(folder)?;
    reused.leader.pid = stranger.leader.pid;
    assert_ne!(reused.leader.started, stranger.leader.started);
    assert_eq!(reused.presence(), Presence::Gone);
    assert!(reused.members()?.is_empty());
    let report = reused.end(Duration::ZERO, LONG)?;
    assert_eq!((report.ended, report.survivors.len()), (0, 0));
    assert_eq!(stranger.presence(), Presence::Same, "it was not signalled");

    let report = stranger.end(Duration::from_secs(30), LONG)?;
    assert_eq!((report.ended, report.survivors.len()), (1, 0));
    // Windows has no way to terminate it, and the report says so.
    assert_eq!(report.terminated, usize::from(cfg!(unix)));
    Ok(())
}

/// The first process ends; the others are found all the same.
fn an_orphan_is_found_by_its_mark(folder: &Path) -> Outcome {
    let folder = folder.join("orphan");
    fs::create_dir(&folder)?;
    start(&folder)?;
    let tree = stored(&folder)?;
    assert_eq!(serving(&folder, 3).len(), 3);
    let leader = tree.leader.pid;
    fs::write(folder.join(format!("quit-{leader}")), "")?;
    until("the first process ends", || tree.presence() == Presence::Gone);
    assert_eq!(tree.members()?.len(), 2);
    let report = tree.end(Duration::ZERO, LONG)?;
    assert_eq!((report.ended, report.survivors.len()), (2, 0), "{report:?}");
    Ok(())
}

/// A tree that is started from inside of another, with the same variable, is a tree of its own.
fn a_tree_ends_where_another_begins(folder: &Path) -> Outcome {
    let folder = folder.join("outer");
    fs::create_dir(&folder)?;
    let outer = Detached::new(std::env::current_exe()?)
        .args(["nest".as_ref(), folder.as_os_str()])
        .mark(MARK, "outer")
        .start()?;
    serving(&folder, 1);
    let inner = stored(&folder.join("inner"))?;
    serving(&folder.join("inner"), 3);
    assert_eq!(outer.members()?, [outer.leader.clone()]);
    let report = outer.end(Duration::ZERO, LONG)?;
    assert_eq!((report.ended, report.survivors.len()), (1, 0), "{report:?}");
    assert_eq!(inner.presence(), Presence::Same, "it does not belong to the outer tree");
    let report = inner.end(Duration::ZERO, LONG)?;
    assert_eq!((report.ended, report.survivors.len()), (3, 0), "{report:?}");
    Ok(())
}

/// A process of the outer tree: starts the inner tree, and stays until it is ended.
fn nest(folder: &Path) -> Outcome {
    let inner = folder.join("inner");
    fs::create_dir(&inner)?;
    start(&inner)?;
    serve(1, folder)
}

fn what_ends_at_once_was_identified() -> Outcome {
    let missing = Detached::new("reuse-platform-no-such-program").start();
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    for _ in 0..20 {
        let tree = Detached::new(std::env::current_exe()?).arg("unknown").start()?;
        assert_ne!(tree.leader.started, 0);
        until("it ends", || tree.presence() == Presence::Gone);
    }
    Ok(())
}

/// A process of the tree: starts the next generation, reports itself, and stays until it is ended.
fn serve(generations: u32, folder: &Path) -> Outcome {
    let next = (generations - 1).to_string();
    let child = (generations > 1)
        .then(|| myself(["serve".as_ref(), next.as_ref(), folder.as_os_str()])?.spawn())
        .transpose()?;
    let me = std::process::id();
    println!("{me} serves");
    fs::write(folder.join(format!("serving-{me}")), "")?;
    // What has no parent to end it must not stay for ever.
    let began = Instant::now();
    while !folder.join(format!("quit-{me}")).exists() && began.elapsed() < 3 * LONG {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(child);
    Ok(())
}

fn myself<const N: usize>(args: [&std::ffi::OsStr; N]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args);
    Ok(command)
}

fn stored(folder: &Path) -> Result<DetachedTree, Box<dyn Error>> {
    Ok(serde_json::from_slice(&fs::read(folder.join("tree.json"))?)?)
}

/// The pids of so many processes that have reported themselves, in order.
fn serving(folder: &Path, count: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    until("all of the tree serve", || {
        pids = files(folder).iter().filter_map(|name| name.strip_prefix("serving-")?.parse().ok()).collect();
        pids.len() >= count
    });
    pids.sort_unstable();
    pids
}

fn files(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).expect("the folder is ours").flatten().map(|entry| entry.path());
    paths.filter_map(|path: PathBuf| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < LONG, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
