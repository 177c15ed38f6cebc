//! The turns that this process runs, and whether it takes any more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hearback_core::{JobId, Session};

/// A turn that this process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTurn {
    /// Whose.
    pub session: Session,
    /// Which.
    pub turn: u32,
    /// By which its processes are known.
    pub mark: JobId,
    /// Where the host shows what the agent says; by default every session is a place of its own.
    pub destination: String,
}

/// The turns that this process runs, and whether it takes any more. Whoever drains it waits here.
#[derive(Debug, Default)]
pub struct ActiveTurns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    turns: Vec<ActiveTurn>,
    /// How many are still recording what came of their turn.
    recording: usize,
    stopping: bool,
}

/// Held by whoever has to record what came of a turn, from before it begins.
#[derive(Debug)]
pub struct Recording<'a>(&'a ActiveTurns);

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.0.state().recording -= 1;
        self.0.changed.notify_all();
    }
}

impl ActiveTurns {
    /// Says that something of a turn is to be recorded after it, which whoever stops this process waits for.
    pub(crate) fn recording(&self) -> Recording<'_> {
        self.state().recording += 1;
        Recording(self)
    }

    /// Sleeps until everything is recorded that is to be, but not longer than `within`.
    pub fn wait_for_records(&self, within: Duration) {
        let is_open = |state: &mut State| state.recording > 0;
        drop(self.changed.wait_timeout_while(self.state(), within, is_open));
    }

    /// Takes note of a turn that is about to begin; tells whether it may.
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

    /// Lets turns begin, as from the start.
    pub fn start(&self) {
        self.state().stopping = false;
    }

    /// Lets no further turn begin, and tells which are under way.
    pub fn stop(&self) -> Vec<ActiveTurn> {
        let mut state = self.state();
        state.stopping = true;
        state.turns.clone()
    }

    /// Whether no further turn begins.
    pub fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    /// Sleeps until none of those is left that `awaited` says yes to, or `within` has passed; tells who is left of all.
    /// Without a limit it takes as long as it takes.
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

    /// A thread that panicked with it left a list that is whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
