//! Threads that work for a monitor. Each reports its end: when it returns, when it panics, and when it never began.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::Builder;

use hearback_core::port::record::StoreError;

use super::monitor::Monitor;
use super::news::{News, Task};

/// Starts threads for a monitor.
#[derive(Debug, Clone)]
pub(super) struct Workers {
    monitor: Arc<Monitor>,
    news: Sender<News>,
}

impl Workers {
    pub(super) fn new(monitor: &Arc<Monitor>, news: Sender<News>) -> Self {
        Self { monitor: Arc::clone(monitor), news }
    }

    /// Lets a thread do a task. Its end is always reported.
    pub(super) fn spawn(
        &self,
        task: Task,
        work: impl FnOnce(&Monitor) -> Result<(), StoreError> + Send + 'static,
    ) {
        let monitor = Arc::clone(&self.monitor);
        let report = Report::new(task, self.news.clone());
        // A thread that cannot be started drops its work, and the report with it.
        let _ = Builder::new().spawn(move || report.finish(work(&monitor)));
    }

    /// Lets the monitor hear something, as a thread would.
    #[cfg(test)]
    pub(super) fn tell(&self, news: News) {
        self.news.send(news).unwrap();
    }

    /// Lets a thread listen, for as long as it has to.
    pub(super) fn listen(
        &self,
        listen: impl FnOnce(&Monitor, &Sender<News>) + Send + 'static,
    ) -> io::Result<()> {
        let (monitor, news) = (Arc::clone(&self.monitor), self.news.clone());
        Builder::new().spawn(move || listen(&monitor, &news)).map(drop)
    }
}

/// Tells the monitor what became of a task, when it is dropped.
struct Report {
    task: Task,
    result: Result<(), StoreError>,
    news: Sender<News>,
}

impl Report {
    fn new(task: Task, news: Sender<News>) -> Self {
        // What stands here until the work says otherwise.
        let unfinished = io::Error::other("its thread was not started, or panicked");
        Self { task, result: Err(unfinished.into()), news }
    }

    fn finish(mut self, result: Result<(), StoreError>) {
        self.result = result;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, Ok(()));
        // A monitor that has returned hears nothing more.
        let _ = self.news.send(News::Finished(self.task.clone(), result));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn scenario_116_a_worker_reports_its_end_whatever_that_is() {
        let (sender, heard) = channel();
        let task = Task::Update(sample::id(1));
        drop(Report::new(task.clone(), sender.clone()));
        Report::new(task.clone(), sender.clone()).finish(Ok(()));
        let report = Report::new(task.clone(), sender);
        let worker = std::thread::spawn(move || {
            let _report = report;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(worker.join().is_err());
        let mut ends = Vec::new();
        while let Ok(News::Finished(finished, result)) = heard.recv_timeout(Duration::from_secs(60)) {
            assert_eq!(finished, task);
            ends.push(result.is_ok());
        }
        assert_eq!(ends, [false, true, false]);
    }
}
