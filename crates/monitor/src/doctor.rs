//! Judging a machine from the findings of `doctor`: each finding becomes a check with a level and a tip.

use std::io;

use hearback_core::finding::{
    AgentFindings, DiskFindings, FileSystem, Home, LauncherEnd, Logout, MachineFindings, Medium, NamedBy,
    Room, StoreFindings, Tried,
};
use hearback_core::{Durability, Exit, Outcome, ProcessIdentity};

use crate::HostState;

/// With less than this, a few long logs fill the disk.
const BYTES_FEW: u64 = 256 * 1024 * 1024;
/// With less than this, the next launch may find no room for its facts.
const BYTES_TOO_FEW: u64 = 1024 * 1024;
/// A job has about ten files.
const FILES_FEW: u64 = 1000;
const FILES_TOO_FEW: u64 = 20;
/// A supervisor has about ten, and a program that embeds hearback has more.
const DESCRIPTORS_FEW: u64 = 64;
const DESCRIPTORS_TOO_FEW: u64 = 16;
/// The signal that requests a process to terminate, on every system that has signals.
const SIGTERM: i32 = 15;

const OTHER_HOME: &str = "set HEARBACK_HOME to a directory that you own on a local disk";

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// It is as it should be.
    Ok,
    /// hearback works, and something is worse than it could be.
    Warn,
    /// hearback does not work, or does not keep a promise.
    Fail,
    /// It was not tried.
    Skip,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name: stable between versions.
    pub name: &'static str,
    /// How good it is.
    pub level: Level,
    /// What was found.
    pub message: String,
    /// What the user can do, unless it is good.
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

/// Judges the disk of a store that promises this durability.
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
        judge(
            "watch",
            &found.watch,
            |name, ()| Check::ok(name, "a monitor hears of every change at once"),
            |name, error| {
                let message = format!("a monitor hears of no changes and looks from time to time: {error}");
                let tip = "end programs that watch many files; on Linux, raise fs.inotify.max_user_instances and \
                           fs.inotify.max_user_watches";
                Check::warn(name, message, tip)
            },
        ),
    ]
}

/// Judges what is in a store: its settings, and what needs a person.
pub fn judge_content(warnings: &[String], found: &Tried<StoreFindings>) -> Vec<Check> {
    const CONFIG: &str = "settings";
    let settings = match warnings {
        [] => Check::ok(CONFIG, "every setting is valid"),
        _ => Check::warn(
            CONFIG,
            warnings.join("; "),
            "correct config.toml or the variable; `hearback settings` shows what is in force",
        ),
    };
    let unknown = |name: &'static str, error: &io::Error| {
        Check::fail(name, format!("the store cannot be read: {error}"), OTHER_HOME)
    };
    vec![
        settings,
        judge("records", found, records, unknown),
        judge("entries", found, entries, unknown),
        judge("processes", found, processes, unknown),
        judge("follow_ups", found, follow_ups, unknown),
        judge("dead_letters", found, dead_letters, unknown),
    ]
}

fn records(name: &'static str, found: &StoreFindings) -> Check {
    match &found.unreadable[..] {
        [] => Check::ok(
            name,
            format!("all records can be read; jobs that run or are not settled: {}", found.open_jobs),
        ),
        unreadable => {
            let list = some(unreadable.iter().map(|(name, why)| format!("`{name}`: {why}")));
            let tip = "repair or remove what is named there; the other jobs and sessions are served";
            Check::fail(name, format!("cannot be read: {list}"), tip)
        }
    }
}

fn entries(name: &'static str, found: &StoreFindings) -> Check {
    match &found.strays[..] {
        [] => Check::ok(name, "the store contains nothing but records"),
        strays => {
            let list = some(strays.iter().map(|path| path.display().to_string()));
            let message = format!("hearback did not make this, and ignores it: {list}");
            Check::warn(name, message, "move it out of the store")
        }
    }
}

fn processes(name: &'static str, found: &StoreFindings) -> Check {
    match &found.unswept[..] {
        [] => Check::ok(name, "no process of a lost job is known to run"),
        unswept => {
            let list = some(unswept.iter().map(|(id, what)| format!("{id}: {what}")));
            let message = format!("processes of lost jobs may still run: {list}");
            Check::warn(name, message, "`hearback kill` the job from where its processes can be seen")
        }
    }
}

fn follow_ups(name: &'static str, found: &StoreFindings) -> Check {
    match &found.undelivered[..] {
        [] if !found.for_hosts.is_empty() => {
            let list = some(found.for_hosts.iter().cloned());
            let message =
                format!("wait for a host that attends their sessions: {} ({list})", found.for_hosts.len());
            Check::warn(name, message, "start the program that hosts them, over `hearback serve`")
        }
        [] => Check::ok(name, "a process delivers every follow-up that is due"),
        due => {
            let list = some(due.iter().map(ToString::to_string));
            let message = format!("due, and no process delivers them: {} ({list})", due.len());
            Check::warn(name, message, "`hearback reconcile` starts that; a monitor does it by itself")
        }
    }
}

