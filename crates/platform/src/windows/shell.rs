//! The shells of Windows: PowerShell, else `cmd`, or the one that the caller chose.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hearback_core::StartError;
use hearback_core::port::executor::Script;

use super::process::plain;
use super::system;
use crate::program;

/// What a shell understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    PowerShell,
    Cmd,
    /// All others: bash, and what is like it.
    Posix,
}

impl Kind {
    fn of(name: &str) -> Self {
        match Path::new(&name.to_ascii_lowercase()).file_stem().and_then(OsStr::to_str) {
            Some("powershell" | "pwsh") => Self::PowerShell,
            Some("cmd") => Self::Cmd,
            _ => Self::Posix,
        }
    }
}

/// How a shell wants to find its text.
pub(crate) fn script(text: &str, program: Option<&str>, cwd: &Path) -> Result<Script, StartError> {
    let (kind, _) = choose(program, cwd)?;
    Ok(written_for(kind, text))
}

fn written_for(kind: Kind, text: &str) -> Script {
    match kind {
        Kind::PowerShell => {
            // Without the mark, Windows PowerShell takes text for that of an old code page. And a last command that
            // failed, but is no program, leaves no code behind.
            let failed = "\r\nif (-not $? -and -not $LASTEXITCODE) { exit 1 }\r\n";
            Script { extension: "ps1", bytes: [b"\xef\xbb\xbf", text.as_bytes(), failed.as_bytes()].concat() }
        }
        Kind::Cmd => {
            let mut lines = "@echo off\r\n".to_owned();
            if !text.is_ascii() {
                lines += "chcp 65001 >nul 2>nul\r\n";
            }
            // It loses its labels in a file whose lines end otherwise.
            lines += &text.replace("\r\n", "\n").replace('\n', "\r\n");
            Script { extension: "cmd", bytes: lines.into() }
        }
        Kind::Posix => Script { extension: "", bytes: text.into() },
    }
}

/// Finds a shell, and how to make it run the file `script`.
pub(crate) fn find(
    chosen: Option<&str>,
    script: &Path,
    cwd: &Path,
) -> Result<(PathBuf, Vec<OsString>), StartError> {
    let (kind, shell) = choose(chosen, cwd)?;
    let script = plain(script);
    Ok(match kind {
        Kind::PowerShell => {
            // In a file of its own, so that nothing in the text is read twice. What the last program returned is
            // passed on, as `cmd` and bash do. Without the `throw`, an error that no program made, such as text that
            // is no PowerShell or a command that is not there, would be followed by the next statement, and that is
            // the code of no program: 0.
            let run = format!("try {{ & {} }} catch {{ throw }}; exit $LASTEXITCODE", quoted(&script));
            let options =
                ["-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command"];
            (shell, options.into_iter().map(OsString::from).chain([run.into()]).collect())
        }
        // It is run like every other batch file.
        Kind::Cmd => (script, Vec::new()),
        Kind::Posix => (shell, vec![script.display().to_string().replace('\\', "/").into()]),
    })
}

/// A path as PowerShell takes it for text. Curly quotes are quotes to it as well.
fn quoted(path: &Path) -> String {
    let mut text = String::from("'");
    for c in path.display().to_string().chars() {
        if matches!(c, '\'' | '\u{2018}'..='\u{201b}') {
            text.push(c);
        }
        text.push(c);
    }
    text + "'"
}

fn choose(chosen: Option<&str>, cwd: &Path) -> Result<(Kind, PathBuf), StartError> {
    let Some(name) = chosen else {
        let power = ["pwsh", "powershell"].into_iter().find_map(|name| genuine(name, cwd));
        return Ok(match power {
            Some(shell) => (Kind::PowerShell, shell),
            None => (Kind::Cmd, system::cmd()),
        });
    };
    let kind = Kind::of(name);
    if kind == Kind::Cmd {
        return Ok((kind, system::cmd()));
    }
    let found =
        genuine(name, cwd).or_else(|| places_of_git_bash(name, cwd).into_iter().find(|path| path.is_file()));
    match found {
        Some(shell) => Ok((kind, shell)),
        None => {
            Err(program::not_found(format!("there is no shell `{name}` on the PATH that can run a script")))
        }
    }
}

