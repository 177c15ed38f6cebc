//! What is good and what is bad about a machine, from what was found by trying.

use std::io;

use hearback_core::finding::{
    DiskFindings, FileSystem, Home, LauncherEnd, Logout, MachineFindings, Medium, NamedBy, Room, Tried,
};
use hearback_core::{Durability, Exit, Outcome, ProcessIdentity};

/// With less than this, a few long logs fill the disk.
const BYTES_FEW: u64 = 256 * 1024 * 1024;
/// With less than this, the next launch may find no room for its facts.
const BYTES_TOO_FEW: u64 = 1024 * 1024;
/// A job has about ten files.
const FILES_FEW: u64 = 1000;
const FILES_TOO_FEW: u64 = 20;
/// A supervisor has about ten, and whoever embeds hearback has more.
const DESCRIPTORS_FEW: u64 = 64;
const DESCRIPTORS_TOO_FEW: u64 = 16;
/// The signal by which a process is asked to end, on every system that has signals.
const ASKED: i32 = 15;

const OTHER_HOME: &str = "set HEARBACK_HOME to a directory that you own on a local disk";

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Ok,
    /// hearback works, and something is worse than it could be.
    Warn,
    /// hearback does not work, or does not keep a promise.
    Fail,
    /// It was not tried.
    Skip,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, which never changes.
    pub name: &'static str,
    /// How good it is.
    pub level: Level,
    /// What was seen.
    pub message: String,
    /// What to do about it, where it is not good.
    pub tip: Option<String>,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, level: Level::Ok, message: message.into(), tip: None }
    }

    fn skip(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, level: Level::Skip, message: message.into(), tip: None }
    }

    fn warn(name: &'static str, message: impl Into<String>, tip: impl Into<String>) -> Self {
        Self { name, level: Level::Warn, message: message.into(), tip: Some(tip.into()) }
    }

    fn fail(name: &'static str, message: impl Into<String>, tip: impl Into<String>) -> Self {
        Self { name, level: Level::Fail, message: message.into(), tip: Some(tip.into()) }
    }
}

/// Judges the place of a store, and whether anything could be tried there.
pub fn judge_store(home: &Home, tried: &Tried) -> Check {
    const NAME: &str = "store";
    let (path, message) = match home {
        Home::Unnamed => {
            let message = "neither HEARBACK_HOME nor a home directory is set";
            return Check::fail(NAME, message, "set HEARBACK_HOME to a directory that you own");
        }
        Home::Refused(path, error) => {
            let tip = "set HEARBACK_HOME to a directory on a local disk that you own and others cannot write; if this \
                       one is yours, remove the write permission of others with `chmod go-w` (Windows: `icacls`)";
            return Check::fail(NAME, format!("{}: {error}", path.display()), tip);
        }
        Home::Missing(path) => (path, "does not exist yet, and can be created"),
        Home::Ours(path) => (path, "is yours, and others cannot write it"),
    };
    match tried {
        Tried::Failed(error) => {
            let tip = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room: `hearback prune --older-than 1d` removes old settled jobs"
                }
                _ => OTHER_HOME,
            };
            Check::fail(NAME, format!("{} cannot be written: {error}", path.display()), tip)
        }
        Tried::Worked(()) | Tried::Untried(_) => Check::ok(NAME, format!("{} {message}", path.display())),
    }
}

