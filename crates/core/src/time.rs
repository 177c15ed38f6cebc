//! Points in time: of the wall clock, to show, and of the boot clock, to measure.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::BootId;

/// Wall time in milliseconds since 1970. Only to show: the wall clock jumps.
///
/// Displays as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `millis` milliseconds after 1970 began.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970 began.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The moment `span` earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The moment `millis` milliseconds later.
    #[must_use]
    pub fn after(self, millis: u64) -> Self {
        Self(self.0.saturating_add_unsigned(millis))
    }

    /// The date and the time of day to the second, in a place that is `offset` seconds ahead of UTC, for people.
    pub fn in_place(self, offset: i64) -> String {
        let (date, time) = date_and_time(self.0.div_euclid(1000).saturating_add(offset));
        format!("{date} {time}")
    }

    /// How long after `earlier` this is, in milliseconds; zero when it is not after it.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = date_and_time(self.0.div_euclid(1000));
        write!(f, "{date}T{time}.{:03}Z", self.0.rem_euclid(1000))
    }
}

/// The date and the time of day, so many seconds after 1970 began.
fn date_and_time(seconds: i64) -> (String, String) {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    (format!("{year:04}-{month:02}-{day:02}"), format!("{hour:02}:{minute:02}:{second:02}"))
}

/// The Gregorian date of a count of days since 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last of its year and months follow one formula.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let from_march_0000 = days + 719_468;
    let (era, of_era) =
        (from_march_0000.div_euclid(DAYS_IN_400_YEARS), from_march_0000.rem_euclid(DAYS_IN_400_YEARS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A moment on the boot clock, which counts within one boot, and on the wall clock, which counts across boots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Wall time.
    pub wall_ms: Timestamp,
    /// The boot of [`Self::since_boot_ms`]; `None` where the system has no boot id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// Milliseconds since that boot, including sleep.
    pub since_boot_ms: u64,
}

impl Stamp {
    /// How much time has passed since `self`, seen at `now`, in milliseconds.
    ///
    /// Within one boot, jumps of the wall clock do not matter. Across boots only the wall clock counts, and if it went
    /// back, no time has passed.
    pub fn age_ms(&self, now: &Stamp) -> u64 {
        match (&self.boot, &now.boot) {
            (Some(then), Some(here)) if then == here => now.since_boot_ms.saturating_sub(self.since_boot_ms),
            _ => now.wall_ms.millis_since(self.wall_ms),
        }
    }

    /// How much time has certainly passed since `self`, seen at `now`, in milliseconds: no wall clock counts, because
    /// it may have been set. Of an earlier boot, only the time since this boot is certain.
    pub fn proved_age_ms(&self, now: &Stamp) -> u64 {
        match (&self.boot, &now.boot) {
            (Some(then), Some(here)) if then != here => now.since_boot_ms,
            // Where the boot is unknown, this is too little at worst.
            _ => now.since_boot_ms.saturating_sub(self.since_boot_ms),
        }
    }

    /// Whether both are of one boot, as far as that is known.
    pub fn is_of_same_boot(&self, other: &Stamp) -> bool {
        self.boot.is_some() && self.boot == other.boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_show_as_rfc_3339() {
        let show = |millis| Timestamp::from_millis(millis).to_string();
        assert_eq!(show(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(show(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(show(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(show(1_763_302_338_123), "2025-11-16T14:12:18.123Z");
        assert_eq!(show(4_102_444_799_999), "2099-12-31T23:59:59.999Z");
        let late = Timestamp::from_millis(1_763_302_338_123);
        assert_eq!(late.in_place(10 * 3600), "2025-11-17 00:12:18");
        assert_eq!(late.in_place(-14 * 3600 - 720), "2025-11-16 00:00:18");
    }

    #[test]
    fn within_a_boot_a_wall_clock_that_jumps_ages_nothing() {
        let boot = |id: &str, wall: i64, since: u64| Stamp {
            wall_ms: Timestamp::from_millis(wall),
            boot: Some(BootId::new(id)),
            since_boot_ms: since,
        };
        let settled = boot("a", 1_000, 500);
        assert_eq!(settled.age_ms(&boot("a", 900_000_000, 700)), 200);
        assert_eq!(settled.age_ms(&boot("b", 5_000, 10)), 4_000);
        assert_eq!(settled.age_ms(&boot("b", 0, 10)), 0);
    }
}
