//! A launcher that is started to be struck: ended alone, or with everything that is in its Job Object.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use hearback_core::finding::{Blow, Tried};

use super::executor::create;
use super::job::Job;
use super::process::{Created, Streams};
use super::{command_line, detach, identity, tree};
use crate::probe::RehearsalRequest;

/// More than any answer needs.
const MAX_LINE: usize = 4096;
/// How long a launcher that is not needed any more may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(1);

pub(crate) struct Rehearsal {
    launcher: Created,
    /// What is nearest to a process group here. It lets go of whoever asks, as the job of a terminal should.
    group: Job,
    blow: Blow,
    told: Receiver<io::Result<String>>,
    /// Its input ends when we do, and then it ends, too.
    _input: PipeWriter,
}

impl Rehearsal {
    pub(crate) fn begin(request: &RehearsalRequest) -> Tried<Self> {
        match request.blow {
            Blow::Terminal => Tried::untried("a window is closed by a person here, and by nobody else"),
            Blow::Parent | Blow::ProcessGroup => spawn(request).into(),
        }
    }

    pub(crate) fn hear(&mut self, within: Duration) -> io::Result<String> {
        self.told.recv_timeout(within).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the launcher says nothing"))
            }
            RecvTimeoutError::Disconnected => Err(io::Error::other("it was heard already")),
        })
    }

    pub(crate) fn strike(&mut self, within: Duration) -> io::Result<()> {
        match self.blow {
            Blow::ProcessGroup => self.group.terminate()?,
            Blow::Parent | Blow::Terminal => {
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

fn spawn(request: &RehearsalRequest) -> io::Result<Rehearsal> {
    let (input, tells) = io::pipe()?;
    let (hears, output) = io::pipe()?;
    let streams = Streams { input: input.into(), output: output.into(), error: Some(detach::null()?) };
    let line = command_line::command_line(request.program.as_os_str(), &request.arguments)?;
    let group = Job::new()?;
    let launcher = create(&request.program, &line, &std::env::current_dir()?, [], streams, &group)?;
    let (sender, told) = channel();
    // Ends with the launcher, which has the other end.
    std::thread::spawn(move || sender.send(line_of(hears)));
    Ok(Rehearsal { launcher, group, blow: request.blow, told, _input: tells })
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
