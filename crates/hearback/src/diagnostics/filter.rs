//! Which events are written: a level, and other levels for the crates and modules that are named.

use hearback_core::SmallSort;
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// The environment variable that names a filter.
pub const LOG_VARIABLE: &str = "HEARBACK_LOG";

/// Which events are written. As text: `info`, or `hearback_monitor=debug,warn`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Levels of targets, the longest name first: the most exact one decides.
    targets: Vec<(String, LevelFilter)>,
    /// The level of all others.
    others: LevelFilter,
}

/// Text that is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{part}` is no log filter: use off, error, warn, info, debug or trace, such as `hearback_monitor=debug,warn`"
)]
pub struct InvalidFilter {
    part: String,
}

impl Filter {
    /// Everything of this level and above.
    pub const fn level(level: LevelFilter) -> Self {
        Self { targets: Vec::new(), others: level }
    }

    /// Reads a filter: levels and `target=level`, separated by commas. A target is a crate or a module, and means all
    /// that is in it. What is named nowhere is off.
    ///
    /// # Errors
    ///
    /// When a part is neither.
    pub fn parse(text: &str) -> Result<Self, InvalidFilter> {
        let mut filter = Self::level(LevelFilter::OFF);
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let invalid = || InvalidFilter { part: part.to_owned() };
            match part.split_once('=') {
                None => filter.others = level(part).ok_or_else(invalid)?,
                Some((target, word)) if is_target(target) => {
                    filter.targets.push((target.to_owned(), level(word).ok_or_else(invalid)?));
                }
                Some(_) => return Err(invalid()),
            }
        }
        filter.targets.small_sort_by_key(|(target, _)| std::cmp::Reverse(target.len()));
        Ok(filter)
    }

    /// The filter that [`LOG_VARIABLE`] names; nothing when it is not set, or empty.
    ///
    /// # Errors
    ///
    /// When it is set to something else.
    pub fn from_environment() -> Result<Option<Self>, InvalidFilter> {
        let value = std::env::var_os(LOG_VARIABLE).filter(|value| !value.is_empty());
        value.map(|value| Self::parse(&value.to_string_lossy())).transpose()
    }

    /// The level of the most talkative target.
    pub fn most(&self) -> LevelFilter {
        self.targets.iter().map(|(_, level)| *level).fold(self.others, LevelFilter::max)
    }

    /// Whether an event of this target and level is written.
    pub fn allows(&self, target: &str, level: &Level) -> bool {
        let named = self.targets.iter().find(|(name, _)| is_within(target, name));
        *level <= named.map_or(self.others, |(_, level)| *level)
    }
}

fn level(word: &str) -> Option<LevelFilter> {
    // By name alone: tracing also takes numbers, and nothing for `error`.
    let is_name = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    Some(word.trim()).filter(is_name)?.parse().ok()
}

fn is_target(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-');
    !name.is_empty() && name.bytes().all(is_part)
}

/// Whether a target is this crate or module, or is in it.
fn is_within(target: &str, name: &str) -> bool {
    target.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Filter {
        Filter::parse(text).unwrap()
    }

    #[test]
    fn a_level_holds_for_everything() {
        let filter = parse("info");
        assert_eq!(filter, Filter::level(LevelFilter::INFO));
        assert!(filter.allows("hearback", &Level::WARN) && filter.allows("any", &Level::INFO));
        assert!(!filter.allows("hearback", &Level::DEBUG));
        assert_eq!(parse("Debug").most(), LevelFilter::DEBUG);
        assert!(!parse("off").allows("hearback", &Level::ERROR));
    }

    #[test]
    fn the_most_exact_target_decides_wherever_it_stands() {
        let filter = parse("hearback_monitor=warn, hearback_monitor::delivery=trace,info");
        assert!(filter.allows("hearback_monitor::delivery::claim", &Level::TRACE));
        assert!(!filter.allows("hearback_monitor::host", &Level::INFO));
        assert!(filter.allows("hearback_monitoring", &Level::INFO), "another crate that begins alike");
        assert_eq!(filter.most(), LevelFilter::TRACE);
        assert!(!parse("hearback=debug").allows("hearback_monitor", &Level::ERROR), "the others are off");
    }

    #[test]
    fn other_text_is_refused_and_named() {
        for text in ["loud", "info,hearback=loud", "=info", "a b=info", "3", "info=", "hearback"] {
            let error = Filter::parse(text).unwrap_err().to_string();
            assert!(error.contains("is no log filter"), "{text}: {error}");
        }
        assert_eq!(parse(""), Filter::level(LevelFilter::OFF));
    }
}
