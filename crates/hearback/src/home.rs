//! Where the store is.

use std::path::{Path, PathBuf};

/// The variable that names the store.
pub(crate) const HOME_VARIABLE: &str = "HEARBACK_HOME";

/// `HEARBACK_HOME` is no absolute path. It would name another store in each directory: an agent, a sink or a person
/// that changes the directory would no longer see its jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("HEARBACK_HOME is `{}`, which is not an absolute path", .0.display())]
pub struct RelativeHome(pub PathBuf);

/// `$HEARBACK_HOME`, else the platform's directory for state; none if there is neither.
pub(crate) fn default_home() -> Result<Option<PathBuf>, RelativeHome> {
    match std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()).map(PathBuf::from) {
        Some(named) if !named.is_absolute() => Err(RelativeHome(named)),
        Some(named) => Ok(Some(named)),
        None => Ok(usual_home()),
    }
}

fn usual_home() -> Option<PathBuf> {
    Some(hearback_platform::state_directory()?.join("hearback"))
}

/// The path that a process without the variables of this one needs to find this store; none if it is the default
/// path.
pub fn unusual(home: &Path) -> Option<PathBuf> {
    let is_moved = std::env::var_os("XDG_STATE_HOME").is_some();
    let is_usual = !is_moved && usual_home().is_some_and(|usual| is_same(&usual, home));
    (!is_usual).then(|| written(home))
}

/// The path of this store as the user wrote it: other programs may not know the form that the system prefers.
pub fn written(home: &Path) -> PathBuf {
    default_home().ok().flatten().unwrap_or_else(|| home.to_owned())
}

/// Whether two paths lead to the same file or folder.
pub fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs_err::canonicalize(one), fs_err::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}
