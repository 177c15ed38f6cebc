//! Ending a monitor in good order: marks, notices, the wait for turns, the jobs that end with it, the successor.

use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use hearback_core::port::disk::{Publish, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::port::sink::HOST_SINK;
use hearback_core::session::{Interruption, TurnFact};
use hearback_core::{
    Extra, FORMAT, HostFact, KilledBy, LockState, StopDone, StopKind, StopRequest, StopTaken,
};
use tracing::{error, info, warn};

use super::drain_plan::plan;
use super::monitor::Monitor;
use super::notices::Notices;
use super::open_job::OpenJob;
use crate::session::{ActiveTurn, interrupt};
use crate::wait::Waits;
use crate::{Ports, kill};

/// How long the turn that requested this end has after the others, so that its agent gets the answer and finishes. Not
/// as long as the others: it may be waiting for this end.
const REQUESTER_WITHIN: Duration = Duration::from_secs(15);
/// The same, however little time turns have.
const REQUESTER_AT_LEAST: Duration = Duration::from_secs(1);
/// The longest grace of a job that ends with the host, however little time turns have.
const BOUND_JOB_GRACE: Duration = Duration::from_secs(10);
/// How long turns that were interrupted may take to notice.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(10);

/// The end of a monitor. What cannot be recorded on the way is logged, if that is possible, and does not prevent an
/// end in good order.
pub(super) struct Drain<'a> {
    pub(super) monitor: &'a Arc<Monitor>,
    /// The number of the request; none for one that is not recorded.
    pub(super) number: Option<u32>,
    pub(super) request: &'a StopRequest,
    /// Whether a restart starts a successor.
    pub(super) succeed: bool,
}

