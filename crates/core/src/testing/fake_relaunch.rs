//! A record of what would have been started.

use std::io;
use std::sync::{Arc, Mutex};

use crate::JobId;
use crate::port::process::ProcessIdentity;
use crate::port::relaunch::Relaunch;

/// Starts nothing, and remembers what it was to start. A clone shares the memory.
#[derive(Debug, Clone, Default)]
pub struct FakeRelaunch {
    successors: Arc<Mutex<Vec<ProcessIdentity>>>,
    deliverers: Arc<Mutex<Vec<JobId>>>,
}

impl FakeRelaunch {
    /// The processes that successors were to wait for, in order.
    pub fn successors(&self) -> Vec<ProcessIdentity> {
        self.successors.lock().unwrap().clone()
    }

    /// The jobs that deliverers were started for, in order.
    pub fn deliverers(&self) -> Vec<JobId> {
        self.deliverers.lock().unwrap().clone()
    }
}

impl Relaunch for FakeRelaunch {
    fn start_successor(&self, after: &ProcessIdentity) -> io::Result<()> {
        self.successors.lock().unwrap().push(after.clone());
        Ok(())
    }

    fn start_deliverer(&self, job: &JobId) -> io::Result<()> {
        self.deliverers.lock().unwrap().push(job.clone());
        Ok(())
    }
}
