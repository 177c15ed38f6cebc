//! File names for names that a user may choose freely: the first 128 bits of a SHA-256, in hexadecimal digits.
//!
//! A file name cannot be forged: no choice of a session name leads to the folder of another session. The files also
//! contain the full name.

use std::path::Path;

use hearback_core::{Key, Reader, Session};
use sha2::{Digest, Sha256};

/// Enough bytes that no two names collide, and few enough for the shortest limits on paths.
const NAME_BYTES: usize = 16;
/// Enough to distinguish the few stores of one machine.
const SHORT_DIGITS: usize = 8;

/// The name of a session's folder.
pub(crate) fn session_name(session: &Session) -> String {
    name(&[session.as_str().as_bytes()])
}

/// The name of a reader in the names of files; without one it is the parent.
pub(crate) fn reader_name(reader: Option<&Reader>) -> String {
    match reader {
        Some(reader) => name(&[&[1], reader.as_str().as_bytes()]),
        None => name(&[&[0]]),
    }
}

/// The name of the file of a key, which belongs to a session or to none.
pub(crate) fn key_name(session: Option<&Session>, key: &Key) -> String {
    let mark = [u8::from(session.is_some())];
    let owner = session.map_or("", Session::as_str);
    // The length of the first part comes first, so that no two pairs give the same bytes.
    let length = (owner.len() as u64).to_le_bytes();
    name(&[&mark, &length, owner.as_bytes(), key.as_str().as_bytes()])
}

/// A short name for a store, from its path, to distinguish several stores.
pub fn store_name(home: &Path) -> String {
    name(&[home.as_os_str().as_encoded_bytes()])[..SHORT_DIGITS].to_owned()
}

fn name(parts: &[&[u8]]) -> String {
    let hash = parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize();
    hash[..NAME_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_first_half_of_a_sha_256() {
        // The first example of the standard.
        assert_eq!(session_name(&Session::parse("abc").unwrap()), "ba7816bf8f01cfea414140de5dae2223");
        assert_eq!(store_name(Path::new("abc")), "ba7816bf");
    }

    #[test]
    fn what_differs_has_names_that_differ() {
        let (session, key) = (|text| Session::parse(text).unwrap(), |text| Key::parse(text).unwrap());
        let reader = Reader::parse("\0").unwrap();
        assert_ne!(reader_name(None), reader_name(Some(&reader)));
        assert_ne!(key_name(None, &key("a")), key_name(Some(&session("a")), &key("a")));
        let (left, right) = ((session("a\0b"), key("c")), (session("a"), key("b\0c")));
        assert_ne!(key_name(Some(&left.0), &left.1), key_name(Some(&right.0), &right.1));
    }
}
