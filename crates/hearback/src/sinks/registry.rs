//! Finding sinks by name: those supplied in code, configured ones, presets, and plugins on the PATH.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hearback_core::SinkPayload;
use hearback_core::port::sink::{DeliveryContext, FollowUpSink, HOST_SINK, SinkError, SinkReply, Sinks};
use hearback_platform::Native;
use hearback_store::Store;

use super::hand_over::HandOver;
use super::plugin::PluginSink;
use super::preset;
use super::settings::SinkSettings;
use crate::mask::Secrets;

/// The prefix of a plugin's program.
const PLUGIN_PREFIX: &str = "hearback-sink-";

/// Finds sinks by name.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) native: Native,
    /// The store whose settings are read again for each delivery.
    pub(crate) store: Option<Store<Native>>,
    /// Sinks of the program that embeds hearback; they come before all others.
    pub(crate) in_code: SinksInCode,
    /// Sinks of the settings.
    pub(crate) configured: BTreeMap<String, SinkSettings>,
    /// Sinks of the settings that cannot be used, each with what is wrong.
    pub(crate) invalid: Vec<(String, String)>,
    /// Secrets, which are masked in everything that is sent.
    pub(crate) secrets: Secrets,
    /// The program that becomes a built-in sink; by default this one.
    pub(crate) program: Option<PathBuf>,
}

/// There is no sink of this name that could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoSink {
    /// The name.
    pub name: String,
    /// What is wrong with it, and where, if the settings define it.
    pub invalid: Option<String>,
}

impl fmt::Display for NoSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.invalid {
            Some(what) => write!(f, "sink `{}` is defined, but invalid: {what}", self.name),
            None => write!(f, "there is no sink `{}`", self.name),
        }
    }
}

impl std::error::Error for NoSink {}

/// A sink, and whether it can be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkOverview {
    /// Its name.
    pub name: String,
    /// Why it cannot be used here, as far as that is known without running it; none if it can.
    pub problem: Option<String>,
    /// Whether it can only take the follow-up of a job that has a session.
    pub needs_session: bool,
}

fn what_is_wrong<'a>(invalid: &'a [(String, String)], name: &str) -> Option<&'a String> {
    invalid.iter().find(|(defined, _)| defined == name).map(|(_, what)| what)
}

/// Sinks that a program which embeds hearback supplies in code, by name.
///
/// They exist only in that program and in supervisors that are the same program. An installed `hearback` that delivers
/// does not know them.
#[derive(Clone, Default)]
pub(crate) struct SinksInCode(BTreeMap<String, Arc<dyn FollowUpSink>>);

impl SinksInCode {
    /// Adds a sink, or replaces the one of that name.
    pub(crate) fn insert(&mut self, name: impl Into<String>, sink: Arc<dyn FollowUpSink>) {
        self.0.insert(name.into(), sink);
    }
}

impl fmt::Debug for SinksInCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Registry {
    /// Whether there is a sink of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        name == HOST_SINK || self.in_code.0.contains_key(name) || self.settings(name).is_some()
    }

    /// Says that there is no sink of this name, and why not, if the settings define it.
    pub(crate) fn missing(&self, name: &str) -> NoSink {
        NoSink { name: name.to_owned(), invalid: what_is_wrong(&self.invalid, name).cloned() }
    }

    /// All sinks, except plugins on the PATH, and whether each can be used here.
    pub(crate) fn overview(&self) -> Vec<SinkOverview> {
        let known = self.names().into_iter().map(|name| {
            let settings = self.settings(&name).filter(|_| !self.in_code.0.contains_key(&name));
            SinkOverview {
                problem: settings.as_ref().and_then(|settings| settings.check(self.native)),
                needs_session: settings.is_some_and(|settings| settings.needs_session()),
                name,
            }
        });
        let invalid = self.invalid.iter().filter(|(name, _)| !self.knows(name));
        let invalid = invalid.map(|(name, what)| SinkOverview {
            name: name.clone(),
            problem: Some(format!("it is invalid: {what}")),
            needs_session: false,
        });
        known.chain(invalid).collect()
    }

    /// The settings of the sink of this name, unless it is supplied in code; none if there is no such sink.
    pub(crate) fn settings(&self, name: &str) -> Option<SinkSettings> {
        let configured = self.configured.get(name).cloned();
        configured.or_else(|| preset::find(name)).or_else(|| {
            let program = self.plugin(name)?;
            Some(SinkSettings::new(PluginSink::new(program)))
        })
    }

    /// Whether the sink of this name starts a turn of the session.
    pub(crate) fn starts_turn(&self, name: &str) -> bool {
        match self.in_code.0.get(name) {
            Some(sink) => sink.starts_turn(),
            None => name == HOST_SINK || self.settings(name).is_some_and(|settings| settings.turn),
        }
    }

    /// The program of a plugin, if there is one.
    pub(crate) fn plugin(&self, name: &str) -> Option<PathBuf> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        plain.then(|| self.native.find_program(&format!("{PLUGIN_PREFIX}{name}"))).flatten()
    }

    /// The names of all sinks, except plugins on the PATH.
    pub(crate) fn names(&self) -> Vec<String> {
        let configured = self.configured.keys().cloned();
        let others = configured.chain(preset::names().map(str::to_owned)).chain([HOST_SINK.to_owned()]);
        let others = others.filter(|name| !self.in_code.0.contains_key(name));
        self.in_code.0.keys().cloned().chain(others).collect()
    }
}

