//! Looking for the processes of a tree: which of all processes belong to it.
//!
//! A look reads every process of the machine, so its cost grows with the machine and not with the tree. Threads that
//! look at the same time share one look: see [`look_together`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use hearback_core::ProcessIdentity;

use super::snapshot::{self, Carried, Process, Seen, Stat};
use crate::mark::Membership;

/// What a look is for.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// By what the processes of the tree are known.
    pub(super) tree: Membership,
    /// The living supervisor of the tree, whose children belong to it.
    pub(super) supervisor: Option<u32>,
    /// The target, which leads its group.
    pub(super) target: Option<ProcessIdentity>,
    /// Called with each process that belongs to the tree by itself, as soon as it is seen: one that starts a successor
    /// and ends is gone when the look has ended.
    pub(super) on_sight: fn(&Stat),
}

impl Search {
    /// Whether a process belongs to the tree by itself, whatever else there is.
    fn is_evident(&self, process: &Process<'_>) -> bool {
        let is_child = self.supervisor == Some(process.stat.parent);
        (process.mark == Carried::Ours || (is_child && process.mark == Carried::Nothing))
            && !process.stat.is_dead()
            && process.stat.pid > 1
            && process.stat.pid != std::process::id()
            && !process.is_apart()
    }
}

/// Looks at every process once.
pub(super) fn look(search: &Search) -> io::Result<Selection> {
    look_for(&[search]).map(|mut found| found.remove(0))
}

/// Looks at every process once, together with the other threads of this process that want to look now.
///
/// A look that began before this call may have passed a process of the tree before it was started. So the caller waits
/// for the next look, and one of those that wait makes it for all.
pub(super) fn look_together(search: &Search) -> io::Result<Selection> {
    static SHARED: Shared = Shared::new();
    SHARED.look(search, look_for)
}

/// Looks at every process once, for several trees.
fn look_for(searches: &[&Search]) -> io::Result<Vec<Selection>> {
    let variables: BTreeSet<&str> = searches.iter().flat_map(|search| search.tree.all_variables()).collect();
    let mut all = BTreeMap::new();
    snapshot::each(&variables, |seen: Seen| {
        for search in searches {
            let process = seen.of(&search.tree);
            if search.is_evident(&process) {
                (search.on_sight)(&process.stat);
            }
        }
        all.insert(seen.stat.pid, seen);
    })?;
    let select = |search: &&Search| {
        let processes = all.values().map(|seen| seen.of(&search.tree));
        select(processes, search.supervisor, search.target.as_ref())
    };
    Ok(searches.iter().map(select).collect())
}

/// Looks that threads wait for.
struct Shared {
    queue: Mutex<Queue>,
    /// Rung when a look has ended.
    ended: Condvar,
}

struct Queue {
    waiting: Vec<Arc<Ticket>>,
    /// Whether a thread is looking.
    is_looking: bool,
}

/// The place of one thread in the queue.
struct Ticket {
    search: Search,
    found: OnceLock<Result<Selection, Arc<io::Error>>>,
}

impl Shared {
    const fn new() -> Self {
        let queue = Queue { waiting: Vec::new(), is_looking: false };
        Self { queue: Mutex::new(queue), ended: Condvar::new() }
    }

