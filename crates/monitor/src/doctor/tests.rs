//! Tests of `doctor.rs`.

use super::*;
use hearback_core::testing::sample;
use hearback_core::{BootId, KilledBy, LostReason};
use std::path::PathBuf;

fn levels(checks: &[Check]) -> Vec<(&str, Level)> {
    checks.iter().map(|check| (check.name, check.level)).collect()
}

fn refused() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn good_disk() -> DiskFindings {
    DiskFindings {
        file_system: Tried::Worked(FileSystem { name: "ext4".into(), medium: Medium::Local }),
        room: Tried::Worked(Room { bytes: 1 << 40, files: None }),
        publish: Tried::Worked(NamedBy::Rename),
        flush: Tried::Worked(()),
        locks: Tried::Worked(()),
        holes: Tried::Worked(()),
        bell: Tried::Worked(()),
        watch: Tried::Worked(()),
    }
}

fn terminated() -> Outcome {
    let exit = Some(Exit::Signaled { signal: 15, core: false });
    Outcome::Killed { by: KilledBy::Person, reason: None, exit }
}

fn good_machine() -> MachineFindings {
    MachineFindings {
        launcher_ends: [LauncherEnd::Parent, LauncherEnd::Terminal, LauncherEnd::ProcessGroup]
            .map(|how| (how, Tried::Worked(terminated())))
            .into(),
        units: Vec::new(),
        logout: Tried::Worked(Logout { ends_processes: false, lingers: false }),
        identity: Tried::Worked(ProcessIdentity { boot: Some(BootId::new("b")), ..sample::process(1) }),
        pids_are_the_machines: Tried::Worked(true),
        oom_score: Tried::Worked(()),
        descriptors: Tried::Worked(1024),
    }
}

#[test]
fn sinks_that_cannot_be_run_are_named() {
    let levels =
        |sinks: &[(String, Option<String>)]| judge_delivery(HostState::Answers, sinks).remove(1).level;
    assert_eq!(levels(&[]), Level::Ok);
    let fine = ("a".to_owned(), None);
    assert_eq!(levels(std::slice::from_ref(&fine)), Level::Ok);
    let broken = ("b".to_owned(), Some("`x` was not found on the PATH".to_owned()));
    let check = judge_delivery(HostState::Absent, &[fine, broken]).remove(1);
    assert_eq!((check.level, check.message.as_str()), (Level::Warn, "`b`: `x` was not found on the PATH"));
    assert!(judge_delivery(HostState::Absent, &[])[0].message.starts_with("no monitor is running"));
}

#[test]
fn a_monitor_that_does_not_answer_is_a_warning() {
    for state in [HostState::Stopped { pid: 7 }, HostState::Silent] {
        let check = judge_delivery(state, &[]).remove(0);
        assert!(check.level == Level::Warn && check.message.contains("does not answer"), "{check:?}");
    }
}

#[test]
fn where_all_is_well_nothing_is_to_be_done() {
    let mut checks = judge_disk(&good_disk(), Durability::Power);
    checks.extend(judge_machine(&good_machine()));
    checks.extend(judge_content(&[], &Tried::Worked(StoreFindings::default())));
    checks.push(judge_store(&Home::Ours(PathBuf::from("/store")), &Tried::Worked(())));
    for check in &checks {
        assert_eq!((check.level, &check.tip), (Level::Ok, &None), "{check:?}");
    }
    let mut names: Vec<_> = checks.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), checks.len(), "each name is one check's");
}

