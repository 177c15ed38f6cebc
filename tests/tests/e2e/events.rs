//! `hearback events`: what happened, in one order for all readers, with a cursor.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fs_err as fs;
use hearback_tests::{KillOnDrop, World, bin, eventually, lines};
use serde_json::Value;

/// What a reader has written: whole lines only, the last may be cut by its death.
fn events(path: &Path) -> Vec<Value> {
    let read = lines(path).into_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    read.filter(|event| event["type"] != "ready").collect()
}

fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

/// A reader that adds to a file, from a cursor on.
fn reader(world: &World, file: &Path, since: &str) -> KillOnDrop {
    let output = fs::OpenOptions::new().create(true).append(true).open(file).unwrap().into_parts().0;
    let mut command = world.command(["events", "--json", "--since", since]);
    KillOnDrop(command.stdout(output).stderr(Stdio::null()).spawn().unwrap())
}

fn is_ready(file: &Path) -> Option<()> {
    lines(file).iter().any(|line| line.contains("\"ready\"")).then_some(())
}

fn launched(world: &World, args: &[&str]) -> String {
    let words = args.iter().map(PathBuf::from).chain([PathBuf::from("--"), bin("exit-with"), "0".into()]);
    world.launch(words)
}

#[test]
fn scenario_145_each_thing_that_happens_is_one_line() {
    let world = World::new();
    let file = world.scratch("events");
    let _reader = reader(&world, &file, "now");
    eventually("the reader is ready", || is_ready(&file));
    let id = launched(&world, &["--session", "s", "--label", "it"]);
    eventually("it has ended", || ids(&events(&file)).contains(&format!("job/{id}/ended")).then_some(()));
    world.run(["followups", "ack", &id, "--session", "s"]).ok();
    world.run(["send", "--session", "t", "--sink", "nowhere", "hello"]);
    eventually("it is settled", || ids(&events(&file)).contains(&format!("job/{id}/settled")).then_some(()));
    let told = events(&file);
    let of_job: Vec<_> = told.iter().filter(|event| event["job"]["id"] == id.as_str()).collect();
    let types: Vec<_> = of_job.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["launched", "started", "ended", "told", "settled"]);
    assert!(of_job.iter().all(|event| event["session"] == "s" && event["job"]["label"] == "it"), "{told:?}");
    assert_eq!(of_job[3]["how"], "delivered");

    // Only what a session may see, and a line for people.
    let other = world.run(["events", "--once", "--json", "--session", "other"]).ok();
    assert_eq!(other, "");
    let text = world.run(["events", "--once", "--session", "s"]).ok();
    assert!(text.contains(&format!("{id} (it): ended: done: exit code 0")), "{text}");
    world.run(["events", "--since", "nonsense"]).refuses(2).says("expected the `cursor` of an event");
}

/// Readers are killed at any moment and come back with their last cursor. Each has read everything, nothing twice, and
/// all in the same order.
#[test]
fn scenario_145_a_reader_that_comes_back_misses_nothing() {
    const JOBS: usize = 24;
    let world = World::new();
    let files = ["one", "two", "three"].map(|name| world.scratch(name));
    let back = |file: &Path| {
        let last = events(file).last().map(|event| event["cursor"].as_str().unwrap().to_owned());
        reader(&world, file, last.as_deref().unwrap_or("beginning"))
    };
    let mut readers: Vec<_> = files.iter().map(|file| back(file)).collect();
    let mut jobs = BTreeSet::new();
    for n in 0..JOBS {
        jobs.insert(launched(&world, &[]));
        // One after the other is killed, whatever it does; one of them stays away for a while.
        let victim = n % readers.len();
        if n % 2 == 0 {
            readers[victim].0.kill().unwrap();
            readers[victim].0.wait().unwrap();
            // What its death has cut is no line.
            let text = fs::read_to_string(&files[victim]).unwrap_or_default();
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            fs::write(&files[victim], &text[..whole]).unwrap();
        }
        if n % 4 == 0 {
            readers[victim] = back(&files[victim]);
        }
    }
    for (reader, file) in readers.iter_mut().zip(&files) {
        reader.0.kill().unwrap();
        reader.0.wait().unwrap();
        *reader = back(file);
    }
    let is_complete = |file: &PathBuf| {
        let read = ids(&events(file));
        jobs.iter().all(|id| read.contains(&format!("job/{id}/settled"))).then_some(read)
    };
    let read: Vec<_> =
        files.iter().map(|file| eventually("a reader has it all", || is_complete(file))).collect();
    assert_eq!(read[0].len(), JOBS * 4, "launched, started, ended and settled for each, once");
    assert_eq!(read[0].iter().collect::<BTreeSet<_>>().len(), JOBS * 4);
    for other in &read {
        assert_eq!(*other, read[0], "in the same order");
    }
}

