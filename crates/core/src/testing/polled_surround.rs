//! Surroundings that really wait, in memory: for the suite of an executor whose targets take time.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::Output;
use crate::port::surroundings::{
    OutputLog, OutsideEvent, Ready, Sources, Surround, SurroundRequest, Surroundings,
};

/// How often a target is polled whose sources only an operating system can wait for.
const POLL_WITHIN: Duration = Duration::from_millis(5);

/// Makes surroundings without files. The log is kept in memory, and the bell is rung by [`ring`](Self::ring).
///
/// They know nothing of the operating system, so that a target is polled instead of waited for.
#[derive(Debug, Clone)]
pub struct PolledSurround(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_rung: bool,
    log: Vec<u8>,
    last_output: Duration,
}

impl Default for PolledSurround {
    #[expect(clippy::disallowed_methods, reason = "this is a clock, for executors that need a real one")]
    fn default() -> Self {
        Self(Arc::new(Shared { began: Instant::now(), state: Mutex::default(), changed: Condvar::new() }))
    }
}

impl PolledSurround {
    /// Rings the bell.
    pub fn ring(&self) {
        self.0.state.lock().unwrap().is_rung = true;
        self.0.changed.notify_all();
    }

    /// What was written to the log.
    pub fn log_bytes(&self) -> Vec<u8> {
        self.0.state.lock().unwrap().log.clone()
    }
}

impl Surround for PolledSurround {
    fn surround(&self, _request: &SurroundRequest<'_>) -> io::Result<Box<dyn Surroundings>> {
        self.0.state.lock().unwrap().last_output = self.0.began.elapsed();
        Ok(Box::new(Polled(self.clone())))
    }
}

impl OutputLog for PolledSurround {
    fn keep(&self, bytes: &[u8]) {
        let mut state = self.0.state.lock().unwrap();
        state.log.extend(bytes);
        state.last_output = self.0.began.elapsed();
    }
}

struct Polled(PolledSurround);

impl Surroundings for Polled {
    fn log(&self) -> Arc<dyn OutputLog> {
        Arc::new(self.0.clone())
    }

    fn last_output(&self) -> Duration {
        self.0.0.state.lock().unwrap().last_output
    }

    fn finish_log(&mut self) -> Output {
        Output { bytes: self.0.log_bytes().len() as u64, ..Output::default() }
    }

    fn take_event(&mut self) -> Option<OutsideEvent> {
        std::mem::take(&mut self.0.0.state.lock().unwrap().is_rung).then_some(OutsideEvent::Bell)
    }

    fn wait(&mut self, sources: &Sources<'_>, deadline: Option<Duration>) -> Option<Ready> {
        let shared = &*self.0.0;
        let left = deadline.map(|deadline| deadline.saturating_sub(shared.began.elapsed()));
        if left == Some(Duration::ZERO) {
            return None;
        }
        let polled = (!sources.list.is_empty()).then_some(POLL_WITHIN);
        let within = [left, sources.poll_within, polled].into_iter().flatten().min();
        let state = shared.state.lock().unwrap();
        let is_quiet = |state: &mut State| !state.is_rung;
        drop(match within {
            Some(within) => shared.changed.wait_timeout_while(state, within, is_quiet).unwrap().0,
            None => shared.changed.wait_while(state, is_quiet).unwrap(),
        });
        let all = (0..sources.list.len()).fold(Ready::NONE, Ready::with);
        Some(all)
    }
}
