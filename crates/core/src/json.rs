//! Reading JSON by one way: first as a [`Value`], then as a type.
//!
//! serde compiles the code that reads a type for every way in which it is read: from text, from a value, and from the
//! copy that it makes of a document of unknown kind. Each is as large as the others.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

pub(crate) use serde_json::from_value;

/// Reads a document.
///
/// # Errors
///
/// When it is not JSON, or not the JSON of this type.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    from_value(serde_json::from_slice(bytes)?)
}

/// Reads a document of one of several kinds that no field names: as the first kind that it can be.
pub(crate) fn first_of<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    kinds: &[fn(Value) -> serde_json::Result<T>],
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let read = kinds.iter().find_map(|kind| kind(value.clone()).ok());
    read.ok_or_else(|| D::Error::custom("it is of no known kind"))
}
