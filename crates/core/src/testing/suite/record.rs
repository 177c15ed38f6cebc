//! What every store of records does: first its facts, then the files of its jobs, then its housekeeping.
//!
//! The three ports are held to their promises together, because a fact needs a folder and history needs facts.

use crate::port::disk::{LockMode, Publish, Wait};
use crate::port::executor::Script;
use crate::port::record::{JobLock, KeyClaim, RecordStore};
use crate::testing::sample;
use crate::{
    Durability, Fact, Facts, Key, LockState, Place, Reader, ReceiptHow, Remains, Session, Settled, Spec,
};

/// Holds an empty store to all its promises.
pub fn record(store: &dyn RecordStore) {
    jobs(store);
    // FactStore
    readers(store);
    // JobFiles
    files(store);
    keys(store);
}

/// Holds an empty store to the promises of the required methods: jobs can be supervised, reconciled and pruned in it.
pub fn jobs(store: &dyn RecordStore) {
    assert!(store.open_jobs().unwrap().is_empty());
    assert!(store.observe(&sample::id(9)).unwrap().is_none(), "no folder, no job");
    facts(store);
    locks(store);
    history(store);
}

fn facts(store: &dyn RecordStore) {
    let id = store.create(sample::at()).unwrap();
    let other = store.create(sample::at()).unwrap();
    assert_ne!(id, other, "ids of one millisecond differ");
    assert!(store.observe(&id).unwrap().unwrap().facts.spec.is_absent(), "a folder without spec is no job");

    let spec = Spec { id: id.clone(), ..sample::spec("s") };
    store.reserve(&id).unwrap();
    let all = [
        Fact::Spec(Box::new(spec.clone())),
        Fact::Begin(sample::begin()),
        Fact::Target(sample::target()),
        Fact::Kill(1, sample::kill()),
        Fact::Kill(2, sample::kill()),
        Fact::End(Box::new(sample::end(3))),
        Fact::Swept(sample::swept()),
        Fact::Answer(sample::answer("42")),
        Fact::Lease(1, sample::lease()),
        Fact::LeaseResult(1, sample::lease_result(false)),
        Fact::Receipt(sample::receipt(ReceiptHow::Read)),
    ];
    for fact in &all {
        for expected in [Publish::New, Publish::Exists] {
            assert_eq!(store.publish(&id, fact, Durability::Power).unwrap(), expected, "{fact:?}");
        }
    }
    store.flush_spec(&id).unwrap();
    assert_eq!(store.spec(&id).unwrap().present(), Some(&spec));
    assert!(store.spec(&other).unwrap().is_absent());
    let numbers = |after| store.kills(&id, after).unwrap().iter().map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!((numbers(0), numbers(1), numbers(2)), (vec![1, 2], vec![2], vec![]));
    let seen = store.observe(&id).unwrap().unwrap();
    assert_eq!(seen.facts.spec.present(), Some(&spec));
    assert_eq!(seen.facts.begin.present(), Some(&sample::begin()));
    assert_eq!(seen.facts.target.present(), Some(&sample::target()));
    assert_eq!(seen.facts.kills.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(seen.facts.end.present(), Some(&sample::end(3)));
    assert_eq!(seen.facts.swept.present(), Some(&sample::swept()));
    assert_eq!(seen.facts.answer.present(), Some(&sample::answer("42")));
    assert_eq!(seen.facts.leases.len(), 1);
    assert_eq!(seen.facts.results.len(), 1);
    assert!(seen.facts.receipt.present().is_some());
    assert_eq!(seen.place, Place::Open);
    assert_eq!(store.open_jobs().unwrap().len(), 2);

    assert!(!store.discard(&id).unwrap(), "a job is not discarded");
    assert!(store.discard(&other).unwrap(), "a folder without spec is");
    store.prune(&id).unwrap();
    assert!(store.open_jobs().unwrap().is_empty());
}

fn readers(store: &dyn RecordStore) {
    let id = settled_job(store);
    let (a, b) = (Reader::parse("a").unwrap(), Reader::parse("b").unwrap());
    let readers = [None, Some(&a), Some(&b)];
    let note = |reader| store.acknowledge(&id, reader, &sample::stamp(), Durability::Power).unwrap();
    for (n, reader) in readers.into_iter().enumerate() {
        // The job moves meanwhile, and takes along what was noted.
        if n == 1 {
            assert!(store.archive(&id).unwrap());
        }
        assert!(!store.is_acknowledged(&id, reader).unwrap(), "each reader has an account of its own");
        let held = store.lock_reader(&id, reader).unwrap().unwrap();
        assert!(store.lock_reader(&id, reader).unwrap().is_none(), "one at a time");
        assert_eq!((note(reader), note(reader)), (Publish::New, Publish::Exists));
        drop(held);
        assert!(store.is_acknowledged(&id, reader).unwrap());
        assert!(store.lock_reader(&id, reader).unwrap().is_some());
    }
    assert!(readers.into_iter().all(|reader| store.is_acknowledged(&id, reader).unwrap()));
    store.prune(&id).unwrap();
    assert!(store.acknowledge(&id, None, &sample::stamp(), Durability::Power).unwrap_err().is_gone());
    assert!(!store.is_acknowledged(&id, None).unwrap());
}

fn files(store: &dyn RecordStore) {
    let id = store.create(sample::at()).unwrap();
    store.recreate(&id).unwrap();
    assert_eq!(
        store.open_jobs().unwrap(),
        std::slice::from_ref(&id),
        "a folder that is there stays as it is"
    );
    let script = Script { bytes: b"make".to_vec(), extension: "" };
    let path = store.write_script(&id, &script).unwrap();
    let paths = [
        path,
        store.log_path(&id),
        store.log_tail_path(&id),
        store.samples_path(&id),
        store.answer_path(&id),
        store.bell_path(&id),
    ];
    let distinct: std::collections::BTreeSet<_> = paths.iter().collect();
    assert_eq!(distinct.len(), paths.len(), "{paths:?}");
    assert!(store.watch(&id).unwrap().is_some());
    let seen = store.observe(&id).unwrap().unwrap();
    let excerpt = store.excerpt(&seen, 10, 10).unwrap();
    assert!(excerpt.head.is_empty() && excerpt.tail.is_empty() && excerpt.omitted == 0, "no output yet");
    assert_eq!(store.remains(&seen, 10).unwrap(), Remains::default());
    assert!(store.discard(&id).unwrap());
    assert!(store.watch(&id).unwrap().is_none(), "no folder, nothing to watch");
    store.recreate(&id).unwrap();
    assert!(store.observe(&id).unwrap().is_some(), "a folder that is gone is made again under its id");
    assert!(store.discard(&id).unwrap());
}

fn locks(store: &dyn RecordStore) {
    let id = store.create(sample::at()).unwrap();
    let held = store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap().unwrap();
    assert!(store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap().is_none());
    let seen = store.observe(&id).unwrap().unwrap().locks;
    assert_eq!((seen.launch, seen.alive), (LockState::Free, LockState::Held));
    let launching = store.lock(&id, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap().unwrap();
    assert!(!store.discard(&id).unwrap(), "a launch under way is not discarded");
    drop((held, launching));
    assert!(store.observe(&id).unwrap().unwrap().locks.all_free());
    assert!(store.discard(&id).unwrap());
}

fn keys(store: &dyn RecordStore) {
    let key = Key::parse("nightly build").unwrap();
    let (mine, yours) = (Session::parse("mine").unwrap(), Session::parse("yours").unwrap());
    let (a, b) = (store.create(sample::at()).unwrap(), store.create(sample::at()).unwrap());
    assert_eq!(store.claim_key(Some(&mine), &key, &a).unwrap(), KeyClaim::Ours);
    assert_eq!(
        store.claim_key(Some(&mine), &key, &a).unwrap(),
        KeyClaim::Ours,
        "asking again changes nothing"
    );
    assert_eq!(store.claim_key(Some(&mine), &key, &b).unwrap(), KeyClaim::Taken(a.clone()));
    assert_eq!(
        store.claim_key(Some(&yours), &key, &b).unwrap(),
        KeyClaim::Ours,
        "each session has its own keys"
    );
    assert_eq!(store.job_of_key(Some(&mine), &key).unwrap(), Some(a.clone()));
    assert_eq!(store.job_of_key(Some(&yours), &key).unwrap(), Some(b.clone()));
    assert_eq!(store.job_of_key(None, &key).unwrap(), None);
    for (id, session) in [(&a, &mine), (&b, &yours)] {
        let spec = Spec {
            id: id.clone(),
            session: Some(session.clone()),
            key: Some(key.clone()),
            ..sample::spec("x")
        };
        let _ = store.publish(id, &Fact::Spec(Box::new(spec)), Durability::Process).unwrap();
    }
    store.prune(&a).unwrap();
    assert_eq!(
        store.claim_key(Some(&mine), &key, &b).unwrap(),
        KeyClaim::Ours,
        "a pruned job gives its key back"
    );
    store.prune(&b).unwrap();
}

fn history(store: &dyn RecordStore) {
    let ids: Vec<_> = (0..3).map(|_| settled_job(store)).collect();
    for id in &ids {
        assert!(store.archive(id).unwrap());
        assert!(store.archive(id).unwrap(), "archiving again changes nothing");
        let seen = store.observe(id).unwrap().unwrap();
        assert_eq!(seen.place, Place::History);
        assert_eq!(seen.facts.end.present(), Some(&sample::end(0)), "a settled job brings its facts along");
        assert!(seen.facts.settled.present().is_some());
    }
    assert!(store.open_jobs().unwrap().is_empty());
    let mut newest = ids.clone();
    newest.sort();
    newest.reverse();
    assert_eq!(store.past_jobs(usize::MAX).unwrap(), newest);
    assert_eq!(store.past_jobs(2).unwrap(), newest[..2]);
    for id in &ids {
        assert!(store.prune(id).unwrap());
        assert!(store.observe(id).unwrap().is_none());
    }
    assert!(store.past_jobs(usize::MAX).unwrap().is_empty());
}

fn settled_job(store: &dyn RecordStore) -> crate::JobId {
    let id = store.create(sample::at()).unwrap();
    let facts = Facts {
        spec: crate::Read::Present(sample::unowned(&id)),
        end: crate::Read::Present(sample::end(0)),
        ..Facts::default()
    };
    let settled = Settled {
        format: crate::FORMAT,
        at: sample::stamp(),
        facts: Box::new(facts),
        extra: crate::Extra::new(),
    };
    for fact in [
        Fact::Spec(Box::new(sample::unowned(&id))),
        Fact::End(Box::new(sample::end(0))),
        Fact::Settled(settled),
    ] {
        assert_eq!(store.publish(&id, &fact, Durability::Process).unwrap(), Publish::New);
    }
    id
}
