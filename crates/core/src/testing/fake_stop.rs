//! Requests to terminate this process that a test makes.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::port::stop::{StopListener, StopSignals};

/// Hears of a request when a test makes one; a clone hears the same.
#[derive(Debug, Clone, Default)]
pub struct FakeStop(Arc<(Mutex<bool>, Condvar)>);

impl FakeStop {
    /// Requests the end, as a signal does.
    pub fn request(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

impl StopSignals for FakeStop {
    fn listen(&self) -> io::Result<Box<dyn StopListener>> {
        Ok(Box::new(self.clone()))
    }
}

impl StopListener for FakeStop {
    fn wait(&self, within: Duration) -> bool {
        let asked = self.0.0.lock().unwrap();
        let (mut asked, _) = self.0.1.wait_timeout_while(asked, within, |asked| !*asked).unwrap();
        std::mem::take(&mut *asked)
    }
}
