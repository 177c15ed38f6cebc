//! A clock that stands still until a test moves it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::port::clock::Clock;
use crate::{BootId, Timestamp};

/// All three clocks in one hand; a clone is the same clock.
#[derive(Debug, Clone)]
pub struct FakeClock(Arc<Mutex<Now>>);

#[derive(Debug, Clone)]
struct Now {
    wall: Timestamp,
    awake: Duration,
    since_boot: Duration,
    boot: BootId,
}

impl Default for FakeClock {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Now {
            wall: super::sample::at(),
            awake: Duration::from_secs(900),
            since_boot: Duration::from_secs(1_000),
            boot: BootId::new("boot-1"),
        })))
    }
}

impl FakeClock {
    /// Lets time pass on all clocks.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap();
        now.awake += by;
        now.since_boot += by;
        now.wall = Timestamp::from_millis(now.wall.as_millis() + by.as_millis() as i64);
    }

    /// Moves the wall clock alone, as a person or a time server does.
    pub fn step_wall(&self, millis: i64) {
        let mut now = self.0.lock().unwrap();
        now.wall = Timestamp::from_millis(now.wall.as_millis() + millis);
    }

    /// Restarts the machine.
    pub fn reboot(&self, boot: &str) {
        let mut now = self.0.lock().unwrap();
        now.boot = BootId::new(boot);
        now.since_boot = Duration::ZERO;
        now.awake = Duration::ZERO;
    }
}

impl Clock for FakeClock {
    fn wall(&self) -> Timestamp {
        self.0.lock().unwrap().wall
    }
    fn awake(&self) -> Duration {
        self.0.lock().unwrap().awake
    }
    fn since_boot(&self) -> Duration {
        self.0.lock().unwrap().since_boot
    }
    fn boot(&self) -> Option<BootId> {
        Some(self.0.lock().unwrap().boot.clone())
    }
}
