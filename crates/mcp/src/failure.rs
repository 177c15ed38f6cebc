//! Errors of tools: what kind, what failed, and what to do next.

use std::error::Error;
use std::fmt::Display;

use hearback::core::message::clean_line;
use hearback::core::port::disk::ReadError;
use hearback::core::port::record::StoreError;
use hearback::core::{JobId, StartErrorKind};
use hearback::documents::{ErrorDetail, ErrorDocument, ErrorKind};
use hearback::{Denied, FindError, Guarded, KillError, LaunchError, LaunchFailure, RequestError, WaitError};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

/// A failed call.
#[derive(Debug)]
pub(crate) struct Failure {
    detail: ErrorDetail,
}

impl Failure {
    fn new(kind: ErrorKind, error: &dyn Error, tip: Option<String>) -> Self {
        Self { detail: ErrorDetail { kind, message: message(error), tip, subject: None } }
    }

    /// The arguments are not valid.
    pub(crate) fn usage(error: &dyn Error) -> Self {
        Self::new(ErrorKind::Usage, error, None)
    }

    /// The arguments are not valid, in these words.
    pub(crate) fn misuse(message: impl Into<String>, tip: &str) -> Self {
        let message = clean_line(&message.into());
        Self {
            detail: ErrorDetail { kind: ErrorKind::Usage, message, tip: Some(tip.to_owned()), subject: None },
        }
    }

    /// The request names an invalid session.
    pub(crate) fn session(key: &str, why: impl Display) -> Self {
        Self::misuse(
            format!("`{key}` in the request's _meta names no session: {why}"),
            "the client sets this key, not the model: correct its configuration, or leave the key out",
        )
    }

    /// There is no such job.
    pub(crate) fn unknown(text: &str) -> Self {
        FindError::NotFound(text.to_owned()).into()
    }

    pub(crate) fn message(&self) -> &str {
        &self.detail.message
    }

    /// The answer of a tool that failed.
    pub(crate) fn into_result(self) -> CallToolResult {
        let Self { detail } = self;
        let tip = detail.tip.as_ref().map_or_else(String::new, |tip| format!("\ntip: {tip}"));
        let mut result =
            CallToolResult::error(vec![ContentBlock::text(format!("error: {}{tip}", detail.message))]);
        let document = ErrorDocument { format: hearback::core::DOCUMENT_FORMAT, error: detail };
        result.structured_content = Some(json!(document));
        result
    }
}

/// What failed and why, in one line.
fn message(error: &dyn Error) -> String {
    // Errors quote arguments and stored text, which may hold control characters.
    let mut parts = vec![clean_line(&error.to_string())];
    let mut cause = error.source();
    while let Some(inner) = cause {
        let part = clean_line(&inner.to_string());
        // A transparent wrapper repeats the message of its source.
        if !parts.iter().any(|before| before.ends_with(&part)) {
            parts.push(part);
        }
        cause = inner.source();
    }
    parts.join(": ")
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let (kind, tip) = match &error {
            FindError::Ambiguous { .. } => (ErrorKind::AmbiguousJob, "give more characters of the id"),
            FindError::Store(_) => return Self::new(ErrorKind::Store, &error, None),
            _ => (ErrorKind::UnknownJob, "`list` shows the jobs of your session and their ids"),
        };
        Self::new(kind, &error, Some(tip.to_owned()))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(ErrorKind::Store, &error, None)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(ErrorKind::Failed, &error, None)
    }
}

impl From<Denied> for Failure {
    fn from(error: Denied) -> Self {
        let tip =
            "HEARBACK_DENY comes from the program that started this server; a person can change it there";
        Self::new(ErrorKind::Denied, &error, Some(tip.to_owned()))
    }
}

impl From<Guarded<StoreError>> for Failure {
    fn from(error: Guarded<StoreError>) -> Self {
        match error {
            Guarded::Failed(error) => error.into(),
            Guarded::Denied(denied) => denied.into(),
            _ => Self::new(ErrorKind::Failed, &error, None),
        }
    }
}

impl From<Guarded<KillError>> for Failure {
    fn from(error: Guarded<KillError>) -> Self {
        match error {
            Guarded::Denied(denied) => denied.into(),
            Guarded::Failed(KillError::Wait(error)) => error.into(),
            Guarded::Failed(error) => {
                let tip =
                    matches!(error, KillError::Unanswered(_)).then(|| "call `kill` with `force`".to_owned());
                Self::new(ErrorKind::NotKilled, &error, tip)
            }
            _ => Self::new(ErrorKind::Failed, &error, None),
        }
    }
}

impl From<WaitError> for Failure {
    fn from(error: WaitError) -> Self {
        let kind = match error {
            WaitError::Gone(_) => ErrorKind::UnknownJob,
            WaitError::Store { .. } => ErrorKind::Store,
            _ => ErrorKind::Failed,
        };
        Self::new(kind, &error, None)
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        let (kind, tip) = match error {
            RequestError::NoDirectory(_) => (ErrorKind::Failed, "give an absolute `cwd`"),
            _ => (ErrorKind::Usage, "give `command` or `argv`"),
        };
        Self::new(kind, &error, Some(tip.to_owned()))
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        let see = |id: &JobId| Some(format!("call `show` with job {id}"));
        let (kind, tip) = match &error {
            LaunchError::Denied(denied) => return (*denied).into(),
            LaunchError::NoSink(_) => {
                (ErrorKind::NoSink, Some("a person has to correct the sinks of this server or of the settings".into()))
            }
            LaunchError::TooDeep { .. } | LaunchError::TooFast { .. } => (
                ErrorKind::ChainLimit,
                Some("launch it with `notify_on_complete` false, or ask a person whether the chain is intended".into()),
            ),
            LaunchError::Uncounted(_) => (ErrorKind::Store, None),
            LaunchError::Failed(failure) => match failure {
                LaunchFailure::KeyTaken { id, .. } => (ErrorKind::KeyTaken, see(id)),
                LaunchFailure::FailedToStart { error, .. } => match error.kind {
                    StartErrorKind::NotFound => (
                        ErrorKind::NotFound,
                        Some("check the name; for shell syntax such as pipes use `command` in place of `argv`".into()),
                    ),
                    StartErrorKind::NotExecutable => {
                        (ErrorKind::NotExecutable, Some("make it executable, or name its interpreter first".into()))
                    }
                    StartErrorKind::BadDirectory => (ErrorKind::NotStarted, Some("give another `cwd`".into())),
                    _ => (ErrorKind::NotStarted, None),
                },
                LaunchFailure::Unconfirmed { id } | LaunchFailure::SupervisorDied { id } => {
                    (ErrorKind::NotStarted, see(id))
                }
                LaunchFailure::Store(_) => (ErrorKind::Store, None),
                _ => (ErrorKind::NotStarted, None),
            },
            _ => (ErrorKind::Failed, None),
        };
        Self::new(kind, &error, tip)
    }
}
