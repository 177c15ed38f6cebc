//! The wire between a launcher and its supervisor: one word down, one line of JSON up, over standard streams. A command
//! with secrets, which is recorded nowhere, goes down as a line of JSON before the word.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use hearback_core::CommandLine;
use hearback_core::port::process::{
    LaunchAnswer, LaunchSignal, LauncherLink, SupervisorLink, SupervisorReply,
};

use crate::sys;

const DURABLE: &[u8] = b"durable\n";
const FAILED: &[u8] = b"failed\n";
const COMMAND: &[u8] = b"command ";
/// More than any answer needs; a process that sends more is no supervisor.
const MAX_ANSWER: u64 = 64 * 1024;

/// The launcher's end.
pub(crate) struct PipeLink<W> {
    down: Option<W>,
    up: Receiver<Option<LaunchAnswer>>,
}

impl<W: Write> PipeLink<W> {
    /// Takes both pipes. A thread waits for the answer, so that the wait can have an end on every system.
    pub(crate) fn new(down: W, up: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = channel();
        std::thread::Builder::new().spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(up.take(MAX_ANSWER)).read_line(&mut line);
            let answer = read.ok().and_then(|_| LaunchAnswer::from_line(&line));
            let _ = sender.send(answer); // The launcher may have stopped waiting.
        })?;
        Ok(Self { down: Some(down), up: receiver })
    }
}

impl<W: Write + Send + 'static> SupervisorLink for PipeLink<W> {
    fn hand_over(&mut self, command: &CommandLine, within: Duration) -> io::Result<()> {
        let Some(mut down) = self.down.take() else { return Ok(()) };
        let line = [COMMAND, command.to_line().as_bytes(), b"\n"].concat();
        let (sender, receiver) = channel();
        // A command may be larger than a pipe, and a supervisor may be paused.
        std::thread::Builder::new().spawn(move || {
            let written = down.write_all(&line);
            let _ = sender.send((down, written)); // The launcher may have stopped waiting.
        })?;
        let (down, written) = receiver.recv_timeout(within).map_err(|_| io::ErrorKind::TimedOut)?;
        self.down = Some(down);
        written
    }

    fn tell(&mut self, word: LaunchSignal) -> io::Result<()> {
        let Some(mut down) = self.down.take() else { return Ok(()) };
        match word {
            LaunchSignal::Durable => down.write_all(DURABLE),
            LaunchSignal::Failed => down.write_all(FAILED),
            LaunchSignal::Gone => Ok(()),
        }
    }

    fn hear(&mut self, within: Duration) -> SupervisorReply {
        match self.up.recv_timeout(within) {
            Ok(Some(answer)) => SupervisorReply::Answer(answer),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => SupervisorReply::Gone,
            Err(RecvTimeoutError::Timeout) => SupervisorReply::Silence,
        }
    }
}

/// The supervisor's end: its standard input and output, until it has answered. Read and written without the buffers
/// of the standard library, which would stay for the rest of a supervisor's life.
#[derive(Debug, Default)]
pub struct StdioWire {
    command: Option<CommandLine>,
}

impl LauncherLink for StdioWire {
    fn word(&mut self) -> LaunchSignal {
        let (mut read, mut block) = (Vec::new(), [0; 512]);
        loop {
            if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = read.drain(..=end).collect();
                let command = || CommandLine::from_line(line.strip_prefix(COMMAND)?);
                match &line[..] {
                    DURABLE => return LaunchSignal::Durable,
                    FAILED => return LaunchSignal::Failed,
                    _ => self.command = command(),
                }
                continue;
            }
            match sys::detach::read_standard_input(&mut block) {
                // A line that was cut short is no word: its launcher is gone.
                Ok(0) => return LaunchSignal::Gone,
                Ok(n) => read.extend_from_slice(&block[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return LaunchSignal::Gone,
            }
        }
    }

    fn command(&mut self) -> Option<CommandLine> {
        self.command.take()
    }

    fn answer(&mut self, answer: &LaunchAnswer) {
        let mut line = answer.to_line();
        line.push('\n');
        // A launcher that is gone needs no answer.
        let _ = sys::detach::write_standard_output(line.as_bytes());
        sys::detach::close_standard_streams();
    }
}
