//! A store that was written long ago still reads as it was.
//!
//! `tests/golden/format-1` is a store of format 1, and the snapshots beside it say how it is shown. It was written by
//! `tests/examples/golden.rs`.

use std::path::{Path, PathBuf};

use fs_err as fs;
use hearback_core::port::disk::{Disk, Flush};
use hearback_core::port::process::BootId;
use hearback_core::port::record::{FactStore, Housekeeping, JobFiles, KeyClaim};
use hearback_core::port::session::SessionStore;
use hearback_core::session::fold_session;
use hearback_core::{Here, JobId, JobView, Key, LockState, Reader, Session};
use hearback_platform::Native;
use hearback_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The copy of a golden store, opened.
struct Golden {
    store: Store<Native>,
    _folder: TempDir,
}

/// Where golden stores are, and how each is shown.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

impl Golden {
    /// Copies a golden store to a private home: neither owner nor mode of a file survive in git.
    fn open(name: &str) -> Golden {
        let folder = tempfile::tempdir().unwrap();
        let disk = Native::default();
        let home = disk.secure_home(&folder.path().join("home")).unwrap();
        copy(&disk, &golden().join(name), &home);
        Golden { store: Store::open(disk, &home).unwrap(), _folder: folder }
    }

    fn all(&self) -> Vec<JobId> {
        let mut all = self.store.open_jobs().unwrap();
        all.extend(self.store.past_jobs(usize::MAX).unwrap());
        all.sort();
        all
    }

    /// How a job is shown on the machine and in the boot in which all of them were launched.
    fn job(&self, id: &JobId) -> Value {
        let seen = self.store.observe(id).unwrap().expect("it was listed");
        let here = Here { boot: Some(BootId::new("boot-1")), machine: None };
        let view = JobView::new(&seen, &here, "the log".into()).expect("it has a spec");
        assert_eq!(view.notes.iter().filter(|note| note.contains("cannot be read")).count(), 0, "{view:?}");
        let log = self.store.excerpt(&seen, 100, 100).unwrap();
        json!({
            "place": format!("{:?}", seen.place),
            "log": String::from_utf8([log.head, log.tail].concat()).unwrap(),
            "view": view,
        })
    }

    fn labelled(&self, label: &str) -> JobId {
        let has = |id: &JobId| self.job(id)["view"]["label"] == label;
        self.all().into_iter().find(has).expect("a job of this label")
    }

    fn session(&self, session: &Session) -> Value {
        let facts = self.store.session(session).unwrap();
        let state = fold_session(&facts, LockState::Free);
        let turns = facts.turns.iter().map(|(n, turn)| {
            json!({
                "n": n,
                "begin": turn.begin.present(),
                "resumable": turn.resumable.present(),
                "interrupt": turn.interrupt.present(),
                "end": turn.end.present(),
            })
        });
        let messages = facts.messages.iter().map(|(n, message)| {
            let results = message.results.iter().map(|(n, result)| json!([n, result.present()]));
            json!({
                "n": n,
                "message": message.message.present(),
                "results": results.collect::<Vec<_>>(),
                "receipt": message.receipt.present(),
                "dead_letter": message.is_dead_letter(),
            })
        });
        json!({
            "session": session,
            "turns": turns.collect::<Vec<_>>(),
            "interrupted": state.interrupted.map(|turn| turn.turn),
            "messages": messages.collect::<Vec<_>>(),
            "waiting": facts.waiting().map(|(n, _)| n).collect::<Vec<_>>(),
        })
    }

    fn host(&self) -> Value {
        let facts = self.store.host().unwrap();
        let requests = facts.requests.iter().map(|(n, request)| {
            json!({
                "n": n,
                "request": request.request.present(),
                "taken": request.taken.present(),
                "done": request.done.present(),
            })
        });
        json!({
            "begins": facts.begins.iter().map(|(n, begin)| json!([n, begin.present()])).collect::<Vec<_>>(),
            "requests": requests.collect::<Vec<_>>(),
            "open": facts.open_request().map(|(n, _)| n),
        })
    }
}

fn copy(disk: &Native, from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let done = if entry.file_type().unwrap().is_dir() {
            let made = disk.make_dir(&target);
            copy(disk, &entry.path(), &target);
            made
        } else {
            disk.publish_new(&target, &fs::read(entry.path()).unwrap(), Flush::No)
        };
        let _ = done.unwrap();
    }
}

/// Compares with the snapshot of this name beside the golden stores.
#[track_caller]
fn assert_shown(name: &str, shown: &Value) {
    insta::with_settings!(
        { snapshot_path => golden(), prepend_module_to_snapshot => false, omit_expression => true },
        { insta::assert_json_snapshot!(name, shown) }
    );
}

#[test]
fn scenario_135_every_job_of_format_1_is_shown_as_it_was() {
    let golden = Golden::open("format-1");
    let jobs: Vec<_> = golden.all().iter().map(|id| golden.job(id)).collect();
    assert_shown("format-1-jobs", &jobs.into());
}

#[test]
fn scenario_135_every_session_of_format_1_is_found_by_its_name() {
    let golden = Golden::open("format-1");
    let mut sessions = golden.store.sessions().unwrap();
    sessions.sort();
    let shown: Vec<_> = sessions.iter().map(|session| golden.session(session)).collect();
    assert_shown("format-1-sessions", &shown.into());
    assert_shown("format-1-host", &golden.host());
}

#[test]
fn scenario_135_keys_and_readers_of_format_1_are_known() {
    let golden = Golden::open("format-1");
    let new = JobId::mint(0, 7);
    for (session, name) in [(None, "of no session"), (Session::parse("main").ok(), "nightly build")] {
        let claim = golden.store.claim_key(session.as_ref(), &Key::parse(name).unwrap(), &new).unwrap();
        assert_eq!(claim, KeyClaim::Taken(golden.labelled(&format!("key: {name}"))));
    }
    let asked = golden.labelled("a prompt job, with its answer");
    let known = |reader: Option<Reader>| golden.store.is_acknowledged(&asked, reader.as_ref()).unwrap();
    assert!(known(None) && known(Reader::parse("reviewer").ok()));
    assert!(!known(Reader::parse("another").ok()));
}
