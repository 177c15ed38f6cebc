//! Ending a wait before its time: by a deadline, or from another thread.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Ends waits from another thread. Clones are the same token: one goes to the wait, another to the thread that may end
/// it.
///
/// ```
/// use hearback_monitor::wait::{CancelWait, WaitLimit};
///
/// let cancel = CancelWait::new();
/// let limit = WaitLimit::from(&cancel);
/// cancel.cancel();
/// assert!(limit.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct CancelWait(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// What wakes each wait that sleeps now, by a number.
    wakers: Vec<(u64, Box<dyn FnOnce() + Send>)>,
    numbers: u64,
}

impl CancelWait {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every wait that has this token, and every later one at once. A wait that has ended is not affected, and
    /// neither is any job.
    pub fn cancel(&self) {
        let wakers = {
            let mut state = self.state();
            state.is_cancelled = true;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(|(_, wake)| wake());
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// Calls `wake` when it is cancelled, in the thread that does so; at once if it was cancelled before. What this
    /// returns has to be kept for as long as that is wanted.
    pub fn on_cancel(&self, wake: impl FnOnce() + Send + 'static) -> CancelHook {
        let mut state = self.state();
        state.numbers += 1;
        let number = state.numbers;
        if state.is_cancelled {
            drop(state);
            wake();
        } else {
            state.wakers.push((number, Box::new(wake)));
        }
        CancelHook { cancel: self.clone(), number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CancelWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelWait").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

/// Keeps what [`CancelWait::on_cancel`] has added.
#[derive(Debug)]
#[must_use = "what was added is removed when this is dropped"]
pub struct CancelHook {
    cancel: CancelWait,
    number: u64,
}

impl Drop for CancelHook {
    fn drop(&mut self) {
        self.cancel.state().wakers.retain(|(number, _)| *number != self.number);
    }
}

/// How long a wait may last: as long as it takes, for some time, or until it is cancelled.
///
/// A [`Duration`] is a limit, and so is a reference to a [`CancelWait`]. For both, start with one:
///
/// ```
/// use std::time::Duration;
/// use hearback_monitor::wait::{CancelWait, WaitLimit};
///
/// let cancel = CancelWait::new();
/// let limit = WaitLimit::from(Duration::from_secs(60)).or_cancelled(&cancel);
/// assert!(!limit.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct WaitLimit {
    within: Option<Duration>,
    cancel: Option<CancelWait>,
}

impl WaitLimit {
    /// As long as it takes.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same, unless it is cancelled before.
    #[must_use]
    pub fn or_cancelled(mut self, cancel: &CancelWait) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// For how long; none for as long as it takes.
    pub fn within(&self) -> Option<Duration> {
        self.within
    }

    /// The token that ends it.
    pub fn cancel(&self) -> Option<&CancelWait> {
        self.cancel.as_ref()
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(CancelWait::is_cancelled)
    }
}

impl From<Duration> for WaitLimit {
    fn from(within: Duration) -> Self {
        Some(within).into()
    }
}

impl From<Option<Duration>> for WaitLimit {
    fn from(within: Option<Duration>) -> Self {
        Self { within, cancel: None }
    }
}

impl From<&CancelWait> for WaitLimit {
    fn from(cancel: &CancelWait) -> Self {
        Self::none().or_cancelled(cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn what_was_added_is_called_once_and_not_when_it_was_dropped() {
        let (cancel, calls) = (CancelWait::new(), Arc::new(AtomicU32::new(0)));
        let count = |by: u32| {
            let calls = Arc::clone(&calls);
            move || {
                calls.fetch_add(by, Ordering::Relaxed);
            }
        };
        let _kept = cancel.on_cancel(count(1));
        drop(cancel.on_cancel(count(10)));
        cancel.cancel();
        cancel.cancel();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let _late = cancel.on_cancel(count(100));
        assert_eq!(calls.load(Ordering::Relaxed), 101, "it was cancelled before");
    }
}
