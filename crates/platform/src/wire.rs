//! The wire between a launcher and its supervisor: one word down, one line of JSON up, over standard streams.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use hearback_core::port::process::{
    LaunchAnswer, LaunchSignal, LauncherLink, SupervisorLink, SupervisorReply,
};

use crate::sys;

const DURABLE: &[u8] = b"durable\n";
const FAILED: &[u8] = b"failed\n";
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

impl<W: Write> SupervisorLink for PipeLink<W> {
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
pub struct StdioWire(());

impl LauncherLink for StdioWire {
    fn word(&mut self) -> LaunchSignal {
        let mut line = [0; 16];
        let mut read = 0;
        while !line[..read].ends_with(b"\n") && read < line.len() {
            match sys::detach::read_standard_input(&mut line[read..]) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // A line that was cut short is no word: its launcher is gone.
        match &line[..read] {
            DURABLE => LaunchSignal::Durable,
            FAILED => LaunchSignal::Failed,
            _ => LaunchSignal::Gone,
        }
    }

    fn answer(&mut self, answer: &LaunchAnswer) {
        let mut line = answer.to_line();
        line.push('\n');
        // A launcher that is gone needs no answer.
        let _ = sys::detach::write_standard_output(line.as_bytes());
        sys::detach::close_standard_streams();
    }
}
