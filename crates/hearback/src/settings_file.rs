//! Reading the settings file: values with their position, read through serde, one at a time.
//!
//! A file is read in two steps, so that one invalid value does not affect the rest: first its tables with the position
//! of each key and value, then each value by itself.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::{Deserialize, de};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// At which byte of the file, if it is about one place.
    pub(crate) at: Option<usize>,
    /// What is wrong. It never repeats a value: that could be a secret in the wrong place.
    pub(crate) message: String,
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { at: None, message }
    }
}

impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<toml::de::Error> for Problem {
    fn from(error: toml::de::Error) -> Self {
        // The text before it repeats the value, which may be a secret.
        let message = match error.message().split_once(", expected ") {
            Some((_, expected)) => format!("expected {expected}"),
            None => error.message().to_owned(),
        };
        Self { at: error.span().map(|span| span.start), message }
    }
}

/// Line and column of a byte, both from 1 on; columns are characters.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The end of an error message about an unknown key: the known key that is most similar, if one is similar enough.
pub(crate) fn suggestion<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = |name: &&str| strsim::damerau_levenshtein(unknown, name);
    let nearest = known.min_by_key(near).filter(|name| near(name) <= (unknown.chars().count() / 3).max(1));
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// A table of the file, with the position of each key and value.
#[derive(Debug, Default)]
pub(crate) struct SpannedTable<'i>(Vec<(Spanned<String>, SpannedValue<'i>)>);

/// A value of the file, with its position.
#[derive(Debug, Clone)]
pub(crate) struct SpannedValue<'i>(Spanned<DeValue<'i>>);

impl<'i> SpannedTable<'i> {
    /// The table that is a whole file.
    pub(crate) fn parse(text: &'i str) -> Result<Self, Problem> {
        Ok(Self::from(DeTable::parse(text)?.into_inner()))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_ref().as_str())
    }

    /// A problem with a key.
    pub(crate) fn at(&self, key: &str, message: String) -> Problem {
        Problem { at: self.key_at(key), message }
    }

    /// The position of a key, in bytes.
    pub(crate) fn key_at(&self, key: &str) -> Option<usize> {
        self.0.iter().find(|(name, _)| name.as_ref() == key).map(|(name, _)| name.span().start)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&SpannedValue<'i>> {
        self.0.iter().find(|(name, _)| name.as_ref() == key).map(|(_, value)| value)
    }

    /// The entries whose keys are chosen, and the others.
    pub(crate) fn split(self, is_chosen: impl Fn(&str) -> bool) -> (Self, Self) {
        let (chosen, others) = self.0.into_iter().partition(|(key, _)| is_chosen(key.as_ref()));
        (Self(chosen), Self(others))
    }

    /// Every key with its position, and its value.
    pub(crate) fn entries(self) -> impl Iterator<Item = (String, usize, SpannedValue<'i>)> {
        self.0.into_iter().map(|(key, value)| {
            let at = key.span().start;
            (key.into_inner(), at, value)
        })
    }

    /// The whole table as one type. A problem with a value names its key.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, Problem> {
        let places: Vec<_> =
            self.0.iter().map(|(key, value)| (key.get_ref().clone(), value.0.span())).collect();
        let table: DeTable<'i> = self
            .0
            .into_iter()
            .map(|(key, value)| {
                let span = key.span();
                (Spanned::new(span, key.into_inner().into()), value.0)
            })
            .collect();
        T::deserialize(toml::Deserializer::from(Spanned::new(0..0, table))).map_err(|error| {
            let mut problem = Problem::from(error);
            let place = places.iter().find(|(_, span)| problem.at.is_some_and(|at| span.contains(&at)));
            if let Some((key, _)) = place {
                problem.message = format!("`{key}`: {}", problem.message);
            }
            problem
        })
    }
}

impl<'i> From<DeTable<'i>> for SpannedTable<'i> {
    fn from(table: DeTable<'i>) -> Self {
        let owned = |key: Spanned<std::borrow::Cow<'_, str>>| {
            let span = key.span();
            Spanned::new(span, key.into_inner().into_owned())
        };
        Self(table.into_iter().map(|(key, value)| (owned(key), SpannedValue(value))).collect())
    }
}

impl<'i> SpannedValue<'i> {
    /// Its position, in bytes.
    pub(crate) fn at(&self) -> usize {
        self.0.span().start
    }

    /// The value as one type.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, Problem> {
        let at = self.at();
        T::deserialize(toml::de::ValueDeserializer::from(self.0)).map_err(|error| {
            let problem = Problem::from(error);
            Problem { at: problem.at.or(Some(at)), ..problem }
        })
    }

    /// The table that it is, if it is one.
    pub(crate) fn table(self) -> Result<SpannedTable<'i>, Problem> {
        let at = self.at();
        match self.0.into_inner() {
            DeValue::Table(table) => Ok(table.into()),
            _ => Err(Problem { at: Some(at), message: "expected a table".into() }),
        }
    }
}

/// A value as a variable of the environment would hold it: text, or a number.
#[derive(Debug)]
pub(crate) struct Scalar(pub(crate) String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Scalar;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text, a number, `true` or `false`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Scalar, E> {
                Ok(Scalar(flag.to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_and_a_column_of_characters() {
        let text = "a = 1\nß = \"ü\" # x\r\nc = 3\n";
        let at = |what: &str| position(text, text.find(what).unwrap());
        assert_eq!([at("a"), at("1"), at("#"), at("c"), at("3")], [(1, 1), (1, 5), (2, 9), (3, 1), (3, 5)]);
        assert_eq!(position(text, usize::MAX), (4, 1));
    }

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let known = ["max_jobs", "max_rate", "busy"];
        let suggested = |name| suggestion(name, known.into_iter());
        assert_eq!(suggested("max_job"), "; did you mean `max_jobs`?");
        assert_eq!(suggested("bsuy"), "; did you mean `busy`?");
        assert_eq!(suggested("colour"), "");
    }

    #[test]
    fn a_wrong_value_is_placed_and_never_repeated() {
        let table = || SpannedTable::parse("a = 1\nb = 'hush-4711'\n").unwrap();
        let problem = table().read::<std::collections::BTreeMap<String, u8>>().unwrap_err();
        assert_eq!(problem, Problem { at: Some(10), message: "`b`: expected u8".into() });
        let value = table().get("b").unwrap().clone();
        assert_eq!(value.clone().read::<bool>().unwrap_err().message, "expected a boolean");
        assert_eq!(value.clone().table().unwrap_err().at, Some(10));
        assert_eq!(value.read::<Scalar>().unwrap().0, "hush-4711");
        let broken = SpannedTable::parse("a = 1\nb = = 2").unwrap_err();
        assert_eq!(broken.at.map(|at| position("a = 1\nb = = 2", at).0), Some(2));
    }
}
