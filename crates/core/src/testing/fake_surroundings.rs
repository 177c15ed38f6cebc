//! Surroundings that follow a script of events.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::Output;
use crate::port::surroundings::{
    OutputLog, OutsideEvent, Ready, Sources, Surround, SurroundRequest, Surroundings,
};

/// What a supervisor hears of its surroundings while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// An event.
    Event(OutsideEvent),
    /// The deadline of the wait passes.
    Deadline,
}

/// Makes surroundings that follow one shared script. When a wait finds nothing left in it, the supervisor's own code
/// panics: a bug on demand.
#[derive(Debug, Clone, Default)]
pub struct FakeSurround {
    /// What is heard, in order.
    pub heard: Arc<Mutex<VecDeque<Heard>>>,
    /// Whether there are no surroundings to be had.
    pub refuse: bool,
    /// Every deadline passes at once when nothing is left to be heard.
    pub hurry: bool,
    /// What was written to the log.
    pub log: FakeLog,
}

impl FakeSurround {
    /// Surroundings in which this is heard.
    pub fn hears(heard: impl IntoIterator<Item = Heard>) -> Self {
        Self { heard: Arc::new(Mutex::new(heard.into_iter().collect())), ..Self::default() }
    }
}

impl Surround for FakeSurround {
    fn surround(&self, _request: &SurroundRequest<'_>) -> io::Result<Box<dyn Surroundings>> {
        if self.refuse {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(Box::new(FakeSurroundings(self.clone())))
    }
}

/// A log in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct FakeLog(Arc<Mutex<Vec<u8>>>);

impl FakeLog {
    /// What was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl OutputLog for FakeLog {
    fn keep(&self, bytes: &[u8]) {
        self.0.lock().unwrap().extend(bytes);
    }
}

/// Surroundings without a machine.
#[derive(Debug)]
pub struct FakeSurroundings(FakeSurround);

impl Surroundings for FakeSurroundings {
    fn log(&self) -> Arc<dyn OutputLog> {
        Arc::new(self.0.log.clone())
    }
    fn last_output(&self) -> Duration {
        Duration::ZERO
    }
    fn finish_log(&mut self) -> Output {
        Output { bytes: self.0.log.bytes().len() as u64, ..Output::default() }
    }
    fn take_event(&mut self) -> Option<OutsideEvent> {
        let mut heard = self.0.heard.lock().unwrap();
        match heard.front() {
            Some(Heard::Event(event)) => {
                let event = *event;
                heard.pop_front();
                Some(event)
            }
            _ => None,
        }
    }
    fn wait(&mut self, _sources: &Sources<'_>, deadline: Option<Duration>) -> Option<Ready> {
        let mut heard = self.0.heard.lock().unwrap();
        match heard.pop_front() {
            Some(Heard::Deadline) => None,
            Some(event) => {
                heard.push_front(event);
                Some(Ready::NONE)
            }
            None if self.0.hurry && deadline.is_some() => None,
            None => panic!("the script has come to its end"),
        }
    }
}
