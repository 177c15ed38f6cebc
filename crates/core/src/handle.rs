//! How an executor finds its target again: recorded in `target.json`, and read only by the same executor.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ProcessIdentity;

/// Names one target for the executor that started it. Opaque to everything else.
///
/// `local` stores the identity of a process. Other executors store what they need: a host and a remote id, a cluster
/// and a job number. It is always a JSON object, and one field has the same meaning for all executors: `pid` is the
/// number of a process on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetHandle(Map<String, Value>);

impl TargetHandle {
    /// Stores what an executor needs to find its target.
    ///
    /// # Errors
    ///
    /// When `content` does not serialize as a JSON object.
    pub fn new(content: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(content)?)
    }

    /// The handle of a process on this machine.
    pub fn of_process(process: &ProcessIdentity) -> Self {
        Self::new(process).expect("an identity is an object with text keys")
    }

    /// What the executor stored; none if another kind of executor wrote it.
    pub fn content<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&Value::Object(self.0.clone())).ok()
    }

    /// The process of the target, if it is a process on this machine.
    pub fn process(&self) -> Option<ProcessIdentity> {
        self.content()
    }

    /// The pid on this machine, for people; none for a target that runs elsewhere.
    pub fn pid(&self) -> Option<u32> {
        self.0.get("pid")?.as_u64()?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use serde_json::json;

    #[test]
    fn a_handle_keeps_what_its_executor_stored() {
        let process = sample::process(7);
        let local = TargetHandle::of_process(&process);
        assert_eq!((local.process(), local.pid()), (Some(process.clone()), Some(7)));
        assert_eq!(serde_json::to_value(&local).unwrap(), serde_json::to_value(&process).unwrap());

        let remote = TargetHandle::new(&json!({ "cluster": "c", "job": 77 })).unwrap();
        assert_eq!((remote.process(), remote.pid()), (None, None));
        assert_eq!(remote.content::<Value>().unwrap()["job"], 77);
        assert!(TargetHandle::new(&"text").is_err(), "a handle is an object");
    }

    #[test]
    fn targets_of_earlier_builds_are_still_read() {
        let target = sample::target();
        let mut json = serde_json::to_value(&target).unwrap();
        json["process"] = json["handle"].take();
        json.as_object_mut().unwrap().remove("handle");
        assert_eq!(serde_json::from_value::<crate::Target>(json).unwrap(), target);
    }
}
