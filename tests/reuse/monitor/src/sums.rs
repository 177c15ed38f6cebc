//! An executor: `add` adds its arguments and exits with the sum, `count` counts until it is ended.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hearback_core::port::executor::{Detachment, Executor, RunEvent, Running, StartRequest};
use hearback_core::port::process::SweepReport;
use hearback_core::port::surroundings::{Ready, Sources};
use hearback_core::{CommandLine, Exit, JobId, ProcessIdentity, StartError, StartErrorKind, TargetHandle};

#[derive(Clone, Default)]
pub struct Sums {
    swept: Arc<Mutex<Vec<JobId>>>,
}

impl Sums {
    /// The jobs that were swept.
    pub fn swept(&self) -> Vec<JobId> {
        self.swept.lock().unwrap().clone()
    }
}

impl Executor for Sums {
    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
        let refused = |message: &str| StartError { kind: StartErrorKind::NotFound, message: message.into() };
        let CommandLine::Argv(argv) = request.command else { return Err(refused("only words are known")) };
        let words: Vec<_> = argv.iter().map(ToString::to_string).collect();
        let exit = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["add", ref numbers @ ..] => Some(numbers.iter().flat_map(|number| number.parse::<u32>()).sum()),
            ["count"] => None,
            _ => return Err(refused("sums are `add` and `count`")),
        };
        if let Some(sum) = exit {
            request.output.keep(format!("{sum}\n").as_bytes());
        }
        let handle = TargetHandle::new(&serde_json::json!({ "sum": words })).expect("it is an object");
        Ok(Box::new(Sum { handle, exit, reported: 0 }))
    }

    /// A sum ends with its supervisor, so that nothing is left.
    fn sweep(&self, job: &JobId, _: Option<&TargetHandle>, _: Duration) -> io::Result<SweepReport> {
        self.swept.lock().unwrap().push(job.clone());
        Ok(SweepReport::default())
    }
}

struct Sum {
    handle: TargetHandle,
    exit: Option<u32>,
    /// How many events were reported.
    reported: u32,
}

impl Running for Sum {
    fn handle(&self) -> &TargetHandle {
        &self.handle
    }

    fn detachment(&self) -> Detachment {
        Detachment::default()
    }

    fn sources(&self) -> Sources<'_> {
        Sources { list: vec![], poll_within: Some(Duration::from_millis(5)) }
    }

    fn poll(&mut self, _: Ready) -> Option<RunEvent> {
        let event = match (self.reported, self.exit) {
            (0, _) => RunEvent::Started,
            (1, Some(code)) => RunEvent::Exited { exit: Exit::Exited { code }, usage: None },
            (2, _) => RunEvent::Emptied,
            _ => return None,
        };
        self.reported += 1;
        Some(event)
    }

    fn terminate(&mut self) {
        self.exit.get_or_insert(1);
    }

    fn kill(&mut self, _: Duration) -> Vec<ProcessIdentity> {
        self.terminate();
        vec![]
    }

    fn members(&mut self) -> Vec<ProcessIdentity> {
        vec![]
    }

    fn suspicion(&self) -> Option<String> {
        None
    }

    fn drain(&mut self) {}
}
