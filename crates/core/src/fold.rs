//! From facts to state: one pure function that decides what a job is.

use serde::{Deserialize, Serialize};

use crate::fact::KilledBy;
use crate::session::Interruption;
use crate::{
    AnswerRecord, Begin, BegunBy, BootId, End, FactKind, JobId, Kill, Lease, LeaseResult, LostReason,
    MachineId, NotifyPolicy, Outcome, Output, ProcessIdentity, Receipt, ReceiptHow, Settled, SmallSort, Spec,
    Stamp, Swept, Target,
};

/// What one file of a job said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read<T> {
    /// There is no such file.
    #[default]
    Absent,
    /// This is what it says.
    Present(T),
    /// There is one, and it cannot be understood; it stays where it is.
    Unreadable(String),
    /// There is one of a newer format: to be shown, and left alone with everything that belongs to it.
    Newer(u32),
}

impl<T> Read<T> {
    /// What was read, if it could be.
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Present(fact) => Some(fact),
            _ => None,
        }
    }

    /// Whether there is no such file. One that cannot be read is there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// What is wrong with it, if it is there.
    pub fn flaw(&self) -> Option<Flaw<'_>> {
        match self {
            Self::Unreadable(why) => Some(Flaw::Unreadable(why)),
            Self::Newer(format) => Some(Flaw::Newer(*format)),
            Self::Absent | Self::Present(_) => None,
        }
    }
}

/// What the files of one job say, before they are interpreted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the fact of its name")]
pub struct Facts {
    #[serde(default, skip_serializing_if = "Read::is_absent")]
    pub spec: Read<Spec>,
    #[serde(default, skip_serializing_if = "Read::is_absent")]
    pub begin: Read<Begin>,
    #[serde(default, skip_serializing_if = "Read::is_absent")]
    pub target: Read<Target>,
    /// In the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kills: Vec<(u32, Read<Kill>)>,
    #[serde(default, skip_serializing_if = "Read::is_absent")]
    pub end: Read<End>,
    #[serde(default, skip_serializing_if = "Read::is_absent")]
    pub swept: Read<Swept>,
    #[serde(default, skip_serializing_if = "Read::is_absent")]
    pub answer: Read<AnswerRecord>,
    /// In the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<(u32, Read<Lease>)>,
    /// In the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<(u32, Read<LeaseResult>)>,
    #[serde(default, skip_serializing_if = "Read::is_absent")]
    pub receipt: Read<Receipt>,
    /// Never inside another settled fact.
    #[serde(skip)]
    pub settled: Read<Settled>,
}

/// How an attempt at a follow-up ended, as far as it tells whether its turn is cut short again and again.
enum AttemptEnd {
    CutShort(Interruption),
    Busy,
    Other,
}

impl Facts {
    /// How often in a row, in the attempts before this number, the turn of the follow-up was cut short, and why the
    /// last time. A message that interrupts a turn is sent on purpose, so it does not count; neither does a busy
    /// session.
    pub fn cut_short_before(&self, n: u32) -> (usize, Option<Interruption>) {
        let (mut times, mut last) = (0, None);
        for attempt in self.attempts_before(n) {
            match attempt {
                Some(AttemptEnd::CutShort(reason)) => {
                    times += usize::from(reason != Interruption::Message);
                    last = last.or(Some(reason));
                }
                Some(AttemptEnd::Busy) => {}
                Some(AttemptEnd::Other) | None => break,
            }
        }
        (times, last)
    }

    /// Why the turn of the follow-up was cut short in an attempt before this number, the last time that it was.
    pub fn last_cut_short_before(&self, n: u32) -> Option<Interruption> {
        self.attempts_before(n).find_map(|attempt| match attempt {
            Some(AttemptEnd::CutShort(reason)) => Some(reason),
            _ => None,
        })
    }

    /// How the attempts before this number ended, the newest first; none for what was no attempt but a retry by hand.
    fn attempts_before(&self, n: u32) -> impl Iterator<Item = Option<AttemptEnd>> {
        let mut leases: Vec<_> = self.leases.iter().filter(|(number, _)| *number < n).collect();
        leases.small_sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        leases.into_iter().map(|(number, lease)| {
            let lease = lease.present();
            let is_turn = lease.is_some_and(|lease| lease.turn);
            let result = self.results.iter().find(|(result, _)| result == number).map(|(_, it)| it.present());
            Some(match result {
                None if lease.is_some_and(|lease| lease.attempts_used == 0) => return None,
                // It died with its process.
                None if is_turn => AttemptEnd::CutShort(Interruption::Crash),
                Some(Some(LeaseResult { interrupted: Some(reason), .. })) => AttemptEnd::CutShort(*reason),
                Some(Some(LeaseResult { busy: true, .. })) => AttemptEnd::Busy,
                None | Some(_) => AttemptEnd::Other,
            })
        })
    }

