//! Trees of processes: which belong to a job, and how they are terminated, killed and swept.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use hearback_core::port::process::SweepReport;
use hearback_core::{ProcessIdentity, SmallSort};
use nix::sys::signal::Signal;

use super::look::{Search, Selection, look, look_together};
use super::sight::{self, Sight};
use super::snapshot::Stat;
use super::{clock, identity};
use crate::mark::{Membership, Names};

/// How long to wait before looking whether what was killed is gone.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// A process that was only terminated may take its time: the wait doubles from look to look, up to this.
const BETWEEN_LOOKS_MAX: Duration = Duration::from_millis(100);
/// A process that is there so long after it was killed will not end soon.
const STUCK_AFTER: Duration = Duration::from_millis(500);
/// A process that starts a successor and ends may be missed by one look. A caller that is not their parent needs this
/// many looks that find nothing.
const LOOKS_OF_A_SWEEP: u32 = 2;
/// How often to look at a tree that is never the same twice, before it is taken for alive.
const LOOKS_MAX: u32 = 100;

/// Whether a process that was just found lives on: one that is ending is not found.
pub(crate) fn lives_on(_who: &ProcessIdentity) -> bool {
    true
}

/// Ends what a dead supervisor or a bounded run left behind: terminates it, and after the grace kills it.
pub(crate) fn sweep(
    tree: &Membership,
    target: Option<&ProcessIdentity>,
    grace: Duration,
    within: Duration,
) -> io::Result<SweepReport> {
    if !sight::numbers_are_ours() {
        // A signal would reach another process than the one that was found.
        let out_of_sight = target.map_or_else(identity::scope, |who| who.scope.clone());
        return Ok(SweepReport { out_of_sight, ..SweepReport::default() });
    }
    let (target, out_of_sight) = match target.map(sight::look) {
        Some(Sight::Here(who)) => (Some(who), None),
        Some(Sight::Unseen) => (None, target.and_then(|who| who.scope.clone())),
        Some(Sight::Gone) | None => (None, None),
    };
    let search = Search { tree: tree.clone(), supervisor: None, target, on_sight: leave };
    let terminated = terminate_all(grace, || look_together(&search))?;
    let search = Search { on_sight: kill_at_once, ..search };
    let report = kill_all(
        terminated,
        within,
        LOOKS_OF_A_SWEEP,
        || std::thread::sleep(BETWEEN_LOOKS),
        || look_together(&search),
    )?;
    Ok(SweepReport { out_of_sight, ..report })
}

/// The processes that certainly belong to a tree whose leader has no supervisor.
pub(crate) fn members(tree: &Membership, leader: &ProcessIdentity) -> io::Result<Vec<ProcessIdentity>> {
    let target = if let Sight::Here(who) = sight::look(leader) { Some(who) } else { None };
    let search = Search { tree: tree.clone(), supervisor: None, target, on_sight: leave };
    Ok(look(&search)?.ours.iter().map(identity::identity).collect())
}

/// Terminates each process that `look` finds once, until it finds none so many times in a row, or the grace has passed.
/// Returns those that were terminated.
fn terminate_all(
    grace: Duration,
    mut look: impl FnMut() -> io::Result<Selection>,
) -> io::Result<BTreeSet<(u32, u64)>> {
    let deadline = clock::awake().saturating_add(grace);
    let mut terminated = BTreeSet::new();
    let (mut calm, mut pause) = (0, BETWEEN_LOOKS);
    while calm < LOOKS_OF_A_SWEEP && clock::awake() < deadline {
        let found = look()?;
        for stat in &found.ours {
            if terminated.insert((stat.pid, stat.started)) {
                // Gone meanwhile, or not allowed: the next look tells which.
                let _ = signal(stat, Signal::SIGTERM);
            }
        }
        calm = if found.ours.is_empty() { calm + 1 } else { 0 };
        if calm == 0 {
            std::thread::sleep(pause.min(deadline.saturating_sub(clock::awake())));
            pause = BETWEEN_LOOKS_MAX.min(pause * 2);
        }
    }
    Ok(terminated)
}

