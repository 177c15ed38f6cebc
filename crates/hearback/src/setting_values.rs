//! The settings that are one value each: their names, their kinds, and their fields.

use std::time::Duration;

use hearback_core::{Durability, NoticeBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::settings::{DefaultTimeout, Settings};

/// Every setting that is one value, in the order in which they are shown.
pub(crate) const VALUES: [(&str, Kind); 18] = [
    ("durability", Kind::Durability),
    ("retention", Kind::Age(|settings| &mut settings.retention.max_age)),
    ("max_jobs", Kind::Count(|settings| &mut settings.retention.max_jobs)),
    ("timeout", Kind::Timeout),
    ("default_sink", Kind::Name(|settings| &mut settings.default_sink)),
    ("attempts", Kind::Number { least: 1, field: |settings| &mut settings.retry.attempts_max }),
    ("retry_first", Kind::Wait(|settings| &mut settings.retry.first)),
    ("retry_most", Kind::Wait(|settings| &mut settings.retry.most)),
    ("late_after", Kind::Age(|settings| &mut settings.retry.late_after)),
    ("expire_after", Kind::Age(|settings| &mut settings.retry.expire_after)),
    ("notice_bytes", Kind::NoticeBytes),
    ("max_depth", Kind::Number { least: 0, field: |settings| &mut settings.max_depth }),
    ("max_rate", Kind::Count(|settings| &mut settings.max_rate)),
    ("busy", Kind::Busy),
    ("drain_timeout", Kind::Wait(|settings| &mut settings.drain_timeout)),
    ("resume_window", Kind::Age(|settings| &mut settings.resume_window)),
    ("notice_sink", Kind::Name(|settings| &mut settings.notice_sink)),
    ("mask_credentials", Kind::Flag(|settings| &mut settings.mask_credentials)),
];
/// A field of the settings.
pub(crate) type Field<T> = fn(&mut Settings) -> &mut T;

/// What a setting holds, and where it is kept.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Durability,
    Busy,
    NoticeBytes,
    Timeout,
    /// `true` or `false`.
    Flag(Field<bool>),
    Count(Field<usize>),
    Number {
        least: u32,
        field: Field<u32>,
    },
    /// A name; an empty text means none.
    Name(Field<Option<String>>),
    /// A pause. Zero means no pause.
    Wait(Field<Duration>),
    /// A largest age. Zero means no limit.
    Age(Field<Duration>),
}

/// Whether a value was taken.
pub(crate) enum Taken {
    Yes,
    /// It is negative, and counts as zero.
    AsZero,
    No,
}

impl Kind {
    pub(crate) fn take(self, settings: &mut Settings, text: &str) -> Taken {
        fn put<T>(place: &mut T, value: Option<T>) -> Taken {
            match value {
                None => Taken::No,
                Some(value) => {
                    *place = value;
                    Taken::Yes
                }
            }
        }
        match self {
            // A record may contain a word of a newer build; a setting may not.
            Self::Durability => {
                let known = from_word(text).filter(|choice| *choice != Durability::Unknown);
                put(&mut settings.durability, known)
            }
            Self::Busy => put(&mut settings.busy, from_word(text)),
            Self::NoticeBytes => put(&mut settings.notice, parse_size(text).ok().and_then(NoticeBytes::new)),
            Self::Timeout => put(&mut settings.timeout, timeout(text)),
            Self::Flag(field) => put(field(settings), text.parse().ok()),
            Self::Count(field) => put(field(settings), text.parse().ok()),
            Self::Number { least, field } => {
                put(field(settings), text.parse().ok().filter(|number| *number >= least))
            }
            Self::Name(field) => {
                put(field(settings), Some(Some(text.to_owned()).filter(|name| !name.is_empty())))
            }
            Self::Wait(field) | Self::Age(field) => {
                let zero = if matches!(self, Self::Age(_)) { Duration::MAX } else { Duration::ZERO };
                let time = parse_time(text);
                let taken = put(field(settings), time.map(|time| if time.is_zero() { zero } else { time }));
                if text.trim_start().starts_with('-') && time.is_some() { Taken::AsZero } else { taken }
            }
        }
    }

    /// What a value has to be, for the end of an error message.
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Durability => "`power` or `process`".into(),
            Self::Busy => "`queue` or `interrupt`".into(),
            Self::NoticeBytes => "a size such as `8KiB`, 1 MiB at most".into(),
            Self::Timeout => "`auto`, `none` or a time such as `90m`".into(),
            Self::Number { least, .. } => format!("a number of at least {least}"),
            Self::Flag(_) => "`true` or `false`".into(),
            Self::Count(_) => "a number of at least 0".into(),
            Self::Name(_) => "a name".into(),
            Self::Wait(_) | Self::Age(_) => "a time such as `90s` or `30days`".into(),
        }
    }

    pub(crate) fn show(self, settings: &mut Settings) -> Option<String> {
        let time = |time: &Duration| {
            let time = if *time == Duration::MAX { Duration::ZERO } else { *time };
            Some(humantime::format_duration(time).to_string())
        };
        match self {
            Self::Durability => to_word(settings.durability),
            Self::Busy => to_word(settings.busy),
            Self::NoticeBytes => Some(settings.notice.bytes().to_string()),
            Self::Timeout => match settings.timeout {
                DefaultTimeout::Auto => Some("auto".into()),
                DefaultTimeout::None => Some("none".into()),
                DefaultTimeout::After(limit) => time(&limit),
            },
            Self::Flag(field) => Some(field(settings).to_string()),
            Self::Count(field) => Some(field(settings).to_string()),
            Self::Number { field, .. } => Some(field(settings).to_string()),
            Self::Name(field) => field(settings).clone(),
            Self::Wait(field) | Self::Age(field) => time(field(settings)),
        }
    }
}

/// A limit of zero is refused: it could mean a job that is killed at once, or no limit.
fn timeout(text: &str) -> Option<DefaultTimeout> {
    match text.trim() {
        "auto" => Some(DefaultTimeout::Auto),
        "none" => Some(DefaultTimeout::None),
        text => {
            humantime::parse_duration(text).ok().filter(|limit| !limit.is_zero()).map(DefaultTimeout::After)
        }
    }
}

/// A choice by its word, which is the same as in JSON.
fn from_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}

fn to_word(choice: impl Serialize) -> Option<String> {
    serde_json::to_value(choice).ok()?.as_str().map(str::to_owned)
}

/// A time such as `90s`. A negative time counts as zero. A number needs a unit, unless it is zero or negative.
fn parse_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let Some(less) = text.strip_prefix('-') else { return humantime::parse_duration(text).ok() };
    let is_number = less.parse::<f64>().is_ok() || humantime::parse_duration(less).is_ok();
    is_number.then_some(Duration::ZERO)
}

/// Reads a number of bytes, with a unit or without.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let unit: Option<u64> = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kb" => Some(1000),
        "k" | "kib" => Some(1 << 10),
        "mb" => Some(1000 * 1000),
        "m" | "mib" => Some(1 << 20),
        "gb" => Some(1000 * 1000 * 1000),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let size = number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    size.ok_or_else(|| "give a size such as `16000`, `500KiB` or `8MiB`".into())
}
