//! Where a monitor is installed on this system.

use std::path::PathBuf;

use hearback_core::service::ServiceManager;

/// Who keeps a program running for this user, and where that looks for what to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePlace {
    /// Who does.
    pub manager: ServiceManager,
    /// Where it looks; nothing where it is told of a file, wherever that is.
    pub directory: Option<PathBuf>,
    /// Who this user is to it.
    pub user: String,
}
