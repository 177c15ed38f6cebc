//! Standard output: lines from any thread, in one piece each. A host that does not read makes the threads wait that
//! have something to say, so nothing piles up here.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use hearback::documents::serve::Notification;
use serde::Serialize;

use super::rpc;

/// So many lines wait to be written.
const WAITING_MAX: usize = 32;

/// A host that does not read any more is waited for so long.
const FINISH_WITHIN: Duration = Duration::from_secs(2);

/// What is done once a line was written.
pub(super) type AfterWrite = Box<dyn FnOnce() + Send>;

struct Line {
    text: Vec<u8>,
    after: Option<AfterWrite>,
}

/// The end of the pipe that the threads have.
#[derive(Clone)]
pub(super) struct Pipe(SyncSender<Line>);

impl Pipe {
    /// Starts the thread that writes.
    pub(super) fn start() -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING_MAX);
        Builder::new().name("writer".into()).spawn(move || write(&waiting))?;
        Ok(Self(lines))
    }

    /// Writes a line, after those that wait.
    pub(super) fn say(&self, line: &impl Serialize, after: Option<AfterWrite>) {
        let mut text = serde_json::to_vec(line).unwrap_or_else(|error| rpc::unwritable(&error));
        text.push(b'\n');
        // The thread that writes ends only with this process.
        let _ = self.0.send(Line { text, after });
    }

    /// Waits until what was said so far is written.
    pub(super) fn finish(&self) {
        let (written, is_written) = sync_channel(1);
        let after: AfterWrite = Box::new(move || _ = written.send(()));
        if self.0.send(Line { text: Vec::new(), after: Some(after) }).is_ok() {
            let _ = is_written.recv_timeout(FINISH_WITHIN);
        }
    }

    /// Tells the host something that it did not ask for.
    pub(super) fn notify(&self, notification: &Notification) {
        self.say(&rpc::Notified::new(notification), None);
    }
}

fn write(waiting: &Receiver<Line>) {
    let mut stdout = io::stdout().lock();
    for line in waiting {
        if stdout.write_all(&line.text).and_then(|()| stdout.flush()).is_err() {
            // The host is gone: what it held is free as soon as this process has ended.
            std::process::exit(0);
        }
        if let Some(after) = line.after {
            after();
        }
    }
}
