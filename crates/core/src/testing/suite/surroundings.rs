//! What all surroundings of a target do.

use std::path::Path;
use std::time::Duration;

use crate::port::surroundings::{Happened, OutsideEvent, Surround, SurroundRequest, next_event};

/// Holds surroundings to their promises. Their bell hangs in `folder` as `bell`, where `ring` rings it; their log is
/// `log` there, and is read by the caller afterwards.
pub fn surroundings(surround: &dyn Surround, ring: &dyn Fn(), folder: &Path) {
    let (bell, log, log_tail) = (folder.join("bell"), folder.join("log"), folder.join("tail"));
    let request = SurroundRequest { bell: &bell, log: &log, log_tail: &log_tail, log_cap: None };
    let mut around = surround.surround(&request).unwrap();
    let past = Some(Duration::ZERO);
    assert_eq!(next_event(&mut *around, None, past), Happened::Deadline, "without a target");

    ring();
    assert_eq!(next_event(&mut *around, None, None), Happened::Outside(OutsideEvent::Bell));
    assert_eq!(around.take_event(), None, "a ring is reported once");
    assert_eq!(next_event(&mut *around, None, past), Happened::Deadline);

    let opened = around.last_output();
    let output = around.log();
    output.keep(b"hello");
    assert_eq!(around.finish_log().bytes, 5);
    output.keep(b", world");
    assert_eq!(around.finish_log().bytes, 12, "more may come after the log was finished");
    assert!(around.last_output() >= opened);
}
