//! What `show` says of a job, and what a test expects of it.

use std::fmt::{self, Display, Formatter};
use std::ops::Deref;

use serde_json::{Value, json};

/// A job as `show --json` has it.
///
/// The methods that expect something panic where they are called, and show the whole job. What has no method is read
/// like any JSON: `job["pid"]`.
#[derive(Debug, Clone)]
pub struct Job {
    shown: Value,
    about: Option<String>,
}

impl Job {
    /// Takes what was printed, or a part of it: a job of a list, or of a delivery.
    pub fn new(shown: Value) -> Job {
        Job { shown, about: None }
    }

    /// Says which of several cases this is, for the message of a failure.
    pub fn in_case(self, case: impl Display) -> Job {
        Job { about: Some(case.to_string()), ..self }
    }

    /// Says why something is expected, for the message of a failure.
    pub fn because(self, why: &str) -> Job {
        self.in_case(why)
    }

    /// The JSON alone.
    pub fn into_json(self) -> Value {
        self.shown
    }

    /// Expects this state: `running`, `done`, `failed`.
    #[track_caller]
    pub fn state_is(&self, state: &str) -> &Job {
        self.has("/state", state)
    }

    /// Expects that it ended by itself, with this exit code.
    #[track_caller]
    pub fn exited(&self, code: i32) -> &Job {
        self.outcome_is(json!({"kind": "exited", "code": code}))
    }

    /// Expects that its end is unknown, for this reason.
    #[track_caller]
    pub fn is_lost(&self, reason: &str) -> &Job {
        self.outcome_is(json!({"kind": "lost", "reason": reason}))
    }

    /// Expects this outcome and nothing more in it.
    #[track_caller]
    pub fn outcome_is(&self, outcome: Value) -> &Job {
        self.has("/outcome", outcome)
    }

    /// Expects an outcome of this kind: `exited`, `killed`, `timed_out`, `lost`.
    #[track_caller]
    pub fn ended_as(&self, kind: &str) -> &Job {
        self.has("/outcome/kind", kind)
    }

    /// Expects that its follow-up is in this state: `waiting`, `pending`, `delivered`, `not_wanted`, `dead_letter`.
    #[track_caller]
    pub fn follow_up_is(&self, state: &str) -> &Job {
        self.has("/follow_up/state", state)
    }

    /// Expects this value at a place, which is named as a JSON pointer: `/outcome/by`.
    #[track_caller]
    pub fn has(&self, place: &str, expected: impl Into<Value>) -> &Job {
        let expected = expected.into();
        let found = self.shown.pointer(place);
        assert!(found == Some(&expected), "`{place}` is {}, not {expected}: {self}", Absent(found));
        self
    }

    /// Expects that there is nothing at a place.
    #[track_caller]
    pub fn lacks(&self, place: &str) -> &Job {
        let found = self.shown.pointer(place);
        assert!(found.is_none(), "`{place}` is {}, and should be absent: {self}", Absent(found));
        self
    }

    /// Expects that one of its notes contains this.
    #[track_caller]
    pub fn notes(&self, text: &str) -> &Job {
        let notes = self.shown["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found = notes.iter().filter_map(Value::as_str).any(|note| note.contains(text));
        assert!(found, "no note says `{text}`: {self}");
        self
    }
}

impl Deref for Job {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.shown
    }
}

impl PartialEq for Job {
    fn eq(&self, other: &Job) -> bool {
        self.shown == other.shown
    }
}

impl PartialEq<Value> for Job {
    fn eq(&self, other: &Value) -> bool {
        self.shown == *other
    }
}

impl PartialEq<Job> for Value {
    fn eq(&self, other: &Job) -> bool {
        *self == other.shown
    }
}

impl Display for Job {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.about {
            Some(about) => write!(f, "[{about}] {}", self.shown),
            None => write!(f, "{}", self.shown),
        }
    }
}

/// A value for a message, or the word for none.
struct Absent<'a>(Option<&'a Value>);

impl Display for Absent<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("absent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn job() -> Job {
        Job::new(json!({
            "state": "done", "outcome": {"kind": "exited", "code": 0},
            "follow_up": {"state": "pending"}, "notes": ["end cannot be read: empty"], "paused": null,
        }))
    }

    fn message(expect: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(expect)).expect_err("it should have failed");
        panic.downcast_ref::<String>().expect("a message").clone()
    }

    #[test]
    fn what_is_so_can_be_said_in_one_line() {
        job().state_is("done").exited(0).ended_as("exited").follow_up_is("pending");
        job().lacks("/survivors").lacks("/outcome/by").notes("cannot be read").has("/outcome/code", 0);
    }

    #[test]
    fn what_is_not_so_is_shown_with_the_whole_job_and_its_case() {
        let told = message(|| drop(job().in_case("empty").state_is("failed").clone()));
        assert!(told.starts_with("`/state` is \"done\", not \"failed\": [empty] {"), "{told}");
        assert!(message(|| drop(job().is_lost("unreadable").clone())).starts_with("`/outcome` is {"));
        assert!(message(|| drop(job().exited(1).clone())).starts_with("`/outcome` is {"));
        assert!(message(|| drop(job().has("/pid", 7).clone())).starts_with("`/pid` is absent, not 7: {"));
        assert!(message(|| drop(job().notes("another").clone())).starts_with("no note says `another`"));
        // What is there is not absent, even if it is null.
        assert!(message(|| drop(job().lacks("/paused").clone())).starts_with("`/paused` is null"));
    }
}
