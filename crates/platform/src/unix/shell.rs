//! The shell of Unix: bash, else sh, or the one that the caller chose.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hearback_core::StartError;
use hearback_core::port::executor::Script;

use crate::program;

/// How a shell wants to find its text.
pub(crate) fn script(text: &str, _program: Option<&str>, _cwd: &Path) -> Result<Script, StartError> {
    Ok(Script { extension: "", bytes: text.into() })
}

/// Finds a shell, and how to make it run the file `script`.
pub(crate) fn find(
    chosen: Option<&str>,
    script: &Path,
    cwd: &Path,
) -> Result<(PathBuf, Vec<OsString>), StartError> {
    let find = |name: &str| program::find(OsStr::new(name), cwd);
    let shell = match chosen {
        Some(name) => find(name)?,
        None => ["bash", "sh"]
            .into_iter()
            .find_map(|name| find(name).ok())
            .ok_or_else(|| program::not_found("neither `bash` nor `sh` was found on the PATH".into()))?,
    };
    Ok((shell, vec![script.into()]))
}
