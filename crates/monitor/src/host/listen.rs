//! The threads by which a monitor hears: of changes in the store, of signals, and that it is the host.

use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait, Watch};
use hearback_core::port::record::StoreError;
use hearback_core::port::watch::StoreWatch;
use tracing::warn;

use super::monitor::Monitor;
use super::news::News;
use super::workers::Workers;

/// A listener wakes at least this often, whatever it heard.
const WAKE_EVERY: Duration = Duration::from_secs(60);

/// A way to hear of changes in the store.
type WatchOf = fn(&dyn StoreWatch) -> Result<Box<dyn Watch>, StoreError>;

/// Starts all of them.
pub(super) fn listen(monitor: &Monitor, workers: &Workers) -> io::Result<()> {
    watch(workers, |store| store.watch_jobs())?;
    watch(workers, |store| store.watch_host())?;
    await_signal(monitor, workers)?;
    await_host_lock(workers)
}

/// What came before there was a watch is not heard of; so there is a look as soon as there is one.
fn watch(workers: &Workers, watch: WatchOf) -> io::Result<()> {
    workers.listen(move |monitor, news| {
        let mut watch = match watch(&*monitor.watch) {
            Ok(watch) => watch,
            Err(error) => return warn!(%error, "no watch of the store, looking from time to time"),
        };
        while news.send(News::Changed).is_ok() {
            watch.wait(WAKE_EVERY);
        }
    })
}

/// Hears one signal. The listener is dropped with it, so the next one terminates this process at once.
fn await_signal(monitor: &Monitor, workers: &Workers) -> io::Result<()> {
    let signals = match monitor.signals.listen() {
        Ok(signals) => signals,
        Err(error) => {
            warn!(%error, "signals end this monitor at once");
            return Ok(());
        }
    };
    workers.listen(move |_, news: &Sender<News>| {
        while !signals.wait(WAKE_EVERY) {}
        let _ = news.send(News::Stop);
    })
}

/// Waits for the lock of the host. Asleep and not by trying: a process that only probes it can make a try fail.
fn await_host_lock(workers: &Workers) -> io::Result<()> {
    workers.listen(|monitor, news| {
        match monitor.ports.sessions.lock_monitor(LockMode::Exclusive, Wait::Block) {
            Ok(Some(lock)) => drop(news.send(News::Host(lock, monitor.ports.clock.stamp()))),
            Ok(None) => {}
            Err(error) => warn!(%error, "this monitor cannot become the host"),
        }
    })
}
