//! What a caller may do. The library checks it, so every door obeys it.

use std::collections::BTreeSet;
use std::fmt;

/// The variable that lists what the caller may not do: `HEARBACK_DENY=notify,launch`.
pub const DENY_VARIABLE: &str = "HEARBACK_DENY";

/// Something that changes records, runs a program or wakes an agent, and that a caller can be denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Capability {
    /// Launch a job.
    Launch,
    /// Launch a job whose end wakes its owner, or retry a delivery.
    Notify,
    /// Kill a job.
    Kill,
    /// Acknowledge, discard or retry a delivery.
    Ack,
    /// Run a turn of a session.
    Turn,
    /// Send a message to a session, or discard one.
    Send,
    /// Run, stop or install the monitor.
    Monitor,
    /// Remove settled jobs.
    Prune,
    /// Try a sink or a plugin.
    Sink,
    /// Write to the input of a job.
    Write,
}

impl Capability {
    const ALL: [Self; 10] = [
        Self::Launch,
        Self::Notify,
        Self::Kill,
        Self::Ack,
        Self::Turn,
        Self::Send,
        Self::Monitor,
        Self::Prune,
        Self::Sink,
        Self::Write,
    ];

    /// The word for it in [`DENY_VARIABLE`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Notify => "notify",
            Self::Kill => "kill",
            Self::Ack => "ack",
            Self::Turn => "turn",
            Self::Send => "send",
            Self::Monitor => "monitor",
            Self::Prune => "prune",
            Self::Sink => "sink",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The caller may not do this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this caller may not `{0}`: {DENY_VARIABLE} denies it")]
pub struct Denied(pub Capability);

/// An unknown word in [`DENY_VARIABLE`]. It may be a misspelled capability, so nothing is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{DENY_VARIABLE} contains the unknown word `{0}`; known words: all, {known}", known = words())]
pub struct UnknownCapability(String);

fn words() -> String {
    Capability::ALL.map(Capability::as_str).join(", ")
}

/// What a caller may do. By default everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    denied: BTreeSet<Capability>,
}

impl Permissions {
    /// Allows everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Reads what the environment of this process denies.
    ///
    /// # Errors
    ///
    /// When it contains an unknown word.
    pub fn from_environment() -> Result<Self, UnknownCapability> {
        match std::env::var_os(DENY_VARIABLE) {
            None => Ok(Self::all()),
            Some(denied) => Self::denying(&denied.to_string_lossy()),
        }
    }

    /// Denies what a list such as `notify,launch` names; `all` denies everything.
    ///
    /// # Errors
    ///
    /// When it contains an unknown word.
    pub fn denying(list: &str) -> Result<Self, UnknownCapability> {
        let mut denied = BTreeSet::new();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match Capability::ALL.into_iter().find(|capability| capability.as_str() == word) {
                Some(capability) => {
                    denied.insert(capability);
                }
                None if word == "all" => denied.extend(Capability::ALL),
                None => return Err(UnknownCapability(word.to_owned())),
            }
        }
        Ok(Self { denied })
    }

    /// Denies one more capability.
    #[must_use]
    pub fn deny(mut self, capability: Capability) -> Self {
        self.denied.insert(capability);
        self
    }

    /// Checks that the caller may do this.
    ///
    /// # Errors
    ///
    /// When the caller may not.
    pub fn check(&self, capability: Capability) -> Result<(), Denied> {
        if self.denied.contains(&capability) { Err(Denied(capability)) } else { Ok(()) }
    }
}

/// Why a call failed that the caller may also be denied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Guarded<E: std::error::Error> {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The call itself failed.
    #[error(transparent)]
    Failed(E),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_names_is_denied_and_an_unknown_word_is_an_error() {
        let some = Permissions::denying(" launch, ,kill").unwrap();
        assert_eq!(some.check(Capability::Launch), Err(Denied(Capability::Launch)));
        assert_eq!(some.check(Capability::Prune), Ok(()));
        let none = Permissions::denying("all").unwrap();
        assert!(Capability::ALL.into_iter().all(|capability| none.check(capability).is_err()));
        assert_eq!(Permissions::denying("launhc"), Err(UnknownCapability("launhc".into())));
    }
}