    /// The process in which the session is open that could not be reached by the last attempt, if that is known.
    pub fn open_in(&self) -> Option<&ProcessIdentity> {
        let last = self.leases.iter().map(|(n, _)| *n).max()?;
        self.result(last)?.open_in.as_ref()
    }

    /// The result of an attempt, if it has one that can be read.
    pub fn result(&self, n: u32) -> Option<&LeaseResult> {
        self.results.iter().find(|(number, _)| *number == n).and_then(|(_, result)| result.present())
    }

    /// Whether only a newer build can say what becomes of the job: one of the facts is of a newer format, or it was
    /// begun in a way that this build does not know and has no end. An answer does not count: nothing else follows
    /// from it.
    pub fn any_newer(&self) -> bool {
        let newer = |(kind, flaw): &(_, _)| *kind != FactKind::Answer && matches!(flaw, Flaw::Newer(_));
        self.is_begun_by_newer() || self.flaws().iter().any(newer)
    }

    /// Whether the job was begun in a way that this build does not know, and has no end: then a free lock does not
    /// prove that nothing runs.
    fn is_begun_by_newer(&self) -> bool {
        let by = self.begin.present().map(|begin| &begin.by);
        self.end.is_absent() && by == Some(&BegunBy::Unknown)
    }

    /// Those that are there and cannot be relied on, each with what is wrong with it.
    pub fn flaws(&self) -> Vec<(FactKind, Flaw<'_>)> {
        fn numbered<T>(
            list: &[(u32, Read<T>)],
            kind: fn(u32) -> FactKind,
        ) -> impl Iterator<Item = (FactKind, Option<Flaw<'_>>)> {
            list.iter().map(move |(n, read)| (kind(*n), read.flaw()))
        }
        [
            (FactKind::Spec, self.spec.flaw()),
            (FactKind::Begin, self.begin.flaw()),
            (FactKind::Target, self.target.flaw()),
            (FactKind::End, self.end.flaw()),
            (FactKind::Swept, self.swept.flaw()),
            (FactKind::Answer, self.answer.flaw()),
            (FactKind::Receipt, self.receipt.flaw()),
            (FactKind::Settled, self.settled.flaw()),
        ]
        .into_iter()
        .chain(numbered(&self.kills, FactKind::Kill))
        .chain(numbered(&self.leases, FactKind::Lease))
        .chain(numbered(&self.results, FactKind::LeaseResult))
        .filter_map(|(kind, flaw)| Some((kind, flaw?)))
        .collect()
    }
}

/// Why a fact that is there cannot be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw<'a> {
    /// It cannot be understood.
    Unreadable(&'a str),
    /// A newer build wrote it, in this format.
    Newer(u32),
}

/// Whether a process holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockState {
    /// A living process holds it.
    Held,
    /// No process holds it.
    Free,
}

/// The locks that tell who is alive.
///
/// They are probed after `spec` and `begin` were read and before the rest is: a lock that is free *then* proves
/// that what its holder had to say can be read *now*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockView {
    /// Held by the launcher from before `spec` until the supervisor has answered.
    pub launch: LockState,
    /// Held by the supervisor until `end` is durable.
    pub alive: LockState,
}

impl LockView {
    /// Both locks are free.
    pub const FREE: Self = Self { launch: LockState::Free, alive: LockState::Free };

    /// Whether launcher and supervisor are both gone.
    pub fn all_free(self) -> bool {
        self == Self::FREE
    }
}

/// Where a job's folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Among the open jobs.
    Open,
    /// In history.
    History,
}

/// Everything that was seen of one job at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The job.
    pub id: JobId,
    /// What its files say.
    pub facts: Facts,
    /// Who is alive.
    pub locks: LockView,
    /// Where its folder is.
    pub place: Place,
    /// What its log holds.
    pub output: Output,
}

