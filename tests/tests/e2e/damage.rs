//! An unreadable fact affects only its own job: it is never taken for a success, and never removed.

use std::path::{Path, PathBuf};

use fs_err as fs;
use hearback_core::port::process::{Presence, ProcessControl};
use hearback_platform::Native;
use hearback_tests::{Job, Snapshot, World, alive, bin, eventually, forbid_reading, give_away};
use serde_json::{Value, json};

/// What a program would believe, were it not for how the file came to be there.
const RECEIPT: &str = r#"{"format":1,"how":"delivered","at":{"wall_ms":1,"since_boot_ms":1}}"#;
const SETTLED: &str = r#"{"format":1,"at":{"wall_ms":1,"since_boot_ms":1},"facts":{}}"#;

/// The facts of a job, in the order in which they are written.
const FACTS: [&str; 6] =
    ["spec.json", "begin.json", "target.json", "end.json", "receipt.json", "settled.json"];

/// What can become of a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Garbage,
    Empty,
    Truncated,
    NoFormat,
    FormatAlone,
    TooLarge,
    TooDeep,
    Directory,
    #[cfg(unix)]
    Fifo,
    /// To a copy of what was there, which would be believed.
    #[cfg(unix)]
    Link,
    #[cfg(target_os = "linux")]
    Socket,
}

impl Damage {
    const ALL: &[Damage] = &[
        Damage::Garbage,
        Damage::Empty,
        Damage::Truncated,
        Damage::NoFormat,
        Damage::FormatAlone,
        Damage::TooLarge,
        Damage::TooDeep,
        Damage::Directory,
        #[cfg(unix)]
        Damage::Fifo,
        #[cfg(unix)]
        Damage::Link,
        #[cfg(target_os = "linux")]
        Damage::Socket,
    ];

