//! What every sink does.

use crate::message::Excerpt;
use crate::port::sink::{Answer, Delivery, FollowUpSink};
use crate::testing::sample;

/// Holds a sink that accepts everything to its promises.
pub fn sink(sink: &dyn FollowUpSink) {
    let nothing = Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 };
    let job = sample::view(crate::Outcome::Exited { code: 0 });
    let delivery = |attempt| Delivery::new(job.clone(), &nothing, attempt, false, 1);
    assert_eq!(sink.deliver(&delivery(1)).unwrap(), Answer::Delivered);
    assert_eq!(sink.deliver(&delivery(2)).unwrap(), Answer::Delivered, "a repeat is harmless");
}
