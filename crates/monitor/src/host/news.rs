//! What a monitor hears, and in which order it takes it.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use hearback_core::port::disk::Lock;
use hearback_core::port::record::StoreError;
use hearback_core::port::watch::Changes;
use hearback_core::{JobId, Session, SmallSort, Stamp};

/// Work that a thread of the monitor does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// Makes one attempt at the follow-up of a job.
    Deliver(JobId),
    /// Brings the records of a job up to date.
    Update(JobId),
    /// Hands the messages of a session over.
    HandOver(Session),
    /// Continues a session whose last turn was interrupted.
    Resume(Session),
    /// Prunes the store.
    Prune,
}

/// What a monitor hears.
#[derive(Debug)]
pub(super) enum News {
    /// This process is to terminate.
    Stop,
    /// This monitor holds the host's lock since this moment.
    Host(Lock, Stamp),
    /// A thread has finished its work, or has failed.
    Finished(Task, Result<(), StoreError>),
    /// Something in the store has changed.
    Changed(Changes),
}

/// Sleeps until there are news, but not longer than `within`, and takes all that there are: a stop first, the rest in
/// order.
pub(super) fn hear(heard: &Receiver<News>, within: Duration) -> Vec<News> {
    let mut news: Vec<_> = heard.recv_timeout(within).into_iter().chain(heard.try_iter()).collect();
    news.small_sort_by_key(|news| !matches!(news, News::Stop));
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;
    use std::sync::mpsc::channel;

    #[test]
    fn a_stop_is_taken_first_and_the_rest_in_order() {
        let (sender, heard) = channel();
        let task = |n| Task::Update(sample::id(n));
        for news in [
            News::Changed(Changes::default()),
            News::Finished(task(1), Ok(())),
            News::Stop,
            News::Finished(task(2), Err(StoreError::unsupported("this"))),
        ] {
            sender.send(news).unwrap();
        }
        let taken = hear(&heard, Duration::from_secs(60));
        assert!(matches!(&taken[..2], [News::Stop, News::Changed(_)]), "{taken:?}");
        let tasks: Vec<_> = taken[2..].iter().map(|news| matches!(news, News::Finished(_, Ok(())))).collect();
        assert_eq!(tasks, [true, false]);
        assert!(hear(&heard, Duration::ZERO).is_empty(), "all of it was taken");
    }
}