    /// Does it to a fact; one that is not there is planted.
    fn inflict(self, path: &Path) {
        let fallback = if path.ends_with("settled.json") { SETTLED } else { RECEIPT };
        let before = fs::read(path).unwrap_or_else(|_| fallback.into());
        // On Windows it stays for as long as a process, its supervisor mostly, has it open.
        eventually("it is out of the way", || {
            let _ = fs::remove_file(path);
            fs::symlink_metadata(path).is_err().then_some(())
        });
        match self {
            Damage::Garbage => fs::write(path, b"\x00\xff\xfe{]garbage").unwrap(),
            Damage::Empty => fs::write(path, "").unwrap(),
            Damage::Truncated => fs::write(path, &before[..40.min(before.len() / 2)]).unwrap(),
            Damage::NoFormat => fs::write(path, "{}").unwrap(),
            Damage::FormatAlone => fs::write(path, r#"{"format":1}"#).unwrap(),
            Damage::TooLarge => fs::File::create(path).unwrap().set_len(16 * 1024 * 1024 + 1).unwrap(),
            Damage::TooDeep => {
                let deep = format!("{{\"format\":1,\"x\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
                fs::write(path, deep).unwrap();
            }
            Damage::Directory => {
                fs::create_dir(path).unwrap();
                fs::write(path.join("kept"), before).unwrap();
            }
            #[cfg(unix)]
            Damage::Fifo => nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            #[cfg(unix)]
            Damage::Link => {
                let copy = path.with_extension("copy");
                fs::write(&copy, before).unwrap();
                fs::os::unix::fs::symlink(copy, path).unwrap();
            }
            // The name stays when the socket is closed. Elsewhere it may be too short for the path.
            #[cfg(target_os = "linux")]
            Damage::Socket => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        }
    }
}

#[test]
fn scenario_66_an_unreadable_end_is_never_a_success() {
    let world = World::new();
    let jobs = ended_jobs(&world, Damage::ALL.len());
    for (id, damage) in jobs.iter().zip(Damage::ALL) {
        damage.inflict(&world.job_dir(id).join("end.json"));
    }
    let before = Snapshot::of(world.home());
    for (id, damage) in jobs.iter().zip(Damage::ALL) {
        let job = world.show(id).in_case(format!("{damage:?}"));
        job.state_is("failed").is_lost("unreadable").notes("end cannot be read");
        // When it ended is not known either, and its owner is notified of that.
        job.lacks("/ended_at").follow_up_is("pending");
        world.run(["wait", id]).exits(125).prints("cannot be read");
    }
    for _ in 0..2 {
        assert_eq!(steps(&world), [""; 0]);
    }
    unchanged(&world, &before);
}

#[test]
fn scenario_134_what_a_newer_build_wrote_is_shown_settled_and_kept() {
    let world = World::new();
    let (by, how) = (json!({"robot": {"name": "r2"}}), json!({"forwarded": {"to": "s2"}}));
    let outcomes = [
        (
            json!({"kind": "killed", "by": by}),
            "failed",
            "killed: by an actor that a newer hearback knows",
            143,
        ),
        (
            json!({"kind": "migrated", "to": "moon"}),
            "ended",
            "ended: with an outcome that only a newer hearback knows",
            125,
        ),
    ];
    for (id, (outcome, state, words, code)) in ended_jobs(&world, outcomes.len()).iter().zip(outcomes) {
        let path = world.job_dir(id).join("end.json");
        let mut end: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        end["outcome"] = outcome;
        fs::write(&path, end.to_string()).unwrap();
        let job = world.show(id);
        assert_eq!((&job["state"], job.get("notes")), (&json!(state), None), "{job}");
        assert_eq!(job["follow_up"]["state"], "pending", "its owner is notified: {job}");
        let waited = world.run(["wait", id]);
        assert_eq!((waited.code, waited.stdout.contains(words)), (Some(code), true), "{waited:?}");

        let mut receipt: Value = serde_json::from_str(RECEIPT).unwrap();
        receipt["how"] = how.clone();
        fs::write(world.job_dir(id).join("receipt.json"), receipt.to_string()).unwrap();
        assert_eq!(world.show(id)["follow_up"]["state"], "closed", "and is not notified again");
        let folder = world.job_dir(id);
        assert!(folder.starts_with(world.home().join("history")), "nothing is left to do: {folder:?}");
        let settled: Value = serde_json::from_slice(&fs::read(folder.join("settled.json")).unwrap()).unwrap();
        assert_eq!(settled["facts"]["end"]["present"], end, "a newer build finds what it wrote");
        assert_eq!(settled["facts"]["receipt"]["present"], receipt);
        let job = world.show(id);
        assert_eq!((&job["state"], &job["follow_up"]["state"]), (&json!(state), &json!("closed")), "{job}");
    }
}

#[test]
fn scenario_78_an_unreadable_fact_costs_its_own_job_alone() {
    let world = World::new();
    let go = world.scratch("go");
    let runs = world.launch(["--", &program("hold"), &text(&go)]);
    let healthy = ended_jobs(&world, 1).remove(0);
    let cases = FACTS.iter().flat_map(|fact| Damage::ALL.iter().map(move |damage| (*fact, *damage)));
    let some = |damage: Damage| match damage {
        Damage::TooLarge => false,
        Damage::Garbage | Damage::Directory => true,
        _ => hearback_tests::scaled(true, false),
    };
    if hearback_tests::is_wine() {
        hearback_tests::skipped("two kinds of damage alone: every case starts programs, which takes long");
    }
    let cases: Vec<_> = cases.filter(|(_, damage)| some(*damage)).collect();
    let jobs = ended_jobs(&world, cases.len());
    let damaged: Vec<_> =
        cases.into_iter().zip(jobs).map(|((fact, damage), id)| (fact, damage, id)).collect();
    for (fact, damage, id) in &damaged {
        damage.inflict(&world.job_dir(id).join(fact));
    }
    let before = Snapshot::of(world.home());

    let listed = world.json(["list", "--all", "--json"]);
    assert!(listed.get("problems").is_none(), "{listed}");
    let jobs = listed["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), damaged.len() + 2, "every job is listed");
    let find = |id: &str| find(&listed, id);
    find(&runs).state_is("running");
    find(&healthy).state_is("done").follow_up_is("pending");
    for (fact, damage, id) in &damaged {
        let case = format!("{fact} {damage:?}");
        let job = find(id).in_case(&case);
        job.notes(fact.strip_suffix(".json").unwrap());
        let (state, follow_up) = match *fact {
            // Without a spec the owner is unknown: a person has to look at it.
            "spec.json" => ("done", "dead_letter"),
            "end.json" => ("failed", "pending"),
            // It cannot be replaced, so no delivery could ever be acknowledged.
            "receipt.json" => ("done", "dead_letter"),
            _ => ("done", "pending"),
        };
        job.state_is(state).follow_up_is(follow_up);
        assert_eq!(job.get("command").is_none(), *fact == "spec.json", "{job}");
        // One of each is looked at with every other command as well; they all share the same reading code.
        if matches!(damage, Damage::Garbage) {
            assert_eq!(job, world.show(id));
            let code = world.run(["wait", id]).code;
            assert_eq!(code, Some(if *fact == "end.json" { 125 } else { 0 }), "{case}");
            world.run(["logs", id]).ok();
            world.run(["show", id]).ok();
        }
    }
    world.run(["list"]).ok();
    assert_eq!(steps(&world), [""; 0]);
    world.run(["prune", "--older-than", "0s", "--max-jobs", "0"]).ok();
    unchanged(&world, &before);

    fs::write(go, "").unwrap();
    assert_eq!(world.run(["wait", &runs]).code, Some(0), "the job beside it ends as usual");
}

#[test]
fn scenario_78_a_running_job_with_an_unreadable_fact_still_tells_its_code() {
    let world = World::new();
    let go = world.scratch("go");
    let damages = [Damage::Garbage, Damage::Empty, Damage::Directory];
    let damages = &damages[hearback_tests::scaled(0, 1)..];
    let facts = ["spec.json", "begin.json", "target.json", "receipt.json", "settled.json"];
    let cases: Vec<(&str, String, u64)> = facts
        .into_iter()
        .flat_map(|fact| damages.iter().map(move |damage| (fact, damage)))
        .map(|(fact, damage)| {
            let id = world.launch(["--session", "s", "--", &program("hold"), &text(&go), "--code", "5"]);
            let pid = world.show(&id)["pid"].as_u64().unwrap();
            damage.inflict(&world.job_dir(&id).join(fact));
            (fact, id, pid)
        })
        .collect();
    let before = Snapshot::of(world.home());

    assert_eq!(steps(&world), [""; 0]);
    world.run(["prune", "--older-than", "0s", "--max-jobs", "0"]).ok();
    let listed = world.json(["list", "--json"]);
    assert!(listed.get("problems").is_none(), "{listed}");
    // By identity: another process may have the number of a target that has ended.
    let native = Native::default();
    let targets: Vec<_> =
        cases.iter().map(|(_, _, pid)| native.identify(*pid as u32).unwrap().expect("it runs")).collect();
    for (fact, id, pid) in &cases {
        let job = find(&listed, id).in_case(fact);
        job.state_is("running").follow_up_is("waiting");
        match *fact {
            "target.json" => job.lacks("/pid"),
            _ => job.has("/pid", *pid),
        };
        assert!(alive(*pid as u32), "{fact}");
    }
    unchanged(&world, &before);

    fs::write(go, "").unwrap();
    for ((fact, id, _), target) in cases.iter().zip(&targets) {
        let waited = world.run(["wait", id, "--json"]);
        assert_eq!(waited.code, Some(5), "{fact}: {waited:?}");
        let dead_letter = matches!(*fact, "spec.json" | "receipt.json");
        let follow_up = if dead_letter { "dead_letter" } else { "pending" };
        world.show(id).in_case(fact).exited(5).follow_up_is(follow_up);
        assert_eq!(native.presence(target), Presence::Gone, "{fact}");
        // What was there is there, as it was.
        let path = world.job_dir(id).join(fact);
        let touched = before.changes(&Snapshot::of(world.home()));
        assert!(!touched.contains(&path) && path.exists(), "{fact}: {touched:?}");
    }
}

#[test]
fn an_end_that_was_planted_is_not_believed_and_does_not_end_the_job() {
    let world = World::new();
    let (go, seen) = (world.scratch("go"), world.scratch("seen"));
    let hold = program("hold");
    let id = world.launch(["--session", "s", "--", &hold, &text(&go), "--witness", &text(&seen)]);
    let pid = world.show(&id)["pid"].as_u64().unwrap() as u32;
    Damage::Garbage.inflict(&world.job_dir(&id).join("end.json"));
    let before = Snapshot::of(world.home());
    world.show(&id).state_is("running").notes("end cannot be read");
    assert_eq!(steps(&world), [""; 0]);
    unchanged(&world, &before);
    assert!(alive(pid), "only its supervisor ends a job");
    fs::write(go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(125));
    assert!(!alive(pid), "the job has ended by itself");
    world.show(&id).because("facts are not replaced").has("/outcome/reason", "unreadable");
}

#[test]
fn a_settled_job_whose_record_is_damaged_is_folded_from_what_is_left() {
    let world = World::new();
    let damages = Damage::ALL;
    let jobs: Vec<String> =
        damages.iter().map(|_| world.launch(["--", &program("exit-with"), "4"])).collect();
    for (id, damage) in jobs.iter().zip(damages) {
        damage.inflict(&settled(&world, id).join("settled.json"));
    }
    let before = Snapshot::of(world.home());
    let listed = world.json(["list", "--all", "--json"]);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), damages.len(), "{listed}");
    for (id, damage) in jobs.iter().zip(damages) {
        world.show(id).in_case(format!("{damage:?}")).exited(4).notes("settled cannot be read");
        assert_eq!(world.run(["wait", id]).code, Some(4), "{damage:?}");
    }
    assert_eq!(steps(&world), [""; 0]);
    unchanged(&world, &before);
}

#[test]
fn what_cannot_be_shown_to_be_settled_is_not_pruned() {
    let world = World::new();
    let jobs: Vec<String> = (0..3).map(|_| world.launch(["--", &program("exit-with"), "0"])).collect();
    let folders: Vec<PathBuf> = jobs.iter().map(|id| settled(&world, id)).collect();
    // Who owns the first, how the second ended and whether the third was acknowledged can no longer be known.
    for (folder, fact) in folders.iter().zip(["spec.json", "end.json", "receipt.json"]) {
        Damage::Garbage.inflict(&folder.join(fact));
        Damage::Empty.inflict(&folder.join("settled.json"));
    }
    let before = Snapshot::of(world.home());
    world.run(["prune", "--older-than", "0s", "--max-jobs", "0"]).ok();
    unchanged(&world, &before);
}

#[test]
fn what_a_newer_hearback_wrote_is_shown_and_left_alone() {
    let world = World::new();
    let facts = FACTS.iter().chain(&["kill.1.json", "lease.1", "result.1"]);
    let mut jobs = Vec::new();
    for (fact, id) in facts.zip(ended_jobs(&world, FACTS.len() + 3)) {
        renew(&world.job_dir(&id).join(fact));
        jobs.push(id);
    }
    // One that looks settled, one that looks orphaned and one that looks abandoned.
    let past = world.launch(["--", &program("exit-with"), "0"]);
    renew(&settled(&world, &past).join("settled.json"));
    let [orphan, unclaimed] = <[String; 2]>::try_from(ended_jobs(&world, 2)).unwrap();
    fs::remove_file(world.job_dir(&orphan).join("end.json")).unwrap();
    renew(&world.job_dir(&orphan).join("begin.json"));
    for fact in &FACTS[1..4] {
        fs::remove_file(world.job_dir(&unclaimed).join(fact)).unwrap();
    }
    renew(&world.job_dir(&unclaimed).join("spec.json"));
    let newer_end = jobs[3].clone();
    jobs.extend([past, orphan.clone(), unclaimed.clone()]);
    let before = Snapshot::of(world.home());

    let listed = world.json(["list", "--all", "--json"]);
    assert!(listed.get("problems").is_none(), "{listed}");
    for id in &jobs {
        find(&listed, id).notes("has format 2");
        world.run(["show", id]).ok();
    }
    for id in [&newer_end, &orphan, &unclaimed] {
        let waited = world.run(["wait", id, "--timeout", "20s"]);
        assert_eq!(waited.code, Some(125), "unknown is no success, and no reason to wait: {waited:?}");
    }
    assert_eq!(steps(&world), [""; 0]);
    world.run(["prune", "--older-than", "0s", "--max-jobs", "0"]).ok();
    unchanged(&world, &before);
}

#[test]
fn a_job_of_another_machine_is_shown_and_left_alone() {
    let world = World::new();
    let [orphan, unclaimed, over] = <[String; 3]>::try_from(ended_jobs(&world, 3)).unwrap();
    for id in [&orphan, &unclaimed, &over] {
        let path = world.job_dir(id).join("spec.json");
        let mut spec = read(&path);
        if spec.get("machine").is_none() {
            hearback_tests::skipped("this machine has no identity, so it cannot tell others from itself");
            return;
        }
        spec["machine"] = json!("another");
        fs::write(path, spec.to_string()).unwrap();
    }
    fs::remove_file(world.job_dir(&orphan).join("end.json")).unwrap();
    for fact in &FACTS[1..4] {
        fs::remove_file(world.job_dir(&unclaimed).join(fact)).unwrap();
    }
    let before = Snapshot::of(world.home());
    for id in [&orphan, &unclaimed] {
        // Its locks say nothing here, so neither do we.
        world.show(id).notes("another machine").lacks("/outcome");
        for args in [&["wait", id][..], &["wait", id, "--timeout", "20s"]] {
            world.run(args).exits(125).says("another machine").says("tip:");
        }
    }
    assert_eq!(world.run(["wait", &over]).code, Some(0), "an end is an end wherever it was seen");
    assert_eq!(steps(&world), [""; 0]);
    world.run(["prune", "--older-than", "0s", "--max-jobs", "0"]).ok();
    unchanged(&world, &before);
}

#[test]
fn what_a_newer_minor_version_added_survives_into_the_settled_record() {
    let world = World::new();
    let go = world.scratch("go");
    let id = world.launch(["--", &program("hold"), &text(&go), "--code", "2"]);
    let path = world.job_dir(&id).join("spec.json");
    let mut spec = read(&path);
    spec["colour"] = json!({"name": "green", "rgb": [0, 255, 0]});
    fs::write(path, spec.to_string()).unwrap();
    fs::write(go, "").unwrap();
    let settled = read(&settled(&world, &id).join("settled.json"));
    assert_eq!(settled["facts"]["spec"]["present"], spec);
    world.show(&id).has("/outcome/code", 2);
}

#[test]
fn scenario_10_a_spec_from_before_there_was_a_choice_wants_no_follow_up() {
    let world = World::new();
    let go = world.scratch("go");
    let id = world.launch(["--session", "s", "--", &program("hold"), &text(&go)]);
    let [ended] = <[String; 1]>::try_from(ended_jobs(&world, 1)).unwrap();
    for id in [&id, &ended] {
        let path = world.job_dir(id).join("spec.json");
        let mut spec = read(&path);
        spec.as_object_mut().unwrap().remove("notify").unwrap();
        fs::write(path, spec.to_string()).unwrap();
        let no_follow_up = json!({"policy": "never", "state": "not_wanted"});
        world.show(id).has("/follow_up", no_follow_up).lacks("/notes");
    }
    world.show(&id).state_is("running");
    fs::write(go, "").unwrap();
    for id in [&id, &ended] {
        settled(&world, id);
        world.show(id).state_is("done");
    }
}

#[test]
fn a_job_whose_spec_is_gone_is_not_taken_for_a_launch_that_never_was() {
    let world = World::new();
    let go = world.scratch("go");
    let runs = world.launch(["--session", "s", "--", &program("hold"), &text(&go), "--code", "5"]);
    let [ended] = <[String; 1]>::try_from(ended_jobs(&world, 1)).unwrap();
    for id in [&runs, &ended] {
        fs::remove_file(world.job_dir(id).join("spec.json")).unwrap();
    }
    let before = Snapshot::of(world.home());
    world.run(["prune", "--older-than", "0s", "--max-jobs", "0"]).ok();
    assert_eq!(steps(&world), [""; 0]);
    unchanged(&world, &before);
    world.show(&runs).state_is("running");
    world.show(&ended).state_is("done");
    fs::write(go, "").unwrap();
    world.run(["wait", &runs]).exits(5);
    world.show(&runs).because("its owner is unknown").follow_up_is("dead_letter");
}

#[test]
fn foreign_files_among_the_folders_disturb_no_command() {
    let world = World::new();
    let past = world.launch(["--", &program("exit-with"), "0", "--print", "hello"]);
    let folder = settled(&world, &past);
    let pending = ended_jobs(&world, 1).remove(0);
    let named_like_a_job = "0123456789abcdef";
    for stray in [
        "jobs/.DS_Store",
        "jobs/Thumbs.db",
        "history/.DS_Store",
        "history/zzzzz",
        "keys/.DS_Store",
        "sessions.bak",
    ] {
        fs::write(world.home().join(stray), "not ours").unwrap();
    }
    fs::write(world.home().join("jobs").join(named_like_a_job), "").unwrap();
    fs::write(folder.with_file_name("desktop.ini"), "").unwrap();
    fs::create_dir(world.home().join("history/yyyyy")).unwrap();
    let before = Snapshot::of(world.home());

    let listed = world.json(["list", "--all", "--json"]);
    let ids: Vec<_> = listed["jobs"].as_array().unwrap().iter().map(|job| &job["id"]).collect();
    assert_eq!(ids, [&json!(pending), &json!(past)], "{listed}");
    assert_eq!(world.run(["logs", &past[9..]]).ok(), "hello", "also by a part of its id");
    world.run(["show", named_like_a_job]).exits(1);
    assert_eq!(steps(&world), [""; 0]);
    world.run(["prune"]).ok();
    unchanged(&world, &before);
    world.run(["prune", "--max-jobs", "0"]).ok();
    assert!(!folder.exists(), "and what should go goes");
}

#[test]
fn a_lock_that_is_none_costs_its_own_job_alone() {
    let world = World::new();
    let go = world.scratch("go");
    let runs = world.launch(["--", &program("hold"), &text(&go), "--code", "5"]);
    let past = world.launch(["--", &program("exit-with"), "0"]);
    settled(&world, &past);
    let damaged = ended_jobs(&world, 2);
    for (id, lock) in damaged.iter().zip(["launch.lock", "alive.lock"]) {
        Damage::Directory.inflict(&world.job_dir(id).join(lock));
    }
    // What a launch leaves behind that never got as far as saying anything.
    let blank = world.home().join("jobs/0123456789abcdef");
    fs::create_dir_all(blank.join("launch.lock/kept")).unwrap();
    let before = Snapshot::of(world.home());

    let listed = world.run(["list", "--all", "--json"]);
    let listed: Value = serde_json::from_str(&listed.exits(125).stdout).unwrap();
    assert_eq!(listed["error"]["kind"], "partly", "{listed}");
    let ids = |list: &str| -> Vec<String> {
        let mut ids: Vec<_> = listed[list].as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
        ids.sort_by_key(Value::to_string);
        ids.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let blank_id = blank.file_name().unwrap().to_str().unwrap().to_owned();
    let problems = [&[blank_id], &damaged[..]].concat();
    assert_eq!(ids("problems"), problems, "it cannot be known whether they live: {listed}");
    assert_eq!(ids("jobs"), [runs.clone(), past.clone()], "{listed}");
    for id in &damaged {
        world.run(["show", id]).exits(125).says(".lock").says("not a regular file");
    }
    let reconciled = world.run(["reconcile"]);
    assert_eq!(reconciled.code, Some(125), "what was not done is not said to be: {reconciled:?}");
    world.run(["prune"]).ok();
    unchanged(&world, &before);
    assert_eq!(world.run(["prune", "--max-jobs", "0"]).ok(), past, "and what should go goes");
    fs::write(go, "").unwrap();
    world.run(["wait", &runs]).exits(5);
}

#[test]
fn scenario_78_a_fact_that_may_not_be_read_is_unreadable() {
    #[cfg(windows)]
    if hearback_tests::is_wine() {
        return hearback_tests::with_private_mounts(facts_that_may_not_be_read);
    }
    facts_that_may_not_be_read();
}

fn facts_that_may_not_be_read() {
    let user = User::new();
    let world = &user.world;
    let jobs: Vec<String> = FACTS.iter().map(|_| user.launch_pending()).collect();
    let forbid = |(fact, id): (&&str, &String)| {
        let path = world.job_dir(id).join(fact);
        if !path.exists() {
            fs::write(&path, if *fact == "settled.json" { SETTLED } else { RECEIPT }).unwrap();
        }
        forbid_reading(&path)
    };
    let _forbidden: Vec<_> = FACTS.iter().zip(&jobs).map(forbid).collect();
    let listed: Value = serde_json::from_str(&user.run(&["list", "--json"]).ok()).unwrap();
    assert!(listed.get("problems").is_none(), "{listed}");
    for (fact, id) in FACTS.iter().zip(&jobs) {
        let name = fact.strip_suffix(".json").unwrap();
        let state = if *fact == "end.json" { "failed" } else { "done" };
        find(&listed, id).in_case(fact).state_is(state).notes(&format!("{name} cannot be read: "));
    }
    user.run(&["reconcile"]).ok();
    for (fact, id) in FACTS.iter().zip(&jobs) {
        let path = world.job_dir(id).join(fact);
        assert!(is_forbidden(&path), "{fact} is left alone");
    }
}

/// Whether a file is still there that may not be read; root reads everything.
fn is_forbidden(path: &Path) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777 == 0;
    #[cfg(windows)]
    return fs::read(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
}

#[test]
fn a_fact_of_another_user_is_not_believed() {
    let world = World::new();
    let jobs = ended_jobs(&world, FACTS.len());
    let mut other = String::new();
    for (fact, id) in FACTS.iter().zip(&jobs) {
        let path = world.job_dir(id).join(fact);
        if !path.exists() {
            fs::write(&path, if *fact == "settled.json" { SETTLED } else { RECEIPT }).unwrap();
        }
        let Some(owner) = give_away(&path) else { return };
        other = owner;
    }
    let before = Snapshot::of(world.home());
    for (fact, id) in FACTS.iter().zip(&jobs) {
        let name = fact.strip_suffix(".json").unwrap();
        let (state, follow_up) = match *fact {
            "spec.json" | "receipt.json" => ("done", "dead_letter"),
            "end.json" => ("failed", "pending"),
            _ => ("done", "pending"),
        };
        let note = format!("{name} cannot be read: owned by user {other}");
        world.show(id).in_case(fact).notes(&note).state_is(state).follow_up_is(follow_up);
    }
    assert_eq!(steps(&world), [""; 0]);
    unchanged(&world, &before);
}

/// A user that is not root, even if root runs the tests.
struct User {
    world: World,
    programs: PathBuf,
    #[cfg(unix)]
    id: Option<u32>,
}

impl User {
    #[cfg(unix)]
    fn new() -> User {
        /// The user that owns nothing, on every Unix that the tests are run on as root.
        const NO_OWNER: u32 = 65534;
        let world = World::new();
        let programs = world.scratch("bin");
        fs::create_dir(&programs).unwrap();
        for name in ["hearback", "exit-with"] {
            // Where the programs were built may be closed to others.
            hearback_tests::copy_program(name, programs.join(name));
        }
        let id = nix::unistd::geteuid().is_root().then_some(NO_OWNER);
        let root = world.home().parent().unwrap();
        for path in [root, programs.parent().unwrap(), &programs] {
            fs::os::unix::fs::chown(path, id, id).unwrap();
        }
        User { world, programs, id }
    }

    /// Access rights hold for all users there.
    #[cfg(windows)]
    fn new() -> User {
        User { world: World::new(), programs: bin("hearback").parent().unwrap().to_owned() }
    }

    fn run(&self, args: &[&str]) -> hearback_tests::Ran {
        let mut command = std::process::Command::new(self.programs.join("hearback"));
        self.world.settle(&mut command);
        command.args(args).current_dir(&self.programs);
        #[cfg(unix)]
        if let Some(id) = self.id {
            std::os::unix::process::CommandExt::gid(&mut command, id);
            std::os::unix::process::CommandExt::uid(&mut command, id);
        }
        hearback_tests::run(command)
    }

    fn launch_pending(&self) -> String {
        let program = text(&self.programs.join("exit-with"));
        let id = self.run(&["launch", "--session", "s", "--", &program, "0"]).ok();
        assert_eq!(self.run(&["wait", &id]).code, Some(0));
        id
    }
}

/// Jobs that ended with code 0 and whose session has not been notified.
fn ended_jobs(world: &World, count: usize) -> Vec<String> {
    let program = program("exit-with");
    let jobs: Vec<String> =
        (0..count).map(|_| world.launch(["--session", "s", "--", &program, "0"])).collect();
    world.run(["wait"].into_iter().chain(jobs.iter().map(String::as_str))).ok();
    for id in &jobs {
        world.leave_alone(id);
    }
    jobs
}

/// The folder of a job, once it is in history.
fn settled(world: &World, id: &str) -> PathBuf {
    let folder = world.home().join("history").join(&id[..5]).join(id);
    eventually("the job is settled", || folder.is_dir().then_some(folder.clone()))
}

/// Makes a fact one of the next format, in which everything may mean something else.
fn renew(path: &Path) {
    let mut fact = if path.exists() { read(path) } else { json!({}) };
    fact["format"] = json!(2);
    fact["shiny"] = json!(true);
    fs::write(path, fact.to_string()).unwrap();
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What a reconcile says that it did.
#[track_caller]
fn steps(world: &World) -> Vec<String> {
    let report = world.json(["reconcile", "--json"]);
    assert_eq!(report["problems"], json!([]), "{report}");
    report["steps"].as_array().unwrap().iter().map(Value::to_string).collect()
}

#[track_caller]
fn unchanged(world: &World, before: &Snapshot) {
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
}

/// One job of what `list --json` says.
#[track_caller]
fn find(listed: &Value, id: &str) -> Job {
    let found = listed["jobs"].as_array().unwrap().iter().find(|job| job["id"] == id);
    Job::new(found.unwrap_or_else(|| panic!("no job `{id}` in {listed}")).clone())
}

fn program(name: &str) -> String {
    text(&bin(name))
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}
