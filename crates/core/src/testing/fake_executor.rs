//! Targets that follow a script of events.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::sample;
use super::suite::Commands;
use crate::port::executor::{Detachment, Executor, Executors, RunEvent, Running, StartRequest};
use crate::port::process::SweepReport;
use crate::port::surroundings::{OutputLog, Ready, Sources};
use crate::{CommandLine, Exit, JobId, OsText, ProcessIdentity, StartError, StartErrorKind, TargetHandle};

/// What a fake target does.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Refuses to start, once for each of these.
    pub refuse: VecDeque<StartError>,
    /// What it prints before anything happens to it.
    pub prints: Vec<u8>,
    /// What happens after it has started, in order.
    pub events: VecDeque<RunEvent>,
    /// What is left of the tree after the main process.
    pub leftovers: Vec<ProcessIdentity>,
    /// Whether the tree ends when it is killed.
    pub kill_works: bool,
    /// Whether the main process runs until it is terminated or killed, and reports that.
    pub sleeps: bool,
    /// Every call, by name.
    pub calls: Vec<&'static str>,
    /// The jobs that were swept, in order.
    pub sweeps: Vec<JobId>,
    /// Where the processes of all jobs are, if no sweep can see them.
    pub out_of_sight: Option<String>,
}

/// Starts targets that follow one shared script, or that are the [commands](FakeExecutor::commands) of the suite.
#[derive(Debug, Clone, Default)]
pub struct FakeExecutor(pub Arc<Mutex<Script>>);

impl FakeExecutor {
    /// An executor whose targets follow this script.
    pub fn plays(script: Script) -> Self {
        Self(Arc::new(Mutex::new(script)))
    }

    /// The calls so far, by name.
    pub fn calls(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().calls.clone()
    }

    /// The jobs that were swept, in order.
    pub fn sweeps(&self) -> Vec<JobId> {
        self.0.lock().unwrap().sweeps.clone()
    }

    /// Puts the processes of all jobs where no sweep can see them, or back.
    pub fn out_of_sight(&self, place: Option<&str>) {
        self.0.lock().unwrap().out_of_sight = place.map(str::to_owned);
    }

    /// Commands that it knows how to run, for the suite of executors.
    pub fn commands() -> Commands {
        let argv = |program: &str| CommandLine::Argv(vec![program.into()]);
        Commands {
            hello_then_3: argv("fake:hello"),
            sleeper: argv("fake:sleeper"),
            sleeper_hears: true,
            missing: argv("fake:missing"),
            cwd: "/".into(),
            no_such_dir: "/nowhere".into(),
        }
    }

    /// What the commands of the suite do; nothing for any other, which follows the script.
    fn known(command: &CommandLine, cwd: &OsText) -> Option<Result<Script, StartError>> {
        let CommandLine::Argv(argv) = command else { return None };
        let refused = |kind| Some(Err(StartError { kind, message: "refused by the fake".into() }));
        let exit = Exit::Exited { code: 3 };
        match argv.first()?.to_string().as_str() {
            "fake:missing" => refused(StartErrorKind::NotFound),
            name if name.starts_with("fake:") && *cwd == Self::commands().no_such_dir => {
                refused(StartErrorKind::BadDirectory)
            }
            "fake:hello" => Some(Ok(Script {
                prints: b"hello\n".into(),
                events: [RunEvent::Exited { exit, usage: None }, RunEvent::Emptied].into(),
                ..Script::default()
            })),
            "fake:sleeper" => {
                let leftovers = vec![sample::process(101)];
                Some(Ok(Script { leftovers, sleeps: true, kill_works: true, ..Script::default() }))
            }
            _ => None,
        }
    }
}

/// As `local`, and the only one.
impl From<FakeExecutor> for Executors {
    fn from(executor: FakeExecutor) -> Self {
        Self::local(executor)
    }
}

impl Executor for FakeExecutor {
    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
        let script = match Self::known(request.command, request.cwd) {
            Some(known) => Arc::new(Mutex::new(known?)),
            None => Arc::clone(&self.0),
        };
        let prints = {
            let mut script = script.lock().unwrap();
            script.calls.push("start");
            if let Some(error) = script.refuse.pop_front() {
                return Err(error);
            }
            std::mem::take(&mut script.prints)
        };
        Ok(Box::new(FakeRunning {
            handle: TargetHandle::of_process(&sample::process(101)),
            output: Arc::clone(request.output),
            prints,
            started: false,
            script,
        }))
    }

    fn sweep(
        &self,
        job: &JobId,
        _handle: Option<&TargetHandle>,
        _within: Duration,
    ) -> io::Result<SweepReport> {
        let mut script = self.0.lock().unwrap();
        script.sweeps.push(job.clone());
        Ok(SweepReport { out_of_sight: script.out_of_sight.clone(), ..SweepReport::default() })
    }
}

/// A target without a process.
pub struct FakeRunning {
    handle: TargetHandle,
    output: Arc<dyn OutputLog>,
    prints: Vec<u8>,
    started: bool,
    script: Arc<Mutex<Script>>,
}

impl std::fmt::Debug for FakeRunning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeRunning").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl FakeRunning {
    /// Lets the whole tree of a sleeper end as if it had been signalled.
    fn end_sleeper(script: &mut Script, signal: i32) {
        if !std::mem::take(&mut script.sleeps) {
            return;
        }
        let exit = Exit::Signaled { signal, core: false };
        script.leftovers.clear();
        script.events = [RunEvent::Exited { exit, usage: None }, RunEvent::Emptied].into();
    }
}

impl Running for FakeRunning {
    fn handle(&self) -> &TargetHandle {
        &self.handle
    }
    fn detachment(&self) -> Detachment {
        Detachment { survives: vec!["parent".into()], bound_to: Some("fake.service".into()) }
    }
    fn sources(&self) -> Sources<'_> {
        Sources::default()
    }
    fn poll(&mut self, _ready: Ready) -> Option<RunEvent> {
        if !std::mem::replace(&mut self.started, true) {
            return Some(RunEvent::Started);
        }
        self.drain();
        self.script.lock().unwrap().events.pop_front()
    }
    fn terminate(&mut self) {
        let mut script = self.script.lock().unwrap();
        script.calls.push("terminate");
        Self::end_sleeper(&mut script, 15);
    }
    fn kill(&mut self, _within: Duration) -> Vec<ProcessIdentity> {
        let mut script = self.script.lock().unwrap();
        script.calls.push("kill");
        Self::end_sleeper(&mut script, 9);
        if script.kill_works {
            script.leftovers.clear();
        }
        script.leftovers.clone()
    }
    fn members(&mut self) -> Vec<ProcessIdentity> {
        self.script.lock().unwrap().leftovers.clone()
    }
    fn suspicion(&self) -> Option<String> {
        None
    }
    fn drain(&mut self) {
        let prints = std::mem::take(&mut self.prints);
        if !prints.is_empty() {
            self.output.keep(&prints);
        }
    }
}
