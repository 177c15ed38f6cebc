//! Settled jobs are pruned in time and in order; open jobs and pending follow-ups never are; and no session sees the
//! jobs of another.

use std::path::{Path, PathBuf};

use fs_err as fs;
use hearback_tests::{Ran, Snapshot, World, bin, eventually, run};
use serde_json::{Value, json};

#[test]
fn scenario_42_the_oldest_settled_jobs_go_first() {
    let world = World::new();
    let (go, never) = (world.scratch("go"), world.scratch("never"));
    let (exit_with, hold) = (program("exit-with"), program("hold"));
    // The first to be launched is the last to be settled.
    let long = world.launch(["--", &hold, &text(&go)]);
    let runs = world.launch(["--", &hold, &text(&never)]);
    let pending = world.launch(["--session", "s", "--", &exit_with, "0"]);
    world.leave_alone(&pending);
    let brief: Vec<String> = (0..12)
        .map(|n| {
            let id = world.launch(["--", &exit_with, &n.to_string()]);
            settled(&world, &id);
            id
        })
        .collect();
    fs::write(&go, "").unwrap();
    settled(&world, &long);

    assert_eq!(pruned(&world, &["--max-jobs", "4"]), brief[..9], "oldest settlement first");
    let mut kept: Vec<&str> = brief[9..].iter().map(String::as_str).collect();
    kept.extend([&*long, &runs, &pending]);
    assert_eq!(listed(&world), sorted(kept));
    assert_eq!(world.show(&long)["state"], "done", "what ran for long is readable when it has ended");
    for id in &brief[..9] {
        assert_eq!(world.run(["show", id]).code, Some(1));
        assert_eq!(Snapshot::of(world.home()).holding(id.as_bytes()), Vec::<&Path>::new());
    }
    assert_eq!(pruned(&world, &["--max-jobs", "4"]), [""; 0], "once is enough");
    assert_eq!(pruned(&world, &["--max-jobs", "0"]), [&brief[9..], &[long]].concat());
    assert_eq!(listed(&world), sorted(vec![&runs, &pending]), "neither is open to a limit");
    fs::write(&never, "").unwrap();
    assert_eq!(world.run(["wait", &runs]).code, Some(0));
}

#[test]
fn scenario_42_age_counts_from_settlement() {
    let world = World::new();
    let [launched_long_ago, settled_long_ago, fresh] = std::array::from_fn(|_| {
        let id = world.launch(["--", &program("exit-with"), "0"]);
        settled(&world, &id);
        id
    });
    const HOURS: i64 = 60 * 60 * 1000;
    let change = |id: &str, change: &dyn Fn(&mut Value)| {
        let path = world.job_dir(id).join("settled.json");
        let mut fact = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut fact);
        fs::write(path, fact.to_string()).unwrap();
    };
    let earlier = |time: &mut Value| *time = json!(time.as_i64().unwrap() - 3 * HOURS);
    change(&launched_long_ago, &|fact| {
        for time in ["/facts/spec/present/launched_at_ms", "/facts/end/present/at_ms"] {
            earlier(fact.pointer_mut(time).unwrap());
        }
    });
    change(&settled_long_ago, &|fact| {
        earlier(fact.pointer_mut("/at/wall_ms").unwrap());
        // Without a boot to count in, the wall is all there is.
        fact["at"].as_object_mut().unwrap().remove("boot");
    });
    assert_eq!(pruned(&world, &["--older-than", "4h"]), [""; 0]);
    assert_eq!(pruned(&world, &["--older-than", "2h"]), [settled_long_ago]);
    assert_eq!(listed(&world), sorted(vec![&launched_long_ago, &fresh]));
    assert_eq!(pruned(&world, &[]), [""; 0], "a month by default");
    let mut command = world.command(["prune"]);
    command.env("HEARBACK_MAX_JOBS", "1");
    assert_eq!(run(command).ok(), launched_long_ago);
    fs::write(world.home().join("config.toml"), "max_jobs = 0\n").unwrap();
    assert_eq!(world.run(["prune"]).ok(), fresh);
}