fn dead_letters(name: &'static str, found: &StoreFindings) -> Check {
    match &found.dead_letters[..] {
        [] => Check::ok(name, "no follow-up and no message was given up or is held"),
        dead => {
            let list = some(dead.iter().map(|(name, error)| format!("{name}: {error}")));
            let tip = "`retry` or `discard` each, with `hearback followups` or with `hearback inbox`";
            Check::warn(name, format!("wait for a person: {} ({list})", dead.len()), tip)
        }
    }
}

/// The first few of a list, and how many more there are.
fn some(items: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 3;
    let items: Vec<_> = items.collect();
    let shown = items.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// Judges the machine that jobs run on.
pub fn judge_machine(found: &MachineFindings) -> Vec<Check> {
    let mut checks: Vec<_> = found.launcher_ends.iter().map(|(how, tried)| survives(*how, tried)).collect();
    checks.push(service(&found.units));
    checks.push(judge(
        "logout",
        &found.logout,
        |name, found_logout| logout(name, *found_logout, &found.units),
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

/// Judges how owners are notified: whether a monitor serves the store, and for each configured sink why it cannot be
/// run, if so.
pub fn judge_delivery(host: HostState, sinks: &[(String, Option<String>)]) -> Vec<Check> {
    const SINKS: &str = "sinks";
    const MONITOR: &str = "monitor";
    let monitor = match host {
        HostState::Answers => Check::ok(MONITOR, "a monitor is running for this store"),
        HostState::Absent => Check::ok(
            MONITOR,
            "no monitor is running: if a supervisor is killed, its owner is notified at the next hearback command; \
             `hearback monitor install` installs a monitor that notifies at once",
        ),
        HostState::Stopped { pid } => Check::warn(
            MONITOR,
            format!(
                "the monitor (pid {pid}) is paused and does not answer: other processes deliver meanwhile"
            ),
            "continue its process (`fg`, or `kill -CONT` with its pid), or kill it and start another",
        ),
        HostState::Silent => Check::warn(
            MONITOR,
            "the monitor does not answer: a message has been due for long, and other processes deliver it",
            "look at `monitor.log` in the folder `monitor` of the store, or kill the monitor and start another",
        ),
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
    vec![monitor, sinks]
}

/// Judges what is set up for agents, and what of it cannot be read.
pub fn judge_agents(found: &[AgentFindings], unreadable: &[String]) -> Check {
    let check = judge_setups(found);
    if unreadable.is_empty() {
        return check;
    }
    let message =
        format!("cannot be read: {}; the others: {}", some(unreadable.iter().cloned()), check.message);
    let tip = check.tip.unwrap_or_else(|| "make what is named there readable for you".into());
    Check::warn(check.name, message, tip)
}

fn judge_setups(found: &[AgentFindings]) -> Check {
    const AGENTS: &str = "agents";
    let there: Vec<_> =
        found.iter().filter(|agent| agent.current > 0 || !agent.outdated.is_empty()).collect();
    if there.is_empty() {
        return Check::ok(AGENTS, "none is set up: `hearback agent setup NAME` shows what one needs");
    }
    let outdated: Vec<_> = there.iter().filter(|agent| !agent.outdated.is_empty()).collect();
    let Some(first) = outdated.first() else {
        let names = there.iter().map(|agent| match agent.absent {
            0 => agent.name.clone(),
            n => format!("{} ({n} missing: `hearback agent setup {} --write`)", agent.name, agent.arguments),
        });
        return Check::ok(AGENTS, format!("set up: {}", names.collect::<Vec<_>>().join(", ")));
    };
    let tip = format!("hearback agent setup {} --write", first.arguments);
    let parts = outdated.iter().map(|agent| {
        let paths = agent.outdated.iter().map(|path| path.display().to_string());
        format!("{}: {}", agent.name, paths.collect::<Vec<_>>().join(", "))
    });
    let parts = parts.collect::<Vec<_>>().join("; ");
    Check::warn(AGENTS, format!("of an older set-up, or for another hearback: {parts}"), tip)
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

/// A size in a unit that shows how small it is.
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

/// Whether the job still ran after the death, and ended because doctor requested it to terminate. A late signal of the
/// death itself would have ended it in another way. On a system without signals, there is only an exit code.
fn outlived(outcome: &Outcome) -> bool {
    let Outcome::Killed { exit: Some(exit), .. } = outcome else { return false };
    matches!(exit, Exit::Signaled { signal: SIGTERM, .. } | Exit::Exited { .. })
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

fn logout(name: &'static str, found: Logout, units: &[String]) -> Check {
    match units.first() {
        Some(unit) if unit.starts_with("session-") && found.ends_processes => Check::warn(
            name,
            format!("a job launched here ends with this login, {unit} (KillUserProcesses)"),
            "run `loginctl enable-linger` once, and launch with `systemd-run --user --scope hearback launch …`",
        ),
        Some(unit) if unit.starts_with("user@") && !found.lingers => Check::warn(
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
    if *own {
        return Check::ok(name, "pids are those of the machine");
    }
    Check::warn(
        name,
        "pids are those of a container or sandbox: a job launched here ends with its first process, and processes of \
         jobs that were launched outside cannot be seen or killed from here",
        "launch outside of it, or keep its first process running",
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
mod tests;
