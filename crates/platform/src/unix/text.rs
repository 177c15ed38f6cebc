//! Names of the system and back: bytes, which are mostly UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use hearback_core::OsText;

/// Whether anything can be written to a terminal, and not only text.
pub const TERMINALS_TAKE_BYTES: bool = true;

/// Takes a name of the system, losing nothing.
pub fn from_os(name: &OsStr) -> OsText {
    match name.to_str() {
        Some(text) => OsText::Text(text.to_owned()),
        None => OsText::Bytes { bytes: name.as_bytes().to_vec() },
    }
}

/// Gives the system its name back. Text of another system is passed on as well as it can be shown.
pub fn to_os(text: &OsText) -> OsString {
    match text {
        OsText::Text(text) => text.into(),
        OsText::Bytes { bytes } => OsString::from_vec(bytes.clone()),
        OsText::Wide { .. } => text.to_string().into(),
    }
}

/// Splits `NAME=VALUE` at the first `=`, without minding what the value is made of; no value when there is none.
pub fn split_variable(setting: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = setting.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        None => (setting.to_owned(), None),
        Some(at) => {
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            (part(&bytes[..at]), Some(part(&bytes[at + 1..])))
        }
    }
}
