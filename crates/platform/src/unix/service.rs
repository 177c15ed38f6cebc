//! The service manager that starts programs at login here, and where it looks for them.

use std::path::PathBuf;

use hearback_core::service::ServiceManager;

use crate::ServicePlace;

/// Nothing where no manager is known that looks after the programs of one user.
pub fn service_place() -> Option<ServicePlace> {
    let home = std::env::home_dir().filter(|home| home.is_absolute())?;
    let (manager, directory) = if cfg!(target_os = "macos") {
        (ServiceManager::Launchd, home.join("Library").join("LaunchAgents"))
    } else if cfg!(target_os = "linux") {
        // A path that is not absolute is none, says the specification of these variables.
        let chosen = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let config = chosen.unwrap_or_else(|| home.join(".config"));
        (ServiceManager::Systemd, config.join("systemd").join("user"))
    } else {
        return None;
    };
    Some(ServicePlace { manager, directory: Some(directory), user: nix::unistd::getuid().to_string() })
}
