//! Ending a monitor in good order, whoever asked for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::{SinkReply, Sinks};
use hearback_core::session::{Interruption, TurnFact};
use hearback_core::{
    Extra, FORMAT, HostFact, KilledBy, LockState, Notice, Read, StopDone, StopKind, StopRequest, StopTaken,
    Verdict,
};
use hearback_monitor::session;

use super::run::Monitor;
use crate::{Hearback, KillRequest, Select};

/// How long notices may take, whatever the sink that takes them may.
const NOTICES_WITHIN: Duration = Duration::from_secs(5);
/// How long the turn that asked for its own end has, so that whoever asked in it hears the answer.
const ASKER_WITHIN: Duration = Duration::from_secs(1);
/// How long turns that were cut short may take to notice.
const CUT_WITHIN: Duration = Duration::from_secs(10);

impl Monitor<'_> {
    pub(super) fn done(&self) -> StopDone {
        let at = self.hearback.ports.clock.stamp();
        StopDone { format: FORMAT, at, interrupted: Some(0), extra: Extra::new() }
    }

    pub(super) fn ask_ourselves(&self) -> Result<(), StoreError> {
        let facts = self.hearback.store.host()?;
        let now = self.hearback.ports.clock.stamp();
        let Verdict::Ask(n) = facts.judge(LockState::Held, None, &now) else { return Ok(()) };
        let request = HostFact::Request(StopRequest::new(StopKind::Stop, now));
        let _ = self.hearback.store.publish_host(n, &request, self.hearback.settings().durability)?;
        Ok(())
    }

    /// Does what the host was asked to, if it was; tells what that was when it is done.
    pub(super) fn do_as_asked(&self) -> Result<Option<StopKind>, StoreError> {
        if self.host.is_none() {
            return Ok(None);
        }
        let facts = self.hearback.store.host()?;
        let Some((n, open)) = facts.open_request() else { return Ok(None) };
        let now = self.hearback.ports.clock.stamp();
        let request = match &open.request {
            Read::Present(request) => request.clone(),
            _ => StopRequest::new(StopKind::Stop, now),
        };
        self.drain(Some(n), &request);
        Ok(Some(request.kind))
    }

    /// Marks who is busy, tells where they are shown, waits, and cuts short whoever is left. What cannot be recorded on
    /// the way is logged, if that is possible, and keeps nobody from ending in order.
    pub(super) fn drain(&self, n: Option<u32>, request: &StopRequest) {
        let hearback = self.hearback;
        let (store, durability) = (&hearback.store, hearback.settings().durability);
        let reason = match request.kind {
            StopKind::Restart => Interruption::Restart,
            StopKind::Stop | StopKind::Drain | StopKind::Unknown => Interruption::Shutdown,
        };
        let turns = hearback.active_turns.stop();
        let plan = session::plan(n.unwrap_or(0), request, &turns);
        let record = |what: &str, published: Result<Publish, StoreError>| {
            if let Err(error) = published {
                hearback.note_host(&format!("{what} cannot be recorded: {error}"));
            }
        };
        let answer = |fact: HostFact| {
            if let Some(n) = n {
                record("the answer to a request", store.publish_host(n, &fact, durability));
            }
        };
        for (turn, asked) in &plan.marks {
            let mark = TurnFact::resumable(hearback.ports.clock.stamp(), reason, *asked);
            record("a mark", store.publish_turn(&turn.session, turn.turn, &mark, durability));
        }
        let awaited = u32::try_from(plan.awaited.len()).unwrap_or(u32::MAX);
        let at = hearback.ports.clock.stamp();
        answer(HostFact::Taken(StopTaken { format: FORMAT, at, awaited, extra: Extra::new() }));
        let told = self.tell(plan.notices);
        let limit = match request.kind {
            StopKind::Drain => request.within_ms.map(Duration::from_millis),
            StopKind::Restart | StopKind::Stop | StopKind::Unknown => {
                let asked = request.within_ms.map(Duration::from_millis);
                Some(asked.unwrap_or(hearback.settings().drain_timeout))
            }
        };
        let mut left = hearback.active_turns.wait(limit, |turn| plan.awaited.contains(turn));
        if left.iter().any(|turn| !plan.awaited.contains(turn)) {
            left = hearback.active_turns.wait(Some(ASKER_WITHIN), |turn| !plan.awaited.contains(turn));
        }
        std::thread::scope(|scope| {
            for turn in &left {
                scope.spawn(move || {
                    let (ports, session) = (&hearback.ports, &turn.session);
                    let cut = session::interrupt(ports, session, turn.turn, &turn.mark, reason, durability);
                    if let Err(error) = cut {
                        hearback.note_host(&format!(
                            "a turn of session {session} could not be cut short: {error}"
                        ));
                    }
                });
            }
        });
        hearback.active_turns.wait(Some(CUT_WITHIN), |_| true);
        hearback.active_turns.wait_for_records(CUT_WITHIN);
        self.end_bound_jobs(request.kind);
        told.finish(hearback);
        // Before the last word: whoever is killed after it has a successor. It begins when this process is gone.
        if request.kind == StopKind::Restart
            && self.options.succeed
            && let Err(error) = hearback.spawn_successor()
        {
            hearback.note_host(&format!("the successor cannot be started: {error}"));
        }
        let interrupted = Some(u32::try_from(left.len()).unwrap_or(u32::MAX));
        answer(HostFact::Done(StopDone { interrupted, ..self.done() }));
    }

    /// Sends notices out. None of them is waited for now.
    fn tell(&self, notices: Vec<Notice>) -> Told {
        let (sender, heard) = channel();
        let began = self.now();
        let mut open = HashSet::new();
        let Some(name) = self.hearback.settings().notice_sink.clone() else {
            return Told { heard, open, began };
        };
        for notice in notices {
            open.insert(notice.destination.clone());
            let (hearback, name, sender) = (Arc::clone(self.hearback), name.clone(), sender.clone());
            std::thread::spawn(move || {
                let destination = notice.destination.clone();
                let answer = hearback
                    .registry
                    .find(&name)
                    .and_then(|sink| sink.deliver(&notice.into(), &hearback.context()));
                let answer = match answer {
                    Ok(SinkReply::Delivered) => Ok(()),
                    Ok(other) => Err(format!("{other:?}")),
                    Err(error) => Err(error.to_string()),
                };
                let _ = sender.send((destination, answer));
            });
        }
        Told { heard, open, began }
    }

    /// Jobs that were launched as the host's own end with it, and their owners hear of that as of any end.
    fn end_bound_jobs(&self, kind: StopKind) {
        let hearback = self.hearback;
        let Ok(listing) = hearback.jobs(&Select { history_max: Some(0), ..Select::default() }) else {
            return;
        };
        let bound = listing.jobs.iter().filter(|job| {
            let spec = job.seen.facts.spec.present();
            !job.view.state.is_over() && spec.is_some_and(|spec| spec.bound)
        });
        std::thread::scope(|scope| {
            for job in bound {
                scope.spawn(move || {
                    let reason = Some(format!("bound to the host, which was to {kind}"));
                    let request = KillRequest { by: KilledBy::Host, reason, grace: None, force: false };
                    if let Err(error) = hearback.end_job(&job.view.id, &request) {
                        hearback.note_host(&format!("job {} could not be ended: {error}", job.view.id));
                    }
                });
            }
        });
    }
}

/// Notices that are on their way.
struct Told {
    heard: Receiver<(String, Result<(), String>)>,
    open: HashSet<String>,
    began: Duration,
}

impl Told {
    /// Waits for what is left of their time, and says which did not arrive.
    fn finish(mut self, hearback: &Hearback) {
        while !self.open.is_empty() {
            let passed = hearback.ports.clock.awake().saturating_sub(self.began);
            let Ok((destination, answer)) = self.heard.recv_timeout(NOTICES_WITHIN.saturating_sub(passed))
            else {
                break;
            };
            self.open.remove(&destination);
            if let Err(error) = answer {
                hearback.note_host(&format!("{destination} could not be told: {error}"));
            }
        }
        for destination in self.open {
            hearback.note_host(&format!("{destination} could not be told: no answer in time"));
        }
    }
}
