//! A record of what would have been started.

use std::io;
use std::sync::{Arc, Mutex};

use crate::port::process::ProcessIdentity;
use crate::port::relaunch::Relaunch;

/// Starts nothing, and remembers what it was to start. A clone shares the memory.
#[derive(Debug, Clone, Default)]
pub struct FakeRelaunch {
    successors: Arc<Mutex<Vec<ProcessIdentity>>>,
    deliverers: Arc<Mutex<usize>>,
}

impl FakeRelaunch {
    /// The processes that successors were to wait for, in order.
    pub fn successors(&self) -> Vec<ProcessIdentity> {
        self.successors.lock().unwrap().clone()
    }

    /// How many deliverers were started.
    pub fn deliverers(&self) -> usize {
        *self.deliverers.lock().unwrap()
    }
}

impl Relaunch for FakeRelaunch {
    fn start_successor(&self, after: &ProcessIdentity) -> io::Result<()> {
        self.successors.lock().unwrap().push(after.clone());
        Ok(())
    }

    fn start_deliverer(&self) -> io::Result<()> {
        *self.deliverers.lock().unwrap() += 1;
        Ok(())
    }
}
