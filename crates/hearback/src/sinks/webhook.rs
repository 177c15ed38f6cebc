//! Webhooks: each delivery is signed and posted to an address.
//!
//! hearback, executed again, posts it (`post.rs`), so that HTTP runs only in a process for one delivery.

use hearback_core::OsText;
use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_platform::Native;
use serde::Deserialize;

use super::address;
use super::hand_over::{HandOver, answer};
use super::kind::{SinkKind, TableKind};
use super::plugin::Reply;
use super::settings::SinkSettings;
use crate::settings_file::{Problem, SpannedTable};

/// An address that takes signed events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookSink {
    /// The address.
    pub url: String,
    /// The variable that holds the secret.
    pub secret_env: String,
}

impl WebhookSink {
    /// An address, and the name of the variable that holds the secret, which the receiver knows, too.
    ///
    /// # Errors
    ///
    /// When other people could read what is sent to the address, or the name is not the name of a variable.
    pub fn new(url: impl Into<String>, secret_env: impl Into<String>) -> Result<Self, String> {
        let (url, secret_env) = (url.into(), secret_env.into());
        address::check(&url)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // The message does not repeat the value: a user may have put the secret itself here.
        if secret_env.is_empty() || !secret_env.chars().all(is_plain) || secret_env.starts_with("whsec_") {
            return Err("`secret_env` has to be the name of a variable, not its value".into());
        }
        Ok(Self { url, secret_env })
    }
}

impl SinkKind for WebhookSink {
    fn check(&self, _: Native) -> Option<String> {
        if cfg!(not(feature = "webhook")) {
            return Some("this build has no webhooks: it lacks the feature `webhook`".into());
        }
        let is_set = std::env::var_os(&self.secret_env).is_some();
        (!is_set).then(|| format!("{} is not set here", self.secret_env))
    }

    fn deliver(&self, hand_over: &HandOver<'_>) -> Result<SinkReply, SinkError> {
        let words = [&self.url, &self.secret_env].map(|word| OsText::Text(word.clone()));
        let report = hand_over.run_built_in(NAME, words.into())?;
        // It may say on its standard output when to retry.
        match report.exit.and_then(|_| Reply::parse(&report.stdout)) {
            Some(Reply::SinkReply(reply @ SinkReply::RetryAfter { .. })) => Ok(reply),
            _ => answer(&report),
        }
    }
}

/// The name of the built-in sink that posts.
pub(super) const NAME: &str = "webhook";

/// `url = "…"` in the settings file.
pub(super) const TABLE: TableKind = TableKind { key: "url", keys: &["url", "secret_env"], parse };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    url: String,
    secret_env: Option<String>,
}

fn parse(table: SpannedTable<'_>) -> Result<SinkSettings, Problem> {
    if cfg!(not(feature = "webhook")) {
        return Err("this build has no webhooks".into());
    }
    let Table { url, secret_env } = table.read()?;
    address::check(&url)?;
    let secret_env =
        secret_env.ok_or("`url` needs `secret_env`, the name of a variable that holds a secret")?;
    Ok(SinkSettings::new(WebhookSink::new(url, secret_env)?))
}
