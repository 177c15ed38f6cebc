//! Reading an enum of which a newer build may have more variants.
//!
//! A field that an older build does not know is kept in `Extra`. A variant that it does not know is read as the
//! enum's `Unknown`; the rest of the fact is read as usual. `Unknown` never replaces the original on disk, because the
//! store copies such facts from their files (`docs/storage.md`, "Formats").

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

/// Reads an externally tagged enum with `#[serde(other)] Unknown`. serde itself accepts a newer variant that is one
/// word; this also accepts one with data, `{"word": …}`. A known word with wrong data stays an error.
pub(crate) fn read<'de, D, T>(
    deserializer: D,
    parse: fn(Value) -> serde_json::Result<T>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    let word = match &value {
        Value::Object(fields) if fields.len() == 1 => fields.keys().next().cloned(),
        _ => None,
    };
    parse(value)
        .or_else(|error| word.and_then(|word| parse(Value::String(word)).ok()).ok_or(error))
        .map_err(D::Error::custom)
}

/// Implements `Serialize` and `Deserialize` for enums that derive them with `#[serde(remote = "Self")]`, so that a
/// variant of a newer build is read as `Unknown`.
macro_rules! reads_newer_variants {
    ($($type:ident),+ $(,)?) => {$(
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // The inherent function that `remote = "Self"` makes.
                $type::serialize(self, serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::variant::read(deserializer, |value| $type::deserialize(value))
            }
        }
    )+};
}

