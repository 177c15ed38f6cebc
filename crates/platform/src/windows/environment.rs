//! The environment of a child, as one block of text.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;

use windows_sys::Win32::Globalization::{
    CSTR_EQUAL, CSTR_GREATER_THAN, CSTR_LESS_THAN, CompareStringOrdinal,
};

/// Our own environment with `changes`, in their order: a value sets a variable, nothing removes it.
pub(crate) fn block<'a>(
    changes: impl IntoIterator<Item = (&'a OsStr, Option<&'a OsStr>)>,
) -> io::Result<Vec<u16>> {
    changed(std::env::vars_os(), changes)
}

fn changed<'a>(
    variables: impl Iterator<Item = (OsString, OsString)>,
    changes: impl IntoIterator<Item = (&'a OsStr, Option<&'a OsStr>)>,
) -> io::Result<Vec<u16>> {
    let mut all: BTreeMap<Name, Vec<u16>> =
        variables.map(|(name, value)| (Name::from(&*name), value.encode_wide().collect())).collect();
    for (name, value) in changes {
        // Taken out first: the new spelling of a name replaces the old one.
        all.remove(&Name::from(name));
        if let Some(value) = value {
            all.insert(Name::from(name), value.encode_wide().collect());
        }
    }
    let mut block = Vec::new();
    for (Name(name), value) in all {
        // The current directories of drives are kept in variables whose names begin with the sign.
        let misplaced_sign = name.iter().skip(1).any(|unit| *unit == u16::from(b'='));
        if name.is_empty() || misplaced_sign || name.contains(&0) || value.contains(&0) {
            let why = format!("`{}` cannot be set in an environment", String::from_utf16_lossy(&name));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        block.extend(name);
        block.push(u16::from(b'='));
        block.extend(value);
        block.push(0);
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}

/// The name of a variable, in the order that the system wants: by units, and without regard to case.
struct Name(Vec<u16>);

impl From<&OsStr> for Name {
    fn from(name: &OsStr) -> Self {
        Self(name.encode_wide().collect())
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = |name: &Self| i32::try_from(name.0.len()).expect("a name is shorter than 2 GiB");
        // SAFETY: both pointers are to as many units as are said.
        let order = unsafe {
            CompareStringOrdinal(self.0.as_ptr(), length(self), other.0.as_ptr(), length(other), 1)
        };
        match order {
            CSTR_LESS_THAN => Ordering::Less,
            CSTR_EQUAL => Ordering::Equal,
            CSTR_GREATER_THAN => Ordering::Greater,
            // Not to be expected; then at least equal names are equal.
            _ => self.0.cmp(&other.0),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Name {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(variables: &[(&str, &str)], changes: &[(&str, Option<&str>)]) -> io::Result<String> {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let changes = changes.iter().map(|(name, value)| (OsStr::new(*name), value.map(OsStr::new)));
        changed(variables, changes).map(|block| String::from_utf16(&block).unwrap())
    }

    #[test]
    fn names_are_sorted_and_changed_without_regard_to_case() {
        let block = shown(
            &[("b", "2"), ("Path", "x"), ("A", "1"), ("=C:", "C:\\d"), ("gone", "y")],
            &[("PATH", Some("z")), ("GONE", None), ("c", Some(""))],
        );
        assert_eq!(block.unwrap(), "=C:=C:\\d\0A=1\0b=2\0c=\0PATH=z\0\0");
        assert_eq!(shown(&[], &[]).unwrap(), "\0\0");
    }

    #[test]
    fn what_would_become_another_variable_is_refused() {
        for name in ["", "a=b", "a\0b"] {
            assert!(shown(&[], &[(name, Some("x"))]).is_err(), "{name:?}");
        }
        assert!(shown(&[], &[("a", Some("x\0y"))]).is_err());
    }
}