/// Judges the disk of a store that has to keep this much.
pub fn judge_disk(found: &DiskFindings, durability: Durability) -> Vec<Check> {
    vec![
        judge("file_system", &found.file_system, file_system, |name, error| {
            Check::warn(name, format!("the file system is unknown: {error}"), OTHER_HOME)
        }),
        judge("room", &found.room, room, |name, error| {
            Check::warn(name, format!("the free space is unknown: {error}"), OTHER_HOME)
        }),
        judge("publish", &found.publish, publish, |name, error| {
            Check::fail(name, format!("a name cannot be taken exactly once: {error}"), OTHER_HOME)
        }),
        judge(
            "flush",
            &found.flush,
            |name, ()| Check::ok(name, "files and folders can be flushed to the disk"),
            |name, error| {
                let message = format!("nothing can be flushed to the disk: {error}");
                match durability {
                    Durability::Process => Check::warn(name, message, OTHER_HOME),
                    _ => Check::fail(name, message, OTHER_HOME),
                }
            },
        ),
        judge(
            "locks",
            &found.locks,
            |name, ()| {
                Check::ok(name, "other processes see a lock, and it is free once its holder was killed")
            },
            |name, error| {
                let message = format!("locks do not show which process is alive: {error}");
                Check::fail(name, message, OTHER_HOME)
            },
        ),
        judge(
            "holes",
            &found.holes,
            |name, ()| Check::ok(name, "the middle of a long log can be freed on the disk"),
            |name, error| {
                let message = format!("the middle of a long log cannot be freed on the disk: {error}");
                Check::warn(name, message, "keep the store on ext4, XFS, Btrfs, APFS or NTFS")
            },
        ),
        judge(
            "bell",
            &found.bell,
            |name, ()| Check::ok(name, "a sleeping supervisor can be woken"),
            |name, error| {
                let message = format!("a sleeping supervisor cannot be woken, and does not start: {error}");
                Check::fail(name, message, "keep the store on a file system that has named pipes")
            },
        ),
    ]
}

/// Judges the machine that jobs run on.
pub fn judge_machine(found: &MachineFindings) -> Vec<Check> {
    let mut checks: Vec<_> = found.launcher_ends.iter().map(|(how, tried)| survives(*how, tried)).collect();
    checks.push(service(&found.units));
    checks.push(judge(
        "logout",
        &found.logout,
        |name, told| logout(name, *told, &found.units),
        |name, error| {
            let message = format!("the effect of a logout is unknown: {error}");
            Check::warn(name, message, "look at KillUserProcesses in logind.conf(5)")
        },
    ));
    checks.push(judge("identity", &found.identity, identity, |name, error| {
        let message =
            format!("a process cannot be distinguished from a later one with the same pid: {error}");
        Check::fail(name, message, "let this process see /proc")
    }));
    checks.push(judge("pids", &found.pids_are_the_machines, pids, |name, error| {
        let message = format!("it is unknown whether these are pids of a container: {error}");
        Check::warn(name, message, "let this process see /proc")
    }));
    checks.push(judge(
        "oom_score",
        &found.oom_score,
        |name, ()| Check::ok(name, "when memory runs out, the system kills a job before its supervisor"),
        |name, error| {
            let message =
                format!("when memory runs out, the system may kill a supervisor before its job: {error}");
            Check::warn(name, message, "let this process write /proc/self/oom_score_adj")
        },
    ));
    checks.push(judge("descriptors", &found.descriptors, descriptors, |name, error| {
        Check::warn(name, format!("their limit is unknown: {error}"), "look at `ulimit -n`")
    }));
    checks
}

/// Judges who tells owners, and where they can be reached: whether a monitor runs, and each configured sink with what
/// is in its way.
pub fn judge_delivery(monitored: bool, sinks: &[(String, Option<String>)]) -> Vec<Check> {
    const SINKS: &str = "sinks";
    let monitor = match monitored {
        true => "a monitor is running for this store",
        false => {
            "no monitor is running: if a supervisor is killed, its owner is notified at the next hearback command; \
             `hearback monitor install` installs a monitor that notifies at once"
        }
    };
    let broken: Vec<_> =
        sinks.iter().filter_map(|(name, why)| Some(format!("`{name}`: {}", why.as_ref()?))).collect();
    let sinks = match (sinks.len(), broken.is_empty()) {
        (0, _) => {
            Check::ok(SINKS, "none is configured: owners fetch follow-ups with `hearback followups next`")
        }
        (1, true) => Check::ok(SINKS, "the configured sink can be run"),
        (n, true) => Check::ok(SINKS, format!("all {n} configured sinks can be run")),
        (_, false) => {
            let tip = "install what is missing, or correct [sink.NAME] in config.toml; then `hearback sink test NAME`";
            Check::warn(SINKS, broken.join("; "), tip)
        }
    };
    vec![Check::ok("monitor", monitor), sinks]
}

