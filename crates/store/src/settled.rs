//! `settled.json`: all facts of a job in one file, each as it is in its own file.

use std::path::Path;

use hearback_core::port::disk::Disk;
use hearback_core::port::record::StoreError;
use hearback_core::{Fact, FactKind, Settled};
use serde_json::Value;

use crate::{Records, layout};

/// How every enum of a fact writes a variant that this build does not know.
const UNKNOWN: &[u8] = b"\"unknown\"";

/// Serializes a settled fact.
///
/// If a newer build wrote a variant that this one does not know, the file of that fact is copied instead. A text that
/// happens to be "unknown" costs a few more reads and does no harm.
pub(crate) fn to_json<D: Disk>(
    records: &Records<D>,
    folder: &Path,
    settled: &Settled,
) -> Result<Vec<u8>, StoreError> {
    let bytes = Fact::Settled(settled.clone()).to_json()?;
    if !bytes.windows(UNKNOWN.len()).any(|window| window == UNKNOWN) {
        return Ok(bytes);
    }
    let mut json: Value = serde_json::from_slice(&bytes)?;
    let Some(facts) = json.get_mut("facts").and_then(Value::as_object_mut) else { return Ok(bytes) };
    for (name, read) in facts {
        match read {
            Value::Array(numbered) => {
                for entry in numbered {
                    let n = entry.get(0).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
                    if let (Some(kind), Some(read)) = (n.and_then(|n| kind_of(name, n)), entry.get_mut(1)) {
                        copy(records, folder, kind, read)?;
                    }
                }
            }
            read => {
                if let Some(kind) = kind_of(name, 0) {
                    copy(records, folder, kind, read)?;
                }
            }
        }
    }
    Ok(serde_json::to_vec(&json)?)
}

/// Replaces a fact by the content of its file.
fn copy<D: Disk>(
    records: &Records<D>,
    folder: &Path,
    kind: FactKind,
    read: &mut Value,
) -> Result<(), StoreError> {
    if let Some(present) = read.get_mut("present")
        && let Some(raw) = records.read_json(layout::fact(folder, kind))?
    {
        *present = raw;
    }
    Ok(())
}

/// The fact that a field of `Facts` holds.
fn kind_of(field: &str, n: u32) -> Option<FactKind> {
    Some(match field {
        "spec" => FactKind::Spec,
        "begin" => FactKind::Begin,
        "target" => FactKind::Target,
        "kills" => FactKind::Kill(n),
        "end" => FactKind::End,
        "swept" => FactKind::Swept,
        "answer" => FactKind::Answer,
        "leases" => FactKind::Lease(n),
        "results" => FactKind::LeaseResult(n),
        "receipt" => FactKind::Receipt,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use hearback_core::port::disk::Flush;
    use hearback_core::port::record::{FactStore, JobFiles};
    use hearback_core::testing::{FakeDisk, sample};
    use hearback_core::{Durability, Extra, FORMAT, Facts, FollowUpState, Here, JobId, Outcome, Stamp};
    use serde_json::json;

    /// A job in which every fact contains something that this build does not know.
    fn newer_facts(id: &JobId) -> Vec<(FactKind, Value)> {
        let fact = |fact: Fact| serde_json::from_slice::<Value>(&fact.to_json().unwrap()).unwrap();
        let changed = |mut json: Value, path: &str, value: Value| {
            *json.pointer_mut(path).unwrap() = value;
            json
        };
        let spec = fact(Fact::Spec(Box::new(sample::unowned(id))));
        let spec = changed(spec, "/command", json!({"notebook": "a.ipynb", "cells": [1, 2]}));
        let spec = changed(spec, "/durability", json!("three_disks"));
        let begin = changed(fact(Fact::Begin(sample::begin())), "/by", json!({"cluster": {"node": 7}}));
        let kill = changed(fact(Fact::Kill(1, sample::kill())), "/by", json!({"robot": "r2"}));
        let killed = json!({"kind": "killed", "by": {"robot": "r2"}, "exit": {"kind": "frozen", "for": 3}});
        let end = changed(fact(Fact::End(Box::new(sample::end(0)))), "/outcome", killed);
        let end = changed(end, "/author", json!("executor"));
        let receipt = fact(Fact::Receipt(sample::receipt(hearback_core::ReceiptHow::Read)));
        let receipt = changed(receipt, "/how", json!({"forwarded": {"to": "s2"}}));
        vec![
            (FactKind::Spec, spec),
            (FactKind::Begin, begin),
            (FactKind::Kill(1), kill),
            (FactKind::End, end),
            (FactKind::Receipt, receipt),
        ]
    }

    #[test]
    fn scenario_134_what_only_a_newer_build_knows_is_copied_as_it_stands() {
        let disk = FakeDisk::default();
        let store = Store::open(disk.clone(), Path::new("/home")).unwrap();
        let id = store.create(sample::at()).unwrap();
        let folder = Path::new("/home/jobs").join(id.to_string());
        let newer = newer_facts(&id);
        for (kind, json) in &newer {
            let path = layout::fact(&folder, *kind);
            let _ = disk.publish_new(&path, json.to_string().as_bytes(), Flush::No).unwrap();
        }
        let seen = store.observe(&id).unwrap().unwrap();
        assert_eq!(seen.facts.flaws(), [], "all of it can be read");
        assert_eq!(seen.hands_off(&Here::default()), None);
        assert_eq!(seen.fold().follow_up.state, FollowUpState::Closed);
        let at: Stamp = sample::stamp();
        let facts = Box::new(Facts { settled: hearback_core::Read::Absent, ..seen.facts.clone() });
        let settled = Fact::Settled(Settled { format: FORMAT, at, facts, extra: Extra::new() });
        let _ = store.publish(&id, &settled, Durability::Power).unwrap();
        let copy = store.records.read_json(layout::fact(&folder, FactKind::Settled)).unwrap().unwrap();
        for (field, kind) in [("spec", FactKind::Spec), ("begin", FactKind::Begin), ("end", FactKind::End)] {
            let (_, json) = newer.iter().find(|(other, _)| *other == kind).unwrap();
            assert_eq!(&copy["facts"][field]["present"], json, "{field}");
        }
        assert_eq!(copy["facts"]["receipt"]["present"]["how"], json!({"forwarded": {"to": "s2"}}));
        assert_eq!(copy["facts"]["kills"][0][1]["present"]["by"], json!({"robot": "r2"}));
        let again = store.observe(&id).unwrap().unwrap();
        let end = again.facts.end.present().unwrap();
        assert!(matches!(end.outcome, Outcome::Killed { .. }), "and it reads back as before: {end:?}");
        assert_eq!(again.facts.spec, seen.facts.spec);
    }

    #[test]
    fn text_that_says_unknown_is_copied_unharmed() {
        let disk = FakeDisk::default();
        let store = Store::open(disk, Path::new("/home")).unwrap();
        let id = store.create(sample::at()).unwrap();
        let spec = hearback_core::Spec { label: Some("unknown".into()), ..sample::unowned(&id) };
        let _ = store.publish(&id, &Fact::Spec(Box::new(spec.clone())), Durability::Power).unwrap();
        let facts = Box::new(store.observe(&id).unwrap().unwrap().facts);
        let settled = Settled { format: FORMAT, at: sample::stamp(), facts, extra: Extra::new() };
        let _ = store.publish(&id, &Fact::Settled(settled), Durability::Power).unwrap();
        assert_eq!(store.observe(&id).unwrap().unwrap().facts.spec.present(), Some(&spec));
    }
}