#[test]
fn whatever_is_not_well_comes_with_a_tip() {
    let failed = || Tried::Failed(refused());
    let disk = DiskFindings {
        file_system: Tried::Failed(refused()),
        room: Tried::Failed(refused()),
        publish: Tried::Failed(refused()),
        flush: failed(),
        locks: failed(),
        holes: failed(),
        bell: failed(),
        watch: failed(),
    };
    let machine = MachineFindings {
        launcher_ends: vec![(LauncherEnd::Parent, Tried::Failed(refused()))],
        units: vec!["a.service".into()],
        logout: Tried::Failed(refused()),
        identity: Tried::Failed(refused()),
        pids_are_the_machines: Tried::Failed(refused()),
        oom_score: failed(),
        descriptors: Tried::Failed(refused()),
    };
    let mut checks = judge_disk(&disk, Durability::Power);
    checks.extend(judge_machine(&machine));
    checks.extend(judge_content(&["a bad one".into()], &Tried::Failed(refused())));
    for check in &checks {
        assert!(matches!(check.level, Level::Warn | Level::Fail) && check.tip.is_some(), "{check:?}");
    }
    use Level::{Fail, Warn};
    assert_eq!(
        levels(&checks),
        [
            ("file_system", Warn),
            ("room", Warn),
            ("publish", Fail),
            ("flush", Fail),
            ("locks", Fail),
            ("holes", Warn),
            ("bell", Fail),
            ("watch", Warn),
            ("survives_parent", Fail),
            ("survives_service", Warn),
            ("logout", Warn),
            ("identity", Fail),
            ("pids", Warn),
            ("oom_score", Warn),
            ("descriptors", Warn),
            ("settings", Warn),
            ("records", Fail),
            ("entries", Fail),
            ("processes", Fail),
            ("follow_ups", Fail),
            ("dead_letters", Fail),
        ]
    );
    assert_eq!(judge_disk(&disk, Durability::Process)[3].level, Warn, "who flushes nothing misses nothing");
    let skipped = DiskFindings { bell: Tried::untried("no reason"), ..good_disk() };
    assert_eq!(judge_disk(&skipped, Durability::Power)[6].level, Level::Skip);
}

#[test]
fn a_store_is_judged_by_whose_it_is_and_whether_it_can_be_written() {
    let path = || PathBuf::from("/store");
    let level = |home: Home, tried| judge_store(&home, &tried).level;
    assert_eq!(level(Home::Ours(path()), Tried::Worked(())), Level::Ok);
    assert_eq!(level(Home::Missing(path()), Tried::Worked(())), Level::Ok);
    assert_eq!(level(Home::Missing(path()), Tried::Failed(refused())), Level::Fail);
    assert_eq!(level(Home::Refused(path(), refused()), Tried::untried("")), Level::Fail);
    assert_eq!(level(Home::Unnamed, Tried::untried("")), Level::Fail);
    let full = Tried::Failed(io::Error::from(io::ErrorKind::StorageFull));
    let check = judge_store(&Home::Ours(path()), &full);
    assert!(check.level == Level::Fail && check.tip.unwrap().contains("prune"));
}

#[test]
fn room_is_counted_in_bytes_and_in_files() {
    let level = |bytes, files| room("room", &Room { bytes, files }).level;
    assert_eq!(level(BYTES_FEW, Some(FILES_FEW)), Level::Ok);
    assert_eq!(level(BYTES_FEW - 1, None), Level::Warn);
    assert_eq!(level(BYTES_TOO_FEW - 1, None), Level::Fail);
    assert_eq!(level(1 << 40, Some(FILES_FEW - 1)), Level::Warn);
    assert_eq!(level(1 << 40, Some(FILES_TOO_FEW - 1)), Level::Fail);
    assert_eq!([mebibytes(0), mebibytes(5 << 20), mebibytes(1 << 40)], ["0 KiB", "5 MiB", "1024 GiB"]);
}

#[test]
fn only_a_job_that_could_be_terminated_has_survived() {
    assert!(outlived(&terminated()));
    let with_the_launcher = Some(Exit::Signaled { signal: 9, core: false });
    for outcome in [
        Outcome::Killed { by: KilledBy::Person, reason: None, exit: with_the_launcher },
        Outcome::Killed { by: KilledBy::System, reason: None, exit: None },
        Outcome::Signaled { signal: 1, core: false },
        Outcome::Exited { code: 0 },
        Outcome::Lost { reason: LostReason::SupervisorDied },
    ] {
        assert!(!outlived(&outcome), "{outcome:?}");
        assert_eq!(survives(LauncherEnd::Terminal, &Tried::Worked(outcome)).level, Level::Fail);
    }
}