fn judge<T>(
    name: &'static str,
    tried: &Tried<T>,
    worked: impl FnOnce(&'static str, &T) -> Check,
    failed: impl FnOnce(&'static str, &io::Error) -> Check,
) -> Check {
    match tried {
        Tried::Worked(seen) => worked(name, seen),
        Tried::Failed(error) => failed(name, error),
        Tried::Untried(why) => Check::skip(name, why),
    }
}

fn file_system(name: &'static str, found: &FileSystem) -> Check {
    let called = &found.name;
    match found.medium {
        Medium::Local => Check::ok(name, format!("{called}, on this machine")),
        Medium::Memory => {
            Check::warn(name, format!("{called}, in memory: a restart loses all jobs"), OTHER_HOME)
        }
        Medium::Program => {
            let message = format!("{called}, which a program provides: locks may not work there");
            Check::warn(name, message, OTHER_HOME)
        }
        Medium::Shared => {
            Check::fail(name, format!("{called}, on another machine: locks cannot be relied on"), OTHER_HOME)
        }
    }
}

fn room(name: &'static str, found: &Room) -> Check {
    const TIP: &str = "make room: `hearback prune --older-than 1d` removes old settled jobs";
    let mut message = format!("{} left", mebibytes(found.bytes));
    if let Some(files) = found.files {
        message.push_str(&format!(", and {files} files"));
    }
    let files = found.files.unwrap_or(u64::MAX);
    if found.bytes < BYTES_TOO_FEW || files < FILES_TOO_FEW {
        Check::fail(name, format!("{message}: the next launch may not fit"), TIP)
    } else if found.bytes < BYTES_FEW || files < FILES_FEW {
        Check::warn(name, format!("{message}: that is little"), TIP)
    } else {
        Check::ok(name, message)
    }
}

/// Small numbers exactly enough to see that they are small.
fn mebibytes(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1024 * 1024;
    match bytes / MEBIBYTE {
        0 => format!("{} KiB", bytes / 1024),
        few @ 1..10_240 => format!("{few} MiB"),
        many => format!("{} GiB", many / 1024),
    }
}

fn publish(name: &'static str, by: &NamedBy) -> Check {
    Check::ok(
        name,
        match by {
            NamedBy::Rename => "a name is taken exactly once, by a rename that replaces nothing",
            NamedBy::Link => "a name is taken exactly once, by a second link",
        },
    )
}

fn survives(how: LauncherEnd, tried: &Tried<Outcome>) -> Check {
    let (name, what) = match how {
        LauncherEnd::Parent => ("survives_parent", "the death of its launcher"),
        LauncherEnd::Terminal => ("survives_terminal", "the closing of its terminal"),
        LauncherEnd::ProcessGroup => ("survives_process_group", "the death of its launcher's process group"),
    };
    let tip =
        "launch outside of what kills processes here: a sandbox, a container, or the clean-up of a tool";
    judge(
        name,
        tried,
        |name, outcome| {
            if outlived(outcome) {
                Check::ok(name, format!("a job survived {what}"))
            } else {
                Check::fail(name, format!("a job did not survive {what}: {outcome}"), tip)
            }
        },
        |name, error| {
            let tip = "fix the failed checks above first; if there are none, try `hearback launch`";
            Check::fail(name, format!("no job could be launched: {error}"), tip)
        },
    )
}

/// Whether a job was there to be asked to end, after the launcher ended, and ended for that reason. A signal to the
/// launcher that was still under way would have ended it in another way; where there are no signals, a code is all
/// there is.
fn outlived(outcome: &Outcome) -> bool {
    let Outcome::Killed { exit: Some(exit), .. } = outcome else { return false };
    matches!(exit, Exit::Signaled { signal: ASKED, .. } | Exit::Exited { .. })
}

fn service(units: &[String]) -> Check {
    const NAME: &str = "survives_service";
    match units.last() {
        None => Check::ok(NAME, "a job launched here is part of no service"),
        Some(unit) if unit.ends_with(".service") => {
            let user = if units[0].starts_with("user@") { "--user " } else { "" };
            let message = format!("a job launched here ends when {unit} is stopped or restarted");
            let tip = format!(
                "launch with `systemd-run {user}--scope hearback launch …`, or set KillMode=process in {unit}"
            );
            Check::warn(NAME, message, tip)
        }
        Some(unit) => Check::ok(NAME, format!("a job launched here is in {unit}, and ends when that stops")),
    }
}

fn logout(name: &'static str, told: Logout, units: &[String]) -> Check {
    match units.first() {
        Some(unit) if unit.starts_with("session-") && told.ends_processes => Check::warn(
            name,
            format!("a job launched here ends with this login, {unit} (KillUserProcesses)"),
            "run `loginctl enable-linger` once, and launch with `systemd-run --user --scope hearback launch …`",
        ),
        Some(unit) if unit.starts_with("user@") && !told.lingers => Check::warn(
            name,
            format!("a job launched here ends with {unit}, at the last logout"),
            "run `loginctl enable-linger` once",
        ),
        _ => Check::ok(name, "a logout does not affect jobs launched here"),
    }
}

fn identity(name: &'static str, me: &ProcessIdentity) -> Check {
    match (&me.boot, me.started) {
        (_, 0) => {
            let message =
                "the system does not show when a process started, so hearback never signals one later";
            Check::warn(name, message, "let this process see /proc")
        }
        (None, _) => Check::ok(
            name,
            "a process is identified by its pid and its start time; this system has no boot id",
        ),
        (Some(_), _) => Check::ok(name, "a process is identified by its pid, its start time and the boot id"),
    }
}

fn pids(name: &'static str, own: &bool) -> Check {
    Check::ok(
        name,
        if *own {
            "pids are those of the machine"
        } else {
            "pids are those of a container, which ends with its first process"
        },
    )
}

fn descriptors(name: &'static str, limit: &u64) -> Check {
    const TIP: &str = "raise it: `ulimit -n 1024`";
    let message = match *limit {
        u64::MAX => "a process may have any number".to_owned(),
        limit => format!("a process may have {limit}"),
    };
    match *limit {
        ..DESCRIPTORS_TOO_FEW => Check::fail(name, format!("{message}: too few for a supervisor"), TIP),
        DESCRIPTORS_TOO_FEW..DESCRIPTORS_FEW => Check::warn(name, format!("{message}: that is little"), TIP),
        _ => Check::ok(name, message),
    }
}

#[cfg(test)]
mod tests {
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
        }
    }

    fn asked_to_end() -> Outcome {
        let exit = Some(Exit::Signaled { signal: 15, core: false });
        Outcome::Killed { by: KilledBy::Person, reason: None, exit }
    }

    fn good_machine() -> MachineFindings {
        MachineFindings {
            launcher_ends: [LauncherEnd::Parent, LauncherEnd::Terminal, LauncherEnd::ProcessGroup]
                .map(|how| (how, Tried::Worked(asked_to_end())))
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
        let levels = |sinks: &[(String, Option<String>)]| judge_delivery(true, sinks).remove(1).level;
        assert_eq!(levels(&[]), Level::Ok);
        let fine = ("a".to_owned(), None);
        assert_eq!(levels(std::slice::from_ref(&fine)), Level::Ok);
        let broken = ("b".to_owned(), Some("`x` was not found on the PATH".to_owned()));
        let check = judge_delivery(false, &[fine, broken]).remove(1);
        assert_eq!(
            (check.level, check.message.as_str()),
            (Level::Warn, "`b`: `x` was not found on the PATH")
        );
        assert!(judge_delivery(false, &[])[0].message.starts_with("no monitor is running"));
    }

    #[test]
    fn where_all_is_well_nothing_is_to_be_done() {
        let mut checks = judge_disk(&good_disk(), Durability::Power);
        checks.extend(judge_machine(&good_machine()));
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
                ("survives_parent", Fail),
                ("survives_service", Warn),
                ("logout", Warn),
                ("identity", Fail),
                ("pids", Warn),
                ("oom_score", Warn),
                ("descriptors", Warn),
            ]
        );
        assert_eq!(
            judge_disk(&disk, Durability::Process)[3].level,
            Warn,
            "who flushes nothing misses nothing"
        );
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
    fn only_a_job_that_was_there_to_be_asked_has_survived() {
        assert!(outlived(&asked_to_end()));
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
        assert!(
            check.message.contains("agent.service") && check.tip.unwrap().contains("systemd-run --scope")
        );
        assert!(of(&["user@7.service", "a.service"]).tip.unwrap().contains("systemd-run --user --scope"));
    }
}
