//! Where the store is.

use std::path::PathBuf;

use etcetera::base_strategy::BaseStrategy;

/// The variable that says where the store is.
pub(crate) const HOME_VARIABLE: &str = "HEARBACK_HOME";

/// `$HEARBACK_HOME`, else the platform's directory for state; nothing when there is neither.
pub(crate) fn default_home() -> Option<PathBuf> {
    if let Some(home) = std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()) {
        return Some(PathBuf::from(home));
    }
    if let Some(own) = hearback_platform::local_data() {
        return Some(own.join("hearback"));
    }
    let strategy = etcetera::base_strategy::choose_native_strategy().ok()?;
    // Systems without a directory for state keep it with the data.
    let base = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
    Some(base.join("hearback"))
}
