//! What every clock does.

use crate::port::clock::Clock;

/// Holds a clock to its promises.
pub fn clock(clock: &dyn Clock) {
    let (awake, since_boot) = (clock.awake(), clock.since_boot());
    for _ in 0..1_000 {
        assert!(clock.awake() >= awake, "time awake never goes back");
        assert!(clock.since_boot() >= since_boot, "time since boot never goes back");
    }
    assert_eq!(clock.boot(), clock.boot(), "a boot keeps its name");
    let first = clock.stamp();
    assert!(first.age_ms(&clock.stamp()) < 60_000, "a stamp is about now");
}