    fn look(
        &self,
        search: &Search,
        look: impl Fn(&[&Search]) -> io::Result<Vec<Selection>>,
    ) -> io::Result<Selection> {
        let ticket = Arc::new(Ticket { search: search.clone(), found: OnceLock::new() });
        let mut queue = self.queue();
        queue.waiting.push(Arc::clone(&ticket));
        loop {
            if let Some(found) = ticket.found.get() {
                return found.clone().map_err(|error| io::Error::new(error.kind(), error));
            }
            if queue.is_looking {
                queue = self.ended.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_looking = true;
            let round = Round { shared: self, tickets: std::mem::take(&mut queue.waiting) };
            drop(queue);
            let searches: Vec<_> = round.tickets.iter().map(|ticket| &ticket.search).collect();
            let found = look(&searches);
            round.answer(found);
            drop(round);
            queue = self.queue();
        }
    }

    /// No thread panics while it has the queue.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One look, for all that waited when it began. A look that panics ends, too: no other thread waits for it for ever.
struct Round<'a> {
    shared: &'a Shared,
    tickets: Vec<Arc<Ticket>>,
}

impl Round<'_> {
    fn answer(&self, found: io::Result<Vec<Selection>>) {
        match found {
            Ok(found) => {
                for (ticket, found) in self.tickets.iter().zip(found) {
                    let _ = ticket.found.set(Ok(found));
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// Those that have no answer yet get this one.
    fn fail(&self, error: io::Error) {
        let error = Arc::new(error);
        for ticket in &self.tickets {
            let _ = ticket.found.set(Err(Arc::clone(&error)));
        }
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.fail(io::Error::other("the look at the processes was cut short"));
        self.shared.queue().is_looking = false;
        self.shared.ended.notify_all();
    }
}

/// The processes that were found to belong to a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Certainly.
    pub(super) ours: Vec<Stat>,
    /// Children of the supervisor that have ended or are about to. They are none any more; but what they started
    /// just before is a child of the supervisor now, and may not have been there yet when it was looked for.
    pub(super) passing: Vec<Stat>,
    /// Perhaps: they share a number with the job's group, and nothing more can be proved.
    pub(super) unproved: Vec<Stat>,
}

impl Selection {
    /// Those for whose sake the tree cannot be called empty.
    pub(super) fn there(&self) -> impl Iterator<Item = &Stat> {
        self.ours.iter().chain(&self.passing)
    }
}

/// Picks the processes of a tree out of a snapshot.
///
/// A process belongs to it that carries its mark, that descends from `supervisor` or from another member, or that is
/// in the group or session of `target` while the target itself is there. A supervisor of another job, and whatever
/// descends from it, never does, however it got there. Neither does a child of `supervisor` that carries only marks of
/// others: it is an orphan of another tree, such as a daemon of an agent that was woken from inside this one.
fn select<'a>(
    all: impl IntoIterator<Item = Process<'a>>,
    supervisor: Option<u32>,
    target: Option<&ProcessIdentity>,
) -> Selection {
    let (dead, all): (Vec<_>, Vec<_>) = all.into_iter().partition(|process| process.stat.is_dead());
    let me = std::process::id();
    let candidate = |process: &&Process<'_>| process.stat.pid > 1 && process.stat.pid != me;
    let is_of_this_tree = |process: &&Process<'_>| !process.is_apart();
    let leader_is_there = target.is_some_and(|leader| {
        all.iter().any(|process| (process.stat.pid, process.stat.started) == (leader.pid, leader.started))
    });
    let in_group =
        |stat: &Stat| target.is_some_and(|leader| stat.group == leader.pid || stat.session == leader.pid);

    let mut ours: BTreeSet<u32> = all
        .iter()
        .filter(candidate)
        .filter(|process| process.mark == Carried::Ours || (leader_is_there && in_group(&process.stat)))
        .filter(is_of_this_tree)
        .map(|process| process.stat.pid)
        .collect();
    let is_child = |process: &Process<'_>| supervisor == Some(process.stat.parent);
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(candidate)
            .filter(|process| !ours.contains(&process.stat.pid))
            .filter(|process| {
                ours.contains(&process.stat.parent) || (is_child(process) && process.mark == Carried::Nothing)
            })
            .filter(is_of_this_tree)
            .map(|process| process.stat.pid)
            .collect();
        if more.is_empty() {
            break;
        }
        ours.extend(more);
    }
    // The group belongs to the process that now has the leader's number.
    let number_is_reused =
        !leader_is_there && target.is_some_and(|l| all.iter().any(|p| p.stat.pid == l.pid));
    let stats = |pick: &dyn Fn(&Process<'_>) -> bool| {
        let picked = all.iter().filter(candidate).filter(|process| pick(process)).filter(is_of_this_tree);
        picked.map(|process| process.stat).collect()
    };
    Selection {
        ours: stats(&|process| ours.contains(&process.stat.pid)),
        passing: dead.iter().filter(|process| is_child(process)).map(|process| process.stat).collect(),
        unproved: stats(&|process| {
            !number_is_reused && !ours.contains(&process.stat.pid) && in_group(&process.stat)
        }),
    }
}

// The snapshots of these tests are written as /proc would show them.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::super::snapshot::Apart;
    use super::*;
    use crate::mark::Names;
    use hearback_core::testing::sample;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    /// pid, parent, group, and what the environment says: `ours` carries the mark, `others` only another one, `apart`
    /// leads another tree.
    fn process(pid: u32, parent: u32, group: u32, mark: &str) -> Process<'static> {
        let text =
            format!("{pid} (x) S {parent} {group} {group} {} {}", "0 ".repeat(15), u64::from(pid) * 10);
        let stat = Stat::parse(pid, text.as_bytes()).unwrap();
        let carried = match mark {
            "ours" => Carried::Ours,
            "others" => Carried::Others,
            _ => Carried::Nothing,
        };
        Process { stat, mark: carried, apart: Apart::Known(mark == "apart") }
    }

    fn pids(stats: &[Stat]) -> Vec<u32> {
        stats.iter().map(|stat| stat.pid).collect()
    }

    #[test]
    fn a_tree_ends_where_another_supervisor_begins() {
        let all = [
            process(100_000, 1, 100_000, ""),
            process(100_001, 100_000, 100_001, "ours"),
            process(100_002, 100_001, 100_002, ""), // cleared its environment and left the group
            process(100_003, 100_000, 100_003, "apart"), // launched from inside, came back to the subreaper
            process(100_004, 100_003, 100_004, ""),
            process(100_005, 1, 100_005, "ours"), // an orphan with the mark
            process(100_006, 1, 100_006, ""),     // a stranger
        ];
        let target = ProcessIdentity { started: 1_000_010, ..sample::process(100_001) };
        let found = select(all.to_vec(), Some(100_000), Some(&target));
        assert_eq!(pids(&found.ours), [100_001, 100_002, 100_005]);
        let swept = select(all.to_vec(), None, None);
        assert_eq!(pids(&swept.ours), [100_001, 100_002, 100_005]);
    }

    #[test]
    fn an_orphan_of_another_tree_is_a_boundary_and_a_descendant_of_a_member_is_none() {
        let all = [
            process(100_001, 100_000, 100_001, "ours"),
            process(100_002, 100_001, 100_002, "others"), // started by a member, with another mark
            process(100_003, 100_002, 100_003, ""),
            process(100_004, 100_000, 100_004, "others"), // a daemon of an agent that was woken from inside
            process(100_005, 100_004, 100_005, ""),
            process(100_006, 100_000, 100_006, ""), // an orphan that cleared its environment
        ];
        let found = select(all, Some(100_000), None);
        assert_eq!(pids(&found.ours), [100_001, 100_002, 100_003, 100_006]);
    }

    #[test]
    fn a_child_that_has_just_ended_keeps_the_tree_from_being_called_empty() {
        let mut child = process(100_001, 100_000, 100_001, "");
        child.stat = child.stat.ended();
        let mut stranger = process(100_002, 1, 100_002, "");
        stranger.stat = stranger.stat.ended();
        let found = select(vec![child, stranger], Some(100_000), None);
        assert_eq!((pids(&found.ours), pids(&found.passing)), (vec![], vec![100_001]));
    }

    #[test]
    fn a_group_is_ours_only_while_its_leader_is() {
        let member = process(100_002, 1, 100_001, "");
        let target = ProcessIdentity { started: 1_000_010, ..sample::process(100_001) };
        let look = |all: &[Process<'static>]| select(all.to_vec(), None, Some(&target));

        let alive = [process(100_001, 1, 100_001, ""), member.clone()];
        assert_eq!(pids(&look(&alive).ours), [100_001, 100_002]);

        let gone = look(std::slice::from_ref(&member));
        assert_eq!((pids(&gone.ours), pids(&gone.unproved)), (vec![], vec![100_002]));

        let mut stranger = process(100_001, 1, 100_001, "");
        stranger.stat.started += 5;
        assert_eq!(
            look(&[stranger, member]),
            Selection::default(),
            "the number belongs to another process now"
        );
    }

    /// A search that is known again by its number.
    fn numbered(n: u32) -> Search {
        let tree = Names::HEARBACK.membership(&sample::id(1));
        Search { tree, supervisor: Some(n), target: None, on_sight: |_| () }
    }

    /// What a look finds that only tells for which searches it was made.
    fn echo(searches: &[&Search]) -> Vec<Selection> {
        let ours: Vec<Stat> =
            searches.iter().map(|search| process(search.supervisor.unwrap(), 1, 1, "").stat).collect();
        searches.iter().map(|_| Selection { ours: ours.clone(), ..Selection::default() }).collect()
    }

    #[test]
    fn threads_that_ask_during_a_look_share_the_next_one() {
        let shared = Shared::new();
        let (begun, begins) = channel();
        let (go, may_go) = channel::<()>();
        std::thread::scope(|scope| {
            let waits = &shared;
            let first = scope.spawn(move || {
                waits.look(&numbered(100_001), |searches| {
                    begun.send(()).unwrap();
                    may_go.recv_timeout(LONG).unwrap();
                    Ok(echo(searches))
                })
            });
            begins.recv_timeout(LONG).unwrap();
            let later: Vec<_> = (100_002..100_005)
                .map(|n| {
                    let shared = &shared;
                    scope.spawn(move || shared.look(&numbered(n), |searches| Ok(echo(searches))))
                })
                .collect();
            while shared.queue().waiting.len() < later.len() {
                std::thread::yield_now();
            }
            go.send(()).unwrap();
            assert_eq!(pids(&first.join().unwrap().unwrap().ours), [100_001]);
            for thread in later {
                let mut found = pids(&thread.join().unwrap().unwrap().ours);
                found.sort_unstable();
                assert_eq!(found, [100_002, 100_003, 100_004], "one look for all that waited");
            }
        });
    }

    #[test]
    fn a_look_that_fails_or_panics_keeps_no_thread_waiting() {
        let shared = Shared::new();
        let failed = shared.look(&numbered(100_001), |_| Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            shared.look(&numbered(100_002), |_| std::panic::resume_unwind(Box::new("on purpose")))
        }));
        assert!(panicked.is_err());
        let found = shared.look(&numbered(100_003), |searches| Ok(echo(searches))).unwrap();
        assert_eq!(pids(&found.ours), [100_003]);
    }
}
