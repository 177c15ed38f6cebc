//! A target that follows a script of events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::port::executor::{Detachment, Executor, RunEvent, Running, StartRequest};
use crate::{Output, ProcessIdentity, StartError};

/// What a fake target does.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Refuses to start, once for each of these.
    pub refuse: VecDeque<StartError>,
    /// What happens, in order. When there is nothing left, the supervisor's own code panics: a bug on demand.
    pub events: VecDeque<RunEvent>,
    /// What is left of the tree after the main process.
    pub leftovers: Vec<ProcessIdentity>,
    /// Whether leftovers end when they are forced.
    pub force_works: bool,
    /// When it last printed.
    pub last_output: Duration,
    /// Every call, by name.
    pub calls: Vec<&'static str>,
}

/// Starts targets that follow one shared script.
#[derive(Debug, Clone, Default)]
pub struct FakeExecutor(pub Arc<Mutex<Script>>);

impl Executor for FakeExecutor {
    fn start(&self, _request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
        let mut script = self.0.lock().unwrap();
        script.calls.push("start");
        match script.refuse.pop_front() {
            Some(error) => Err(error),
            None => Ok(Box::new(FakeRunning {
                process: super::sample::process(101),
                script: Arc::clone(&self.0),
            })),
        }
    }
}

/// A target without a process.
#[derive(Debug)]
pub struct FakeRunning {
    process: ProcessIdentity,
    script: Arc<Mutex<Script>>,
}

impl Running for FakeRunning {
    fn process(&self) -> &ProcessIdentity {
        &self.process
    }
    fn detachment(&self) -> Detachment {
        Detachment { survives: vec!["parent".into()], bound_to: Some("fake.service".into()) }
    }
    fn next(&mut self, _deadline: Option<Duration>) -> RunEvent {
        let next = self.script.lock().unwrap().events.pop_front();
        next.expect("the script has come to its end")
    }
    fn ask(&mut self) {
        self.script.lock().unwrap().calls.push("ask");
    }
    fn force(&mut self, _within: Duration) -> Vec<ProcessIdentity> {
        let mut script = self.script.lock().unwrap();
        script.calls.push("force");
        if script.force_works {
            script.leftovers.clear();
        }
        script.leftovers.clone()
    }
    fn last_output(&self) -> Duration {
        self.script.lock().unwrap().last_output
    }
    fn members(&mut self) -> Vec<ProcessIdentity> {
        self.script.lock().unwrap().leftovers.clone()
    }
    fn suspicion(&self) -> Option<String> {
        None
    }
    fn drain(&mut self) -> Output {
        Output { bytes: 5, ..Output::default() }
    }
}
