//! Documents without secrets: what is sent to a sink, and what is shown.

use hearback_core::message::clean_line;
use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{Delivery, JobView, SinkPayload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::mask::Secrets;

/// How much of the reason of a failed sink is recorded.
const REASON_BYTES: usize = 500;

impl Secrets {
    /// A payload as it is sent.
    pub(crate) fn masked_payload(&self, payload: &SinkPayload) -> SinkPayload {
        match payload {
            SinkPayload::FollowUp(delivery) => self.masked_delivery((**delivery).clone()).into(),
            SinkPayload::FollowUps(several) => {
                (**several).clone().map(|delivery| self.masked_delivery(delivery)).into()
            }
            // A person may send a credential to an agent that needs it. A variable in `secrets` is for no agent.
            SinkPayload::Message(_) => self.clone().with_credentials(false).masked_document(payload.clone()),
            other => self.masked_document(other.clone()),
        }
    }

    /// A follow-up as it is sent. Its output may have been cut in the middle of a secret.
    pub(crate) fn masked_delivery(&self, delivery: Delivery) -> Delivery {
        let mut masked = self.masked_document(delivery);
        self.mask_excerpt(&mut masked);
        masked
    }

    /// A job as it is shown.
    pub(crate) fn masked_view(&self, view: JobView) -> JobView {
        self.masked_document(view)
    }

    /// The reply of a sink as it is recorded: short, without control characters and without secrets.
    pub(crate) fn masked_reply(&self, reply: Result<SinkReply, SinkError>) -> Result<SinkReply, SinkError> {
        let words = |said: &str| {
            // Only the beginning of what a sink printed is kept.
            let mut words = self.masked_before_cut(&clean_line(said));
            words.truncate(words.floor_char_boundary(REASON_BYTES));
            words
        };
        match reply {
            Ok(SinkReply::Gone { reason }) => Ok(SinkReply::Gone { reason: words(&reason) }),
            Err(SinkError::Failed(reason)) => Err(SinkError::Failed(words(&reason))),
            other => other,
        }
    }

    fn masked_document<T: Serialize + DeserializeOwned>(&self, shown: T) -> T {
        if self.is_empty() {
            return shown;
        }
        let masked = serde_json::to_value(&shown).and_then(|mut value| {
            self.mask_value(&mut value);
            serde_json::from_value(value)
        });
        masked.unwrap_or(shown)
    }

    fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.masked(text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.mask_value(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.mask_value(value)),
            _ => {}
        }
    }
}
