//! The threads by which a monitor hears: of changes in the store, of signals, and that it is the host.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::port::watch::Changes;
use tracing::warn;

use super::monitor::Monitor;
use super::news::News;
use super::pauses::AFTER_AN_ERROR;
use super::workers::Workers;

/// A listener wakes at least this often, so that it ends after its monitor has.
const WAKE_EVERY: Duration = Duration::from_secs(60);

/// Starts one of them.
type Listen = fn(&Monitor, &Workers) -> io::Result<()>;

/// All of them.
pub(super) const ALL: [Listen; 3] = [await_signal, watch, await_host_lock];

/// Hears of changes, by one watch for the whole store.
fn watch(_: &Monitor, workers: &Workers) -> io::Result<()> {
    workers.listen(|monitor, news| {
        // A watch that fails is made again: without it, changes would be found once a minute.
        while !catch_unwind(AssertUnwindSafe(|| report_changes(monitor, news))).unwrap_or(false) {
            std::thread::sleep(AFTER_AN_ERROR);
        }
    })
}

/// Reports changes; tells whether the monitor has ended.
fn report_changes(monitor: &Monitor, news: &Sender<News>) -> bool {
    let mut watch = match monitor.watch.watch_all() {
        Ok(watch) => watch,
        Err(error) => {
            warn!(%error, "no watch of the store, looking from time to time");
            return news.send(News::Changed(Changes::everything())).is_err();
        }
    };
    // What came before there was a watch is not heard of; so there is a look as soon as there is one.
    let mut changes = Changes::everything();
    let mut reported = monitor.ports.clock.awake();
    loop {
        if let Some(error) = watch.problem() {
            warn!(%error, "changes are not reported, looking from time to time");
        }
        let now = monitor.ports.clock.awake();
        if !changes.is_empty() || now.saturating_sub(reported) >= WAKE_EVERY {
            if news.send(News::Changed(changes)).is_err() {
                return true;
            }
            reported = now;
        }
        changes = watch.wait(WAKE_EVERY);
    }
}

/// Hears one signal. The listener is dropped with it, so the next one terminates this process at once.
fn await_signal(monitor: &Monitor, workers: &Workers) -> io::Result<()> {
    let mut listening = monitor.signals.listen();
    workers.listen(move |monitor, news| {
        let signals = loop {
            match listening {
                Ok(signals) => break signals,
                Err(error) => warn!(%error, "signals end this monitor at once"),
            }
            std::thread::sleep(WAKE_EVERY);
            listening = monitor.signals.listen();
        };
        while !signals.wait(WAKE_EVERY) {}
        let _ = news.send(News::Stop);
    })
}

/// Waits for the lock of the host. Asleep and not by trying: a process that only probes it can make a try fail.
fn await_host_lock(_: &Monitor, workers: &Workers) -> io::Result<()> {
    workers.listen(|monitor, news| {
        let mut is_noted = false;
        loop {
            match monitor.ports.sessions.lock_monitor(LockMode::Exclusive, Wait::Block) {
                Ok(Some(lock)) => return drop(news.send(News::Host(lock, monitor.ports.clock.stamp()))),
                Ok(None) => {}
                Err(StoreError::Io(error)) if error.kind() == io::ErrorKind::Unsupported => return,
                Err(error) if !is_noted => {
                    warn!(%error, "this monitor cannot become the host, trying again");
                    is_noted = true;
                }
                Err(_) => {}
            }
            std::thread::sleep(AFTER_AN_ERROR);
        }
    })
}