impl Drain<'_> {
    /// Marks the current turns, notifies the places where they are shown, waits for them, and interrupts those that
    /// are left.
    pub(super) fn run(&self) {
        self.adopt_turns_of_hosts();
        let turns = self.monitor.active_turns.stop();
        let plan = plan(self.number.unwrap_or(0), self.request, &turns);
        self.mark(&plan.marks);
        let awaited = count(&plan.awaited);
        info!(kind = %self.request.kind, turns = awaited, "monitor ends");
        let at = self.monitor.ports.clock.stamp();
        self.answer(&HostFact::Taken(StopTaken { format: FORMAT, at, awaited, extra: Extra::new() }));
        let notices = Notices::send(self.monitor, plan.notices);
        let left = self.await_turns(&plan.awaited);
        for turn in &left {
            info!(session = %turn.session, turn = turn.turn, "interrupting turn");
        }
        self.interrupt(&left);
        self.end_bound_jobs();
        notices.finish(self.monitor);
        // Before the last answer: a monitor that is killed after that has a successor.
        self.start_successor();
        let (at, interrupted) = (self.monitor.ports.clock.stamp(), Some(count(&left)));
        self.answer(&HostFact::Done(StopDone { format: FORMAT, at, interrupted, extra: Extra::new() }));
    }

    /// Counts the turns that hosts in other programs run among those of this process, until their locks are free. A
    /// host begins none after the request is there, and it is there before this looks.
    fn adopt_turns_of_hosts(&self) {
        let monitor = self.monitor;
        let turns = held_by_hosts(&monitor.ports).unwrap_or_else(|error| {
            warn!(%error, "turns of hosts cannot be seen, and are not awaited");
            Vec::new()
        });
        for turn in turns {
            if !monitor.active_turns.adopt(turn.clone()) {
                continue;
            }
            let shared = Arc::clone(monitor);
            let session = turn.session.clone();
            let started = Builder::new().spawn(move || {
                let freed = shared.ports.lock_turn(&turn.session, Wait::Block);
                drop(freed);
                shared.active_turns.release(&turn);
            });
            if let Err(error) = started {
                warn!(%session, %error, "no thread to wait for a turn of a host");
            }
        }
    }

    fn reason(&self) -> Interruption {
        match self.request.kind {
            StopKind::Restart => Interruption::Restart,
            StopKind::Stop | StopKind::Drain | StopKind::Unknown => Interruption::Shutdown,
        }
    }

    fn mark(&self, marks: &[(ActiveTurn, bool)]) {
        let ports = &self.monitor.ports;
        for (turn, requested) in marks {
            let mark = TurnFact::resumable(ports.clock.stamp(), self.reason(), *requested);
            let durability = self.monitor.policy.durability;
            self.check("a mark", ports.sessions.publish_turn(&turn.session, turn.turn, &mark, durability));
        }
    }

    fn answer(&self, fact: &HostFact) {
        let (sessions, durability) = (&self.monitor.ports.sessions, self.monitor.policy.durability);
        if let Some(n) = self.number {
            self.check("the answer to a request", sessions.publish_host(n, fact, durability));
        }
    }

    fn check(&self, what: &str, published: Result<Publish, StoreError>) {
        if let Err(error) = published {
            warn!(%error, "{what} cannot be recorded");
        }
    }

    /// Waits for turns to end; returns all that are left.
    fn await_turns(&self, awaited: &[ActiveTurn]) -> Vec<ActiveTurn> {
        let turns = &self.monitor.active_turns;
        let left = turns.wait(self.limit(), |turn| awaited.contains(turn));
        if left.iter().all(|turn| awaited.contains(turn)) {
            return left;
        }
        let within = self.limit().map_or(REQUESTER_WITHIN, |limit| limit.min(REQUESTER_WITHIN));
        turns.wait(Some(within.max(REQUESTER_AT_LEAST)), |turn| !awaited.contains(turn))
    }

    /// How long turns have; none without a limit.
    fn limit(&self) -> Option<Duration> {
        let requested = self.request.within_ms.map(Duration::from_millis);
        match self.request.kind {
            StopKind::Drain => requested,
            StopKind::Restart | StopKind::Stop | StopKind::Unknown => {
                Some(requested.unwrap_or(self.monitor.policy.drain_timeout))
            }
        }
    }

    fn interrupt(&self, left: &[ActiveTurn]) {
        let (ports, turns) = (&self.monitor.ports, &self.monitor.active_turns);
        let (reason, durability) = (self.reason(), self.monitor.policy.durability);
        all_at_once(left, |turn| {
            let session = &turn.session;
            if let Err(error) = interrupt(ports, session, turn.turn, &turn.mark, reason, durability) {
                warn!(%session, turn = turn.turn, %error, "turn not interrupted");
            }
        });
        turns.wait(Some(INTERRUPTED_WITHIN), |_| true);
        turns.wait_for_records(INTERRUPTED_WITHIN);
    }

    /// Kills the jobs that are bound to the host. Their owners are notified as of any end. Each has its own grace, but
    /// not more than turns have: it must not keep the host from ending.
    fn end_bound_jobs(&self) {
        let monitor = self.monitor;
        let ids = match monitor.ports.store.open_jobs() {
            Ok(ids) => ids,
            Err(error) => return warn!(%error, "bound jobs not ended"),
        };
        let bound: Vec<_> = ids
            .iter()
            // A job that cannot be read cannot say that it is bound.
            .filter_map(|id| OpenJob::see(&monitor.ports, id).ok().flatten())
            .filter(OpenJob::is_bound_and_runs)
            .collect();
        let waits = Waits::default();
        let most = self.limit().unwrap_or(monitor.policy.drain_timeout).max(BOUND_JOB_GRACE);
        all_at_once(&bound, |job| {
            let reason = Some(format!("bound to the host, which was to {}", self.request.kind));
            let grace = Some(job.grace().min(most));
            let request = kill::Request { by: KilledBy::Host, reason, grace, force: false };
            if let Err(error) = kill::kill(&monitor.ports, &waits, job.id(), &request) {
                warn!(job = %job.id(), %error, "job not ended");
            }
        });
    }

    /// The successor begins when this process has ended.
    fn start_successor(&self) {
        if self.request.kind != StopKind::Restart || !self.succeed {
            return;
        }
        let me = self.monitor.ports.processes.me();
        if let Err(error) = me.and_then(|me| self.monitor.relaunch.start_successor(&me)) {
            error!(%error, "successor not started");
        }
    }
}

