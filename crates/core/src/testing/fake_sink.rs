//! A sink that answers from a list and remembers what it was given.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::port::sink::{Answer, Delivery, FollowUpSink, SinkError, Sinks};

/// Answers in order, then [`Answer::Delivered`] for ever.
#[derive(Debug, Default)]
pub struct FakeSink {
    answers: Mutex<VecDeque<Answer>>,
    taken: Mutex<Vec<Delivery>>,
}

impl FakeSink {
    /// A sink with these first answers.
    pub fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), taken: Mutex::default() }
    }

    /// Everything it was given.
    pub fn taken(&self) -> Vec<Delivery> {
        self.taken.lock().unwrap().clone()
    }
}

impl FollowUpSink for FakeSink {
    fn deliver(&self, delivery: &Delivery) -> Result<Answer, SinkError> {
        self.taken.lock().unwrap().push(delivery.clone());
        Ok(self.answers.lock().unwrap().pop_front().unwrap_or(Answer::Delivered))
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
