//! What every sink does.

use crate::Parcel;
use crate::message::Excerpt;
use crate::port::sink::{Answer, Delivery, FollowUpSink, Trip};
use crate::testing::sample;

/// Holds a sink that accepts everything to its promises.
pub fn sink(sink: &dyn FollowUpSink) {
    let nothing = Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 };
    let job = sample::view(crate::Outcome::Exited { code: 0 });
    let parcel = |attempt| Parcel::from(Delivery::new(job.clone(), &nothing, attempt, false, 1));
    let trip = Trip { mark: sample::id(1), turn: None };
    assert_eq!(sink.deliver(&parcel(1), &trip).unwrap(), Answer::Delivered);
    assert_eq!(sink.deliver(&parcel(2), &trip).unwrap(), Answer::Delivered, "a repeat is harmless");
}