/// What the facts of a job mean. Derived, never stored: the same facts always give the same fold.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold<'a> {
    /// How far the job is.
    pub state: JobState<'a>,
    /// How far its follow-up is.
    pub follow_up: FollowUp,
    /// When it was settled, if it is.
    pub settled: Option<&'a Stamp>,
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobState<'a> {
    /// There is no job here: its launch never got as far as saying what to run.
    Nothing,
    /// It is being launched.
    Starting,
    /// Its launcher is gone and no supervisor took it up; any process that sees this may declare it abandoned.
    Unclaimed,
    /// Its supervisor is alive.
    Running,
    /// Its supervisor is gone and left no end; any process that sees this sweeps and records the loss.
    Orphaned,
    /// It has ended.
    Ended {
        /// How; owned, because an end that cannot be read still has an outcome.
        outcome: Outcome,
        /// The record of it, where it can be read.
        end: Option<&'a End>,
    },
}

/// The follow-up that notifies the owner of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowUp {
    /// What the owner chose; unknown when the spec cannot be read.
    pub policy: Option<NotifyPolicy>,
    /// Its state.
    pub state: FollowUpState,
}

/// The state of a follow-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FollowUpState {
    /// No notification is wanted.
    NotWanted,
    /// The job has not ended.
    Waiting,
    /// The job has ended, and its owner is not notified yet.
    Pending,
    /// A process is delivering it.
    Leased,
    /// A sink accepted it.
    Delivered,
    /// The agent keeps it in a queue of its own, from which its session takes it.
    Queued,
    /// The owner has read the result itself.
    Read,
    /// Delivery was given up; a person has to act.
    DeadLetter,
    /// A caller discarded it.
    Discarded,
    /// It was not delivered within `expire_after`.
    Expired,
    /// A newer build closed it, in a way that this one does not know.
    Closed,
}

impl FollowUpState {
    /// Whether nothing more will come of it.
    pub fn is_closed(self) -> bool {
        match self {
            Self::NotWanted
            | Self::Delivered
            | Self::Queued
            | Self::Read
            | Self::Discarded
            | Self::Expired
            | Self::Closed => true,
            Self::Waiting | Self::Pending | Self::Leased | Self::DeadLetter => false,
        }
    }
}

/// Derives what a job is from its facts and from who is alive.
///
/// An end counts only if `alive` is free: until then a power cut may take it back. The holder of that lock, which knows
/// what it published, folds with the lock as free.
pub fn fold(facts: &Facts, locks: LockView) -> Fold<'_> {
    let state = fold_state(facts, locks);
    let follow_up = fold_follow_up(facts, &state);
    let settled = facts.settled.present().map(|settled| &settled.at);
    Fold { state, follow_up, settled }
}

fn fold_state(facts: &Facts, locks: LockView) -> JobState<'_> {
    match &facts.end {
        // It has its name and may not be durable yet: its author holds the lock until it is. Nothing is told of it, and
        // an end that another process planted ends nothing.
        _ if locks.alive == LockState::Held => {}
        Read::Present(end) => return JobState::Ended { outcome: end.outcome.clone(), end: Some(end) },
        Read::Unreadable(_) => return lost(LostReason::Unreadable),
        Read::Newer(_) => return JobState::Ended { outcome: Outcome::Unknown, end: None },
        Read::Absent => {}
    }
    match &facts.begin {
        Read::Present(Begin { by: BegunBy::Abandoned, .. }) => lost(LostReason::Abandoned),
        Read::Present(Begin { by: BegunBy::Unknown, .. }) => JobState::Running,
        // A begin that cannot be read counts: a supervisor began.
        Read::Present(_) | Read::Unreadable(_) | Read::Newer(_) => match locks.alive {
            LockState::Held => JobState::Running,
            LockState::Free => JobState::Orphaned,
        },
        Read::Absent if facts.spec.is_absent() => JobState::Nothing,
        Read::Absent if locks.all_free() => JobState::Unclaimed,
        Read::Absent => JobState::Starting,
    }
}

fn lost<'a>(reason: LostReason) -> JobState<'a> {
    JobState::Ended { outcome: Outcome::Lost { reason }, end: None }
}