/// The tree of a living supervisor, which is this process: its descendants, and whatever else carries the mark of its
/// job.
pub(crate) struct Tree {
    search: Search,
    /// The target, which leads its group.
    leader: ProcessIdentity,
    /// A handle to the leader, which is not reused as a pid is.
    #[cfg(target_os = "linux")]
    handle: Option<std::os::fd::OwnedFd>,
}

impl Tree {
    /// The tree of a child that has not been reaped yet.
    pub(crate) fn new(membership: Membership, leader: ProcessIdentity) -> Self {
        Self {
            #[cfg(target_os = "linux")]
            handle: handle_of(leader.pid),
            search: Search {
                tree: membership,
                supervisor: Some(std::process::id()),
                target: Some(leader.clone()),
                on_sight: leave,
            },
            leader,
        }
    }

    /// The target.
    pub(crate) fn leader(&self) -> &ProcessIdentity {
        &self.leader
    }

    /// What is left of it; the leader, if that cannot be known. `reap` waits for the children of this process that
    /// have ended.
    pub(crate) fn members(&self, mut reap: impl FnMut()) -> Vec<ProcessIdentity> {
        let mut looks = 1;
        loop {
            let Ok(found) = look(&self.search) else { return vec![self.leader.clone()] };
            if !found.ours.is_empty() || found.passing.is_empty() || looks == LOOKS_MAX {
                return found.there().map(identity::identity).collect();
            }
            reap();
            looks += 1;
        }
    }

    /// Kills it, and reports what is not gone within `within`. `pause` waits for that time, and reaps.
    pub(crate) fn kill(&self, within: Duration, mut pause: impl FnMut(Duration)) -> Vec<ProcessIdentity> {
        // A process of the group cannot have started another one unseen; the others are found one by one.
        self.kill_group();
        let between = || {
            pause(BETWEEN_LOOKS);
            self.kill_group();
        };
        let search = Search { on_sight: kill_at_once, ..self.search.clone() };
        match kill_all(BTreeSet::new(), within, 1, between, || look(&search)) {
            Ok(report) => report.survivors,
            // Nothing could be looked for, so nothing is known to be gone.
            Err(_) => vec![self.leader.clone()],
        }
    }

    /// Kills the leader's group with one signal. The handle makes sure that it is that group, however long its leader
    /// has been gone. Older kernels than 6.9 refuse.
    #[cfg(target_os = "linux")]
    fn kill_group(&self) {
        const PROCESS_GROUP: libc::c_uint = 4;
        let Some(leader) = &self.handle else { return };
        let (number, handle) = (libc::SYS_pidfd_send_signal, std::os::fd::AsRawFd::as_raw_fd(leader));
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the handle is open and ours, and a null pointer stands for the ordinary information.
        unsafe { libc::syscall(number, handle, libc::SIGKILL, nothing, PROCESS_GROUP) };
    }

    #[cfg(not(target_os = "linux"))]
    fn kill_group(&self) {}
}

/// A handle to a process: to a child that has not been reaped yet, or to one that is identified again afterwards.
#[cfg(target_os = "linux")]
fn handle_of(pid: u32) -> Option<std::os::fd::OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

/// Requests processes to terminate.
pub(crate) fn terminate(members: &[ProcessIdentity]) {
    for who in members {
        // Gone meanwhile, or not ours to signal: what remains is seen at the next look.
        let _ = send(who.pid, who.started, Signal::SIGTERM);
    }
}

