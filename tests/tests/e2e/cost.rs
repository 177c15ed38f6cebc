//! What hearback costs: an idle supervisor sleeps, and a launch costs the same with any number of jobs.
#![cfg(any(target_os = "linux", windows))]

use std::path::{Path, PathBuf};
#[cfg(not(windows))]
use std::process::Stdio;
use std::time::Duration;
#[cfg(not(windows))]
use std::time::Instant;

use hearback_core::JobId;
#[cfg(not(windows))]
use hearback_tests::{KillOnDrop, Outbox};
use hearback_tests::{World, bin, eventually, is_full, killat};

/// What the kernel says of each thread of a job's supervisor.
fn threads(world: &World, id: &str) -> Vec<PathBuf> {
    #[cfg(windows)]
    let tasks = {
        let of_the_host = hearback_tests::outside::find(&format!("__supervise {id}"));
        assert_eq!(of_the_host.len(), 1, "{of_the_host:?}");
        assert!(hearback_tests::alive(world.supervisor(id)));
        format!(r"Z:\proc\{}\task", of_the_host[0])
    };
    #[cfg(not(windows))]
    let tasks = format!("/proc/{}/task", world.supervisor(id));
    fs_err::read_dir(tasks).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// How often a thread has been given a processor, as the kernel counts it.
#[cfg(not(windows))]
fn activity(thread: &Path) -> u64 {
    let status = fs_err::read_to_string(thread.join("status")).unwrap();
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    counts.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// How much a thread has read and written. Wine stops a process for a moment when another looks into it, and other
/// tests do; but a thread that wakes there by itself does nothing without asking Wine's server.
#[cfg(windows)]
fn activity(thread: &Path) -> u64 {
    let io = fs_err::read_to_string(thread.join("io")).unwrap();
    let counts = io.lines().filter(|line| line.starts_with("rchar") || line.starts_with("wchar"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn state(thread: &Path) -> char {
    let stat = fs_err::read_to_string(thread.join("stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

#[test]
fn an_idle_supervisor_never_wakes_up() {
    #[cfg(windows)]
    if !hearback_tests::outside::is_there("how often a process wakes") {
        return;
    }
    let world = World::new();
    let ids: Vec<_> =
        (0..5).map(|_| world.launch(["--".into(), bin("hold"), world.scratch("never")])).collect();
    let threads: Vec<_> = ids.iter().flat_map(|id| threads(&world, id)).collect();
    for thread in &threads {
        eventually("the supervisor sleeps", || (state(thread) == 'S').then_some(()));
    }
    let count = || -> Vec<_> { threads.iter().map(|thread| activity(thread)).collect() };
    let before = count();
    // That nothing happens can only be seen by watching for a while.
    let full = is_full();
    std::thread::sleep(Duration::from_secs(if full { 20 } else { 4 }));
    assert_eq!(before, count());
}

// Not on Windows: no event tells there what happens in the folders of all jobs, so a process that waits looks from time
// to time.
#[cfg(not(windows))]
#[test]
fn a_process_that_waits_sleeps_until_a_job_of_its_session_ends() {
    let outbox = Outbox::pull();
    let hold = bin("hold").display().to_string();
    for _ in 0..5 {
        outbox.world.launch(["--session", "other", "--", &hold, &outbox.gate("other")]);
    }
    outbox.launch(&[], "hold", &[&outbox.gate("mine")]);
    outbox.run_as("s", &["ask", "--", &hold, &outbox.gate("asked")]).ok();
    let waits =
        [(&["followups", "next", "--wait", "60s"][..], "mine"), (&["results", "--wait", "60s"], "asked")];
    for (words, gate) in waits {
        let child = outbox.command_as("s", words).stdout(Stdio::null()).spawn().unwrap();
        let mut child = KillOnDrop(child);
        let tasks = format!("/proc/{}/task", child.0.id());
        let count = || -> Vec<_> {
            let threads = fs_err::read_dir(&tasks).unwrap().map(|entry| entry.unwrap().path());
            threads.map(|thread| (activity(&thread), thread)).collect()
        };
        // It has looked at everything, and nothing is left to do.
        let mut last = Vec::new();
        eventually("it sleeps", || {
            let now = count();
            let is_quiet = now == last && now.iter().all(|(_, thread)| state(thread) == 'S');
            std::thread::sleep(Duration::from_millis(200));
            last = now;
            is_quiet.then_some(())
        });
        // That nothing happens can only be seen by watching for a while.
        let before = count();
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(before, count(), "{words:?}");
        let began = Instant::now();
        outbox.release(gate);
        assert_eq!(child.0.wait().unwrap().code(), Some(0), "{words:?}");
        println!("{words:?}: heard {:?} after its job may end", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(30), "it did not wait for its own deadline");
    }
}

/// Fills a store with jobs, half of them open and half of them in history.
fn fill(world: &World, template: &Path, from: u64, to: u64) {
    let folders: Vec<_> = (from..to)
        .map(|n| {
            let id = JobId::mint(1_763_000_000_000 + n * 10_000, n);
            if n % 2 == 0 {
                world.home().join("jobs").join(id.as_str())
            } else {
                world.home().join("history").join(id.era()).join(id.as_str())
            }
        })
        .collect();
    // One fact makes a folder a job; a launch must not look at any of them.
    copy_into(&folders, &template.join("spec.json"), world);
}

#[cfg(not(windows))]
fn copy_into(folders: &[PathBuf], fact: &Path, _world: &World) {
    for folder in folders {
        fs_err::create_dir_all(folder).unwrap();
        fs_err::hard_link(fact, folder.join(fact.file_name().unwrap())).unwrap();
    }
}

/// The host is done with thousands of folders before Wine has made a hundred.
#[cfg(windows)]
fn copy_into(folders: &[PathBuf], fact: &Path, world: &World) {
    use hearback_tests::outside::{run, unix};
    let list = world.scratch("folders");
    let paths: String = folders.iter().map(|folder| unix(folder) + "\n").collect();
    fs_err::write(&list, paths).unwrap();
    let script = r#"
        xargs mkdir -p <"$1" &&
        sed 's|$|/spec.json|' "$1" | xargs -n 500 sh -c 'tee "$@" <"$0" >/dev/null' "$2"
    "#;
    run("sh", &["-c", script, "sh", &unix(&list), &unix(fact)]).ok();
}

/// System calls of one launch, the launcher's own. Under Wine what it asks and writes.
fn calls_of_a_launch(world: &World) -> usize {
    let program = bin("exit-with").display().to_string();
    killat::count(world, &["--only", "launcher"], &["launch", "--", &program, "0"])
}

#[test]
fn a_launch_costs_the_same_with_10_and_with_10000_jobs() {
    if !killat::is_there() {
        return;
    }
    let world = World::new();
    let id = world.launch(["--session".into(), "s".into(), "--".into(), bin("exit-with"), "0".into()]);
    world.run(["wait", &id]).ok();
    let template = world.job_dir(&id);
    fill(&world, &template, 0, 10);
    let few = calls_of_a_launch(&world);
    fill(&world, &template, 10, 10_000);
    let many = calls_of_a_launch(&world);
    // A launcher that has to wait for its answer makes a call or two more than one that does not.
    #[cfg(windows)]
    hearback_tests::outside::run("rm", &["-rf", &hearback_tests::outside::unix(world.home())]).ok();
    assert!(many.abs_diff(few) <= 4, "{few} system calls with 10 jobs, {many} with 10,000");
}

/// Copies the folder of a job that has ended, so that so many more are open.
#[cfg(not(windows))]
fn open_more(world: &World, template: &Path, from: u64, to: u64) {
    for n in from..to {
        let folder = world.home().join("jobs").join(JobId::mint(1_763_000_000_000 + n, n).as_str());
        fs_err::create_dir(&folder).unwrap();
        for entry in fs_err::read_dir(template).unwrap() {
            let path = entry.unwrap().path();
            fs_err::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
}

// Not on Windows: Wine's requests are not system calls, and it is slow to make a thousand folders.
#[cfg(not(windows))]
#[test]
fn a_look_at_an_open_job_takes_few_system_calls() {
    const MORE: u64 = 200;
    /// Each fact is read once, with one read, and nothing is flushed a second time.
    const FEW: usize = 60;
    if !killat::is_there() {
        return;
    }
    let world = World::new();
    let id = world.launch(["--session".into(), "s".into(), "--".into(), bin("exit-with"), "0".into()]);
    world.leave_alone(&id);
    let template = world.job_dir(&id);
    let commands = [&["list"][..], &["followups", "next"], &["followups", "list"]];
    let count = || commands.map(|command| killat::count(&world, &["--only", "launcher"], command));
    open_more(&world, &template, 0, 10);
    let few = count();
    open_more(&world, &template, 10, 10 + MORE);
    for ((few, many), command) in few.into_iter().zip(count()).zip(commands) {
        let each = (many - few) / MORE as usize;
        println!("{command:?}: {each} system calls for each open job");
        assert!(each <= FEW, "{command:?}: {each} system calls for each open job");
    }
}

// Not on Windows: as above.
#[cfg(not(windows))]
#[test]
fn neither_the_list_of_a_session_nor_a_launch_from_a_follow_up_reads_all_of_history() {
    if !killat::is_there() {
        return;
    }
    let world = World::new();
    let id = world.launch(["--session".into(), "other".into(), "--".into(), bin("exit-with"), "0".into()]);
    world.run(["wait", &id]).ok();
    let template = world.job_dir(&id);
    let program = bin("exit-with").display().to_string();
    // As an agent that a follow-up has woken does it.
    let launch = ["launch", "--session", "s", "--notify", "always", "--", &program, "0"];
    let launches = || {
        let mut command = std::process::Command::new(bin("killat"));
        world.settle(&mut command);
        command.env("HEARBACK_DEPTH", "1").args(["count", "--only", "launcher", "--"]);
        let ran = hearback_tests::run({
            command.arg(bin("hearback")).args(launch);
            command
        });
        let count = ran.stdout.lines().find_map(|line| line.strip_prefix("syscalls ")?.parse::<usize>().ok());
        count.unwrap_or_else(|| panic!("no count in {ran:?}"))
    };
    let list = || killat::count(&world, &["--only", "launcher"], &["list", "--session", "s"]);
    fill_history(&world, &template, 0, 2_000);
    let before = (launches(), list());
    fill_history(&world, &template, 2_000, 6_000);
    let after = (launches(), list());
    // More folders of history are listed by their names alone, and the second launch finds the job of the first.
    assert!(after.0.abs_diff(before.0) <= 300, "{before:?} with 2,000 jobs, {after:?} with 6,000");
    assert!(after.1.abs_diff(before.1) <= 300, "{before:?} with 2,000 jobs, {after:?} with 6,000");
}

/// Fills the history of a store with jobs of long ago.
#[cfg(not(windows))]
fn fill_history(world: &World, template: &Path, from: u64, to: u64) {
    let folders: Vec<_> = (from..to)
        .map(|n| {
            let id = JobId::mint(1_763_000_000_000 + n * 10_000, n);
            world.home().join("history").join(id.era()).join(id.as_str())
        })
        .collect();
    copy_into(&folders, &template.join("spec.json"), world);
}