impl Sinks for Registry {
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        if let Some(sink) = self.in_code.0.get(name) {
            return Ok(Box::new(SuppliedSink { sink: &**sink, secrets: &self.secrets }));
        }
        if name == HOST_SINK {
            return Err(SinkError::Elsewhere(name.to_owned()));
        }
        // The settings may have changed while this process slept.
        let mut now = self.store.as_ref().map(|store| {
            let (path, read) = store.read_config();
            crate::open::load_settings(&path, read)
        });
        let configured = now.as_mut().and_then(|now| now.sinks.remove(name));
        let settings = configured.or_else(|| self.settings(name)).ok_or_else(|| {
            let invalid = now.as_ref().map_or(&self.invalid, |now| &now.invalid_sinks);
            match what_is_wrong(invalid, name) {
                Some(what) => SinkError::Failed(format!("it is invalid: {what}")),
                None => SinkError::Missing(name.to_owned()),
            }
        })?;
        let (native, program, secrets) = (self.native, self.program.as_deref(), &self.secrets);
        Ok(Box::new(ConfiguredSink { native, program, secrets, settings }))
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        name == HOST_SINK && !self.in_code.0.contains_key(name)
    }
}

/// A sink that the settings describe.
struct ConfiguredSink<'a> {
    native: Native,
    program: Option<&'a Path>,
    secrets: &'a Secrets,
    settings: SinkSettings,
}

impl FollowUpSink for ConfiguredSink<'_> {
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
        let payload = &self.secrets.masked_payload(payload);
        let Self { native, program, .. } = *self;
        let timeout = self.settings.timeout;
        let hand_over = HandOver { native, program, payload, context, timeout };
        self.secrets.masked_reply(self.settings.route.kind().deliver(&hand_over))
    }

    fn starts_turn(&self) -> bool {
        self.settings.turn
    }

    fn within(&self) -> Duration {
        self.settings.timeout
    }
}

/// A sink that was supplied in code. Secrets are masked for it, too.
struct SuppliedSink<'a> {
    sink: &'a dyn FollowUpSink,
    secrets: &'a Secrets,
}

impl FollowUpSink for SuppliedSink<'_> {
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
        let reply = self.sink.deliver(&self.secrets.masked_payload(payload), context);
        self.secrets.masked_reply(reply)
    }

    fn starts_turn(&self) -> bool {
        self.sink.starts_turn()
    }

    fn within(&self) -> Duration {
        self.sink.within()
    }
}

#[cfg(test)]
mod tests {
    use hearback_core::message::Excerpt;
    use hearback_core::testing::{FakeSink, sample};
    use hearback_core::{Delivery, JobId, Outcome};

    use super::super::FileSink;
    use super::*;

    #[test]
    fn a_sink_in_code_is_found_before_all_others_and_gets_no_secrets() {
        let sink = Arc::new(FakeSink::default().starting_turns());
        let configured = SinkSettings::new(FileSink::new("/nowhere"));
        let mut in_code = SinksInCode::default();
        for name in ["mine", "claude"] {
            in_code.insert(name, sink.clone());
        }
        let registry = Registry {
            native: Native::default(),
            store: None,
            in_code,
            configured: [("mine", configured.clone()), ("file", configured)]
                .map(|(name, sink)| (name.to_owned(), sink))
                .into(),
            invalid: vec![("broken".to_owned(), "config.toml:1:1: why".to_owned())],
            secrets: Secrets::new([("TOK".to_owned(), "hush-4711".to_owned())]),
            program: None,
        };
        let output = Excerpt { head: b"it is hush-4711\n".to_vec(), tail: vec![], omitted: 0 };
        let job = sample::view(Outcome::Exited { code: 0 });
        let payload = SinkPayload::from(Delivery::new(job, &output, 1, false, 1));
        let context = DeliveryContext { mark: JobId::mint(0, 0), turn: None, receipts: Vec::new() };
        for name in ["mine", "claude"] {
            let found = registry.find(name).unwrap();
            assert!(found.starts_turn(), "{name}");
            assert_eq!(found.deliver(&payload, &context).unwrap(), SinkReply::Delivered, "{name}");
        }
        let taken = sink.taken();
        assert_eq!(taken.len(), 2);
        assert_eq!(taken[0].output.head, "it is [TOK]\n");
        assert!(["mine", "claude", "file", "codex"].iter().all(|name| registry.knows(name)));
        assert!(!registry.knows("nowhere") && registry.find("nowhere").is_err());
        assert_eq!(registry.missing("nowhere").to_string(), "there is no sink `nowhere`");
        assert_eq!(
            registry.missing("broken").to_string(),
            "sink `broken` is defined, but invalid: config.toml:1:1: why"
        );
        let names = registry.names();
        let of = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
        assert_eq!([of("mine"), of("claude"), of("file"), of("desktop")], [1, 1, 1, 1]);
        assert_eq!(format!("{:?}", registry.in_code), r#"{"claude", "mine"}"#);
    }
}
