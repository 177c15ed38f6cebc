//! `hearback events`: what happened, in one order for all readers, with a cursor.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fs_err as fs;
use hearback_core::port::disk::Wait;
use hearback_core::port::events::EventIndex as _;
use hearback_platform::Native;
use hearback_store::Store;
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
    let switches = || context_switches(&reader);
    // It sleeps when its count has stood still for a moment.
    let mut before = switches();
    eventually("it sleeps", || {
        let now = switches();
        (std::mem::replace(&mut before, now) == now).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(switches(), before);
}

/// A reader that asks for output hears of it as it comes, and finds none of it again; others hear nothing of it.
#[test]
fn scenario_145_new_output_is_told_to_readers_that_ask() {
    let world = World::new();
    let (file, plain) = (world.scratch("events"), world.scratch("plain"));
    let gate = world.scratch("gate").to_str().unwrap().to_owned();
    let never = world.scratch("never").to_str().unwrap().to_owned();
    let act = bin("act").to_str().unwrap().to_owned();
    let launch = |steps: &[&str]| world.launch([&["--session", "s", "--", &act], steps].concat());
    let early = launch(&["print", "told to nobody", "hold", &gate, "print", "first", "hold", &never]);
    eventually("it has printed", || (world.show(&early)["output"]["bytes"].as_u64() > Some(0)).then_some(()));
    let _plain = reader(&world, &plain, "now");
    let output = fs::OpenOptions::new().create(true).append(true).open(&file).unwrap().into_parts().0;
    let mut command = world.command(["events", "--json", "--output", "--session", "s"]);
    let _reader = KillOnDrop(command.stdout(output).stderr(Stdio::null()).spawn().unwrap());
    eventually("the readers are ready", || is_ready(&file).and_then(|()| is_ready(&plain)));
    let lines_of = |id: &str| {
        let told = events(&file).into_iter().filter(|it| it["type"] == "output" && it["job"]["id"] == id);
        told.map(|event| event["last_line"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    fs::write(&gate, "").unwrap();
    eventually("its output is told", || (lines_of(&early) == ["first"]).then_some(()));
    let late = launch(&["print", "second", "hold", &never]);
    eventually("that of a new job is told", || (lines_of(&late) == ["second"]).then_some(()));
    // Much output is told at most once a second, and then its last line.
    let began = std::time::Instant::now();
    let many: Vec<String> = (0..200).map(|n| format!("line {n}")).collect();
    let steps: Vec<&str> = many.iter().flat_map(|line| ["print", line]).chain(["hold", &never]).collect();
    let chatty = launch(&steps);
    eventually("its last line is told", || {
        lines_of(&chatty).last().is_some_and(|line| line == "line 199").then_some(())
    });
    let most = began.elapsed().as_secs() + 2;
    assert!(lines_of(&chatty).len() as u64 <= most, "{:?} in {most} s", lines_of(&chatty));

    let told = events(&file);
    let at = told.iter().position(|event| event["type"] == "output" && event["job"]["id"] == *late).unwrap();
    let before = told[..at].iter().rev().find(|event| event["type"] != "output");
    assert_eq!(
        Some(&told[at]["cursor"]),
        before.map(|event| &event["cursor"]),
        "that of what came before it"
    );
    let cursor = told[at]["cursor"].as_str().unwrap();
    let again = world.run(["events", "--once", "--json", "--since", cursor]).ok();
    assert!(!again.contains("\"output\"") || !again.contains("last_line"), "{again}");
    assert!(events(&plain).iter().all(|event| event["type"] != "output"));
    assert!(events(&plain).iter().any(|event| event["job"]["id"] == *chatty));
    world.run(["kill", "--all", "--force"]).ok();
}

/// What is added while the lock of the index is held, and added again by its holder, is told once.
#[test]
fn scenario_145_a_paused_reader_holds_up_no_other() {
    let world = World::new();
    let first = launched(&world, &["--wait"]);
    let file = world.scratch("events");
    let _reader = reader(&world, &file, "beginning");
    eventually("the reader is ready", || is_ready(&file));
    let store = Store::open(Native::default(), world.home()).unwrap();
    let lock = store.lock_events(Wait::Block).unwrap().expect("a lock that was waited for is held");
    let second = launched(&world, &[]);
    let is_told =
        |file: &Path, id: &str| ids(&events(file)).contains(&format!("job/{id}/settled")).then_some(());
    eventually("it is told all the same", || is_told(&file, &second));
    // The holder goes on, and adds what it had found before it was paused.
    let part = fs::read_dir(world.home().join("events")).unwrap().map(|entry| entry.unwrap().path());
    let part = part.into_iter().find(|path| path.extension().is_some_and(|it| it == "log")).unwrap();
    let whole = fs::read(&part).unwrap();
    fs::OpenOptions::new().append(true).open(&part).and_then(|mut part| part.write_all(&whole)).unwrap();
    drop(lock);
    let third = launched(&world, &[]);
    eventually("what comes then is told", || is_told(&file, &third));
    let again = world.scratch("again");
    let _again = reader(&world, &again, "beginning");
    eventually("a new reader has it all", || is_told(&again, &third));
    for read in [ids(&events(&file)), ids(&events(&again))] {
        let once: BTreeSet<_> = read.iter().collect();
        assert_eq!((read.len(), once.len()), (12, 12), "each once: {read:?}");
        assert!(once.contains(&format!("job/{first}/settled")));
    }
}

// Not on Windows: what a thread does there is not counted in this way.
#[cfg(target_os = "linux")]
#[test]
fn scenario_145_fifty_readers_read_one_order_and_sleep_when_nothing_happens() {
    const READERS: usize = 50;
    const JOBS: usize = 6;
    let world = World::new();
    launched(&world, &["--wait"]);
    let files: Vec<_> = (0..READERS).map(|n| world.scratch(format!("events-{n}"))).collect();
    let readers: Vec<_> = files.iter().map(|file| reader(&world, file, "beginning")).collect();
    for file in &files {
        eventually("a reader is ready", || is_ready(file));
    }
    let jobs: Vec<_> = (0..JOBS).map(|_| launched(&world, &[])).collect();
    let read: Vec<_> = files
        .iter()
        .map(|file| {
            eventually("a reader has it all", || {
                let read = ids(&events(file));
                jobs.iter().all(|id| read.contains(&format!("job/{id}/settled"))).then_some(read)
            })
        })
        .collect();
    assert_eq!(read[0].iter().collect::<BTreeSet<_>>().len(), (JOBS + 1) * 4);
    assert!(read.iter().all(|other| *other == read[0]), "all in the same order, each once");
    let status = |reader: &KillOnDrop| fs::read_to_string(format!("/proc/{}/status", reader.0.id())).unwrap();
    for reader in &readers {
        let status = status(reader);
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux tells it");
        let own: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(own < 16 * 1024, "{own} kB");
    }
    let switches = || readers.iter().map(context_switches).sum::<u64>();
    let mut before = switches();
    eventually("they sleep", || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let now = switches();
        (std::mem::replace(&mut before, now) == now).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(switches(), before);
}

/// How often the threads of a reader were scheduled.
#[cfg(target_os = "linux")]
fn context_switches(reader: &KillOnDrop) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", reader.0.id())).unwrap();
    let status = |task: PathBuf| fs::read_to_string(task.join("status")).unwrap();
    let texts: String = tasks.map(|task| status(task.unwrap().path())).collect();
    let counts = texts.lines().filter(|line| line.contains("ctxt_switches"));
    counts.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap()).sum()
}
