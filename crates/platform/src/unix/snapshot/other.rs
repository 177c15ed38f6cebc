//! The processes of this machine where there is no /proc, as `sysinfo` shows them at one moment.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io;

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::{Seen, Stat};

/// Only living processes are shown, so there is nothing to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Life;

impl Life {
    pub(super) fn is_dead(self) -> bool {
        false
    }
}

/// Shows every living process to `visit`, with those of the `variables` that it has. One whose environment is none of
/// our business has none.
pub(crate) fn each(variables: &BTreeSet<&str>, mut visit: impl FnMut(Seen)) -> io::Result<()> {
    let mut system = System::new().map_err(io::Error::other)?;
    let what = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    for (pid, process) in system.processes() {
        let pid = pid.as_u32();
        // One that cannot be read belongs to another user, and must not keep the others from being found.
        let Ok(Some(who)) = super::super::identity::identify(pid) else { continue };
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
        let entries = process.environ().iter().filter_map(|entry| entry.to_str()?.split_once('='));
        let variables = entries
            .filter(|(name, _)| variables.contains(name))
            .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
            .collect();
        visit(Seen { stat, variables, command: OnceCell::new() });
    }
    Ok(())
}

/// What a process was executed as is not told here.
pub(super) fn command(_pid: u32) -> Vec<u8> {
    Vec::new()
}

/// So its mark is believed.
pub(super) fn is_detached_as(_command: &[u8], _supervise: &str, _mark: &[u8]) -> bool {
    true
}