#[test]
fn scenario_145_what_happened_while_nobody_read_is_found_and_a_damaged_index_loses_nothing() {
    let world = World::new();
    let once = |since: &str| {
        let text = world.run(["events", "--once", "--json", "--since", since]).ok();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let first = launched(&world, &["--wait"]);
    world.run(["wait", &first, "--peek"]);
    eventually("it is settled", || {
        once("beginning").iter().any(|event| event["type"] == "settled").then_some(())
    });
    let cursor = once("beginning").last().unwrap()["cursor"].as_str().unwrap().to_owned();
    assert!(once(&cursor).is_empty());

    // A full disk has cut the last line that was added.
    let part = fs::read_dir(world.home().join("events")).unwrap().map(|entry| entry.unwrap().path());
    let part = part.into_iter().find(|path| path.extension().is_some_and(|it| it == "log")).unwrap();
    let whole = fs::read(&part).unwrap();
    fs::write(&part, &whole[..whole.len() - 7]).unwrap();
    let second = launched(&world, &[]);
    eventually("the second is settled", || {
        let read = ids(&once(&cursor));
        read.contains(&format!("job/{second}/settled")).then_some(())
    });
    let all = ids(&once("beginning"));
    for id in [&first, &second] {
        for fact in ["launched", "started", "ended", "settled"] {
            assert!(all.contains(&format!("job/{id}/{fact}")), "{all:?}");
        }
    }

    // A cursor that was never given out is none: nothing is skipped because of it.
    let (name, _) = cursor.split_once(':').unwrap();
    for wrong in [format!("{name}:99999999"), format!("{name}:7"), "00000009-00000000:0".to_owned()] {
        assert_eq!(ids(&once(&wrong)), all, "{wrong}");
    }

    // The index is gone, and with it what the cursor means: everything is told again, under the same ids.
    fs::remove_dir_all(world.home().join("events")).unwrap();
    let again: BTreeSet<_> = ids(&once(&cursor)).into_iter().collect();
    assert_eq!(again, all.into_iter().collect());
}

/// What the index names is gone after a prune, and then the index goes, too.
#[test]
fn an_index_of_events_does_not_grow_without_bound() {
    let world = World::new();
    let id = launched(&world, &[]);
    eventually("it is settled", || world.run(["events", "--once"]).ok().contains("settled").then_some(()));
    let folder = world.home().join("events");
    let parts = || {
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".log"));
        names.collect::<BTreeSet<_>>()
    };
    // As if there had been many: the part is full, and the next event begins another.
    let first = folder.join(parts().pop_first().unwrap());
    let line = format!("\"job/{id}/ended\"\n");
    fs::write(&first, line.repeat(1024 * 1024 / line.len() + 1)).unwrap();
    world.run(["events", "--once"]).ok();
    assert_eq!(parts().len(), 2);
    world.run(["prune", "--older-than", "0s"]).ok();
    assert_eq!(parts().len(), 1, "a part whose jobs are gone");
    assert!(!first.exists());
}

// Not on Windows: what a thread does there is not counted in this way.
#[cfg(target_os = "linux")]
#[test]
fn scenario_145_a_reader_that_waits_never_wakes_up() {
    let world = World::new();
    launched(&world, &["--wait"]);
    let file = world.scratch("events");
    let reader = reader(&world, &file, "now");
    eventually("the reader is ready", || is_ready(&file));
    let switches = || -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", reader.0.id())).unwrap();
        let status = |task: PathBuf| fs::read_to_string(task.join("status")).unwrap();
        let texts: String = tasks.map(|task| status(task.unwrap().path())).collect();
        let counts = texts.lines().filter(|line| line.contains("ctxt_switches"));
        counts.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    // It sleeps when its count has stood still for a moment.
    let mut before = switches();
    eventually("it sleeps", || {
        let now = switches();
        (std::mem::replace(&mut before, now) == now).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(switches(), before);
}
