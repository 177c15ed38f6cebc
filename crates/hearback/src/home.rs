//! Where the store is.
use std::path::Path;
use std::path::PathBuf;

/// The variable that names the store.
pub(crate) const HOME_VARIABLE: &str = "HEARBACK_HOME";

/// `$HEARBACK_HOME`, else the platform's directory for state; none if there is neither.
pub(crate) fn default_home() -> Option<PathBuf> {
    named_home().or_else(usual_home)
}

fn named_home() -> Option<PathBuf> {
    std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()).map(PathBuf::from)
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
    default_home().and_then(|named| std::path::absolute(named).ok()).unwrap_or_else(|| home.to_owned())
}

/// Whether two paths lead to the same file or folder.
pub fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs_err::canonicalize(one), fs_err::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}
