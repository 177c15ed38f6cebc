//! Opening a store: how, and what is held while it is open.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearback_core::Timestamp;
use hearback_core::port::disk::ReadError;
use hearback_core::port::executor::Executors;
use hearback_core::port::record::StoreError;
use hearback_core::port::sink::FollowUpSink;
use hearback_monitor::Ports;
use hearback_monitor::session::ActiveTurns;
use hearback_monitor::wait::Waits;
use hearback_platform::Native;
use hearback_store::Store;

use crate::doctor::{Diagnosis, DoctorError};
use crate::home::RelativeHome;
use crate::permissions::{Permissions, UnknownCapability};
use crate::settings::Settings;
use crate::sinks::{Registry, SinksInCode};
use crate::{doctor, home, supervisor};

/// How to open a store. By default as the `hearback` program does.
///
/// ```
/// use hearback::{Options, Permissions, Settings};
///
/// let mut settings = Settings::default();
/// settings.max_depth = 2;
/// let options = Options::default().home("/var/lib/chat").settings(settings).permissions(Permissions::all());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(crate) home: Option<PathBuf>,
    pub(crate) supervisor: Option<PathBuf>,
    pub(crate) permissions: Option<Permissions>,
    pub(crate) settings: Option<Settings>,
    pub(crate) sinks: SinksInCode,
    pub(crate) only_reads: bool,
}

impl Options {
    /// Where the store is; by default `$HEARBACK_HOME`, else the platform's directory for state.
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// The program that becomes the supervisor of a job. By default it is this one, which then has to call
    /// [`supervise_if_asked`](crate::supervise_if_asked) first thing; or give the path of an installed `hearback`.
    #[must_use]
    pub fn supervisor(mut self, program: impl Into<PathBuf>) -> Self {
        self.supervisor = Some(program.into());
        self
    }

    /// What the caller may do; by default what [`DENY_VARIABLE`](crate::DENY_VARIABLE) does not deny.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// Settings in place of those of the settings file and the environment, which are not read then.
    ///
    /// The supervisor of a job is another process: it gets them from
    /// [`supervise_if_asked_with`](crate::supervise_if_asked_with).
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Adds a sink of this name that is made in code. It is found before one of the settings.
    ///
    /// The supervisor of a job delivers in a process of its own: it gets the sink from
    /// [`supervise_if_asked_with`](crate::supervise_if_asked_with).
    #[must_use]
    pub fn sink(mut self, name: impl Into<String>, sink: impl FollowUpSink + 'static) -> Self {
        self.sinks.insert(name, Arc::new(sink));
        self
    }

    /// Makes no store: one that does not exist reads as empty. By default it is made.
    #[must_use]
    pub fn to_read(mut self) -> Self {
        self.only_reads = true;
        self
    }

    /// For hearback's own processes, which complete what a caller was allowed to start: restrictions do not hold for
    /// them.
    pub(crate) fn unrestricted(self) -> Self {
        self.permissions(Permissions::all())
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system names no directory for state.
    #[error("no directory for the store: neither HEARBACK_HOME nor a home directory is set")]
    NoHome,
    /// `HEARBACK_HOME` is no absolute path.
    #[error(transparent)]
    RelativeHome(#[from] RelativeHome),
    /// `HEARBACK_DENY` contains an unknown word, so nothing is allowed.
    #[error(transparent)]
    Permissions(#[from] UnknownCapability),
    /// The directory exists, but cannot be used.
    #[error("the store cannot be opened")]
    Store(#[from] StoreError),
}

/// A store, and everything that can be done with it.
#[derive(Debug)]
pub struct Hearback {
    pub(crate) store: Store<Native>,
    pub(crate) ports: Arc<Ports>,
    pub(crate) registry: Registry,
    /// The turns that this process runs.
    pub(crate) active_turns: Arc<ActiveTurns>,
    pub(crate) waits: Waits,
    settings: Settings,
    supervisor: Option<PathBuf>,
    permissions: Permissions,
}

impl Hearback {
    /// Opens a store, creating it if there is none.
    ///
    /// # Errors
    ///
    /// When the directory belongs to another user, other users may write it, or it cannot be created.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let permissions = match options.permissions {
            Some(permissions) => permissions,
            None => Permissions::from_environment()?,
        };
        let home = match options.home {
            Some(home) => home,
            None => home::default_home()?.ok_or(OpenError::NoHome)?,
        };
        let native = Native::default();
        let is_absent = home.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let store = match options.only_reads && is_absent {
            true => Store::absent(native, &home),
            false => Store::open(native, &home)?,
        };
        let ports = Ports::new(store.clone(), native, native, Executors::local(native));
        let is_read = options.settings.is_none();
        let settings = options.settings.unwrap_or_else(|| {
            let (path, read) = store.read_config();
            load_settings(&path, read)
        });
        let registry = Registry {
            native,
            store: is_read.then(|| store.clone()),
            in_code: options.sinks,
            configured: settings.sinks.clone(),
            invalid: settings.invalid_sinks.clone(),
            secrets: settings.secrets_here(),
            program: options.supervisor.clone(),
        };
        Ok(Self {
            store,
            ports: Arc::new(ports),
            registry,
            active_turns: Arc::default(),
            waits: Waits::default(),
            settings,
            supervisor: options.supervisor,
            permissions,
        })
    }

    /// Tries what a store there can rely on, and what a job launched here survives.
    ///
    /// It also works if no store can be opened, and says why. It launches real jobs in a temporary store, so this
    /// program has to call [`supervise_if_asked`](crate::supervise_if_asked) first thing, as for every launch. If this
    /// process is requested to terminate meanwhile, the result is an error.
    ///
    /// # Errors
    ///
    /// When this process was requested to terminate. Nothing is left behind then, either.
    pub fn doctor(options: &Options) -> Result<Diagnosis, DoctorError> {
        doctor::examine(options)
    }

    /// Where the store is.
    pub fn home(&self) -> &Path {
        self.store.home()
    }

    /// Whether the store exists. See [`Options::to_read`].
    pub fn exists(&self) -> bool {
        self.home().exists()
    }

    /// Where the settings file is, or would be.
    pub fn settings_file(&self) -> PathBuf {
        hearback_store::config_path(self.home())
    }

    /// The settings in force, with warnings about invalid ones.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the caller may do.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// What the wall clock says.
    pub fn now(&self) -> Timestamp {
        self.ports.clock.wall()
    }

    /// How long the machine has been awake: for pauses and deadlines.
    pub fn awake(&self) -> std::time::Duration {
        self.ports.clock.awake()
    }

    pub(crate) fn supervisor_program(&self) -> std::io::Result<PathBuf> {
        supervisor::program(self.supervisor.as_deref())
    }
}

/// The settings of the file at `path`, whose content is `read`, and of the environment.
pub(crate) fn load_settings(path: &Path, read: Result<Option<Vec<u8>>, ReadError>) -> Settings {
    let env = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let (text, problem) = match read {
        Ok(bytes) => (String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned(), None),
        Err(error) => (String::new(), Some(format!("`{}` was ignored: {error}", path.display()))),
    };
    let mut settings = Settings::merge(path, &text, env);
    settings.warnings.extend(problem);
    settings
}
