//! What every process table does.

use std::path::PathBuf;
use std::time::Duration;

use crate::port::process::{DetachedRequest, Presence, ProcessControl, ProcessIdentity, SweepReport};
use crate::{BootId, JobId};

/// Holds identities to their promises, with the only process that is certainly there: this one.
pub fn process(processes: &dyn ProcessControl) {
    let me = processes.me().unwrap();
    assert_eq!(
        processes.identify(me.pid).unwrap().as_ref(),
        Some(&me),
        "the same process is the same identity"
    );
    assert_eq!(processes.presence(&me), Presence::Same);
    assert_eq!(processes.here(), processes.here(), "this machine stays this machine");

    assert!(!processes.is_stopped(&me), "who asks does not stand still");

    let earlier = ProcessIdentity { started: me.started.wrapping_sub(1), ..me.clone() };
    assert_eq!(processes.presence(&earlier), Presence::Gone, "a reused pid is another process");
    if me.boot.is_some() {
        let before = ProcessIdentity { boot: Some(BootId::new("another boot")), ..me.clone() };
        assert_eq!(processes.presence(&before), Presence::Gone, "nothing survives a reboot");
    }
    assert!(!processes.await_end(&me, Duration::from_millis(1)), "this process lives");
    let long = Duration::from_secs(3600);
    assert!(processes.await_end(&earlier, long), "without a process there is no wait");

    let absent = ProcessIdentity { pid: u32::MAX - 1, ..me.clone() };
    assert_ne!(processes.presence(&absent), Presence::Same);

    let unknown = JobId::mint(u64::from(me.pid), me.started);
    assert_eq!(
        processes.sweep_marked(&unknown, long, long).unwrap(),
        SweepReport::default(),
        "without a process there is no wait"
    );

    // This very program, which finds no test of that name, and goes.
    let detached = DetachedRequest {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", "no test has this name"].map(Into::into).to_vec(),
        home: std::env::temp_dir(),
        env: Vec::new(),
    };
    processes.spawn_detached(&detached).unwrap();
    let nameless = DetachedRequest { program: PathBuf::new(), ..detached };
    assert!(processes.spawn_detached(&nameless).is_err(), "who asked hears that there is no such program");
}
