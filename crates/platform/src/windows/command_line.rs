//! One line out of many arguments, such that the C runtime of the program takes it apart into the same arguments.
//!
//! Programs with a parser of their own, `cmd` above all, read the line in their own way; so do batch files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;

/// What the system takes, the final zero included.
const MAX_UNITS: usize = 32_767;

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;
const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;

/// The line for a program that is called `name`, ended by a zero.
pub(crate) fn command_line(name: &OsStr, arguments: &[OsString]) -> io::Result<Vec<u16>> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    // The first word ends at the next quote, whatever is before it: there is no way to put one inside.
    if name.encode_wide().any(|unit| unit == QUOTE) {
        return Err(invalid(format!(
            "the name of a program cannot have a quote in it: `{}`",
            name.display()
        )));
    }
    let mut line = vec![QUOTE];
    line.extend(name.encode_wide());
    line.push(QUOTE);
    for argument in arguments {
        line.push(SPACE);
        quote(argument, &mut line);
    }
    if line.contains(&0) {
        return Err(invalid("an argument cannot have a zero in it".into()));
    }
    line.push(0);
    if line.len() > MAX_UNITS {
        let units = line.len() - 1;
        return Err(invalid(format!(
            "the command line has {units} UTF-16 units, and Windows takes at most {}",
            MAX_UNITS - 1
        )));
    }
    Ok(line)
}

/// Adds one argument to a line.
///
/// A backslash means itself, except in front of a quote: there two mean one, and an odd one makes the quote mean
/// itself. See "Parsing C command-line arguments" in Microsoft's C documentation.
fn quote(argument: &OsStr, line: &mut Vec<u16>) {
    let quoted = argument.is_empty() || argument.encode_wide().any(|unit| unit == SPACE || unit == TAB);
    if quoted {
        line.push(QUOTE);
    }
    let mut backslashes = 0;
    for unit in argument.encode_wide() {
        if unit == QUOTE {
            // As many again, and one for the quote.
            line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
        }
        backslashes = if unit == BACKSLASH { backslashes + 1 } else { 0 };
        line.push(unit);
    }
    if quoted {
        line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
        line.push(QUOTE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, arguments: &[&str]) -> String {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let mut units = command_line(OsStr::new(name), &arguments).unwrap();
        assert_eq!(units.pop(), Some(0));
        String::from_utf16(&units).unwrap()
    }

    #[test]
    fn arguments_are_quoted_as_the_c_runtime_reads_them() {
        for (argument, expected) in [
            ("plain", "plain"),
            ("", "\"\""),
            ("two words", "\"two words\""),
            ("a\tb", "\"a\tb\""),
            ("C:\\dir\\", "C:\\dir\\"),
            ("C:\\my dir\\", "\"C:\\my dir\\\\\""),
            ("say \"hi\"", "\"say \\\"hi\\\"\""),
            ("a\\\"b", "a\\\\\\\"b"),
            ("a\\\\ b", "\"a\\\\ b\""),
            ("\"", "\\\""),
            ("\\", "\\"),
        ] {
            assert_eq!(line("p", &[argument]), format!("\"p\" {expected}"), "{argument}");
        }
        assert_eq!(line("C:\\a b\\p.exe", &[]), "\"C:\\a b\\p.exe\"");
        assert_eq!(line("p", &["a", "b c"]), "\"p\" a \"b c\"");
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        assert!(command_line(OsStr::new("a\"b"), &[]).is_err());
        assert!(command_line(OsStr::new("p"), &["a\0b".into()]).is_err());
        assert!(command_line(OsStr::new("p"), &["x".repeat(40_000).into()]).is_err());
        assert!(command_line(OsStr::new("p"), &["x".repeat(32_000).into()]).is_ok());
    }
}
