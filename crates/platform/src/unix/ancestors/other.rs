//! The processes above this one where there is no /proc, as `sysinfo` shows them.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use crate::ancestors::Ancestor;

pub(crate) fn parent(pid: u32) -> Option<u32> {
    with(pid, ProcessRefreshKind::nothing(), |process| process.parent().map(Pid::as_u32)).flatten()
}

pub(crate) fn start_ticks(_: u32) -> Option<u64> {
    None
}

pub(crate) fn look(pid: u32) -> Ancestor {
    let always = UpdateKind::Always;
    let what = ProcessRefreshKind::nothing().with_exe(always).with_cmd(always).with_cwd(always);
    let seen = with(pid, what, |process| Ancestor {
        pid,
        executable: process.exe().map(Into::into),
        arguments: process.cmd().to_vec(),
        cwd: process.cwd().map(Into::into),
    });
    seen.unwrap_or(Ancestor { pid, executable: None, arguments: Vec::new(), cwd: None })
}

fn with<T>(pid: u32, what: ProcessRefreshKind, read: impl FnOnce(&sysinfo::Process) -> T) -> Option<T> {
    let pid = Pid::from_u32(pid);
    let mut system = System::new().ok()?;
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
    system.process(pid).map(read)
}