/// Kills what `look` finds, which kills on sight, again and again, until it finds nothing so many times in a row: a
/// process may have started others meanwhile.
///
/// Gives up after `within`; but as long as those that are found have only just been signalled they are dying faster
/// than they are born, and it goes on for as long again. Those that were `terminated` before count as ended by us.
fn kill_all(
    terminated: BTreeSet<(u32, u64)>,
    within: Duration,
    enough: u32,
    mut between: impl FnMut(),
    mut look: impl FnMut() -> io::Result<Selection>,
) -> io::Result<SweepReport> {
    let began = clock::awake();
    let were_terminated = terminated.len();
    let mut signalled: BTreeMap<_, _> = terminated.into_iter().map(|who| (who, began)).collect();
    let (mut calm, mut looks_late) = (0, 0);
    loop {
        let found = look()?;
        let now = clock::awake();
        let is_calm = found.there().next().is_none();
        calm = if is_calm { calm + 1 } else { 0 };
        for stat in &found.ours {
            signalled.entry((stat.pid, stat.started)).or_insert(now);
        }
        let is_stuck = |stat: &Stat| {
            signalled.get(&(stat.pid, stat.started)).is_some_and(|since| now - *since >= STUCK_AFTER)
        };
        let most = if found.ours.iter().any(is_stuck) { within } else { within * 2 };
        // On a busy machine a look may take longer than to die does: no process is named that is gone by now.
        let is_late = now - began >= most;
        let one_more = is_late && !is_calm && looks_late == 0 && !found.there().any(is_there);
        looks_late += u32::from(is_late);
        if (calm >= enough || is_late) && !one_more {
            let mut survivors: Vec<_> =
                found.there().chain(&found.unproved).map(identity::identity).collect();
            survivors.small_sort_by_key(|who| who.pid);
            let remains = |pid: u32| found.ours.iter().any(|left| left.pid == pid);
            let ended = signalled.keys().filter(|(pid, _)| !remains(*pid)).count();
            return Ok(SweepReport { ended, terminated: were_terminated, survivors, out_of_sight: None });
        }
        found.ours.iter().for_each(kill_at_once);
        if !is_calm {
            between();
        }
    }
}

/// What becomes of a process on sight: nothing, because it is only looked for.
fn leave(_seen: &Stat) {}

/// What becomes of a process on sight: it is killed. If that is not allowed, or it is gone already, the next look
/// tells.
fn kill_at_once(seen: &Stat) {
    let _ = signal(seen, Signal::SIGKILL);
}

/// Whether it has not ended since it was seen.
fn is_there(stat: &Stat) -> bool {
    matches!(identity::identify(stat.pid), Ok(Some(who)) if who.started == stat.started)
}

/// No process is suspended here before it begins: one that is forked runs.
pub(crate) fn end_unbegun(_names: &Names) -> io::Result<usize> {
    Ok(0)
}

/// How often to look at a process that is awaited, where its end is no event.
const AWAITED_LOOK: Duration = Duration::from_secs(1);

/// Sleeps until a process has ended, or until `within` has passed. May return early.
#[cfg(target_os = "linux")]
pub(crate) fn await_end(who: &ProcessIdentity, within: Duration) {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let Some(handle) = handle_of(who.pid) else { return std::thread::sleep(within.min(AWAITED_LOOK)) };
    // The handle was opened first, so that the pid cannot change hands.
    if Stat::read(who.pid).ok().flatten().is_some_and(|stat| stat.started == who.started) {
        let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut [PollFd::new(handle.as_fd(), PollFlags::POLLIN)], timeout);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn await_end(_who: &ProcessIdentity, within: Duration) {
    std::thread::sleep(within.min(AWAITED_LOOK));
}

/// Kills a process. Nothing happens to one that is not the process meant, and one that is gone is fine.
pub(crate) fn end_by_force(who: &ProcessIdentity) -> io::Result<()> {
    match send(who.pid, who.started, Signal::SIGKILL) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

fn signal(stat: &Stat, signal: Signal) -> io::Result<()> {
    send(stat.pid, stat.started, signal)
}

/// Signals through a handle that was opened before the identity was checked, so that the pid cannot change hands.
#[cfg(target_os = "linux")]
fn send(pid: u32, started: u64, signal: Signal) -> io::Result<()> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let handle = pidfd_open(number, PidfdFlags::empty())?;
    if Stat::read(pid)?.is_none_or(|stat| stat.started != started) {
        return Ok(());
    }
    let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_send_signal(handle, signal)?)
}

#[cfg(not(target_os = "linux"))]
fn send(pid: u32, started: u64, signal: Signal) -> io::Result<()> {
    let Ok(number) = i32::try_from(pid) else { return Ok(()) };
    if identity::identify(pid)?.is_none_or(|who| who.started != started) {
        return Ok(());
    }
    Ok(nix::sys::signal::kill(nix::unistd::Pid::from_raw(number), signal)?)
}
