//! The service manager that starts programs at login here.

use hearback_core::service::ServiceManager;

use crate::ServicePlace;

/// The Task Scheduler keeps its own copy, so that the file may be anywhere.
pub fn service_place() -> Option<ServicePlace> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = named("USERNAME")?;
    let user = named("USERDOMAIN").map_or_else(|| name.clone(), |domain| format!("{domain}\\{name}"));
    Some(ServicePlace { manager: ServiceManager::TaskScheduler, directory: None, user })
}
