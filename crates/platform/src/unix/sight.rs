//! Seeing a process that was identified elsewhere: in an earlier boot, or in another pid namespace.

use hearback_core::ProcessIdentity;

use super::identity;

/// What can be seen from here of a process that was identified before, and of what it started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everything. This is its identity here; it may be gone.
    Here(ProcessIdentity),
    /// Everything, and it is gone: with its boot, or without a trace in its namespace.
    Gone,
    /// Nothing. Its numbers mean other processes here, or none.
    Unseen,
}

/// Looks for a process.
pub(crate) fn look(who: &ProcessIdentity) -> Sight {
    let (boot, scope) = (identity::boot(), identity::scope());
    match (&who.boot, &boot) {
        (Some(then), Some(now)) if then != now => Sight::Gone,
        (then, now) if then != now => Sight::Unseen,
        _ if who.scope == scope && numbers_are_ours() => Sight::Here(who.clone()),
        _ => look_below(who, scope),
    }
}

/// Whether /proc names the processes by the numbers that system calls use. A new pid namespace over an old /proc has
/// two sets of numbers, and nothing can be said about any process.
#[cfg(target_os = "linux")]
pub(super) fn numbers_are_ours() -> bool {
    let me = std::process::id().to_string();
    fs_err::read_link("/proc/self").is_ok_and(|name| name.as_os_str() == me.as_str())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn numbers_are_ours() -> bool {
    true
}

/// Looks into the pid namespaces below ours: their processes are listed here, under other numbers.
///
/// A namespace below ours that has a process shows at least one. In the first namespace of the machine, all others are
/// below: one without a process has none. Elsewhere, a namespace of which nothing shows may as well be above or beside
/// ours.
#[cfg(target_os = "linux")]
fn look_below(who: &ProcessIdentity, ours: Option<String>) -> Sight {
    use super::snapshot::Stat;
    // Start ticks differ by time namespace.
    let parts = |scope: &str| -> (String, String) {
        let (pids, time) = scope.split_once(' ').unwrap_or((scope, ""));
        (pids.to_owned(), time.to_owned())
    };
    let (Some(theirs), Some(scope)) = (who.scope.as_deref().map(parts), ours.as_deref().map(parts)) else {
        return Sight::Unseen;
    };
    let Ok(entries) = fs_err::read_dir("/proc") else { return Sight::Unseen };
    if theirs.1 != scope.1 || !numbers_are_ours() {
        return Sight::Unseen;
    }
    let here = |pid| {
        Sight::Here(ProcessIdentity { pid, boot: identity::boot(), scope: ours.clone(), ..who.clone() })
    };
    let mut is_below = scope.0 == identity::FIRST_PIDS;
    let mut relative = None;
    for entry in entries.flatten() {
        let is_theirs = fs_err::read_link(entry.path().join("ns/pid"))
            .is_ok_and(|ns| ns.as_os_str() == theirs.0.as_str());
        if !is_theirs {
            continue;
        }
        is_below = true;
        let Some(stat) = entry.file_name().to_str().and_then(|pid| Stat::read(pid.parse().ok()?).ok()?)
        else {
            continue;
        };
        let status = fs_err::read_to_string(entry.path().join("status")).unwrap_or_default();
        // The last number of each is the one in its own namespace.
        let is_it = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_ascii_whitespace().last()?.parse().ok()) == Some(who.pid)
        };
        if is_it("NSpid:") && stat.started == who.started {
            return here(stat.pid);
        }
        if is_it("NSpgid:") {
            relative = Some(stat.group);
        } else if is_it("NSsid:") {
            relative = Some(stat.session);
        }
    }
    match relative {
        // It is gone, and others are in its group: they are found by the number that the group has here.
        Some(group) => here(group),
        None if is_below => Sight::Gone,
        None => Sight::Unseen,
    }
}

#[cfg(not(target_os = "linux"))]
fn look_below(_who: &ProcessIdentity, _ours: Option<String>) -> Sight {
    Sight::Unseen
}
