//! The identity of a process on Linux: boot id, pid, start ticks, and the namespaces in which those numbers mean
//! anything.

use std::io;

use hearback_core::{BootId, MachineId, ProcessIdentity};

use super::snapshot::Stat;

pub(crate) fn boot() -> Option<BootId> {
    let id = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(BootId::new(id.trim()))
}

pub(crate) fn machine() -> Option<MachineId> {
    let id = fs_err::read_to_string("/etc/machine-id").ok()?;
    // Images are shipped with an empty one, or with this word, to be filled in at the first boot.
    let id = id.trim();
    (!id.is_empty() && id != "uninitialized").then(|| MachineId::new(id))
}

/// The first space of pids has this name on every kernel: PROC_PID_INIT_INO in linux/proc_ns.h.
pub(crate) const FIRST_PIDS: &str = "pid:[4026531836]";

/// Pids differ by pid namespace and start ticks by time namespace: seen from others, both name another process.
pub(crate) fn scope() -> Option<String> {
    let name = |kind| Some(fs_err::read_link(format!("/proc/self/ns/{kind}")).ok()?.display().to_string());
    let pid = name("pid")?;
    Some(match name("time") {
        Some(time) => format!("{pid} {time}"),
        None => pid,
    })
}

pub(crate) fn identify(pid: u32) -> io::Result<Option<ProcessIdentity>> {
    Ok(Stat::read(pid)?.filter(|stat| !stat.is_dead()).map(|stat| identity(&stat)))
}

pub(crate) fn is_stopped(pid: u32) -> bool {
    Stat::read(pid).ok().flatten().is_some_and(|stat| stat.is_stopped())
}

/// The identity of a child of ours, even if it has already ended and only waits to be reaped.
pub(crate) fn identify_child(pid: u32) -> io::Result<ProcessIdentity> {
    let stat = Stat::read(pid)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(identity(&stat))
}

pub(crate) fn identity(stat: &Stat) -> ProcessIdentity {
    ProcessIdentity { pid: stat.pid, started: stat.started, boot: boot(), scope: scope() }
}