fn fold_follow_up(facts: &Facts, state: &JobState<'_>) -> FollowUp {
    let spec = facts.spec.present();
    let policy = spec.map(|spec| spec.notify);
    let over = match state {
        JobState::Ended { outcome, .. } => Some(outcome),
        _ => None,
    };
    let state = match (spec, over) {
        // Without a spec the owner is unknown: a thing for people, not for retries.
        (None, Some(_)) => receipt_state(facts).unwrap_or(FollowUpState::DeadLetter),
        (None, None) => FollowUpState::Waiting,
        (Some(spec), None) if spec.can_notify() => FollowUpState::Waiting,
        (Some(_), None) => FollowUpState::NotWanted,
        (Some(spec), Some(outcome)) => receipt_state(facts).unwrap_or_else(|| {
            if is_wanted(spec, outcome) { delivery_state(facts) } else { FollowUpState::NotWanted }
        }),
    };
    FollowUp { policy, state }
}

fn is_wanted(spec: &Spec, outcome: &Outcome) -> bool {
    if !spec.can_notify() {
        return false;
    }
    match spec.notify {
        NotifyPolicy::Always => true,
        NotifyPolicy::Never => false,
        NotifyPolicy::Failure => !outcome.is_success(),
        NotifyPolicy::Success => outcome.is_success(),
        NotifyPolicy::Auto | NotifyPolicy::Unknown => !matches!(
            outcome,
            Outcome::Killed { by: KilledBy::Session(killer), .. } if Some(killer) == spec.session.as_ref()
        ),
    }
}

fn receipt_state(facts: &Facts) -> Option<FollowUpState> {
    match &facts.receipt {
        Read::Absent => None,
        Read::Present(receipt) => Some(match receipt.how {
            ReceiptHow::Delivered => FollowUpState::Delivered,
            ReceiptHow::Queued => FollowUpState::Queued,
            ReceiptHow::Read => FollowUpState::Read,
            ReceiptHow::Discarded => FollowUpState::Discarded,
            ReceiptHow::Expired => FollowUpState::Expired,
            ReceiptHow::Unknown => FollowUpState::Closed,
        }),
        // It cannot be replaced, so no further attempt could ever be acknowledged: a person has to look.
        Read::Unreadable(_) | Read::Newer(_) => Some(FollowUpState::DeadLetter),
    }
}

fn delivery_state(facts: &Facts) -> FollowUpState {
    let Some((n, lease)) = facts.leases.iter().max_by_key(|(n, _)| n) else { return FollowUpState::Pending };
    match facts.results.iter().find(|(result, _)| result == n) {
        Some((_, Read::Present(result))) if result.gave_up => FollowUpState::DeadLetter,
        Some(_) => FollowUpState::Pending,
        None if lease.present().is_some_and(|lease| lease.attempts_used > 0) => FollowUpState::Leased,
        // A lease that cannot be read counts as expired, and one without an attempt is a fresh start.
        None => FollowUpState::Pending,
    }
}

/// The machine and the boot that an observer lives in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Here {
    /// This boot, where the system tells.
    pub boot: Option<BootId>,
    /// This machine, where the system tells.
    pub machine: Option<MachineId>,
}

impl Here {
    /// Whether the job was launched on another machine, so that its locks and processes say nothing here.
    pub fn is_foreign(&self, facts: &Facts) -> bool {
        let there = facts.spec.present().and_then(|spec| spec.machine.as_ref());
        matches!((there, &self.machine), (Some(there), Some(here)) if there != here)
    }

    /// Whether the job is proved to stem from an earlier boot.
    pub fn is_past_boot(&self, facts: &Facts) -> bool {
        let begun_in = match facts.begin.present().map(|begin| &begin.by) {
            Some(BegunBy::Supervisor(process)) => process.boot.as_ref(),
            _ => None,
        };
        let then = begun_in.or_else(|| facts.spec.present().and_then(|spec| spec.boot.as_ref()));
        matches!((then, &self.boot), (Some(then), Some(now)) if then != now)
    }

