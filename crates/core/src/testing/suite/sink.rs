//! What every sink does.

use crate::SinkPayload;
use crate::message::Excerpt;
use crate::port::sink::{Delivery, DeliveryContext, FollowUpSink, SinkReply};
use crate::testing::sample;

/// Holds a sink that accepts everything to its promises.
pub fn sink(sink: &dyn FollowUpSink) {
    let nothing = Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 };
    let job = sample::view(crate::Outcome::Exited { code: 0 });
    let payload = |attempt| SinkPayload::from(Delivery::new(job.clone(), &nothing, attempt, false, 1));
    let context = DeliveryContext { mark: sample::id(1), turn: None, receipts: Vec::new() };
    assert_eq!(sink.deliver(&payload(1), &context).unwrap(), SinkReply::Delivered);
    assert_eq!(sink.deliver(&payload(2), &context).unwrap(), SinkReply::Delivered, "a repeat is harmless");
}
