//! What is left of a job whose supervisor is gone.

use std::io;
use std::os::windows::io::AsRawHandle;
use std::time::Duration;

use hearback_core::port::process::SweepReport;
use hearback_core::{JobId, ProcessIdentity};
use windows_sys::Win32::System::Threading::{
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, TerminateProcess,
};

use super::job::EXIT_FORCED;
use super::snapshot::{self, Marked};
use super::{clock, identity};

/// How long the system may need to close the handles of a process that has let go of its locks.
const CLOSING: Duration = Duration::from_millis(200);

/// How long a process may still be there that has let go of its locks.
const LEAVING: Duration = Duration::from_millis(500);

/// How long the end of one process may take.
const FORCING: Duration = Duration::from_secs(2);

/// Ends what a dead supervisor left behind.
///
/// Its Job Object was closed with it, which ends the tree. What remains to be done is to see that this has happened to
/// the target, and to end whoever was not in it and carries its mark. None of them shares a console with us,
/// and there is no other way to ask, so nobody is asked, and no grace is waited for.
pub(crate) fn sweep(
    job: &JobId,
    target: Option<&ProcessIdentity>,
    _grace: Duration,
    within: Duration,
) -> io::Result<SweepReport> {
    let deadline = clock::awake() + within;
    let mut report = SweepReport::default();
    if let Some(target) = target.filter(|who| who.scope == identity::scope()) {
        match end(target, within) {
            Ok(Fate::Gone) => {}
            Ok(Fate::Ended) => report.ended += 1,
            // It would not end, or it may not be looked at: not known to be gone.
            Ok(Fate::Survives) | Err(_) => report.survivors.push(target.clone()),
        }
    }
    let marked = end_marked(job, deadline.saturating_sub(clock::awake()))?;
    report.ended += marked.ended;
    report.survivors.extend(marked.survivors.into_iter().filter(|who| Some(who) != target));
    Ok(report)
}

/// Ends by force whoever carries the mark of a job, until there is nobody or the time is over.
pub(crate) fn end_marked(job: &JobId, within: Duration) -> io::Result<SweepReport> {
    let deadline = clock::awake() + within;
    let mut ended = 0;
    loop {
        let found = snapshot::marked(job)?;
        if found.is_empty() || (clock::awake() >= deadline && ended > 0) {
            let survivors = found.into_iter().map(|who| who.process).collect();
            return Ok(SweepReport { ended, survivors, asked: 0 });
        }
        for Marked { handle, .. } in &found {
            // SAFETY: the handle is ours, and was opened with the right to do this.
            unsafe { TerminateProcess(handle.as_raw_handle(), EXIT_FORCED) };
            ended += 1;
        }
        for Marked { handle, .. } in &found {
            let left = deadline.saturating_sub(clock::awake()).max(CLOSING);
            identity::has_ended(handle, Some(left))?;
        }
    }
}

/// Ends whoever will never begin.
pub(crate) fn end_unbegun() -> io::Result<usize> {
    let unbegun = snapshot::unbegun()?;
    for Marked { handle, .. } in &unbegun {
        // SAFETY: the handle is ours, and was opened with the right to do this.
        unsafe { TerminateProcess(handle.as_raw_handle(), EXIT_FORCED) };
    }
    Ok(unbegun.len())
}

/// Whether a process that has let go of its locks lives on: the system closes what a process has open, which a scanner
/// may delay, and only then says that it has ended.
pub(crate) fn lives_on(who: &ProcessIdentity) -> bool {
    let looked = || -> io::Result<bool> {
        let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
        let Some(process) = identity::open(who.pid, rights)? else { return Ok(false) };
        let is_it = identity::identity(&process, who.pid)?.started == who.started;
        Ok(is_it && !identity::has_ended(&process, Some(LEAVING))?)
    };
    looked().unwrap_or(true)
}

/// Ends a process by force. Nothing happens to one that is not the process meant.
pub(crate) fn end_by_force(who: &ProcessIdentity) -> io::Result<()> {
    end(who, FORCING).map(|_| ())
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
    unsafe { TerminateProcess(process.as_raw_handle(), EXIT_FORCED) };
    let left = deadline.saturating_sub(clock::awake());
    Ok(if identity::has_ended(&process, Some(left))? { Fate::Ended } else { Fate::Survives })
}