    /// Why a job without supervisor and without end is lost.
    pub fn lost_reason(&self, facts: &Facts) -> LostReason {
        if self.is_past_boot(facts) {
            LostReason::Reboot
        } else if facts.begin.is_absent() {
            LostReason::Abandoned
        } else {
            LostReason::SupervisorDied
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use proptest::prelude::*;

    /// Every fact, as absent, present, unreadable or newer.
    fn any_read<T: Clone + std::fmt::Debug + 'static>(fact: T) -> impl Strategy<Value = Read<T>> {
        prop_oneof![
            Just(Read::Absent),
            Just(Read::Present(fact)),
            Just(Read::Unreadable("torn".into())),
            Just(Read::Newer(9)),
        ]
    }

    fn any_facts() -> impl Strategy<Value = Facts> {
        let begins = prop_oneof![any_read(sample::begin()), any_read(sample::abandoned())];
        let ends = prop_oneof![any_read(sample::end(0)), any_read(sample::end(3))];
        (
            any_read(sample::spec("s")),
            begins,
            any_read(sample::target()),
            prop::collection::vec(any_read(sample::kill()), 0..3),
            ends,
            any_read(sample::swept()),
            any_read(sample::answer("42")),
            prop::collection::vec(any_read(sample::lease()), 0..4),
            prop::collection::vec(any_read(sample::lease_result(false)), 0..4),
            any_read(sample::receipt(ReceiptHow::Delivered)),
        )
            .prop_map(
                |(spec, begin, target, kills, end, swept, answer, leases, results, receipt)| {
                    let number = |n: usize| n as u32 + 1;
                    Facts {
                        spec,
                        begin,
                        target,
                        kills: kills.into_iter().enumerate().map(|(n, k)| (number(n), k)).collect(),
                        end,
                        swept,
                        answer,
                        leases: leases.into_iter().enumerate().map(|(n, l)| (number(n), l)).collect(),
                        results: results.into_iter().enumerate().map(|(n, r)| (number(n), r)).collect(),
                        receipt,
                        settled: Read::Absent,
                    }
                },
            )
    }

    fn any_locks() -> impl Strategy<Value = LockView> {
        let state = prop_oneof![Just(LockState::Held), Just(LockState::Free)];
        (state.clone(), state).prop_map(|(launch, alive)| LockView { launch, alive })
    }

    proptest! {
        #[test]
        fn every_subset_of_facts_folds_to_a_legal_state(facts in any_facts(), locks in any_locks()) {
            let fold = fold(&facts, locks);
            let ended = matches!(fold.state, JobState::Ended { .. });
            // An end, however damaged, is an end once its author has let go; and nothing but an end or an abandoned
            // begin is one.
            let abandoned = matches!(facts.begin.present(), Some(Begin { by: BegunBy::Abandoned, .. }));
            let durable = !facts.end.is_absent() && locks.alive == LockState::Free;
            prop_assert_eq!(ended, durable || abandoned);
            // Success is said only by an end that says so itself.
            if let JobState::Ended { outcome, .. } = &fold.state && outcome.is_success() {
                prop_assert_eq!(&facts.end.present().unwrap().outcome, outcome);
            }
            // Nothing is delivered, and nothing is closed, before the end.
            if !ended {
                let open = [FollowUpState::Waiting, FollowUpState::NotWanted];
                prop_assert!(open.contains(&fold.follow_up.state));
            }
            // Whatever else is true of it: what a newer build wrote is left alone.
            let seen = Observed {
                id: sample::id(1), facts: facts.clone(), locks, place: Place::Open, output: Output::default(),
            };
            let newer = seen.hands_off(&Here::default()) == Some(crate::HandsOff::Newer);
            prop_assert_eq!(newer, facts.any_newer());
        }

        #[test]
        fn facts_added_in_any_order_never_take_an_end_back(
            last in any_facts(), order in Just([0, 1, 2, 3, 4]).prop_shuffle(), locks in any_locks(),
        ) {
            let mut facts = Facts { spec: last.spec.clone(), ..Facts::default() };
            let mut ended: Option<Outcome> = None;
            for which in order {
                match which {
                    0 => facts.begin = last.begin.clone(),
                    1 => facts.target = last.target.clone(),
                    2 => facts.end = last.end.clone(),
                    3 => facts.leases = last.leases.clone(),
                    _ => facts.receipt = last.receipt.clone(),
                }
                let now = match fold(&facts, locks).state {
                    JobState::Ended { outcome, .. } => Some(outcome),
                    _ => None,
                };
                // An abandoned job may still get its end recorded, as a loss; nothing else changes.
                let abandoned = Outcome::Lost { reason: LostReason::Abandoned };
                if ended.is_some() && ended != Some(abandoned) {
                    prop_assert_eq!(&now, &ended);
                }
                prop_assert!(!(ended.is_some() && now.is_none()));
                ended = now;
            }
        }

        #[test]
        fn a_settled_fact_brings_every_other_fact_back(facts in any_facts()) {
            let json = serde_json::to_vec(&facts).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Facts>(&json).unwrap(), facts);
        }
    }

