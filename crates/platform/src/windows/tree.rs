//! Trees of processes: which belong to a job, and how they are terminated, killed and swept.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::time::Duration;

use hearback_core::ProcessIdentity;
use hearback_core::port::process::SweepReport;
use tracing::warn;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
use windows_sys::Win32::System::Threading::{
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, TerminateProcess,
};

use super::job::{EXIT_KILLED, Job};
use super::snapshot::{self, Marked};
use super::{clock, identity};
use crate::mark::{Membership, Names};

/// How long the system may need to close the handles of a process that has released its locks.
const CLOSING: Duration = Duration::from_millis(200);

/// How long a process may still be there that has released its locks.
const LEAVING: Duration = Duration::from_millis(500);

/// How long the end of one process may take.
const KILLING: Duration = Duration::from_secs(2);

/// How often to look at a process that is awaited and cannot be opened.
const AWAITED_LOOK: Duration = Duration::from_secs(1);

/// How long to wait before looking whether what was killed is gone.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The tree of a living supervisor: what is in the target's Job Object, and whatever else carries the mark of its job.
pub(crate) struct Tree {
    membership: Membership,
    /// The target, which leads its group. While its handle is open, its pid belongs to no other process.
    leader: ProcessIdentity,
    handle: OwnedHandle,
    job: Job,
}

impl Tree {
    pub(crate) fn new(
        membership: Membership,
        leader: ProcessIdentity,
        handle: OwnedHandle,
        job: Job,
    ) -> Self {
        Self { membership, leader, handle, job }
    }

    /// The target.
    pub(crate) fn leader(&self) -> &OwnedHandle {
        &self.handle
    }

    /// The Job Object.
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// What is in the Job Object; the target, if that cannot be known.
    pub(crate) fn inside(&self) -> Vec<ProcessIdentity> {
        self.job.members().unwrap_or_else(|_| vec![self.leader.clone()])
    }

    /// What is left of it.
    pub(crate) fn members(&self) -> Vec<ProcessIdentity> {
        let mut members = self.inside();
        let outside = snapshot::marked(&self.membership).unwrap_or_default();
        for Marked { process, .. } in outside {
            if !members.iter().any(|member| member.pid == process.pid) {
                members.push(process);
            }
        }
        members
    }