pub(crate) use reads_newer_variants;

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use crate::session::{
        Interruption, MessageHow, SessionFacts, TurnCause, TurnEnd, TurnFact, TurnFacts, TurnHow,
        fold_session,
    };
    use crate::testing::sample;
    use crate::*;

    /// What a newer build may write where this one knows a few words: a word, or a word with data.
    fn is_unknown<T: DeserializeOwned + PartialEq + std::fmt::Debug>(unknown: &T) {
        for newer in [json!("transcended"), json!({"transcended": {"to": 7}}), json!({"transcended": null})] {
            assert_eq!(&serde_json::from_value::<T>(newer).unwrap(), unknown);
        }
        for damaged in [json!(null), json!(7), json!([]), json!({}), json!({"a": 1, "b": 2})] {
            assert!(serde_json::from_value::<T>(damaged.clone()).is_err(), "{damaged}");
        }
    }

    /// The same for enums whose variants are objects with a `kind`.
    fn is_unknown_kind<T: DeserializeOwned + PartialEq + std::fmt::Debug>(unknown: &T) {
        for newer in [json!({"kind": "transcended"}), json!({"kind": "transcended", "code": 0, "to": [7]})] {
            assert_eq!(&serde_json::from_value::<T>(newer).unwrap(), unknown);
        }
    }

    #[test]
    fn scenario_134_every_stored_enum_reads_a_variant_of_a_newer_build() {
        is_unknown(&BegunBy::Unknown);
        is_unknown(&KilledBy::Unknown);
        is_unknown(&EndAuthor::Unknown);
        is_unknown(&ReceiptHow::Unknown);
        is_unknown(&LostReason::Unknown);
        is_unknown(&StartErrorKind::Unknown);
        is_unknown(&NotifyPolicy::Unknown);
        is_unknown(&Leftovers::Unknown);
        is_unknown(&OverCap::Unknown);
        is_unknown(&Durability::Unknown);
        is_unknown(&GapReason::Unknown);
        is_unknown(&StopKind::Unknown);
        is_unknown(&Interruption::Unknown);
        is_unknown(&AnswerSource::Unknown);
        is_unknown_kind(&Outcome::Unknown);
        is_unknown_kind(&Exit::Unknown);
        is_unknown_kind(&Answer::Unknown);
        is_unknown_kind(&TurnCause::Unknown);
        is_unknown_kind(&TurnHow::Unknown);
        is_unknown_kind(&MessageHow::Unknown);
        let command = json!({"notebook": "a.ipynb", "cells": [1]});
        let read: CommandLine = serde_json::from_value(command.clone()).unwrap();
        assert!(matches!(read, CommandLine::Unknown(_)));
        assert_eq!(serde_json::to_value(&read).unwrap(), command);
    }

    #[test]
    fn a_known_variant_reads_back_and_a_damaged_one_is_no_newer_one() {
        let by = KilledBy::Session(Session::parse("s").unwrap());
        let json = serde_json::to_value(&by).unwrap();
        assert_eq!(json, json!({"session": "s"}));
        assert_eq!(serde_json::from_value::<KilledBy>(json).unwrap(), by);
        assert!(serde_json::from_value::<KilledBy>(json!({"session": 5})).is_err());
        assert_eq!(serde_json::to_value(Durability::Unknown).unwrap(), "unknown");
    }

    fn ended(end: End) -> Facts {
        Facts {
            spec: Read::Present(sample::spec("s")),
            begin: Read::Present(sample::begin()),
            end: Read::Present(end),
            ..Facts::default()
        }
    }

    fn view(facts: Facts) -> JobView {
        let (locks, place, output) = (LockView::FREE, Place::Open, Output::default());
        let seen = Observed { id: sample::id(1), facts, locks, place, output };
        JobView::new(&seen, &Here::default(), "/log".into()).unwrap()
    }

    #[test]
    fn scenario_134_what_a_newer_build_says_of_a_job_is_not_lost_failed_or_undelivered() {
        let killed = Outcome::Killed { by: KilledBy::Unknown, reason: None, exit: Some(Exit::Unknown) };
        let shown = view(ended(End { outcome: killed.clone(), ..sample::end(0) }));
        assert_eq!((shown.state, shown.outcome), (StateWord::Failed, Some(killed)), "it was killed");
        let shown = view(ended(End { outcome: Outcome::Unknown, ..sample::end(0) }));
        assert_eq!((shown.state, shown.state.has_ended()), (StateWord::Ended, true));
        let facts =
            Facts { receipt: Read::Present(sample::receipt(ReceiptHow::Unknown)), ..ended(sample::end(0)) };
        let shown = view(facts);
        assert_eq!(shown.follow_up.state, FollowUpState::Closed);
        assert!(shown.follow_up.state.is_closed(), "and is never offered again");
        let spec = Spec { notify: NotifyPolicy::Unknown, ..sample::spec("s") };
        let shown = view(Facts { spec: Read::Present(spec), ..ended(sample::end(0)) });
        assert_eq!(shown.follow_up.state, FollowUpState::Pending, "in doubt, the owner is notified");
    }

    #[test]
    fn scenario_134_a_job_that_a_newer_build_began_runs_until_there_is_an_end() {
        let begin = Begin::new(BegunBy::Unknown, sample::at());
        let facts = Facts { end: Read::Absent, begin: Read::Present(begin.clone()), ..ended(sample::end(0)) };
        let folded = fold(&facts, LockView::FREE);
        assert_eq!(folded.state, JobState::Running, "no lock proves that it died");
        assert!(facts.any_newer(), "and it is left alone");
        let ended = Facts { begin: Read::Present(begin), ..ended(sample::end(0)) };
        let folded = fold(&ended, LockView::FREE);
        assert!(matches!(folded.state, JobState::Ended { outcome: Outcome::Exited { code: 0 }, .. }));
        assert!(!ended.any_newer(), "its end is understood");
    }

    #[test]
    fn scenario_134_a_turn_that_ended_in_a_newer_way_has_ended() {
        let TurnFact::End(end) = TurnFact::end(sample::stamp(), TurnHow::Unknown) else { unreachable!() };
        let end: Read<TurnEnd> = Read::Present(end);
        let begin = Read::Present(sample::turn_begin("s", TurnCause::Unknown));
        let turns = vec![(1, TurnFacts { begin, end, ..TurnFacts::default() })];
        let facts = SessionFacts { turns, messages: Vec::new() };
        let state = fold_session(&facts, LockState::Free);
        assert_eq!((state.in_turn, state.interrupted, state.interruptions), (None, None, 0));
    }
}
