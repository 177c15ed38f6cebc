//! Repeatable randomness.

use std::env;

/// Repeatable randomness.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// Uses the seed of `HEARBACK_TEST_SEED`, else a new one. Prints how to repeat the run.
    pub fn new(campaign: &str) -> Chance {
        let seed = env::var("HEARBACK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || std::time::UNIX_EPOCH.elapsed().expect("it is later than 1970").as_nanos() as u64;
        let seed = seed.unwrap_or_else(now);
        eprintln!("{campaign}: HEARBACK_TEST_SEED={seed}");
        Chance::from_seed(seed)
    }

    /// The same for the same number.
    pub fn from_seed(seed: u64) -> Chance {
        // The generator never leaves zero.
        Chance(seed | 1)
    }

    /// A number that is less than this.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}
