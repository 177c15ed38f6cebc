//! The shell of Unix: bash, else sh.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hearback_core::StartError;

use crate::program;

/// Finds a shell, and how to make it run the file `script`.
pub(crate) fn find(script: &Path, cwd: &Path) -> Result<(PathBuf, Vec<OsString>), StartError> {
    let shell = ["bash", "sh"]
        .into_iter()
        .find_map(|name| program::find(OsStr::new(name), cwd).ok())
        .ok_or_else(|| program::not_found("neither `bash` nor `sh` was found on the PATH".into()))?;
    Ok((shell, vec![script.into()]))
}
