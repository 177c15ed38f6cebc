//! What the client was told. An owner that was told the end of a job needs no follow-up, but only if the answer was
//! really written.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hearback::core::{JobId, Session};
use hearback::{Hearback, Job, Reading};
use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tracing::warn;

/// The end of a job, in an answer on its way to the owner.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) job: Job,
    pub(crate) reader: Option<Session>,
    /// Keeps hearback from notifying the owner until the answer was written.
    pub(crate) reading: Option<Reading>,
}

/// Which ends are on their way to the client, and of which jobs the client asked to be told.
#[derive(Debug)]
pub(crate) struct Told {
    hearback: Arc<Hearback>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the request whose answer holds them.
    answers: HashMap<RequestId, Vec<End>>,
    /// Jobs that the client follows, as a task or by a subscription. While it is connected and asks soon after the end,
    /// nothing else notifies its session.
    followed: HashMap<JobId, Reading>,
}

impl Told {
    pub(crate) fn new(hearback: Arc<Hearback>) -> Self {
        Self { hearback, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client follows this job.
    pub(crate) fn follow(&self, id: &JobId, reading: Option<Reading>) {
        let reading = reading.or_else(|| {
            let is_held = self.state().followed.contains_key(id);
            if is_held { None } else { self.hearback.reading(id) }
        });
        if let Some(reading) = reading {
            self.state().followed.insert(id.clone(), reading);
        }
    }

    /// Whether the client follows this job.
    pub(crate) fn is_followed(&self, id: &JobId) -> bool {
        self.state().followed.contains_key(id)
    }

    /// The client no longer follows this job, or has asked for its end.
    pub(crate) fn unfollow(&self, id: &JobId) -> Option<Reading> {
        self.state().followed.remove(id)
    }

    /// The answer to `request` holds these ends.
    pub(crate) fn answer(&self, request: RequestId, ends: Vec<End>) {
        if !ends.is_empty() {
            self.state().answers.insert(request, ends);
        }
    }

    /// The request was cancelled, or its answer could not be written: its ends were told to no one.
    pub(crate) fn forget(&self, request: &RequestId) {
        let forgotten = self.state().answers.remove(request);
        drop(forgotten);
    }

    /// The answer was written: the owner needs no follow-up for its ends.
    fn written(&self, request: &RequestId) {
        let ends = self.state().answers.remove(request).unwrap_or_default();
        for End { job, reader, reading } in ends {
            if let Err(error) = self.hearback.mark_read(&job, reader.as_ref()) {
                // The owner is notified once more, which is better than never.
                warn!(job = %job.view.id, %error, "the end is not marked as read");
            }
            drop(reading);
        }
    }
}

/// A transport that says which answers were written.
pub(crate) struct Confirming<T> {
    inner: T,
    told: Arc<Told>,
}

impl<T> Confirming<T> {
    pub(crate) fn new(inner: T, told: Arc<Told>) -> Self {
        Self { inner, told }
    }
}

impl<T> fmt::Debug for Confirming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confirming").finish_non_exhaustive()
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Confirming<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let (sent, told) = (self.inner.send(item), Arc::clone(&self.told));
        async move {
            let sent = sent.await;
            // Without a pause in between, at which the server could end: a client that closes the connection as soon as
            // it has its answer has been told.
            match (&sent, answered) {
                (Ok(()), Some(request)) => told.written(&request),
                (Err(_), Some(request)) => told.forget(&request),
                (_, None) => {}
            }
            sent
        }
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
