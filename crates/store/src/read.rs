//! Reading facts: bounded, checked, and never more certain than the file is.

use std::path::Path;

use hearback_core::port::disk::{Disk, ReadError};
use hearback_core::port::record::StoreError;
use hearback_core::{FORMAT, Read};
use serde::de::DeserializeOwned;

/// More than any fact needs: a command line has at most two mebibytes, and JSON can make six of each.
const MAX_FACT_BYTES: u64 = 16 * 1024 * 1024;

/// Reads one fact.
///
/// # Errors
///
/// Only when the system failed in a way that says nothing about the file, such as running out of descriptors: that
/// must not pass for a damaged fact.
pub(crate) fn fact<T: DeserializeOwned>(disk: &dyn Disk, path: &Path) -> Result<Read<T>, StoreError> {
    let bytes = match disk.read(path, MAX_FACT_BYTES) {
        Ok(None) => return Ok(Read::Absent),
        Ok(Some(bytes)) => bytes,
        Err(ReadError::Io(error)) => {
            return match error.kind() {
                std::io::ErrorKind::PermissionDenied => Ok(Read::Unreadable("permission denied".into())),
                _ => Err(error.into()),
            };
        }
        Err(refused) => return Ok(Read::Unreadable(refused.to_string())),
    };
    Ok(parse(&bytes))
}

/// What a file says, whether or not this build understands it; nothing when it is not there or not JSON.
pub(crate) fn raw(disk: &dyn Disk, path: &Path) -> Result<Option<serde_json::Value>, StoreError> {
    match disk.read(path, MAX_FACT_BYTES) {
        Ok(bytes) => Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok())),
        Err(ReadError::Io(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Read<T> {
    if bytes.is_empty() {
        return Read::Unreadable("empty".into());
    }
    let value: serde_json::Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return Read::Unreadable(format!("not valid JSON: {error}")),
    };
    match value.get("format").and_then(serde_json::Value::as_u64) {
        None => return Read::Unreadable("it states no format".into()),
        Some(format) if format > u64::from(FORMAT) => {
            return Read::Newer(u32::try_from(format).unwrap_or(u32::MAX));
        }
        Some(_) => {}
    }
    match serde_json::from_value(value) {
        Ok(fact) => Read::Present(fact),
        Err(error) => Read::Unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;
    use hearback_core::{Begin, End, Spec};

    #[test]
    fn a_damaged_fact_is_never_more_than_damaged() {
        for bytes in [&b""[..], b"{", b"null", b"[]", b"{\"format\":1}", b"\xff\xfe", b"{\"format\":\"1\"}"] {
            assert!(matches!(parse::<End>(bytes), Read::Unreadable(_)), "{bytes:?}");
        }
        let deep = format!("{{\"format\":1,\"x\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(matches!(parse::<End>(deep.as_bytes()), Read::Unreadable(_)));
        assert_eq!(parse::<Begin>(br#"{"format":2,"by":"nobody"}"#), Read::Newer(2));
    }

    #[test]
    fn every_prefix_of_a_fact_is_unreadable() {
        let whole = serde_json::to_vec(&sample::end(0)).unwrap();
        for cut in 0..whole.len() {
            assert!(matches!(parse::<End>(&whole[..cut]), Read::Unreadable(_)), "cut at {cut}");
        }
    }

    #[test]
    fn unknown_fields_survive() {
        let mut value = serde_json::to_value(sample::spec("s")).unwrap();
        value["colour"] = "green".into();
        let Read::Present(spec) = parse::<Spec>(value.to_string().as_bytes()) else { panic!("unreadable") };
        assert_eq!(serde_json::to_value(&spec).unwrap(), value);
    }
}
