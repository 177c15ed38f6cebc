//! The turns that this process runs, and whether it takes any more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hearback_core::{JobId, Session};

/// A turn that this process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTurn {
    /// Its session.
    pub session: Session,
    /// Its number.
    pub turn: u32,
    /// The mark that its processes carry.
    pub mark: JobId,
    /// Where the host shows what the agent says; by default every session is a place of its own.
    pub destination: String,
}

/// The turns that this process runs, and whether it takes any more. A drain waits here.
#[derive(Debug, Default)]
pub struct ActiveTurns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    turns: Vec<ActiveTurn>,
    /// How many threads are still recording the result of a turn.
    recording: usize,
    stopping: bool,
}

/// Held by a thread that records the result of a turn, from before the turn begins.
#[derive(Debug)]
pub struct Recording<'a>(&'a ActiveTurns);

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.0.state().recording -= 1;
        self.0.changed.notify_all();
    }
}

impl ActiveTurns {
    /// Notes that the result of a turn has to be recorded after it. A drain waits for that record.
    pub(crate) fn recording(&self) -> Recording<'_> {
        self.state().recording += 1;
        Recording(self)
    }

    /// Sleeps until all results of turns are recorded, but not longer than `within`.
    pub fn wait_for_records(&self, within: Duration) {
        let is_open = |state: &mut State| state.recording > 0;
        drop(self.changed.wait_timeout_while(self.state(), within, is_open));
    }

    /// Adds a turn that is about to begin; returns whether it may begin.
    pub(super) fn begin(&self, turn: ActiveTurn) -> bool {
        let mut state = self.state();
        if !state.stopping {
            state.turns.push(turn);
        }
        !state.stopping
    }

    pub(super) fn end(&self, session: &Session, turn: u32) {
        self.state().turns.retain(|active| (&active.session, active.turn) != (session, turn));
        self.changed.notify_all();
    }

    /// Adds a turn that another process runs, so that a drain waits for it; tells whether it is new here.
    pub(crate) fn adopt(&self, turn: ActiveTurn) -> bool {
        let mut state = self.state();
        let is_new = !state.turns.contains(&turn);
        if is_new {
            state.turns.push(turn);
        }
        is_new
    }

    /// A turn that was adopted is over.
    pub(crate) fn release(&self, turn: &ActiveTurn) {
        self.end(&turn.session, turn.turn);
    }

    /// Allows turns to begin.
    pub fn start(&self) {
        self.state().stopping = false;
    }

    /// Allows no further turn to begin, and returns those in progress.
    pub fn stop(&self) -> Vec<ActiveTurn> {
        let mut state = self.state();
        state.stopping = true;
        state.turns.clone()
    }

    /// Whether no further turn begins.
    pub fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    /// Sleeps until no turn is left for which `awaited` is true, or `within` has passed. Returns all turns that are
    /// left. Without `within` there is no limit.
    pub fn wait(&self, within: Option<Duration>, awaited: impl Fn(&ActiveTurn) -> bool) -> Vec<ActiveTurn> {
        let is_waiting = |state: &mut State| state.turns.iter().any(&awaited);
        let state = self.state();
        let state = match within {
            Some(within) => {
                let waited = self.changed.wait_timeout_while(state, within, is_waiting);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait_while(state, is_waiting).unwrap_or_else(PoisonError::into_inner),
        };
        state.turns.clone()
    }

    /// A thread that panicked while it held the lock has not damaged the list.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
