//! Notices about the end of a monitor: sent all at once, and awaited for a bounded time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use hearback_core::Notice;
use hearback_core::port::sink::{DeliveryContext, SinkReply};
use tracing::warn;

use super::monitor::Monitor;

/// How long notices may take, however long the sink that takes them may.
const WITHIN: Duration = Duration::from_secs(5);

/// Notices that are on their way.
pub(super) struct Notices {
    heard: Receiver<(String, Result<(), String>)>,
    /// Destinations that have not answered.
    open: HashSet<String>,
    began: Duration,
}

impl Notices {
    /// Sends notices out. None of them is waited for now.
    pub(super) fn send(monitor: &Arc<Monitor>, notices: Vec<Notice>) -> Self {
        let (sender, heard) = channel();
        let mut sent = Self { heard, open: HashSet::new(), began: monitor.ports.clock.awake() };
        let Some(name) = &monitor.policy.notice_sink else { return sent };
        for notice in notices {
            sent.open.insert(notice.destination.clone());
            let (monitor, name, sender) = (Arc::clone(monitor), name.clone(), sender.clone());
            // One that cannot be sent for want of a thread is reported as one without an answer.
            let _ = Builder::new().spawn(move || {
                let destination = notice.destination.clone();
                let _ = sender.send((destination, deliver(&monitor, &name, notice)));
            });
        }
        sent
    }

    /// Waits for what is left of their time, and notes which did not arrive.
    pub(super) fn finish(mut self, monitor: &Monitor) {
        while !self.open.is_empty() {
            let passed = monitor.ports.clock.awake().saturating_sub(self.began);
            let Ok((destination, answer)) = self.heard.recv_timeout(WITHIN.saturating_sub(passed)) else {
                break;
            };
            self.open.remove(&destination);
            if let Err(error) = answer {
                warn!(destination, error, "notice not delivered");
            }
        }
        for destination in self.open {
            warn!(destination, error = "no answer in time", "notice not delivered");
        }
    }
}

fn deliver(monitor: &Monitor, name: &str, notice: Notice) -> Result<(), String> {
    let mark = monitor.ports.sessions.mint(monitor.ports.clock.wall());
    let context = DeliveryContext { mark, turn: None, receipts: Vec::new() };
    let reply = monitor.sinks.find(name).and_then(|sink| sink.deliver(&notice.into(), &context));
    match reply {
        Ok(SinkReply::Delivered) => Ok(()),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}
