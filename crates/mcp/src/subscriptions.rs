//! Watching resources for a client: one thread for each, which sleeps until its job changes.

use std::sync::Arc;
use std::time::Duration;

use hearback::{CancelWait, Hearback, Job};
use tokio::sync::mpsc::UnboundedSender;
use tracing::warn;

use crate::resources::{Address, Part};

/// How soon a watch notices that it is not wanted any more.
const NOTICE_WITHIN: Duration = Duration::from_secs(1);
/// A job that prints without a pause is reported this often.
const NOT_MORE_OFTEN_THAN: Duration = Duration::from_millis(200);

/// A watch, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    stop: CancelWait,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What of a resource a client can see to have changed.
#[derive(Debug, Clone, PartialEq)]
struct Fingerprint {
    state: &'static str,
    bytes: Option<u64>,
}

impl Fingerprint {
    fn of(job: &Job, part: Part) -> Self {
        // The record is not news whenever a line is printed.
        let bytes = (part == Part::Log).then_some(job.view.output.bytes);
        Self { state: job.view.state.as_str(), bytes }
    }
}

/// Reports each change of a resource that follows after this call.
pub(crate) fn watch(
    hearback: &Arc<Hearback>,
    address: Address,
    changed: UnboundedSender<Address>,
) -> Watching {
    let stop = CancelWait::new();
    let (hearback, stopped) = (Arc::clone(hearback), stop.clone());
    let thread = std::thread::Builder::new().name("watch".to_owned());
    let spawned = thread.spawn(move || {
        if let Err(error) = report(&hearback, &address, &stopped, &changed) {
            warn!(job = %address.job, %error, "the job is not watched any more");
        }
    });
    if let Err(error) = spawned {
        warn!(%error, "no thread to watch a job with");
    }
    Watching { stop }
}

fn report(
    hearback: &Hearback,
    address: &Address,
    stopped: &CancelWait,
    changed: &UnboundedSender<Address>,
) -> Result<(), hearback::core::port::record::StoreError> {
    let Address { job: id, part } = address;
    let mut watch = hearback.watch(id)?;
    let mut before: Option<Fingerprint> = None;
    loop {
        let Some(job) = hearback.job(id)? else { return Ok(()) };
        let now = Fingerprint::of(&job, *part);
        let has_changed = before.as_ref().is_some_and(|before| *before != now);
        if has_changed && changed.send(address.clone()).is_err() {
            return Ok(());
        }
        before = Some(now);
        // What has ended changes no more.
        if job.view.state.has_ended() || stopped.is_cancelled() {
            return Ok(());
        }
        if has_changed {
            std::thread::sleep(NOT_MORE_OFTEN_THAN);
        }
        match &mut watch {
            Some(watch) => watch.wait(NOTICE_WITHIN),
            None => return Ok(()),
        }
        if stopped.is_cancelled() {
            return Ok(());
        }
    }
}
