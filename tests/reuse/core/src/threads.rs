//! An executor: a target is a function of this program, in a thread of its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use hearback_core::port::executor::{Detachment, Executor, RunEvent, Running, StartRequest};
use hearback_core::port::process::SweepReport;
use hearback_core::port::surroundings::{OutputLog, Ready, Sources};
use hearback_core::{CommandLine, Exit, JobId, ProcessIdentity, StartError, StartErrorKind, TargetHandle};
use serde_json::json;

type Function = fn(&Task) -> u32;

/// Runs functions by their names.
pub struct Threads {
    functions: BTreeMap<&'static str, Function>,
    /// What runs, so that it can be swept when its supervisor is gone.
    tasks: Mutex<BTreeMap<JobId, Arc<Task>>>,
}

/// One run of a function, as the function sees it.
pub struct Task {
    output: Arc<dyn OutputLog>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_stopped: bool,
    exit: Option<u32>,
}

impl Task {
    /// Adds to the output of the job.
    pub fn print(&self, text: &str) {
        self.output.keep(text.as_bytes());
    }

    /// Sleeps until the job is to end.
    pub fn wait_for_stop(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !state.is_stopped).unwrap());
    }

    fn stop(&self) {
        self.state.lock().unwrap().is_stopped = true;
        self.changed.notify_all();
    }

    fn exit(&self) -> Option<u32> {
        self.state.lock().unwrap().exit
    }

    /// Waits until the function has returned, and tells whether it has.
    fn ended(&self, within: Duration) -> bool {
        let state = self.state.lock().unwrap();
        let (state, _) =
            self.changed.wait_timeout_while(state, within, |state| state.exit.is_none()).unwrap();
        state.exit.is_some()
    }
}

impl Threads {
    pub fn new(functions: impl IntoIterator<Item = (&'static str, Function)>) -> Self {
        Self { functions: functions.into_iter().collect(), tasks: Mutex::default() }
    }

    fn find(&self, request: &StartRequest<'_>) -> Result<Function, StartError> {
        let refuse = |kind, message: &str| Err(StartError { kind, message: message.into() });
        let CommandLine::Argv(argv) = request.command else {
            return refuse(StartErrorKind::Other, "there is no shell here");
        };
        if request.cwd.to_string() != "/" {
            return refuse(StartErrorKind::BadDirectory, "functions have no directory but `/`");
        }
        let name = argv.first().map(ToString::to_string).unwrap_or_default();
        match self.functions.get(name.as_str()) {
            Some(function) => Ok(*function),
            None => refuse(StartErrorKind::NotFound, "there is no such function"),
        }
    }
}

impl Executor for Threads {
    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
        let function = self.find(request)?;
        let output = Arc::clone(request.output);
        let task = Arc::new(Task { output, state: Mutex::default(), changed: Condvar::new() });
        self.tasks.lock().unwrap().insert(request.job.clone(), Arc::clone(&task));
        let in_thread = Arc::clone(&task);
        let thread = std::thread::spawn(move || {
            let exit = function(&in_thread);
            in_thread.state.lock().unwrap().exit = Some(exit);
            in_thread.changed.notify_all();
        });
        let handle = TargetHandle::new(&json!({ "thread": request.job })).expect("it is an object");
        Ok(Box::new(Thread { handle, task, thread: Some(thread), stage: Stage::Accepted }))
    }

    fn sweep(&self, job: &JobId, _: Option<&TargetHandle>, within: Duration) -> io::Result<SweepReport> {
        let Some(task) = self.tasks.lock().unwrap().remove(job) else { return Ok(SweepReport::default()) };
        let had_ended = task.exit().is_some();
        task.stop();
        let survivors = if task.ended(within) { vec![] } else { vec![me()] };
        let ended = usize::from(!had_ended && survivors.is_empty());
        Ok(SweepReport { ended, survivors, ..SweepReport::default() })
    }
}

/// What a supervisor holds of a function that runs.
struct Thread {
    handle: TargetHandle,
    task: Arc<Task>,
    thread: Option<JoinHandle<()>>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Accepted,
    Runs,
    Exited,
    Empty,
}

impl Running for Thread {
    fn handle(&self) -> &TargetHandle {
        &self.handle
    }

    fn detachment(&self) -> Detachment {
        // It survives a terminal that closes, and ends with this process.
        Detachment { survives: vec!["terminal".into()], bound_to: Some("this process".into()) }
    }

    fn sources(&self) -> Sources<'_> {
        // A thread is nothing that the system could wait for together with the rest.
        Sources { list: vec![], poll_within: Some(Duration::from_millis(5)) }
    }

    fn poll(&mut self, _: Ready) -> Option<RunEvent> {
        let (stage, event) = match (self.stage, self.task.exit()) {
            (Stage::Accepted, _) => (Stage::Runs, RunEvent::Started),
            (Stage::Runs, Some(code)) => {
                self.thread.take().map(JoinHandle::join);
                (Stage::Exited, RunEvent::Exited { exit: Exit::Exited { code }, usage: None })
            }
            (Stage::Exited, _) => (Stage::Empty, RunEvent::Emptied),
            (Stage::Runs | Stage::Empty, _) => return None,
        };
        self.stage = stage;
        Some(event)
    }

    fn terminate(&mut self) {
        self.task.stop();
    }

    /// No thread can be ended against its will: one that does not return is reported.
    fn kill(&mut self, within: Duration) -> Vec<ProcessIdentity> {
        self.task.stop();
        self.task.ended(within);
        self.members()
    }

    fn members(&mut self) -> Vec<ProcessIdentity> {
        if self.task.exit().is_some() { vec![] } else { vec![me()] }
    }

    fn suspicion(&self) -> Option<String> {
        None
    }

    fn drain(&mut self) {}
}

/// The process that a thread runs in. It is only shown: this executor signals no process.
fn me() -> ProcessIdentity {
    ProcessIdentity { pid: std::process::id(), started: 0, boot: None, scope: None }
}
