//! Names of the system and back: UTF-16 units, which are mostly Unicode.

use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::{OsStrExt, OsStringExt};

use hearback_core::OsText;

/// Whether anything can be written to a terminal, and not only text.
pub const TERMINALS_TAKE_BYTES: bool = false;

/// Takes a name of the system, losing nothing.
pub fn from_os(name: &OsStr) -> OsText {
    match name.to_str() {
        Some(text) => OsText::Text(text.to_owned()),
        None => OsText::Wide { wide: name.encode_wide().collect() },
    }
}

/// Gives the system its name back. Bytes of another system are passed on as well as they can be shown.
pub fn to_os(text: &OsText) -> OsString {
    match text {
        OsText::Text(text) => text.into(),
        OsText::Wide { wide } => OsString::from_wide(wide),
        OsText::Bytes { .. } => text.to_string().into(),
    }
}

/// Splits `NAME=VALUE` at the first `=`, without minding what the value is made of; no value when there is none.
pub fn split_variable(setting: &OsStr) -> (OsString, Option<OsString>) {
    let units: Vec<u16> = setting.encode_wide().collect();
    match units.iter().position(|unit| *unit == u16::from(b'=')) {
        None => (setting.to_owned(), None),
        Some(at) => (OsString::from_wide(&units[..at]), Some(OsString::from_wide(&units[at + 1..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_comes_back_as_it_was() {
        let name = OsString::from_wide(&[0x61, 0xd800, 0x62]);
        assert_eq!(from_os(&name), OsText::Wide { wide: vec![0x61, 0xd800, 0x62] });
        assert_eq!(to_os(&from_os(&name)), name);
        assert_eq!(to_os(&from_os(OsStr::new("ü"))), "ü");
    }

    #[test]
    fn a_variable_is_split_at_its_first_sign() {
        let split = |setting: &str| split_variable(OsStr::new(setting));
        assert_eq!(split("a=b=c"), ("a".into(), Some("b=c".into())));
        assert_eq!(split("a="), ("a".into(), Some("".into())));
        assert_eq!(split("a"), ("a".into(), None));
    }
}
