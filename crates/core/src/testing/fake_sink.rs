//! A sink that answers from a list and remembers what it was given.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::SinkPayload;
use crate::port::sink::{Delivery, DeliveryContext, FollowUpSink, SinkError, SinkReply, Sinks};

/// Answers in order, then [`SinkReply::Delivered`] for ever.
#[derive(Debug, Default)]
pub struct FakeSink {
    answers: Mutex<VecDeque<SinkReply>>,
    taken: Mutex<Vec<SinkPayload>>,
    starts_turn: bool,
}

impl FakeSink {
    /// A sink with these first answers.
    pub fn answering(answers: impl IntoIterator<Item = SinkReply>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }

    /// The same as one that starts a turn.
    pub fn starting_turns(self) -> Self {
        Self { starts_turn: true, ..self }
    }

    /// Everything it was given.
    pub fn payloads(&self) -> Vec<SinkPayload> {
        self.taken.lock().unwrap().clone()
    }

    /// The follow-ups among it.
    pub fn taken(&self) -> Vec<Delivery> {
        self.payloads().iter().flat_map(|payload| payload.deliveries().to_vec()).collect()
    }
}

impl FollowUpSink for FakeSink {
    fn deliver(&self, payload: &SinkPayload, _trip: &DeliveryContext) -> Result<SinkReply, SinkError> {
        self.taken.lock().unwrap().push(payload.clone());
        Ok(self.answers.lock().unwrap().pop_front().unwrap_or(SinkReply::Delivered))
    }

    fn starts_turn(&self) -> bool {
        self.starts_turn
    }
}

/// Every name is this sink's, except `missing`.
impl Sinks for FakeSink {
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        match name {
            "missing" => Err(SinkError::Missing(name.into())),
            _ => Ok(Box::new(self)),
        }
    }
}
