//! A launcher that is started to be ended: alone, with its window, or with everything that is in its Job Object.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use hearback_core::finding::{LauncherEnd, Tried};

use super::executor::create;
use super::job::{Job, LETS_GO};
use super::process::{Created, Creation, Streams};
use super::terminal::Terminal;
use super::{command_line, detach, environment, identity, system, tree};
use crate::probe::RehearsalRequest;

/// What the terminal of a process is called in that process.
pub(crate) const TERMINAL: &str = "CONOUT$";
/// More than any answer needs.
const MAX_LINE: usize = 4096;
/// How long a launcher that is not needed any more may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// The size of a window, which is not shown.
const WINDOW: (u16, u16) = (80, 25);

pub(crate) struct Rehearsal {
    launcher: Created,
    /// Where it is, if its window is to be closed.
    terminal: Option<Terminal>,
    /// What is nearest to a process group here. Its processes may leave it, as they may leave the job of a terminal.
    group: Job,
    how: LauncherEnd,
    told: Receiver<io::Result<String>>,
    /// Its input ends when we do, and then it ends, too.
    _input: PipeWriter,
}

impl Rehearsal {
    pub(crate) fn begin(request: &RehearsalRequest) -> Tried<Self> {
        let terminal = match request.how {
            LauncherEnd::Terminal => match Terminal::open(WINDOW.0, WINDOW.1) {
                Ok(terminal) => Some(terminal),
                Err(error) => return Tried::untried(format!("no terminal can be made here: {error}")),
            },
            LauncherEnd::Parent | LauncherEnd::ProcessGroup => None,
        };
        spawn(request, terminal).into()
    }

    pub(crate) fn hear(&mut self, within: Duration) -> io::Result<String> {
        self.told.recv_timeout(within).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the launcher reports nothing"))
            }
            RecvTimeoutError::Disconnected => Err(io::Error::other("it was heard already")),
        })
    }

    pub(crate) fn end_launcher(&mut self, within: Duration) -> io::Result<()> {
        match self.how {
            LauncherEnd::ProcessGroup => self.group.terminate()?,
            LauncherEnd::Terminal => drop(self.terminal.take()),
            LauncherEnd::Parent => {
                tree::end_by_force(&identity::identity(&self.launcher.process, self.launcher.pid)?)?;
            }
        }
        match identity::has_ended(&self.launcher.process, Some(within))? {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::TimedOut, "the launcher itself survived it")),
        }
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        let _ = self.group.terminate();
        // What it has open cannot be removed before.
        let _ = identity::has_ended(&self.launcher.process, Some(GONE_WITHIN));
    }
}

fn spawn(request: &RehearsalRequest, terminal: Option<Terminal>) -> io::Result<Rehearsal> {
    let (input, tells) = io::pipe()?;
    let (hears, output) = io::pipe()?;
    let streams = Streams { input: input.into(), output: output.into(), error: Some(detach::null()?) };
    let line = command_line::command_line(request.program.as_os_str(), &request.arguments)?;
    let group = Job::new()?;
    // As those do that most terminals and agents have.
    group.limit(LETS_GO)?;
    let cwd = std::env::current_dir()?;
    let launcher = match &terminal {
        None => create(&request.program, &line, &cwd, [], streams, &group)?,
        Some(_) => {
            system::show_no_dialogs();
            let environment = environment::block([])?;
            let (program, job, terminal) = (&*request.program, Some(&group), terminal.as_ref());
            let creation = Creation {
                program,
                line: &line,
                environment: &environment,
                cwd: &cwd,
                streams,
                job,
                terminal,
            };
            creation.create(0)?
        }
    };
    let (sender, told) = channel();
    // Ends with the launcher, which has the other end.
    std::thread::spawn(move || sender.send(line_of(hears)));
    Ok(Rehearsal { launcher, terminal, group, how: request.how, told, _input: tells })
}

fn line_of(mut pipe: PipeReader) -> io::Result<String> {
    let (mut line, mut bytes) = (Vec::new(), [0; 256]);
    loop {
        let read = pipe.read(&mut bytes)?;
        line.extend_from_slice(&bytes[..read]);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return String::from_utf8(line).map_err(io::Error::other);
        }
        if read == 0 || line.len() > MAX_LINE {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the launcher ended without a word"));
        }
    }
}