/// The first program of this name on the path that is no stub.
fn genuine(name: &str, cwd: &Path) -> Option<PathBuf> {
    which::which_in_all(name, std::env::var_os("PATH"), cwd).ok()?.find(|path| !is_stub(path))
}

/// Whether this only stands for a shell: the entry to a Linux that may not be there, an advertisement of a store, or
/// what Wine has in place of PowerShell, which runs nothing and calls that a success. A PowerShell from the store is
/// what it says.
fn is_stub(program: &Path) -> bool {
    let named = |part: &OsStr, names: &[&str]| names.iter().any(|name| part.eq_ignore_ascii_case(name));
    let store = program.iter().any(|part| named(part, &["WindowsApps"]))
        && Kind::of(&program.to_string_lossy()) != Kind::PowerShell;
    let within = program.parent().and_then(Path::file_name);
    let linux = within.is_some_and(|folder| named(folder, &["System32", "Sysnative", "SysWOW64"]));
    let powershell = program.iter().any(|part| named(part, &["WindowsPowerShell"]));
    store || linux || (powershell && system::is_wine())
}

/// Where Git puts its bash, which is seldom on the path.
fn places_of_git_bash(name: &str, cwd: &Path) -> Vec<PathBuf> {
    let stem = Path::new(name).file_stem().unwrap_or_default();
    if !["bash", "sh"].iter().any(|known| stem.eq_ignore_ascii_case(known)) {
        return Vec::new();
    }
    let git = genuine("git", cwd).and_then(|git| Some(git.parent()?.parent()?.to_owned()));
    let known = [("ProgramFiles", "Git"), ("LOCALAPPDATA", r"Programs\Git"), ("ProgramFiles(x86)", "Git")];
    let installed = known.into_iter().filter_map(|(variable, folder)| {
        std::env::var_os(variable).map(|root| Path::new(&root).join(folder))
    });
    let program = Path::new(stem).with_extension("exe");
    git.into_iter().chain(installed).map(|root| root.join("bin").join(&program)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_known_by_where_they_are() {
        for (path, stub) in [
            (r"C:\Windows\System32\bash.exe", true),
            (r"c:\windows\SYSNATIVE\bash.exe", true),
            (r"C:\Users\a\AppData\Local\Microsoft\WindowsApps\bash.exe", true),
            (r"C:\Users\a\AppData\Local\Microsoft\WindowsApps\pwsh.exe", false),
            (r"C:\Program Files\Git\bin\bash.exe", false),
            (r"C:\Program Files\PowerShell\7\pwsh.exe", false),
        ] {
            assert_eq!(is_stub(Path::new(path)), stub, "{path}");
        }
        let own = Path::new(r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe");
        assert_eq!(is_stub(own), system::is_wine());
    }

    #[test]
    fn a_script_is_written_as_its_shell_reads_it() {
        let cmd = |text| String::from_utf8(written_for(Kind::Cmd, text).bytes).unwrap();
        assert_eq!(cmd("a\nb\r\nc"), "@echo off\r\na\r\nb\r\nc");
        assert_eq!(cmd("ü"), "@echo off\r\nchcp 65001 >nul 2>nul\r\nü");
        let power = written_for(Kind::PowerShell, "exit 3");
        assert_eq!(power.extension, "ps1");
        assert!(power.bytes.starts_with(b"\xef\xbb\xbfexit 3\r\nif (-not $? "), "{power:?}");
        assert_eq!(quoted(Path::new("C:\\it's \u{2019}here")), "'C:\\it''s \u{2019}\u{2019}here'");
        assert_eq!(written_for(Kind::Posix, "a\nb"), Script { extension: "", bytes: b"a\nb".to_vec() });
    }

    #[test]
    fn a_shell_is_known_by_its_name() {
        for (name, kind) in [
            ("PowerShell.exe", Kind::PowerShell),
            ("pwsh", Kind::PowerShell),
            (r"C:\Windows\System32\CMD.EXE", Kind::Cmd),
            ("bash", Kind::Posix),
        ] {
            assert_eq!(Kind::of(name), kind, "{name}");
        }
    }
}
