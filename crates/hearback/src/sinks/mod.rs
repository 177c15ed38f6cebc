//! The sinks that there are: configured ones, agents that we know, and plugins on the PATH. Each is a program that is
//! run to its end; hearback itself is the program of those that are built in.

mod address;
mod builtin;
mod conformance;
mod exec;
mod plugin;
mod preset;
pub(crate) mod route;
#[cfg(feature = "webhook")]
mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;

use hearback_core::port::sink::{FollowUpSink, SinkError, Sinks};
use hearback_platform::Native;
use hearback_store::Store;

use crate::mask::Secrets;

pub(crate) use builtin::run as run_builtin;
pub use conformance::PluginCheck;
pub(crate) use exec::ExecSink;
pub(crate) use plugin::PluginSink;
pub(crate) use preset::PRESETS;
pub use route::{Input, Route, SinkSettings};

/// The command by which hearback, executed again, becomes one of its own sinks.
pub(crate) const SINK_COMMAND: &str = "__sink";
/// What a plugin's program is called, before its name.
pub(crate) const PLUGIN_PREFIX: &str = "hearback-sink-";

/// Finds sinks by name.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) native: Native,
    /// Where the settings are read anew.
    pub(crate) store: Option<Store<Native>>,
    /// What the settings say.
    pub(crate) configured: BTreeMap<String, SinkSettings>,
    /// Nothing of what they hold is ever sent.
    pub(crate) secrets: Secrets,
    /// What becomes one of the sinks that are built in, unless it is this program.
    pub(crate) program: Option<PathBuf>,
}

impl Registry {
    /// What a name stands for; nothing when it stands for nothing.
    pub(crate) fn settings(&self, name: &str) -> Option<SinkSettings> {
        if let Some(configured) = self.configured.get(name) {
            return Some(configured.clone());
        }
        if let Some(preset) = preset::find(name) {
            return Some(preset);
        }
        let program = self.plugin(name)?;
        Some(SinkSettings { input: Input::Json, ..SinkSettings::new(Route::Plugin(program)) })
    }

    /// What keeps a sink from being run here, as far as can be told without running it.
    pub(crate) fn obstacle(&self, name: &str) -> Option<String> {
        let Some(settings) = self.settings(name) else { return Some("there is no such sink".into()) };
        match settings.route {
            Route::Command(alternatives) => {
                let programs: Vec<_> = alternatives.iter().filter_map(|words| words.first()).collect();
                let found = programs.iter().any(|program| self.native.find_program(program).is_some());
                let missing =
                    || programs.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" nor ");
                (!found).then(|| format!("{} was not found on the PATH", missing()))
            }
            Route::File(path) => {
                let folder =
                    path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
                folder.map(|folder| format!("there is no folder `{}`", folder.display()))
            }
            Route::Webhook { .. } if !cfg!(feature = "webhook") => {
                Some("this build posts to no address: it lacks the feature `webhook`".into())
            }
            Route::Webhook { secret_env, .. } => {
                std::env::var_os(&secret_env).is_none().then(|| format!("{secret_env} is not set here"))
            }
            Route::Plugin(_) => None,
        }
    }

    /// The program of a plugin, if there is one.
    pub(crate) fn plugin(&self, name: &str) -> Option<PathBuf> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        plain.then(|| self.native.find_program(&format!("{PLUGIN_PREFIX}{name}"))).flatten()
    }

    /// Every name that stands for something without looking on the PATH.
    pub(crate) fn names(&self) -> Vec<String> {
        let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
        self.configured.keys().cloned().chain(presets).collect()
    }
}

impl Sinks for Registry {
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        // Whoever delivers may have been asleep, or be a monitor, since somebody changed the settings.
        let now = self.store.as_ref().and_then(|store| {
            let (path, read) = store.read_config();
            crate::open::load_settings(&path, read).sinks.remove(name)
        });
        let settings = now.or_else(|| self.settings(name));
        let settings = settings.ok_or_else(|| SinkError::Missing(name.to_owned()))?;
        Ok(match &settings.route {
            Route::Plugin(program) => {
                Box::new(PluginSink { registry: self, program: program.clone(), settings: settings.clone() })
            }
            _ => Box::new(ExecSink { registry: self, settings }),
        })
    }
}
