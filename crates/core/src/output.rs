//! The size of a job's output, and its gaps.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::SmallSort;
use crate::variant::reads_newer_variants;

/// Holes begin and end at multiples of this, so that a file system can free their blocks.
const BLOCK: u64 = 64 * 1024;

/// The output of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The size of all output, in bytes.
    pub bytes: u64,
    /// How many of these bytes were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// The dropped parts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Whether the log has no hole: it ends where the cap cut it, and the rest is in a second file. That is so where a
    /// file system cannot free the middle of a file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact: bool,
}

/// A missing part of the output. Offsets count all output, also what was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The first byte that is missing.
    pub start: u64,
    /// The first byte after the gap.
    pub end: u64,
    /// Why it is missing.
    #[serde(alias = "why")]
    pub reason: GapReason,
}

impl Gap {
    /// How many bytes are missing.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

/// Why a part of the output is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GapReason {
    /// The output exceeded the log cap, and its middle was dropped.
    Cap,
    /// The output could not be written: the disk was full, or failed.
    Lost,
    /// A reason that only a newer build knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(GapReason);

impl Output {
    /// The most gaps in a record. More are merged into fewer, wider ones, so that the record stays small.
    pub const GAPS_MAX: usize = 8;

    /// Adds a gap. Gaps that touch or overlap become one.
    pub fn lose(&mut self, range: Range<u64>, reason: GapReason) {
        if range.is_empty() {
            return;
        }
        self.gaps.push(Gap { start: range.start, end: range.end, reason });
        self.gaps.small_sort_by_key(|gap| gap.start);
        let mut merged: Vec<Gap> = Vec::with_capacity(self.gaps.len());
        for gap in self.gaps.drain(..) {
            match merged.last_mut() {
                Some(last) if gap.start <= last.end => last.swallow(gap),
                _ => merged.push(gap),
            }
        }
        while merged.len() > Self::GAPS_MAX {
            let last = merged.pop();
            if let (Some(before), Some(last)) = (merged.last_mut(), last) {
                before.swallow(last);
            }
        }
        self.dropped = merged.iter().map(Gap::len).sum();
        self.gaps = merged;
    }
}

impl Gap {
    fn swallow(&mut self, other: Self) {
        self.end = self.end.max(other.end);
        if other.reason == GapReason::Cap {
            self.reason = GapReason::Cap;
        }
    }
}

/// The most of a job's output that is kept: a head for good, and a tail that moves along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogCap(u64);

impl LogCap {
    /// What a job has unless its owner chooses.
    pub const DEFAULT: Self = Self(64 * 1024 * 1024);
    /// Below this there is no room for a head, a tail and the blocks between them.
    pub const MIN: Self = Self(1024 * 1024);

    /// A cap of so many bytes; nothing when that is less than [`LogCap::MIN`].
    pub fn new(bytes: u64) -> Option<Self> {
        (bytes >= Self::MIN.0).then_some(Self(bytes))
    }

    /// How many bytes are kept at most.
    pub fn bytes(self) -> u64 {
        // A record may say anything.
        self.0.max(Self::MIN.0)
    }

    /// How much of the beginning is kept for good.
    pub fn head(self) -> u64 {
        self.bytes() / 4 / BLOCK * BLOCK
    }

    /// Where the hole after the head has to end so that a log of `size` bytes stays within the cap; nothing when it
    /// does so with the hole ending at `hole_end`.
    ///
    /// Cuts more than it must, so that the next cut is not due at once; never into the last 512 KiB.
    pub fn cut(self, hole_end: u64, size: u64) -> Option<u64> {
        let tail = self.bytes() - self.head();
        if size.saturating_sub(hole_end) <= tail {
            return None;
        }
        Some((size - (tail - tail / 8)).next_multiple_of(BLOCK))
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_earlier_builds_are_still_read() {
        let gap: Gap = serde_json::from_str(r#"{"start":10,"end":25,"why":"lost"}"#).unwrap();
        assert_eq!(gap, Gap { start: 10, end: 25, reason: GapReason::Lost });
    }
    use proptest::prelude::*;

    #[test]
    fn gaps_that_touch_are_one_and_a_crowd_of_them_is_told_as_fewer() {
        let mut output = Output { bytes: 1000, ..Output::default() };
        output.lose(10..20, GapReason::Lost);
        output.lose(20..25, GapReason::Lost);
        output.lose(30..30, GapReason::Lost);
        assert_eq!(output.gaps, [Gap { start: 10, end: 25, reason: GapReason::Lost }]);
        output.lose(15..60, GapReason::Cap);
        assert_eq!(output.gaps, [Gap { start: 10, end: 60, reason: GapReason::Cap }]);
        for n in 0..100 {
            output.lose(100 + n * 5..102 + n * 5, GapReason::Lost);
        }
        assert_eq!(output.gaps.len(), Output::GAPS_MAX);
        assert_eq!(output.gaps.last().map(|gap| gap.end), Some(597));
        assert_eq!(output.dropped, output.gaps.iter().map(Gap::len).sum::<u64>());
    }

    proptest! {
        #[test]
        fn a_log_never_holds_more_than_its_cap(
            cap in LogCap::MIN.0..64 * LogCap::MIN.0,
            chunks in proptest::collection::vec(1..=BLOCK, 1..600),
        ) {
            let cap = LogCap::new(cap).unwrap();
            let (mut size, mut hole_end) = (0, cap.head());
            for chunk in chunks.into_iter().cycle().take(2_000) {
                if let Some(end) = cap.cut(hole_end, size + chunk) {
                    prop_assert!(end > hole_end && end <= size, "only what is there is cut, and something is");
                    prop_assert!(size - end >= 512 * 1024 - BLOCK, "and a tail stays");
                    hole_end = end;
                }
                size += chunk;
                let kept = if hole_end > cap.head() { size - (hole_end - cap.head()) } else { size };
                prop_assert!(kept <= cap.bytes(), "{kept} of {}", cap.bytes());
            }
        }
    }
}
