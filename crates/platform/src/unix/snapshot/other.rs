//! The processes of this machine where there is no /proc, as `sysinfo` shows them at one moment.

use std::io;

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::{Carried, Process, Stat};
use crate::mark::{Boundary, Membership};

/// Only living processes are shown, so there is nothing to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Life;

impl Life {
    pub(super) fn is_dead(self) -> bool {
        false
    }
}

/// Shows every living process to `visit`. One whose environment is none of our business has no marks.
pub(crate) fn each(tree: &Membership, mut visit: impl FnMut(Process)) -> io::Result<()> {
    let mut system = System::new().map_err(io::Error::other)?;
    let what = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    for (pid, process) in system.processes() {
        let pid = pid.as_u32();
        // One that cannot be read belongs to another user, and must not keep the others from being found.
        let Ok(Some(who)) = super::super::identity::identify(pid) else { continue };
        let value = |name: &str| {
            process
                .environ()
                .iter()
                .find_map(|entry| Some(entry.to_str()?.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
        };
        let number = |raw: nix::Result<nix::unistd::Pid>| raw.map_or(0, |pid| pid.as_raw().unsigned_abs());
        let raw = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap_or(0));
        let stat = Stat {
            pid,
            parent: process.parent().map_or(0, |parent| parent.as_u32()),
            group: number(nix::unistd::getpgid(Some(raw))),
            session: number(nix::unistd::getsid(Some(raw))),
            // sysinfo's start time is whole seconds, and no identity.
            started: who.started,
            life: Life,
        };
        let mark = Carried::of(tree, tree.variables.iter().filter_map(|name| value(name)));
        let is_apart = match tree.boundary {
            Boundary::Detached { variable, .. } => value(variable).is_some_and(|mark| mark != tree.value),
            Boundary::OtherValue => mark == Carried::Others,
        };
        visit(Process { stat, mark, is_apart });
    }
    Ok(())
}