#[test]
fn scenario_72_what_is_pending_is_kept_and_what_is_settled_is_gone_with_all_its_files() {
    let world = World::new();
    let exit_with = program("exit-with");
    let launch =
        |wish: &[&str]| world.launch(wish.iter().chain(&["--", &exit_with, "3", "--print", "hello"]));
    let pending = [
        launch(&["--session", "s"]),
        launch(&["--session", "s", "--notify", "always"]),
        launch(&["--session", "s", "--notify", "failure", "--key", "k"]),
    ];
    let free = [
        launch(&[]),
        launch(&["--session", "s", "--notify", "never"]),
        launch(&["--session", "s", "--notify", "success"]),
        launch(&["--notify", "always"]),
        world.launch(["--shell", "exit 3"]),
    ];
    for id in &pending {
        world.leave_alone(id);
        assert_eq!(world.show(id)["follow_up"]["state"], "pending");
    }
    for id in &free {
        settled(&world, id);
        assert_eq!(world.show(id)["follow_up"]["state"], "not_wanted");
    }
    let before = Snapshot::of(world.home().join("jobs"));
    for _ in 0..2 {
        pruned(&world, &["--older-than", "0s", "--max-jobs", "0"]);
        assert_eq!(listed(&world), sorted(pending.iter().map(String::as_str).collect()));
    }
    assert_eq!(before.changes(&Snapshot::of(world.home().join("jobs"))), Vec::<PathBuf>::new());
    for id in &pending {
        assert_eq!(world.run(["logs", id]).ok(), "hello");
    }
    let left = Snapshot::of(world.home());
    for id in &free {
        assert_eq!(left.holding(id.as_bytes()), Vec::<&Path>::new());
    }
    for folder in ["trash", "history"] {
        assert_eq!(fs::read_dir(world.home().join(folder)).unwrap().count(), 0, "{folder} is empty");
    }
}

#[test]
fn a_pruned_job_gives_its_key_back() {
    let world = World::new();
    let exit_with = program("exit-with");
    let keyed = |session: &str, code: &str| {
        let args =
            ["launch", "--notify", "never", "--session", session, "--key", "k", "--", &exit_with, code];
        world.run(args)
    };
    let first = keyed("a", "0").ok();
    let other = keyed("b", "0").ok();
    assert_ne!(first, other, "a key belongs to a session");
    settled(&world, &first);
    assert_eq!(keyed("a", "0").ok(), first, "it names the job as long as there is one");
    assert_eq!(keyed("a", "1").code, Some(2), "and no other");

    assert_eq!(world.run(["prune", "--max-jobs", "0", "--dry-run"]).code, Some(0));
    assert_eq!(keyed("a", "0").ok(), first, "what would be done is not done");
    settled(&world, &other);
    pruned(&world, &["--max-jobs", "0"]);
    assert_eq!(fs::read_dir(world.home().join("keys")).unwrap().count(), 0);
    let second = keyed("a", "1").ok();
    assert_ne!(second, first);
    assert_eq!(world.run(["wait", &second]).code, Some(1));
}

