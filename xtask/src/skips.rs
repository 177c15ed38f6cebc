//! What the tests skipped here, collected while they run.

use std::path::PathBuf;

use anyhow::Result;

/// Where tests look for the name of the list.
const LIST: &str = "HEARBACK_TESTS_SKIPPED";

/// The list of one run.
pub(crate) struct Skips {
    path: PathBuf,
    /// The path as the tests have to spell it.
    spelled: String,
}

impl Skips {
    /// Begins an empty list at `path`, which tests call `spelled`.
    pub(crate) fn begin(path: PathBuf, spelled: String) -> Result<Self> {
        fs_err::write(&path, "")?;
        Ok(Self { path, spelled })
    }

    /// By which tests find it.
    pub(crate) fn variable(&self) -> (&str, &str) {
        (LIST, &self.spelled)
    }

    /// Prints what was skipped, and why.
    pub(crate) fn tell(&self) -> Result<()> {
        let text = fs_err::read_to_string(&self.path)?;
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        if !lines.is_empty() {
            eprintln!("\nnot tried here, wholly or in part: {}", lines.len());
        }
        for line in lines {
            eprintln!("  {line}");
        }
        Ok(())
    }
}
