//! Which session a request belongs to.

use hearback::core::{KilledBy, Session};
use hearback::{Scope, current_session};
use rmcp::model::RequestMetaObject;

use crate::failure::Failure;

/// The key of a request's `_meta` in which a client names the session of the conversation.
const SESSION_KEY: &str = "hearback/session";
/// The same of codex, which gives its servers no environment.
const CODEX_KEY: &str = "threadId";

/// The caller of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// Its session, if it is known.
    pub(crate) session: Option<Session>,
}

impl Caller {
    /// The session of the options, else of the request, else of the environment.
    ///
    /// # Errors
    ///
    /// When one of them names an invalid session. It is not ignored: without a session, a caller sees all jobs.
    pub(crate) fn of(meta: &RequestMetaObject, fixed: Option<&Session>) -> Result<Self, Failure> {
        if let Some(session) = fixed {
            return Ok(Self { session: Some(session.clone()) });
        }
        for key in [SESSION_KEY, CODEX_KEY] {
            let Some(value) = meta.get(key).filter(|value| !value.is_null()) else { continue };
            let text = value.as_str().ok_or_else(|| Failure::session(key, "it is not text"))?;
            let session = Session::parse(text).map_err(|error| Failure::session(key, error))?;
            return Ok(Self { session: Some(session) });
        }
        Ok(Self { session: current_session().map_err(|error| Failure::usage(&error))? })
    }

    /// The jobs that it sees.
    pub(crate) fn scope(&self) -> Scope {
        self.session.clone().map_or(Scope::All, Scope::Session)
    }

    /// As the one who kills a job.
    pub(crate) fn killer(&self) -> KilledBy {
        self.session.clone().map_or(KilledBy::Person, KilledBy::Session)
    }

    /// Whether it is the owner of what belongs to `session`.
    pub(crate) fn owns(&self, session: Option<&Session>) -> bool {
        self.session.is_some() && self.session.as_ref() == session
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn caller(meta: serde_json::Value) -> Result<Option<String>, String> {
        let meta: RequestMetaObject = serde_json::from_value(meta).unwrap();
        let caller = Caller::of(&meta, None).map_err(|failure| failure.message().to_owned())?;
        Ok(caller.session.map(|session| session.to_string()))
    }

    #[test]
    fn a_request_names_its_session_and_ours_comes_before_that_of_codex() {
        assert_eq!(caller(json!({ "threadId": "t-1" })).unwrap().as_deref(), Some("t-1"));
        let both = json!({ "threadId": "t-1", "hearback/session": "s-1" });
        assert_eq!(caller(both).unwrap().as_deref(), Some("s-1"));
        let fixed = Session::parse("fixed").unwrap();
        let meta: RequestMetaObject = serde_json::from_value(json!({ "threadId": "t-1" })).unwrap();
        assert_eq!(Caller::of(&meta, Some(&fixed)).unwrap().session, Some(fixed));
    }

    #[test]
    fn an_invalid_session_is_an_error_and_not_everything() {
        for value in [json!(7), json!("")] {
            let error = caller(json!({ "hearback/session": value })).unwrap_err();
            assert!(error.contains("hearback/session"), "{error}");
        }
    }
}
