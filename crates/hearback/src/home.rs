//! Where the store is.
use std::path::Path;
use std::path::PathBuf;

/// The variable that says where the store is.
pub(crate) const HOME_VARIABLE: &str = "HEARBACK_HOME";

/// `$HEARBACK_HOME`, else the platform's directory for state; nothing when there is neither.
pub(crate) fn default_home() -> Option<PathBuf> {
    named_home().or_else(usual_home)
}

fn named_home() -> Option<PathBuf> {
    std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()).map(PathBuf::from)
}

fn usual_home() -> Option<PathBuf> {
    Some(hearback_platform::state_directory()?.join("hearback"))
}

/// What somebody has to be told to find this store, who does not know the variables that are set here; nothing when
/// it is where they would look.
pub fn unusual(home: &Path) -> Option<PathBuf> {
    let is_moved = std::env::var_os("XDG_STATE_HOME").is_some();
    let is_usual = !is_moved && usual_home().is_some_and(|usual| is_same(&usual, home));
    (!is_usual).then(|| written(home))
}

/// The way to this store as somebody wrote it, since other programs may not know the one that the system prefers.
pub fn written(home: &Path) -> PathBuf {
    default_home().and_then(|named| std::path::absolute(named).ok()).unwrap_or_else(|| home.to_owned())
}

/// Whether two paths lead to the same file or folder.
pub fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs_err::canonicalize(one), fs_err::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}
