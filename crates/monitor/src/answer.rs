//! The answer of a prompt job: working it out when the job is over, and recording it.

use hearback_core::port::disk::Publish;
use hearback_core::port::record::StoreError;
use hearback_core::{
    ANSWER_LOOK_BYTES, AnswerRecord, Fact, JobId, JobState, JobView, Observed, answer_is_due, resolve_answer,
};

use crate::Ports;

/// Records the answer of a job that is over, unless somebody was quicker or there is none to record.
///
/// # Errors
///
/// When the records cannot be read or written.
pub fn record(ports: &Ports, id: &JobId) -> Result<Publish, StoreError> {
    let Some(seen) = ports.store.observe(id)? else { return Ok(Publish::Exists) };
    let folded = seen.fold();
    let JobState::Ended { outcome, .. } = &folded.state else { return Ok(Publish::Exists) };
    if ports.hands_off(&seen).is_some() || !answer_is_due(&seen.facts, &folded.state) {
        return Ok(Publish::Exists);
    }
    let answer = resolve_answer(outcome, &ports.store.remains(&seen, ANSWER_LOOK_BYTES)?);
    ports.publish(&seen, &Fact::Answer(AnswerRecord::new(answer)))
}

/// Puts the answer into the view of a job that is over, where it could not be recorded: what a disk that cannot be
/// written holds is true all the same. That it cannot be worked out now keeps nobody from hearing the rest: a note says
/// so.
pub fn complete(ports: &Ports, seen: &Observed, view: &mut JobView) {
    let has_one = seen.facts.spec.present().is_some_and(|spec| spec.answer);
    if let (true, None, Some(outcome)) = (has_one && view.state.is_over(), &view.answer, &view.outcome) {
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
    fn scenario_53_who_is_second_to_tell_the_answer_changes_nothing_and_hears_so() {
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
            let Some(AnswerRecord { answer: Answer::Failed { reason: told, .. }, .. }) =
                facts.answer.present()
            else {
                panic!("{facts:?}")
            };
            assert_eq!(*told, Outcome::Lost { reason }.to_string());
        }
    }

    #[test]
    fn what_runs_what_was_not_asked_and_what_is_newer_gets_no_answer() {
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
    fn an_answer_that_cannot_be_recorded_is_told_all_the_same() {
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
