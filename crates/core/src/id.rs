//! The ids of jobs: made from the time and random bits, and found by a few of their characters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Crockford's base 32 in lower case: no letter that could be read as a digit, sorted like the numbers it stands for.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS: usize = 9;
const LENGTH: usize = 16;

/// The fewest characters by which a job can be named.
pub const SHORT_ID_MIN: usize = 4;

/// Names a job on disk and on the command line. Always a legal file name on Windows and Unix.
///
/// The first nine characters are the time of launch, so ids sort by age; the other seven are random, so the tail of
/// an id is its best short form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct JobId(String);

/// What is wrong with a text that should name a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdError {
    /// The text is shorter than [`SHORT_ID_MIN`].
    #[error("`{0}` is too short to name a job: give at least {SHORT_ID_MIN} characters of its id")]
    TooShort(String),
    /// The text has a character that no id has, or is too long.
    #[error("`{0}` is not a job id")]
    NotAnId(String),
}

impl JobId {
    /// Makes an id from the time and 35 random bits; the rest of `random` is ignored.
    pub fn mint(unix_millis: u64, random: u64) -> Self {
        let mut id = String::with_capacity(LENGTH);
        push_base32(&mut id, unix_millis, TIME_CHARS);
        push_base32(&mut id, random, LENGTH - TIME_CHARS);
        Self(id)
    }

    /// Checks that `text` is a whole id.
    ///
    /// # Errors
    ///
    /// When it is not exactly sixteen characters of the alphabet.
    pub fn parse(text: &str) -> Result<Self, ParseIdError> {
        if text.len() == LENGTH && text.bytes().all(|b| ALPHABET.contains(&b)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseIdError::NotAnId(text.to_owned()))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When it was made, in milliseconds since 1970.
    pub fn unix_millis(&self) -> u64 {
        let digit = |byte| ALPHABET.iter().position(|known| *known == byte).unwrap_or(0) as u64;
        self.0.bytes().take(TIME_CHARS).fold(0, |millis, byte| millis * 32 + digit(byte))
    }

    /// The folder of history that this job belongs to: jobs of about a quarter of an hour share one.
    pub fn era(&self) -> &str {
        &self.0[..5]
    }

    /// The short form that people see: the random tail, because launches of one minute share their beginning.
    pub fn short(&self) -> &str {
        &self.0[TIME_CHARS..]
    }
}

fn push_base32(out: &mut String, value: u64, chars: usize) {
    for place in (0..chars).rev() {
        let digit = (value >> (5 * place)) & 31;
        out.push(char::from(ALPHABET[digit as usize]));
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for JobId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for JobId {
    type Error = ParseIdError;
    fn try_from(text: String) -> Result<Self, ParseIdError> {
        Self::parse(&text)
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0
    }
}

/// What a person typed to name a job: a whole id, or its first or last characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPattern(String);

impl IdPattern {
    /// Checks that `text` could be an id or a part of one. Upper case counts as lower case.
    ///
    /// # Errors
    ///
    /// When it is too short to be safe, or has a character that no id has.
    pub fn parse(text: &str) -> Result<Self, ParseIdError> {
        let lower = text.to_ascii_lowercase();
        if lower.len() > LENGTH || !lower.bytes().all(|b| ALPHABET.contains(&b)) {
            Err(ParseIdError::NotAnId(text.to_owned()))
        } else if lower.len() < SHORT_ID_MIN {
            Err(ParseIdError::TooShort(text.to_owned()))
        } else {
            Ok(Self(lower))
        }
    }

    /// The id itself, when all of it was given.
    pub fn whole(&self) -> Option<JobId> {
        JobId::parse(&self.0).ok()
    }

    /// Tells whether `id` begins or ends with this text.
    pub fn matches(&self, id: &JobId) -> bool {
        id.0.starts_with(&self.0) || id.0.ends_with(&self.0)
    }
}

impl fmt::Display for IdPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_time_at_which_it_was_made() {
        for millis in [0, 1, 1_763_000_000_123, (1 << 45) - 1] {
            assert_eq!(JobId::mint(millis, u64::MAX).unix_millis(), millis);
        }
    }

    #[test]
    fn ids_sort_by_time() {
        let early = JobId::mint(1_000, u64::MAX);
        let late = JobId::mint(1_001, 0);
        assert!(early < late);
        assert_eq!(early.as_str().len(), LENGTH);
    }

    #[test]
    fn only_whole_ids_parse() {
        let id = JobId::mint(1_763_000_000_000, 7);
        assert_eq!(JobId::parse(id.as_str()), Ok(id.clone()));
        for bad in
            ["", "abc", "../../etc/passwd", "0000000000000000x", "000000000000000i", "000000000000000A"]
        {
            assert!(JobId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn scenario_41_a_short_id_is_a_prefix_or_suffix_of_four_or_more() {
        let id = JobId::parse("0123456789abcdef").unwrap();
        for good in ["0123", "cdef", "CDEF", "0123456789abcdef"] {
            assert!(IdPattern::parse(good).unwrap().matches(&id), "{good}");
        }
        assert!(!IdPattern::parse("5678").unwrap().matches(&id));
        assert_eq!(IdPattern::parse("def"), Err(ParseIdError::TooShort("def".into())));
        assert_eq!(IdPattern::parse("../x"), Err(ParseIdError::NotAnId("../x".into())));
    }
}
