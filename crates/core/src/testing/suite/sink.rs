//! What every sink does.

use crate::port::sink::{Answer, Delivery, FollowUpSink};
use crate::testing::sample;

/// Holds a sink that accepts everything to its promises.
pub fn sink(sink: &dyn FollowUpSink) {
    let delivery = |attempt| Delivery {
        id: format!("{}.end", sample::id(1)),
        attempt,
        session: None,
        job: sample::view(crate::Outcome::Exited { code: 0 }),
        text: "done: exit code 0\n".into(),
    };
    assert_eq!(sink.deliver(&delivery(1)).unwrap(), Answer::Delivered);
    assert_eq!(sink.deliver(&delivery(2)).unwrap(), Answer::Delivered, "a repeat is harmless");
}