#[test]
fn a_prune_can_be_tried_first() {
    let world = World::new();
    let jobs: Vec<String> = (0..3).map(|_| world.launch(["--", &program("exit-with"), "0"])).collect();
    for id in &jobs {
        settled(&world, id);
    }
    let before = Snapshot::of(world.home());
    let tried = pruned(&world, &["--max-jobs", "1", "--dry-run"]);
    let document = world.json(["prune", "--max-jobs", "1", "--dry-run", "--json"]);
    assert_eq!((&document["pruned"], &document["dry_run"]), (&json!(tried), &json!(true)));
    assert_eq!(before.changes(&Snapshot::of(world.home())), Vec::<PathBuf>::new());
    assert_eq!(tried.len(), 2);
    assert_eq!(pruned(&world, &["--max-jobs", "1"]), tried, "the same, in the same order");
    assert_eq!(listed(&world).len(), 1);
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn scenario_72_a_file_that_cannot_be_removed_keeps_no_other() {
    #[cfg(target_os = "linux")]
    hearback_tests::with_private_mounts(prune_around_a_held_file);
    #[cfg(windows)]
    prune_around_a_held_file();
}

#[cfg(any(target_os = "linux", windows))]
fn prune_around_a_held_file() {
    let world = World::new();
    let jobs: Vec<String> = (0..5).map(|_| world.launch(["--", &program("exit-with"), "0"])).collect();
    let folders: Vec<PathBuf> = jobs.iter().map(|id| settled(&world, id)).collect();
    let held = Held::new(&folders[2]);

    let report = world.json(["prune", "--older-than", "0s", "--max-jobs", "0", "--json"]);
    let gone: Vec<&str> = report["pruned"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(sorted(gone), sorted(jobs.iter().map(String::as_str).collect()), "{report}");
    assert_eq!(listed(&world), [""; 0], "it is gone for every command");
    assert!(folders.iter().all(|folder| !folder.exists()));
    let trash = || fs::read_dir(world.home().join("trash")).unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<PathBuf> = trash().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].file_name().unwrap().to_str().unwrap().starts_with(&jobs[2]), "{left:?}");
    world.run(["prune"]).ok();
    assert_eq!(trash().count(), 1, "still in use");

    held.let_go(&left[0]);
    let report = world.json(["prune", "--json"]);
    assert_eq!((&report["pruned"], &report["tidied"]), (&json!([]), &json!(1)));
    assert_eq!(trash().count(), 0, "the next prune finishes it");
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn scenario_72_a_job_that_cannot_be_moved_keeps_no_other() {
    let world = World::new();
    let jobs: [String; 3] = std::array::from_fn(|_| world.launch(["--", &program("exit-with"), "0"]));
    let folders: Vec<PathBuf> = jobs.iter().map(|id| settled(&world, id)).collect();
    let Some(stuck) = Stuck::new(&folders[1]) else { return };
    let before = Snapshot::of(&folders[1]);
    let prune = ["prune", "--older-than", "0s", "--max-jobs", "0", "--json"];
    let ran = world.run(prune);
    assert_eq!(ran.code, Some(125), "what was not done is not said to be: {ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let gone = report["pruned"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(sorted(gone), sorted(vec![&jobs[0], &jobs[2]]), "{report}");
    assert_eq!(report["problems"][0]["id"], jobs[1], "{report}");
    assert_eq!(listed(&world), [jobs[1].clone()]);
    assert_eq!(before.changes(&Snapshot::of(&folders[1])), Vec::<PathBuf>::new(), "whole or not at all");

    drop(stuck);
    assert_eq!(pruned(&world, &["--max-jobs", "0"]), [jobs[1].clone()], "the next prune finishes it");
    assert_eq!(listed(&world), [""; 0]);
}

#[test]
fn scenario_76_a_session_sees_its_own_jobs_and_no_others() {
    let world = World::new();
    let exit_with = program("exit-with");
    let launch = |owner: &[&str], word: &str| {
        let id = world.launch(owner.iter().chain(&["--", &exit_with, "0", "--print", word]));
        assert_eq!(world.run(["wait", &id]).code, Some(0));
        id
    };
    let a = launch(&["--session", "a"], "from a");
    let b = launch(&["--session", "b"], "from b");
    let past = launch(&["--session", "b", "--notify", "never"], "long ago");
    settled(&world, &past);
    let unowned = launch(&[], "from no session");
    let within = |session: &str, args: &[&str]| {
        let mut command = world.command(args);
        command.env("HEARBACK_SESSION", session);
        run(command)
    };

    for stranger in [&b, &past, &unowned] {
        for name in [&**stranger, &stranger[9..]] {
            for args in [&["show", name][..], &["show", name, "--json"], &["logs", name], &["wait", name]] {
                let ran = within("a", args);
                let error = format!("no job `{name}`");
                if args.contains(&"--json") {
                    let told: Value = serde_json::from_str(&ran.exits(1).stdout).unwrap();
                    assert_eq!(
                        (&told["error"]["message"], told.get("id")),
                        (&error.into(), None),
                        "{args:?}"
                    );
                    continue;
                }
                ran.refuses(1);
                assert!(ran.stderr.starts_with(&format!("error: {error}\n")), "{args:?}: {ran:?}");
            }
        }
        // As if there were none: nothing tells a hidden job from a missing one.
        let missing = "0000000000000000";
        let hidden = within("a", &["show", stranger]).stderr.replace(&**stranger, missing);
        assert_eq!(hidden, within("a", &["show", missing]).stderr);
    }
    let ids = |ran: Ran| -> Vec<String> {
        let listed: Value = serde_json::from_str(&ran.ok()).unwrap();
        sorted(listed["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect())
    };
    let all = sorted(vec![&a, &b, &past, &unowned]);
    assert_eq!(ids(within("a", &["list", "--all", "--json"])), [&*a]);
    assert_eq!(ids(within("b", &["list", "--all", "--json"])), sorted(vec![&b, &past]));
    assert_eq!(ids(within("c", &["list", "--all", "--json"])), [""; 0]);
    assert_eq!(ids(within("a", &["list", "--all", "--json", "--session", "b"])), sorted(vec![&b, &past]));
    assert_eq!(ids(within("a", &["list", "--all", "--json", "--all-sessions"])), all);
    assert_eq!(ids(world.run(["list", "--all", "--json"])), all, "a person sees all");
    assert_eq!(within("a", &["list", "--session", "b", "--all-sessions"]).code, Some(2), "one or the other");

    for args in [&["logs", &b][..], &["logs", &b[9..]]] {
        assert_eq!(within("b", args).ok(), "from b");
        assert_eq!(within("a", &[args, &["--session", "b"]].concat()).ok(), "from b");
        assert_eq!(within("a", &[args, &["--all-sessions"]].concat()).ok(), "from b");
        assert_eq!(world.run(args).ok(), "from b");
    }
    for (id, word) in [(&past, "long ago"), (&unowned, "from no session")] {
        assert_eq!(world.run(["logs", id]).ok(), word);
    }
    assert_eq!(within("a", &["wait", &a]).code, Some(0));
    let mixed = within("a", &["wait", &a, &b]);
    assert_eq!(mixed.code, Some(1), "{mixed:?}");
    assert!(mixed.stdout.starts_with(&a) && !mixed.stdout.contains(&b), "{mixed:?}");
    mixed.says(&format!("no job `{b}`"));
}

#[test]
fn scenario_76_the_variables_of_agents_name_sessions() {
    let world = World::new();
    let exit_with = program("exit-with");
    let with = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = world.command(args);
        command.envs(variables.iter().copied());
        run(command).ok()
    };
    let session = |variables: &[(&str, &str)], flags: &[&str]| {
        let args = [&["launch", "--json"], flags, &["--", &exit_with, "0"]].concat();
        let job: Value = serde_json::from_str(&with(variables, &args)).unwrap();
        let id = job["id"].as_str().unwrap().to_owned();
        // Its launcher sees it, with the same variables and flags.
        let shown: Value =
            serde_json::from_str(&with(variables, &[&["show", &id, "--json"], flags].concat())).unwrap();
        assert_eq!(shown["session"], job["session"]);
        job["session"].as_str().map(str::to_owned)
    };
    let agents = [
        "CLAUDE_CODE_SESSION_ID",
        "CODEX_THREAD_ID",
        "QWEN_CODE_SESSION_ID",
        "GEMINI_SESSION_ID",
        "AGENT_SESSION_ID",
    ];
    assert_eq!(session(&[], &[]), None);
    for agent in agents {
        let theirs = (agent, "agent's own");
        assert_eq!(session(&[theirs], &[]).as_deref(), Some("agent's own"), "{agent}");
        let both = [theirs, ("HEARBACK_SESSION", "ours")];
        assert_eq!(session(&both, &[]).as_deref(), Some("ours"), "{agent}");
        assert_eq!(session(&both, &["-s", "flag"]).as_deref(), Some("flag"), "{agent}");
        let empty = [theirs, ("HEARBACK_SESSION", "")];
        assert_eq!(session(&empty, &[]).as_deref(), Some("agent's own"), "an empty one names none: {agent}");
        assert_eq!(session(&[(agent, "")], &[]), None, "{agent}");
        let listed: Value = serde_json::from_str(&with(&[(agent, "flag")], &["list", "--json"])).unwrap();
        let owners: Vec<_> = listed["jobs"].as_array().unwrap().iter().map(|job| &job["session"]).collect();
        assert!(!owners.is_empty() && owners.iter().all(|owner| **owner == "flag"), "{agent}: {owners:?}");
    }
}

/// Something in a folder that can be moved with it, and not removed.
#[cfg(target_os = "linux")]
struct Held(hearback_tests::Mount);

#[cfg(target_os = "linux")]
impl Held {
    fn new(folder: &Path) -> Held {
        let held = folder.join("held");
        fs::create_dir(&held).unwrap();
        Held(hearback_tests::Mount::new("tmpfs", "mode=755", held))
    }

    /// Lets it be removed from where the folder is now.
    fn let_go(mut self, folder: &Path) {
        self.0.moved(folder.join("held"));
    }
}

/// Windows moves no folder with an open file in it, and Wine does. There it takes a right to remove a file.
#[cfg(windows)]
struct Held(Option<std::fs::File>);

#[cfg(windows)]
impl Held {
    fn new(folder: &Path) -> Held {
        use std::os::windows::fs::OpenOptionsExt;
        const FILE_SHARE_READ: u32 = 1;
        let held = folder.join("held");
        fs::write(&held, "").unwrap();
        if hearback_tests::is_real_windows() {
            icacls(&held, &["/deny", "*S-1-1-0:(D)"]);
            icacls(folder, &["/deny", "*S-1-1-0:(DC)"]);
            return Held(None);
        }
        let open = std::fs::OpenOptions::new().read(true).share_mode(FILE_SHARE_READ).open(held);
        Held(Some(open.unwrap()))
    }

    fn let_go(self, folder: &Path) {
        if self.0.is_none() {
            icacls(&folder.join("held"), &["/remove:d", "*S-1-1-0"]);
            icacls(folder, &["/remove:d", "*S-1-1-0"]);
        }
    }
}

#[cfg(windows)]
fn icacls(path: &Path, args: &[&str]) {
    let mut command = std::process::Command::new("icacls");
    command.arg(path).args(args);
    run(command).ok();
}

/// A folder that no user can move, not even root, until this is dropped.
#[cfg(any(target_os = "linux", windows))]
enum Stuck {
    Immutable(PathBuf),
    /// Windows moves no folder with an open file in it. Under Wine it does.
    #[cfg(windows)]
    InUse {
        _file: fs::File,
    },
}

#[cfg(any(target_os = "linux", windows))]
impl Stuck {
    fn new(path: &Path) -> Option<Stuck> {
        #[cfg(windows)]
        if hearback_tests::is_real_windows() {
            return Some(Stuck::InUse { _file: fs::File::open(path.join("spec.json")).unwrap() });
        }
        let made = chattr("+i", path);
        if !made {
            hearback_tests::skipped("a folder is made immutable by root, chattr and a file system that can");
        }
        made.then(|| Stuck::Immutable(path.to_owned()))
    }
}

#[cfg(any(target_os = "linux", windows))]
impl Drop for Stuck {
    fn drop(&mut self) {
        match self {
            Stuck::Immutable(path) => assert!(chattr("-i", path)),
            #[cfg(windows)]
            Stuck::InUse { .. } => {}
        }
    }
}

#[cfg(target_os = "linux")]
fn chattr(change: &str, path: &Path) -> bool {
    let made = std::process::Command::new("chattr").arg(change).arg(path).output();
    made.is_ok_and(|made| made.status.success())
}

#[cfg(windows)]
fn chattr(change: &str, path: &Path) -> bool {
    hearback_tests::outside::run("chattr", &[change, &hearback_tests::outside::unix(path)]).code == Some(0)
}

/// The ids that a prune names, oldest first.
#[track_caller]
fn pruned(world: &World, args: &[&str]) -> Vec<String> {
    world.run(["prune"].iter().chain(args)).ok().lines().map(str::to_owned).collect()
}

/// The ids of all jobs, sorted.
#[track_caller]
fn listed(world: &World) -> Vec<String> {
    let listed = world.json(["list", "--all", "--json"]);
    assert!(listed.get("problems").is_none(), "{listed}");
    sorted(listed["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect())
}

fn sorted(mut ids: Vec<&str>) -> Vec<String> {
    ids.sort_unstable();
    ids.into_iter().map(str::to_owned).collect()
}

/// The folder of a job, once it is in history.
fn settled(world: &World, id: &str) -> PathBuf {
    let folder = world.home().join("history").join(&id[..5]).join(id);
    eventually("the job is settled", || folder.is_dir().then_some(folder.clone()))
}

fn program(name: &str) -> String {
    text(&bin(name))
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}
