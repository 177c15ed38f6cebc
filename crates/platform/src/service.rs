//! Where a monitor is installed on this system.

use std::path::PathBuf;

use hearback_core::service::ServiceManager;

/// The service manager that keeps a program running for this user, and where it looks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePlace {
    /// The manager.
    pub manager: ServiceManager,
    /// Where it looks; nothing where it takes a file from anywhere.
    pub directory: Option<PathBuf>,
    /// The name of this user to it.
    pub user: String,
}