    /// Requests it to terminate: sends Ctrl-Break to the target's group on our console. A process that does not hear
    /// it, because it has another console or none, is killed when the grace has passed.
    pub(crate) fn terminate(&self) {
        // SAFETY: takes numbers. The target leads its group, and while we hold its handle, no other process has the
        // number, even if the target is gone and only others of its group are left.
        unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, self.leader.pid) };
    }

    /// Kills it, and reports what is not gone within `within`.
    pub(crate) fn kill(&self, within: Duration) -> Vec<ProcessIdentity> {
        let deadline = clock::awake() + within;
        loop {
            // Refused or not, what is left tells.
            let _ = self.job.terminate();
            let left = self.inside();
            if left.is_empty() {
                // No process is inside that could start another one, so those outside can be killed for good.
                let within = deadline.saturating_sub(clock::awake());
                return end_marked(&self.membership, within)
                    .map_or_else(|_| Vec::new(), |report| report.survivors);
            }
            if clock::awake() >= deadline {
                return left;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Lets it live on without a supervisor.
    pub(crate) fn release(&self) {
        if let Err(error) = self.job.release() {
            warn!(mark = self.membership.value, %error, "tree not released, it ends with its supervisor");
        }
    }
}

/// Ends what a dead supervisor left behind.
///
/// Its Job Object was closed with it, which ends the tree. What remains to be done is to see that this has happened to
/// the target, and to kill the processes that were not in it and carry its mark. None of them shares a console with us,
/// and there is no other way to terminate a process, so none is terminated, and no grace is waited for.
pub(crate) fn sweep(
    tree: &Membership,
    target: Option<&ProcessIdentity>,
    _grace: Duration,
    within: Duration,
) -> io::Result<SweepReport> {
    let deadline = clock::awake() + within;
    let mut report = SweepReport::default();
    let is_here = |who: &ProcessIdentity| who.scope == identity::scope();
    if let Some(target) = target.filter(|who| !is_here(who)) {
        report.out_of_sight.clone_from(&target.scope);
    }
    if let Some(target) = target.filter(|who| is_here(who)) {
        match end(target, within) {
            Ok(Fate::Gone) => {}
            Ok(Fate::Ended) => report.ended += 1,
            // It would not end, or it may not be looked at: not known to be gone.
            Ok(Fate::Survives) | Err(_) => report.survivors.push(target.clone()),
        }
    }
    let marked = end_marked(tree, deadline.saturating_sub(clock::awake()))?;
    report.ended += marked.ended;
    report.survivors.extend(marked.survivors.into_iter().filter(|who| Some(who) != target));
    Ok(report)
}

/// The processes that certainly belong to a tree whose leader has no supervisor.
pub(crate) fn members(tree: &Membership, leader: &ProcessIdentity) -> io::Result<Vec<ProcessIdentity>> {
    let mut members: Vec<_> = snapshot::marked(tree)?.into_iter().map(|found| found.process).collect();
    let found = identity::identify(leader.pid)?.filter(|found| found.started == leader.started);
    if let Some(leader) = found.filter(|found| !members.contains(found)) {
        members.insert(0, leader);
    }
    Ok(members)
}

/// Kills the processes that carry the mark of a tree, until there are none or the time has passed.
pub(crate) fn end_marked(tree: &Membership, within: Duration) -> io::Result<SweepReport> {
    let deadline = clock::awake() + within;
    let mut ended = 0;
    loop {
        let found = snapshot::marked(tree)?;
        if found.is_empty() || (clock::awake() >= deadline && ended > 0) {
            let survivors = found.into_iter().map(|who| who.process).collect();
            return Ok(SweepReport { ended, survivors, ..SweepReport::default() });
        }
        for Marked { handle, .. } in &found {
            // SAFETY: the handle is ours, and was opened with the right to do this.
            unsafe { TerminateProcess(handle.as_raw_handle(), EXIT_KILLED) };
            ended += 1;
        }
        for Marked { handle, .. } in &found {
            let left = deadline.saturating_sub(clock::awake()).max(CLOSING);
            identity::has_ended(handle, Some(left))?;
        }
    }
}

/// Kills the processes that will never begin.
pub(crate) fn end_unbegun(names: &Names) -> io::Result<usize> {
    let unbegun = snapshot::unbegun(names)?;
    for Marked { handle, .. } in &unbegun {
        // SAFETY: the handle is ours, and was opened with the right to do this.
        unsafe { TerminateProcess(handle.as_raw_handle(), EXIT_KILLED) };
    }
    Ok(unbegun.len())
}

/// Whether a process that has released its locks lives on: the system closes what a process has open, which a scanner
/// may delay, and only then reports that it has ended.
pub(crate) fn lives_on(who: &ProcessIdentity) -> bool {
    let looked = || -> io::Result<bool> {
        let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
        let Some(process) = identity::open(who.pid, rights)? else { return Ok(false) };
        let is_it = identity::identity(&process, who.pid)?.started == who.started;
        Ok(is_it && !identity::has_ended(&process, Some(LEAVING))?)
    };
    looked().unwrap_or(true)
}

/// Sleeps until a process has ended, or until `within` has passed. May return early.
pub(crate) fn await_end(who: &ProcessIdentity, within: Duration) {
    let awaited = || -> io::Result<()> {
        let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
        let Some(process) = identity::open(who.pid, rights)? else { return Ok(()) };
        if identity::identity(&process, who.pid)?.started == who.started {
            identity::has_ended(&process, Some(within))?;
        }
        Ok(())
    };
    if awaited().is_err() {
        std::thread::sleep(within.min(AWAITED_LOOK));
    }
}

/// Kills a process. Nothing happens to one that is not the process meant.
pub(crate) fn end_by_force(who: &ProcessIdentity) -> io::Result<()> {
    end(who, KILLING).map(|_| ())
}

enum Fate {
    Gone,
    Ended,
    Survives,
}

/// Ends a process, if it is the one that is meant.
fn end(target: &ProcessIdentity, within: Duration) -> io::Result<Fate> {
    let deadline = clock::awake() + within;
    let rights = PROCESS_TERMINATE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    let Some(process) = identity::open(target.pid, rights)? else { return Ok(Fate::Gone) };
    // Looked at through the handle: from here on the pid cannot change hands.
    if identity::identity(&process, target.pid)?.started != target.started {
        return Ok(Fate::Gone);
    }
    if identity::has_ended(&process, Some(CLOSING.min(within)))? {
        return Ok(Fate::Gone);
    }
    // SAFETY: the handle is ours, and was opened with the right to do this.
    unsafe { TerminateProcess(process.as_raw_handle(), EXIT_KILLED) };
    let left = deadline.saturating_sub(clock::awake());
    Ok(if identity::has_ended(&process, Some(left))? { Fate::Ended } else { Fate::Survives })
}