#[test]
fn what_a_logout_ends_depends_on_where_a_job_is() {
    let judged = |units: &[&str], ends_processes, lingers| {
        let units: Vec<_> = units.iter().map(|unit| (*unit).to_owned()).collect();
        logout("logout", Logout { ends_processes, lingers }, &units).level
    };
    assert_eq!(judged(&[], true, false), Level::Ok);
    assert_eq!(judged(&["cron.service"], true, false), Level::Ok);
    assert_eq!(judged(&["session-3.scope"], false, false), Level::Ok);
    assert_eq!(judged(&["session-3.scope"], true, true), Level::Warn, "lingering spares no login");
    assert_eq!(judged(&["user@7.service", "a.scope"], false, false), Level::Warn);
    assert_eq!(judged(&["user@7.service", "a.scope"], true, true), Level::Ok);
}

#[test]
fn a_service_is_named_with_the_way_out_of_it() {
    let of = |units: &[&str]| service(&units.iter().map(|unit| (*unit).to_owned()).collect::<Vec<_>>());
    assert_eq!(of(&[]).level, Level::Ok);
    assert_eq!(of(&["session-3.scope"]).level, Level::Ok);
    let check = of(&["agent.service"]);
    assert_eq!(check.level, Level::Warn);
    assert!(check.message.contains("agent.service") && check.tip.unwrap().contains("systemd-run --scope"));
    assert!(of(&["user@7.service", "a.service"]).tip.unwrap().contains("systemd-run --user --scope"));
}

#[test]
fn what_needs_a_person_is_named_and_a_long_list_is_cut() {
    let found = StoreFindings {
        open_jobs: 9,
        unreadable: vec![("a".into(), "no".into())],
        strays: ["w", "x", "y", "z"].map(PathBuf::from).into(),
        dead_letters: vec![("message 1".into(), "gone".into())],
        undelivered: vec![sample::id(1)],
        for_hosts: Vec::new(),
        unswept: vec![(sample::id(2), "in a container".into())],
    };
    let checks = judge_content(&[], &Tried::Worked(found));
    use Level::{Fail, Ok, Warn};
    assert_eq!(
        levels(&checks),
        [
            ("settings", Ok),
            ("records", Fail),
            ("entries", Warn),
            ("processes", Warn),
            ("follow_ups", Warn),
            ("dead_letters", Warn)
        ]
    );
    assert!(checks[2].message.ends_with("w; x; y; and 1 more"), "{:?}", checks[2]);
}

#[test]
fn an_agent_that_is_set_up_is_named_and_an_older_set_up_is_a_warning() {
    let agent = |name: &str, current, absent, outdated: &[&str]| AgentFindings {
        name: format!("{name} (this project)"),
        arguments: format!("{name} --project"),
        current,
        absent,
        outdated: outdated.iter().map(Into::into).collect(),
    };
    let nothing = agent("gemini", 0, 2, &[]);
    assert!(judge_agents(&[], &[]).message.starts_with("none is set up"));
    assert!(judge_agents(std::slice::from_ref(&nothing), &[]).message.starts_with("none is set up"));
    let fine = judge_agents(&[agent("claude", 2, 0, &[]), nothing, agent("qwen", 1, 1, &[])], &[]);
    assert_eq!(fine.level, Level::Ok);
    assert_eq!(
        fine.message,
        "set up: claude (this project), qwen (this project) (1 missing: `hearback agent setup qwen --project --write`)"
    );
    let found = [agent("claude", 2, 0, &[]), agent("codex", 0, 0, &["/p/config.toml"])];
    let old = judge_agents(&found, &[]);
    assert_eq!(
        (old.level, old.tip.as_deref()),
        (Level::Warn, Some("hearback agent setup codex --project --write"))
    );
    assert!(old.message.ends_with("codex (this project): /p/config.toml"), "{}", old.message);
    // What cannot be read hides nothing, and is not taken for nothing.
    let both = judge_agents(&found, &["/q is a folder".into()]);
    assert_eq!((both.level, &both.tip), (Level::Warn, &old.tip));
    assert_eq!(both.message, format!("cannot be read: /q is a folder; the others: {}", old.message));
    assert_eq!(judge_agents(&found[..1], &["/q is a folder".into()]).level, Level::Warn);
}
