//! The shells of Windows: none yet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hearback_core::{StartError, StartErrorKind};

/// Refuses.
///
/// PowerShell runs a file only if its name ends in `.ps1`, and `cmd` only if it ends in `.bat` or `.cmd`; what the
/// text of a job is written to has neither. Handing the text over on the command line instead would make every
/// quote and percent sign in it mean something else.
pub(crate) fn find(_script: &Path, _cwd: &Path) -> Result<(PathBuf, Vec<OsString>), StartError> {
    Err(StartError {
        kind: StartErrorKind::Other,
        message: "`--shell` is not there on Windows yet; name the program and its arguments after `--`"
            .into(),
    })
}
