//! One line out of many arguments, such that the C runtime of the program takes it apart into the same arguments.
//!
//! Batch files are read by `cmd`, which takes a line apart in its own way. Other programs with a parser of their own
//! get what the C runtime would understand.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;

/// What the system takes, the final zero included.
const MAX_UNITS: usize = 32_767;
/// What `cmd` takes of it.
const MAX_UNITS_OF_CMD: usize = 8_191;

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;
const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const PERCENT: u16 = b'%' as u16;

/// The line for a program that is called `name`, ended by a zero.
pub(crate) fn command_line(name: &OsStr, arguments: &[OsString]) -> io::Result<Vec<u16>> {
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
    finished(line, MAX_UNITS)
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Checks a line, and ends it with a zero.
fn finished(mut line: Vec<u16>, most: usize) -> io::Result<Vec<u16>> {
    if line.contains(&0) {
        return Err(invalid("an argument cannot have a zero in it".into()));
    }
    line.push(0);
    if line.len() > most {
        let units = line.len() - 1;
        let most = most - 1;
        return Err(invalid(format!(
            "the command line has {units} UTF-16 units, and at most {most} are taken"
        )));
    }
    Ok(line)
}

/// Whether a file is one that `cmd` runs. The system ignores dots and spaces at the end of a name.
pub(crate) fn is_batch_file(program: &Path) -> bool {
    let name = program.to_string_lossy().to_lowercase();
    let name = name.trim_end_matches(['.', ' ']);
    name.ends_with(".bat") || name.ends_with(".cmd")
}

/// The line that makes `cmd` run a batch file, such that its arguments stay arguments.
///
/// As the standard library does it: what could mean something is quoted, quotes are doubled, and a percent sign has
/// nothing put in front of it, by which it no longer begins the name of a variable.
///
/// # Errors
///
/// When an argument has a line break in it: `cmd` would not read on behind it.
pub(crate) fn batch_line(file: &Path, arguments: &[OsString]) -> io::Result<Vec<u16>> {
    let refused =
        |what: &OsStr, why| invalid(format!("a batch file cannot be given `{}`: {why}", what.display()));
    if file.as_os_str().encode_wide().any(|unit| unit == QUOTE) {
        return Err(refused(file.as_os_str(), "it is no name of a file"));
    }
    // With extensions, on which the trick with the percent sign rests; without a second kind of variable, and without
    // commands that the user's settings would run first. One more pair of quotes is around the whole, and is taken off.
    let mut line: Vec<u16> = "cmd.exe /e:ON /v:OFF /d /s /c \"\"".encode_utf16().collect();
    line.extend(file.as_os_str().encode_wide());
    line.push(QUOTE);
    for argument in arguments {
        if argument.encode_wide().any(|unit| unit == u16::from(b'\r') || unit == u16::from(b'\n')) {
            return Err(refused(argument, "it has a line break in it"));
        }
        line.push(SPACE);
        quote_for_cmd(argument, &mut line);
    }
    line.push(QUOTE);
    finished(line, MAX_UNITS_OF_CMD)
}

fn quote_for_cmd(argument: &OsStr, line: &mut Vec<u16>) {
    // One that ends in a backslash would escape a quote that the batch file puts behind it.
    let harmless = |unit: u16| {
        u8::try_from(unit)
            .map_or(unit > 0x9f, |byte| byte.is_ascii_alphanumeric() || br"#$*+-./:?@\_".contains(&byte))
    };
    let quoted = argument.encode_wide().last().is_none_or(|last| last == BACKSLASH)
        || !argument.encode_wide().all(harmless);
    if quoted {
        line.push(QUOTE);
    }
    let mut backslashes = 0;
    for unit in argument.encode_wide() {
        if unit == QUOTE {
            line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
            line.push(QUOTE);
        } else if unit == PERCENT {
            // A part of a variable that is always there, from nowhere to nowhere: nothing.
            line.extend("%%cd:~,".encode_utf16());
        }
        backslashes = if unit == BACKSLASH { backslashes + 1 } else { 0 };
        line.push(unit);
    }
    if quoted {
        line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
        line.push(QUOTE);
    }
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

    #[test]
    fn batch_files_are_known_however_they_are_spelled() {
        for (name, batch) in
            [("a.bat", true), ("b.CMD", true), ("c.cmd. .", true), ("cmd.exe", false), ("cmd", false)]
        {
            assert_eq!(is_batch_file(Path::new(name)), batch, "{name}");
        }
    }

    #[test]
    fn a_batch_file_gets_its_arguments_and_nothing_else_happens() {
        let line = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            let mut units = batch_line(Path::new(r"C:\a b\x.cmd"), &arguments).unwrap();
            assert_eq!(units.pop(), Some(0));
            String::from_utf16(&units).unwrap()
        };
        let expected = |rest: &str| format!(r#"cmd.exe /e:ON /v:OFF /d /s /c ""C:\a b\x.cmd"{rest}""#);
        assert_eq!(line(&[]), expected(""));
        for (argument, quoted) in [
            ("plain", "plain"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("a&calc", "\"a&calc\""),
            ("\"&calc&\"", "\"\"\"&calc&\"\"\""),
            ("%PATH%", "\"%%cd:~,%PATH%%cd:~,%\""),
            ("ends\\", "\"ends\\\\\""),
            ("grüße", "\"grüße\""),
            ("日本", "日本"),
        ] {
            assert_eq!(line(&[argument]), expected(&format!(" {quoted}")), "{argument}");
        }
        for argument in ["a\nb", "a\rb", "a\0b"] {
            assert!(batch_line(Path::new("x.cmd"), &[argument.into()]).is_err(), "{argument:?}");
        }
        assert!(batch_line(Path::new("x.cmd"), &["x".repeat(9_000).into()]).is_err());
    }
}
