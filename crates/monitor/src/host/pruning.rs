//! When a monitor prunes.

use std::time::Duration;

/// How often settled jobs are pruned.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// When a monitor pruned last. Times are those of [`Clock::awake`](hearback_core::port::clock::Clock::awake).
#[derive(Debug, Default)]
pub(super) struct Pruning {
    last: Option<Duration>,
    is_out: bool,
}

impl Pruning {
    /// Whether it is time to prune.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        !self.is_out && self.last.is_none_or(|last| now.saturating_sub(last) >= EVERY)
    }

    /// Takes note that everything is being pruned.
    pub(super) fn begin(&mut self, now: Duration) {
        self.last = Some(now);
        self.is_out = true;
    }

    /// Takes note that everything was pruned, or that it failed.
    pub(super) fn end(&mut self) {
        self.is_out = false;
    }

    /// Whether nothing is being pruned.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monitor_prunes_when_it_begins_and_then_once_an_hour() {
        let mut pruning = Pruning::default();
        let prunes = (0..=150).filter(|minute| {
            let now = Duration::from_secs(900 + minute * 60);
            let is_due = pruning.is_due(now);
            if is_due {
                pruning.begin(now);
                assert!(!pruning.is_idle() && !pruning.is_due(now + EVERY), "it is under way");
                pruning.end();
            }
            is_due
        });
        assert_eq!(prunes.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
