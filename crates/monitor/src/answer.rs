//! The answer of a prompt job: working it out when the job has ended, and recording it.

use hearback_core::port::disk::Publish;
use hearback_core::port::record::StoreError;
use hearback_core::{
    ANSWER_LOOK_BYTES, AnswerRecord, Fact, JobId, JobState, JobView, Observed, answer_is_due, resolve_answer,
};

use crate::Ports;

/// Records the answer of a job that has ended, unless another process was quicker or there is none to record.
///
/// # Errors
///
/// When the records cannot be read or written.
pub fn record(ports: &Ports, id: &JobId) -> Result<Publish, StoreError> {
    ports.store.observe(id)?.map_or(Ok(Publish::Exists), |seen| record_seen(ports, &seen))
}

/// The same for a job as it was seen.
pub(crate) fn record_seen(ports: &Ports, seen: &Observed) -> Result<Publish, StoreError> {
    let folded = seen.fold();
    let JobState::Ended { outcome, .. } = &folded.state else { return Ok(Publish::Exists) };
    if ports.hands_off(seen).is_some() || !answer_is_due(&seen.facts, &folded.state) {
        return Ok(Publish::Exists);
    }
    let mut answer = resolve_answer(outcome, &ports.store.remains(seen, ANSWER_LOOK_BYTES)?);
    if !seen.facts.spec.present().is_some_and(|spec| spec.keeps_credentials) {
        answer.mask_credentials();
    }
    ports.publish(seen, &Fact::Answer(AnswerRecord::new(answer)))
}

/// Adds the answer to the view of a job that has ended, if it could not be recorded: what is on a read-only disk is
/// still true. If the answer cannot be worked out, a note says so, and the rest of the view is shown.
pub fn complete(ports: &Ports, seen: &Observed, view: &mut JobView) {
    let has_one = seen.facts.spec.present().is_some_and(|spec| spec.answer);
    if let (true, None, Some(outcome)) = (has_one && view.state.has_ended(), &view.answer, &view.outcome) {
        match ports.store.remains(seen, ANSWER_LOOK_BYTES) {
            Ok(remains) => view.answer = Some(resolve_answer(outcome, &remains)),
            Err(error) => view.notes.push(format!("its answer cannot be worked out: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::{self, Step};
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};
    use hearback_core::{Answer, Begin, Facts, LostReason, Outcome, Read, Remains, Spec};

    fn world() -> (FakeStore, Ports) {
        let store = FakeStore::default();
        (
            store.clone(),
            Ports::new(store, FakeProcesses::default(), FakeClock::default(), FakeExecutor::default()),
        )
    }

    fn asked(id: &JobId) -> Facts {
        Facts { spec: Read::Present(Spec { answer: true, ..sample::unowned(id) }), ..Facts::default() }
    }

    #[test]
    fn the_answer_is_recorded_before_the_job_is_settled_and_goes_along() {
        let (store, ports) = world();
        let id = sample::id(1);
        store.put(&id, Facts { end: Read::Present(sample::end(0)), ..asked(&id) });
        store.leave(&id, Remains { output: b"Paris\n".to_vec(), ..Remains::default() });
        assert_eq!(reconcile::job(&ports, &id).unwrap(), [Step::Answer, Step::Settle, Step::Archive]);
        let facts = store.facts(&id);
        let settled = facts.settled.present().unwrap();
        assert_eq!(settled.facts.answer.present(), Some(&sample::answer("Paris")));
    }

    #[test]
    fn scenario_53_the_second_process_that_records_an_answer_changes_nothing_and_learns_it() {
        let (store, ports) = world();
        let id = sample::id(1);
        store.put(&id, Facts { end: Read::Present(sample::end(0)), ..asked(&id) });
        store.leave(&id, Remains { file: b"first".to_vec(), ..Remains::default() });
        assert_eq!(record(&ports, &id).unwrap(), Publish::New);
        store.leave(&id, Remains { file: b"second".to_vec(), ..Remains::default() });
        let before = store.facts(&id);
        assert_eq!(record(&ports, &id).unwrap(), Publish::Exists);
        assert_eq!(store.facts(&id), before);
        assert_eq!(record(&ports, &sample::id(2)).unwrap(), Publish::Exists, "there is no such job");
    }

    #[test]
    fn scenario_52_a_job_without_a_worker_has_a_reason_instead_of_an_answer() {
        let (store, ports) = world();
        let (orphan, cut_short) = (sample::id(1), sample::id(2));
        store.put(&orphan, Facts { begin: Read::Present(sample::begin()), ..asked(&orphan) });
        store.put(&cut_short, asked(&cut_short));
        for (id, reason) in [(&orphan, LostReason::SupervisorDied), (&cut_short, LostReason::Abandoned)] {
            assert!(reconcile::job(&ports, id).unwrap().contains(&Step::Answer));
            let facts = store.facts(id);
            let Some(AnswerRecord { answer: Answer::Failed { reason: recorded, .. }, .. }) =
                facts.answer.present()
            else {
                panic!("{facts:?}")
            };
            assert_eq!(*recorded, Outcome::Lost { reason }.to_string());
        }
    }

    #[test]
    fn a_running_job_a_job_without_prompt_and_a_newer_one_get_no_answer() {
        let (store, ports) = world();
        let id = sample::id(1);
        let ended = || Facts { end: Read::Present(sample::end(0)), ..asked(&id) };
        for facts in [
            Facts { begin: Read::Present(sample::begin()), ..asked(&id) },
            Facts { spec: Read::Present(sample::unowned(&id)), ..ended() },
            Facts { begin: Read::<Begin>::Newer(9), ..ended() },
        ] {
            store.put(&id, facts.clone());
            assert_eq!(record(&ports, &id).unwrap(), Publish::Exists);
            assert_eq!(store.facts(&id), facts);
        }
    }

    #[test]
    fn an_answer_that_cannot_be_recorded_is_shown_all_the_same() {
        let (store, ports) = world();
        let id = sample::id(1);
        store.put(&id, Facts { end: Read::Present(sample::end(0)), ..asked(&id) });
        store.leave(&id, Remains { output: b"Paris\n".to_vec(), ..Remains::default() });
        store.refuse_writes(true);
        assert!(reconcile::job(&ports, &id).unwrap_err().is_unwritable());
        let seen = ports.store.observe(&id).unwrap().unwrap();
        let mut view = JobView::new(&seen, &ports.here, "/log".into()).unwrap();
        complete(&ports, &seen, &mut view);
        assert_eq!(view.answer, Some(sample::answer("Paris").answer));
    }
}