    #[test]
    fn who_is_alive_decides_between_running_and_lost() {
        let facts = Facts {
            spec: Read::Present(sample::spec("s")),
            begin: Read::Present(sample::begin()),
            ..Facts::default()
        };
        let held = LockView { alive: LockState::Held, ..LockView::FREE };
        assert_eq!(fold(&facts, held).state, JobState::Running);
        assert_eq!(fold(&facts, LockView::FREE).state, JobState::Orphaned);

        let unclaimed = Facts { begin: Read::Absent, ..facts };
        assert_eq!(fold(&unclaimed, LockView::FREE).state, JobState::Unclaimed);
        let launching = LockView { launch: LockState::Held, ..LockView::FREE };
        assert_eq!(fold(&unclaimed, launching).state, JobState::Starting);
    }

    #[test]
    fn a_reboot_is_said_only_when_proved() {
        let facts = |boot: Option<&str>| Facts {
            spec: Read::Present(Spec { boot: boot.map(BootId::new), ..sample::spec("s") }),
            ..Facts::default()
        };
        let here = Here { boot: Some(BootId::new("now")), machine: None };
        assert_eq!(here.lost_reason(&facts(Some("then"))), LostReason::Reboot);
        assert_eq!(here.lost_reason(&facts(Some("now"))), LostReason::Abandoned);
        assert_eq!(here.lost_reason(&facts(None)), LostReason::Abandoned);
        assert_eq!(Here::default().lost_reason(&facts(Some("then"))), LostReason::Abandoned);
    }

    #[test]
    fn the_policy_decides_who_is_told() {
        let state = |notify, outcome: Outcome, session: bool| {
            let mut spec = sample::spec("s");
            spec.notify = notify;
            if !session {
                spec.session = None;
            }
            let end = End { outcome, ..sample::end(0) };
            let facts = Facts { spec: Read::Present(spec), end: Read::Present(end), ..Facts::default() };
            fold(&facts, LockView::FREE).follow_up.state
        };
        let done = || Outcome::Exited { code: 0 };
        let failed = || Outcome::Exited { code: 1 };
        let by_owner = Outcome::Killed {
            by: KilledBy::Session(crate::Session::parse("s").unwrap()),
            reason: None,
            exit: None,
        };
        use FollowUpState::{NotWanted, Pending};
        assert_eq!(state(NotifyPolicy::Auto, done(), true), Pending);
        assert_eq!(state(NotifyPolicy::Auto, done(), false), NotWanted);
        assert_eq!(state(NotifyPolicy::Auto, by_owner.clone(), true), NotWanted);
        assert_eq!(state(NotifyPolicy::Always, by_owner, true), Pending);
        assert_eq!(state(NotifyPolicy::Failure, done(), true), NotWanted);
        assert_eq!(state(NotifyPolicy::Failure, failed(), true), Pending);
        assert_eq!(state(NotifyPolicy::Success, failed(), true), NotWanted);
        assert_eq!(state(NotifyPolicy::Never, failed(), true), NotWanted);
    }

    #[test]
    fn an_answer_that_cannot_be_used_costs_only_itself() {
        let id = sample::id(1);
        for answer in [Read::Newer(9), Read::Unreadable("torn".into())] {
            let facts = Facts {
                spec: Read::Present(Spec { answer: true, ..sample::unowned(&id) }),
                end: Read::Present(sample::end(0)),
                answer,
                ..Facts::default()
            };
            let folded = fold(&facts, LockView::FREE);
            assert!(!facts.any_newer() && folded.follow_up.state.is_closed());
            assert!(!crate::answer_is_due(&facts, &folded.state), "it is there, and is not replaced");
            assert_eq!(facts.flaws().len(), 1, "and it is named");
            let seen = Observed {
                id: id.clone(),
                facts,
                locks: LockView::FREE,
                place: Place::Open,
                output: Output::default(),
            };
            let view = crate::JobView::new(&seen, &Here::default(), "/log".into()).unwrap();
            assert!(matches!(view.answer, Some(crate::Answer::Failed { .. })), "{view:?}");
        }
    }
}
