//! The monitor as a service of this login: its description, the commands to the service manager, and installing it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::port::process::{BoundedRun, ProcessControl};
use hearback_core::service::{Order, Service, ServiceError, ServiceManager};
use hearback_core::{Exit, JobId};
use hearback_platform::{Native, ServicePlace};

use crate::permissions::{Capability, Denied};
use crate::{Hearback, home};

/// How long a service manager may take to answer.
const MANAGER_WITHIN: Duration = Duration::from_secs(60);
/// How much of a service manager's output is kept.
const MANAGER_OUTPUT_MAX: usize = 16 * 1024;
const NAME: &str = "hearback-monitor";

/// Why the monitor cannot be made a service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// This system has no service manager that hearback knows.
    #[error("no known service manager runs here")]
    NoManager,
    /// The service manager's own program is missing.
    #[error("`{0}`, the program of the service manager, was not found")]
    NoManagerProgram(&'static str),
    /// The description cannot be written for this manager.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A path has to stand in the description, which is text.
    #[error("`{}` cannot be written into a service description: it is not Unicode", .0.display())]
    NotUnicode(PathBuf),
    /// The description cannot be written or removed.
    #[error("the service description cannot be written")]
    Io(#[source] io::Error),
}

/// The service that runs the monitor of one store.
#[derive(Debug)]
#[non_exhaustive]
pub struct MonitorService {
    /// The service manager.
    pub manager: ServiceManager,
    /// Its name and what it runs.
    pub service: Service,
    /// Where its description is.
    pub file: PathBuf,
    /// What the description should say.
    pub text: String,
    /// Whether the file is missing or says something else.
    pub is_new: bool,
}

/// A command to the service manager that failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedOrder {
    /// The command.
    pub order: Order,
    /// Why it failed.
    pub why: String,
}

impl Hearback {
    /// The service that would run the monitor of this store. Changes nothing.
    ///
    /// # Errors
    ///
    /// When this system has no service manager that hearback knows, or the description cannot be made.
    pub fn monitor_service(&self) -> Result<MonitorService, InstallError> {
        let place = hearback_platform::service_place().ok_or(InstallError::NoManager)?;
        let ServicePlace { manager, directory, user } = place;
        let unusual = home::unusual(self.home());
        let name = match unusual {
            None => NAME.to_owned(),
            // One store has one service, however its path is spelled.
            Some(_) => format!("{NAME}-{}", hearback_store::store_name(self.home())),
        };
        let path = std::env::var_os("PATH").filter(|path| !path.is_empty());
        let service = Service {
            name,
            program: unicode(&program()?)?,
            home: unusual.as_deref().map(unicode).transpose()?,
            path: path.map(|path| unicode(Path::new(&path))).transpose()?,
            user,
        };
        let file = match directory {
            Some(directory) => directory.join(manager.file_name(&service)),
            None => hearback_store::service_path(&home::written(self.home()), &manager.file_name(&service)),
        };
        let text = manager.text(&service)?;
        let is_new = fs_err::read(&file).ok() != Some(manager.encode(&text));
        Ok(MonitorService { manager, service, file, text, is_new })
    }

    /// Writes the description of a service if it is new, and runs the commands of the service manager, each even if the
    /// one before failed. Returns those that failed.
    ///
    /// # Errors
    ///
    /// When the caller may not, the manager's program is missing, or the description cannot be written.
    pub fn install_monitor(&self, service: &MonitorService) -> Result<Vec<FailedOrder>, InstallError> {
        self.permissions().check(Capability::Monitor)?;
        service.check_manager()?;
        if service.is_new {
            if let Some(folder) = service.file.parent() {
                fs_err::create_dir_all(folder).map_err(InstallError::Io)?;
            }
            fs_err::write(&service.file, service.manager.encode(&service.text)).map_err(InstallError::Io)?;
        }
        Ok(self.carry_out(&service.install_orders()))
    }

    /// Undoes [`Hearback::install_monitor`]. Returns the orders that failed.
    ///
    /// # Errors
    ///
    /// When the caller may not, the manager's program is missing, or the description cannot be removed.
    pub fn remove_monitor(&self, service: &MonitorService) -> Result<Vec<FailedOrder>, InstallError> {
        self.permissions().check(Capability::Monitor)?;
        service.check_manager()?;
        let (before, after) = service.manager.remove(&service.service);
        let mut failed = self.carry_out(&before);
        fs_err::remove_file(&service.file).map_err(InstallError::Io)?;
        failed.extend(self.carry_out(&after));
        Ok(failed)
    }

    fn carry_out(&self, orders: &[Order]) -> Vec<FailedOrder> {
        let mark = || JobId::mint(self.now().as_millis().unsigned_abs(), std::process::id().into());
        let failed = orders.iter().filter_map(|order| {
            let why = failure(order, mark()).filter(|_| order.needed)?;
            Some(FailedOrder { order: order.clone(), why })
        });
        failed.collect()
    }
}

impl MonitorService {
    /// The commands to the service manager after the description is written.
    pub fn install_orders(&self) -> Vec<Order> {
        self.manager.install(&self.service, &self.file.to_string_lossy(), self.is_new)
    }

    /// The commands to the service manager before and after the description is removed.
    pub fn remove_orders(&self) -> Vec<Order> {
        let (before, after) = self.manager.remove(&self.service);
        [before, after].concat()
    }

    /// Checks that the program of the service manager is there.
    ///
    /// # Errors
    ///
    /// When its program is not on the PATH.
    pub fn check_manager(&self) -> Result<(), InstallError> {
        match Native::default().find_program(self.manager.program()) {
            Some(_) => Ok(()),
            None => Err(InstallError::NoManagerProgram(self.manager.program())),
        }
    }
}

/// Runs one command; returns why it failed, if it did.
fn failure(order: &Order, mark: JobId) -> Option<String> {
    let report = Native::default().run_bounded(&BoundedRun {
        argv: order.argv.iter().map(|word| word.as_str().into()).collect(),
        cwd: None,
        env: Vec::new(),
        stdin: Vec::new(),
        speaks_first: false,
        within: MANAGER_WITHIN,
        output_max: MANAGER_OUTPUT_MAX,
        mark,
        unless: Vec::new(),
    });
    let report = match report {
        Err(error) => return Some(format!("was not run: {error}")),
        Ok(report) => report,
    };
    let how = match report.exit {
        Some(Exit::Exited { code: 0 }) => return None,
        Some(Exit::Exited { code }) => format!("failed with code {code}"),
        Some(Exit::Signaled { signal, .. }) => format!("was killed by signal {signal}"),
        Some(Exit::Unknown) | None => "took too long".to_owned(),
    };
    let said = String::from_utf8_lossy(&[report.stderr, report.stdout].concat()).trim().to_owned();
    Some(if said.is_empty() { how } else { format!("{how}: {said}") })
}

/// This program, by a path that stays valid when it is updated: the one on the PATH, or the one that was typed, and not
/// the file that a link leads to today.
fn program() -> Result<PathBuf, InstallError> {
    let me = std::env::current_exe().map_err(InstallError::Io)?;
    let typed = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let on_path = typed.file_name().and_then(|name| Native::default().find_program(name.to_str()?));
    let candidates = [on_path, std::path::absolute(&typed).ok()];
    Ok(candidates.into_iter().flatten().find(|found| home::is_same(found, &me)).unwrap_or(me))
}

fn unicode(path: &Path) -> Result<String, InstallError> {
    path.to_str().map(str::to_owned).ok_or_else(|| InstallError::NotUnicode(path.to_owned()))
}