/// The turns that hosts run, which are other processes.
fn held_by_hosts(ports: &Ports) -> Result<Vec<ActiveTurn>, StoreError> {
    let me = ports.processes.me()?;
    let mut turns = Vec::new();
    for session in ports.sessions.sessions()? {
        // A session that cannot be read keeps no monitor from ending.
        let Ok(facts) = ports.sessions.session(&session) else { continue };
        let Some((number, turn)) = facts.turns.last().filter(|(_, turn)| turn.end.is_absent()) else {
            continue;
        };
        let Some(begin) = turn.begin.present() else { continue };
        let is_hosts = begin.sink.as_deref() == Some(HOST_SINK) && begin.by != me;
        if is_hosts && ports.turn_lock(&session)? == LockState::Held {
            let destination = begin.destination.clone().unwrap_or_else(|| session.to_string());
            let (turn, mark) = (*number, begin.mark.clone());
            turns.push(ActiveTurn { session, turn, mark, destination });
        }
    }
    Ok(turns)
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

/// Does the same for each item, all at the same time, and returns when all are done. If no more threads can be
/// started, it does them one after the other.
fn all_at_once<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for item in items {
            if Builder::new().spawn_scoped(scope, move || work(item)).is_err() {
                work(item);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{World, session};
    use crate::session::Beginning;
    use hearback_core::port::session::SessionStore;
    use hearback_core::session::TurnCause;

    fn drain(world: &World, kind: StopKind) {
        world.request(kind);
        let request = &StopRequest::new(kind, world.monitor.ports.clock.stamp());
        Drain { monitor: &world.monitor, number: Some(1), request, succeed: true }.run();
    }

    #[test]
    fn a_restart_starts_a_successor_and_a_stop_does_not() {
        for (kind, successors) in [(StopKind::Restart, 1), (StopKind::Stop, 0), (StopKind::Drain, 0)] {
            let world = World::new();
            drain(&world, kind);
            assert_eq!(world.relaunch.successors().len(), successors, "{kind}");
            let facts = world.store.host().unwrap();
            let request = &facts.requests[0].1;
            assert_eq!(request.taken.present().map(|taken| taken.awaited), Some(0));
            assert_eq!(request.done.present().and_then(|done| done.interrupted), Some(0));
        }
    }

    #[test]
    fn a_turn_that_does_not_end_in_time_is_marked_and_interrupted_and_its_place_is_told() {
        let world = World::new();
        let turns = world.monitor.turns();
        let open = turns.begin(&session("s"), Beginning::new(TurnCause::Command)).unwrap().unwrap();
        std::thread::scope(|scope| {
            let draining = scope.spawn(|| drain(&world, StopKind::Restart));
            // The agent of the turn notices the interruption, and ends.
            let sessions = &world.monitor.ports.sessions;
            let is_interrupted =
                || sessions.session(&session("s")).unwrap().turns[0].1.interrupt.present().is_some();
            while !is_interrupted() {
                assert!(!draining.is_finished());
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(open);
        });
        let turn = &world.store.session(&session("s")).unwrap().turns[0].1;
        let reason = turn.resumable.present().map(|mark| mark.reason);
        assert_eq!(reason, Some(Interruption::Restart));
        let facts = world.store.host().unwrap();
        assert_eq!(facts.requests[0].1.done.present().and_then(|done| done.interrupted), Some(1));
        assert_eq!(world.sink.payloads().len(), 1, "one notice for one destination");
    }
}
