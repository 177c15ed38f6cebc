//! When the next attempt is due: a pure function of what was recorded, which locks are held, and the time.

use std::time::Duration;

use hearback_core::port::process::Presence;
use hearback_core::port::sink::HOST_SINK;
use hearback_core::session::{INTERRUPTIONS_MAX, MessageFacts, SessionFacts};
use hearback_core::{
    ClaimToken, Facts, FollowUpState, Here, JobState, Lease, LeaseResult, LockState, Observed, Read, Stamp,
};

/// How often and for how long a delivery is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// After so many attempts, a person has to act.
    pub attempts_max: u32,
    /// The pause after the first failed attempt; it doubles with each.
    pub first: Duration,
    /// The longest pause between attempts.
    pub most: Duration,
    /// A follow-up that is delivered later than this is marked as late.
    pub late_after: Duration,
    /// A delivery that no sink took for so long expires.
    pub expire_after: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts_max: 8,
            first: Duration::from_secs(5),
            most: Duration::from_secs(60 * 60),
            late_after: Duration::from_secs(60 * 60),
            expire_after: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

impl Retry {
    /// How long to wait after so many attempts, plus or minus a quarter, so that deliveries that failed at the same
    /// time are not retried at the same time.
    pub fn pause(&self, attempts_used: u32, chance: u64) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(attempts_used.saturating_sub(1)));
        let percent = 75 + u32::try_from(chance % 51).unwrap_or(0);
        doubled.min(self.most).saturating_mul(percent) / 100
    }
}

/// What is to be done about a follow-up, or about the messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing: the job has not ended, nothing is pending, there is no sink, or a person has to act.
    Never,
    /// Not before this long.
    In(Duration),
    /// Try now.
    Now(Claim),
    /// The last allowed attempt left no result.
    GiveUp {
        /// Its number.
        n: u32,
    },
    /// No sink took it for too long.
    Expired,
}

/// One attempt to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Its number: that of its lease, or of the attempt at a message.
    pub n: u32,
    /// Attempts that count towards giving up, this one included.
    pub attempts_used: u32,
    /// Which sink of the chain; a message has one.
    pub sink: u32,
    /// The sink that could not reach the session, if this one gets the follow-up in its place.
    pub in_place_of: Option<u32>,
}

/// When to look again at an attempt whose lease could not be recorded, or is not yet.
const UNRECORDED: Duration = Duration::from_secs(1);

/// What is seen of a follow-up besides its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    /// Whether a process holds the lock of the newest attempt, or of the first.
    pub last_lease: LockState,
    /// Whether the process exists in which the session was open that could not be reached, if one is known.
    pub open_in: Option<Presence>,
}

/// Decides about the follow-up of a job.
pub fn due(seen: &Observed, here: &Here, around: Around, now: &Stamp, retry: &Retry) -> Due {
    let chain = seen.facts.spec.present().map_or(0, |spec| spec.sinks.len());
    due_at(seen, here, around, now, retry, chain).0
}

/// The same for a caller that fetches: only a follow-up that no sink gets is for it.
pub(super) fn due_to_caller(
    seen: &Observed,
    here: &Here,
    last_lease: LockState,
    now: &Stamp,
    retry: &Retry,
) -> Due {
    let is_fetched = seen.facts.spec.present().is_some_and(|spec| spec.sinks.is_empty());
    let around = Around { last_lease, open_in: None };
    due_at(seen, here, around, now, retry, usize::from(is_fetched)).0
}

/// What the token of a caller is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimHold {
    /// The follow-up is its own.
    Held,
    /// Its time has passed, or it was released, and no other process has the follow-up.
    Over,
    /// Its time has passed, and another process has the follow-up.
    Overtaken,
    /// It never was the token of this follow-up.
    Unknown,
}

/// Decides what a token is worth. `last_lease` is the lock of the newest lease.
pub(super) fn claim_hold(facts: &Facts, token: &ClaimToken, last_lease: LockState, now: &Stamp) -> ClaimHold {
    let leases = || facts.leases.iter().filter_map(|(n, lease)| Some((*n, lease.present()?)));
    let is_its_own =
        |(n, lease): (u32, &Lease)| n == token.lease && lease.secret.as_ref() == Some(&token.secret);
    if !leases().any(is_its_own) {
        return ClaimHold::Unknown;
    }
    let newest = leases().max_by_key(|(n, _)| *n);
    let under_way = newest.filter(|(n, lease)| {
        let is_taken = last_lease == LockState::Held || is_held_by_deadline(lease, now);
        facts.result(*n).is_none() && is_taken && !left(&lease.at, lease.deadline_ms, now).is_zero()
    });
    match under_way {
        None => ClaimHold::Over,
        Some((n, _)) if n == token.lease => ClaimHold::Held,
        Some(_) => ClaimHold::Overtaken,
    }
}

/// Whether a lease was taken by a caller that exits: it lasts until its deadline, in the boot in which it was taken.
fn is_held_by_deadline(lease: &Lease, now: &Stamp) -> bool {
    let is_other_boot = matches!((&lease.at.boot, &now.boot), (Some(then), Some(here)) if then != here);
    lease.secret.is_some() && !is_other_boot
}

/// The same for a chain of so many sinks, with the one of them that it is about.
pub(super) fn due_at(
    seen: &Observed,
    here: &Here,
    around: Around,
    now: &Stamp,
    retry: &Retry,
    chain: usize,
) -> (Due, u32) {
    let last_lease = around.last_lease;
    let (facts, folded) = (&seen.facts, seen.fold());
    if seen.hands_off(here).is_some() || !matches!(folded.state, JobState::Ended { .. }) {
        return (Due::Never, 0);
    }
    let state = folded.follow_up.state;
    if state.is_closed() {
        return (Due::Never, 0);
    }
    let attempts = facts.leases.iter().filter_map(|(_, lease)| lease.present()).map(|lease| &lease.at);
    let ended_at = facts.end.present().and_then(|end| end.at.as_ref());
    if ended_at.is_some_and(|at| is_expired(at, attempts, now, retry)) {
        return (Due::Expired, 0);
    }
    if state == FollowUpState::DeadLetter || chain == 0 {
        return (Due::Never, 0);
    }
    let Some((n, lease)) = facts.leases.iter().max_by_key(|(n, _)| n) else {
        let first = match last_lease {
            LockState::Held => Due::In(UNRECORDED),
            LockState::Free => Due::Now(Claim { n: 1, attempts_used: 1, sink: 0, in_place_of: None }),
        };
        return (first, 0);
    };
    let n = *n;
    // A lease that cannot be read was an attempt, too. Its number tells how many came before it.
    let unknown = Lease { attempts_used: n, next_ms: 0, sink: 0, deadline_ms: 0, ..Lease::at(now.clone()) };
    let lease = lease.present().unwrap_or(&unknown);
    let result = facts.results.iter().find(|(number, _)| *number == n).map(|(_, result)| result);
    // An attempt in place of another sink leads back to that one.
    let own = lease.in_place_of.unwrap_or(lease.sink);
    let (pause, attempts_used, sink) = match result {
        Some(Read::Present(result)) => {
            let free = lease.attempts_used.saturating_sub(1);
            if let Some(sink) = stand_in(facts, lease, result, chain) {
                let claim = Claim { n: n + 1, attempts_used: free + 1, sink, in_place_of: Some(own) };
                return (Due::Now(claim), sink);
            }
            let pause = match around.open_in {
                // The session is no longer open there, so another door may be open.
                Some(Presence::Gone) => Duration::ZERO,
                _ => left(&result.at, result.next_ms, now),
            };
            let (used, sink) = match (result.gone, result.busy) {
                (true, _) => (0, lease.sink + 1),
                (false, true) => (free, own),
                (false, false) => (lease.attempts_used, own),
            };
            (pause, used, sink)
        }
        None if last_lease == LockState::Held || is_held_by_deadline(lease, now) => {
            let rest = left(&lease.at, lease.deadline_ms, now);
            if !rest.is_zero() {
                return (Due::In(rest), lease.sink);
            }
            (Duration::ZERO, lease.attempts_used, own)
        }
        Some(_) | None => (left(&lease.at, lease.next_ms, now), lease.attempts_used, own),
    };
    // An attempt has one result. If the limit was lowered after it, one more attempt is made, and it is the last.
    let is_last =
        || attempts_used >= retry.attempts_max || facts.cut_short_before(n + 1).0 >= INTERRUPTIONS_MAX;
    if result.is_none() && is_last() {
        return (Due::GiveUp { n }, sink);
    }
    (after(pause, Claim { n: n + 1, attempts_used: attempts_used + 1, sink, in_place_of: None }), sink)
}

/// Whether the follow-up of a job is open and the next attempt at it is a host's.
pub fn waits_for_host(seen: &Observed, here: &Here, now: &Stamp, retry: &Retry) -> bool {
    let Some(spec) = seen.facts.spec.present() else { return false };
    let around = Around { last_lease: LockState::Free, open_in: None };
    let (due, sink) = due_at(seen, here, around, now, retry, spec.sinks.len());
    let is_hosts = spec.sinks.get(sink as usize).is_some_and(|name| name == HOST_SINK);
    is_hosts && matches!(due, Due::Now(_) | Due::In(_))
}

/// The next sink to be told in place of one that could not reach the session. Each of the chain is asked until one has
/// taken it, and again the next time that the session cannot be reached; what one has taken is not told again.
fn stand_in(facts: &Facts, lease: &Lease, result: &LeaseResult, chain: usize) -> Option<u32> {
    let is_wanted = result.unreachable || lease.in_place_of.is_some();
    let is_told =
        || facts.results.iter().any(|(_, result)| result.present().is_some_and(|it| it.taken_in_place));
    let next = lease.sink + 1;
    (is_wanted && (next as usize) < chain && !is_told()).then_some(next)
}

/// Decides about the messages of a session.
pub fn message_due(facts: &SessionFacts, now: &Stamp, retry: &Retry) -> Due {
    next_message(facts, now, retry).map_or(Due::Never, |(_, due)| due)
}

/// The number of the next message, and what is to be done about it. It is the first that waits: order is kept, even if
/// the messages behind it have to wait.
pub(super) fn next_message(facts: &SessionFacts, now: &Stamp, retry: &Retry) -> Option<(u32, Due)> {
    // A message that cannot be read is skipped. One of a newer format waits for a newer build, and so do those behind.
    let mut waiting = facts.waiting().filter(|(_, message)| !matches!(message.message, Read::Unreadable(_)));
    let (n, first) = waiting.next()?;
    Some((n, due_in_line(first, now, retry)?))
}

/// What is to be done about a message, if it is its turn; none if it cannot be read.
pub(super) fn due_in_line(first: &MessageFacts, now: &Stamp, retry: &Retry) -> Option<Due> {
    let message = first.message.present()?;
    let attempts = first.results.iter().filter_map(|(_, result)| result.present()).map(|result| &result.at);
    if is_expired(&message.at, attempts, now, retry) {
        return Some(Due::Expired);
    }
    let pause = first.last_result().map_or(Duration::ZERO, |last| left(&last.at, last.next_ms, now));
    // A result that cannot be read was an attempt, too.
    let spent =
        first.counted().iter().filter(|(_, result)| result.present().is_none_or(|it| it.spent)).count();
    let attempts_used = u32::try_from(spent).unwrap_or(u32::MAX).saturating_add(1);
    let last = first.results.iter().map(|(attempt, _)| *attempt).max().unwrap_or(0);
    Some(after(pause, Claim { n: last + 1, attempts_used, sink: 0, in_place_of: None }))
}

/// Whether a delivery has waited for too long. Only time that has certainly passed counts: a wall clock that was set,
/// or began in 1970, must not let it expire unheard. An attempt in this boot says that it was offered: then the wall
/// clock counts, too.
fn is_expired<'a>(
    since: &Stamp,
    mut attempts: impl Iterator<Item = &'a Stamp>,
    now: &Stamp,
    retry: &Retry,
) -> bool {
    let is_over = |millis| Duration::from_millis(millis) >= retry.expire_after;
    is_over(since.proved_age_ms(now))
        || (is_over(since.age_ms(now)) && attempts.any(|attempt| attempt.is_of_same_boot(now)))
}

/// A delivery that has been due for so long has no process that makes it.
pub const OVERDUE_AFTER: Duration = Duration::from_secs(30);

/// For how long the next message of a session has been due.
pub fn message_overdue(facts: &SessionFacts, now: &Stamp, retry: &Retry) -> Duration {
    let Some((n, Due::Now(_) | Due::Expired)) = next_message(facts, now, retry) else {
        return Duration::ZERO;
    };
    // One that a host gets waits until there is a host.
    let message = facts.message(n).filter(|it| it.message.present().is_none_or(|it| it.sink != HOST_SINK));
    let since = message.and_then(|message| match message.last_result() {
        Some(last) => Some((&last.at, last.next_ms)),
        None => Some((&message.message.present()?.at, 0)),
    });
    since.map_or(Duration::ZERO, |(at, pause)| past(at, pause, now))
}

/// For how long the next attempt at a follow-up has been due, if it is.
pub(super) fn overdue(facts: &Facts, now: &Stamp) -> Duration {
    let last = facts.leases.iter().max_by_key(|(n, _)| n);
    let Some((n, lease)) = last else { return age_of_end(facts, now).unwrap_or_default() };
    let result =
        facts.results.iter().find(|(number, _)| number == n).and_then(|(_, result)| result.present());
    match (result, lease.present()) {
        (Some(result), _) => past(&result.at, result.next_ms, now),
        (None, Some(lease)) => past(&lease.at, lease.next_ms, now),
        (None, None) => Duration::ZERO,
    }
}

/// How long ago a pause was over.
fn past(from: &Stamp, millis: u64, now: &Stamp) -> Duration {
    Duration::from_millis(from.age_ms(now).saturating_sub(millis))
}

fn after(pause: Duration, claim: Claim) -> Due {
    if pause.is_zero() { Due::Now(claim) } else { Due::In(pause) }
}

/// What is left of a pause.
fn left(from: &Stamp, millis: u64, now: &Stamp) -> Duration {
    Duration::from_millis(millis.saturating_sub(from.age_ms(now)))
}

/// How long ago a job ended, by a clock that cannot be set.
pub(super) fn age_of_end(facts: &Facts, now: &Stamp) -> Option<Duration> {
    let at = facts.end.present()?.at.as_ref()?;
    Some(Duration::from_millis(at.age_ms(now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;
    use hearback_core::{LockView, Output, Place, Receipt, ReceiptHow};

    const HELD: LockState = LockState::Held;
    const FREE: LockState = LockState::Free;

    fn ended() -> Facts {
        let mut spec = sample::spec("s");
        spec.sinks = vec!["first".into(), "second".into()];
        let mut end = sample::end(0);
        end.at = Some(sample::stamp());
        Facts {
            spec: Read::Present(spec),
            begin: Read::Present(sample::begin()),
            end: Read::Present(end),
            ..Facts::default()
        }
    }

    fn stamp_after(seconds: u64) -> Stamp {
        let mut stamp = sample::stamp();
        stamp.since_boot_ms += seconds * 1000;
        stamp
    }

    fn leased(n: u32, attempts_used: u32, result: Option<LeaseResult>) -> Facts {
        let mut facts = ended();
        facts.leases.push((n, Read::Present(Lease { attempts_used, ..sample::lease() })));
        facts.results.extend(result.map(|result| (n, Read::Present(result))));
        facts
    }

    fn at(facts: &Facts, lock: LockState, seconds: u64) -> Due {
        due(&seen(facts), &Here::default(), alone(lock), &stamp_after(seconds), &Retry::default())
    }

    fn alone(last_lease: LockState) -> Around {
        Around { last_lease, open_in: None }
    }

    fn seen(facts: &Facts) -> Observed {
        let (locks, place, output) = (LockView::FREE, Place::Open, Output::default());
        Observed { id: sample::id(1), facts: facts.clone(), locks, place, output }
    }

    fn now(n: u32, attempts_used: u32, sink: u32) -> Due {
        Due::Now(Claim { n, attempts_used, sink, in_place_of: None })
    }

    #[test]
    fn the_first_attempt_is_due_at_once_and_only_where_a_follow_up_is_pending() {
        assert_eq!(at(&ended(), FREE, 0), now(1, 1, 0));
        assert_eq!(at(&ended(), HELD, 0), Due::In(UNRECORDED), "another process makes it, without a record");
        let mut pulled = ended();
        if let Read::Present(spec) = &mut pulled.spec {
            spec.sinks.clear();
        }
        assert_eq!(at(&pulled, FREE, 0), Due::Never);
        assert_eq!(at(&Facts { end: Read::Absent, ..ended() }, FREE, 0), Due::Never);
        let receipt = Receipt::new(ReceiptHow::Read, sample::stamp());
        assert_eq!(at(&Facts { receipt: Read::Present(receipt), ..ended() }, FREE, 0), Due::Never);
    }

    #[test]
    fn a_process_that_makes_an_attempt_is_left_alone_until_its_deadline_or_its_death() {
        let facts = leased(1, 1, None);
        assert_eq!(at(&facts, HELD, 10), Due::In(Duration::from_secs(50)));
        assert_eq!(at(&facts, HELD, 61), now(2, 2, 0), "it had its time");
        assert_eq!(at(&facts, FREE, 1), Due::In(Duration::from_secs(4)), "dead, and the pause is kept");
        assert_eq!(at(&facts, FREE, 5), now(2, 2, 0));
    }

    #[test]
    fn a_caller_has_until_its_deadline_and_nobody_else_has_it_meanwhile() {
        let pulled = |result: Option<LeaseResult>| {
            let mut facts = leased(1, 1, result);
            if let (Read::Present(spec), Read::Present(lease)) = (&mut facts.spec, &mut facts.leases[0].1) {
                spec.sinks.clear();
                (lease.secret, lease.next_ms) = (Some("x".into()), 0);
            }
            facts
        };
        let fetched = |facts: &Facts, stamp: Stamp| {
            due_to_caller(&seen(facts), &Here::default(), FREE, &stamp, &Retry::default())
        };
        let held = pulled(None);
        assert_eq!(at(&held, FREE, 0), Due::Never, "no process sends it anywhere");
        assert_eq!(fetched(&ended(), stamp_after(0)), Due::Never, "a sink gets it");
        assert_eq!(
            fetched(&held, stamp_after(10)),
            Due::In(Duration::from_secs(50)),
            "its process has exited"
        );
        assert_eq!(fetched(&held, stamp_after(60)), now(2, 2, 0));
        let rebooted = Stamp { boot: Some(hearback_core::BootId::new("later")), ..stamp_after(10) };
        assert_eq!(fetched(&held, rebooted.clone()), now(2, 2, 0));
        assert_eq!(fetched(&leased_without_end(9), stamp_after(61)), Due::GiveUp { n: 9 });

        let token = |lease, secret: &str| ClaimToken { job: sample::id(1), lease, secret: secret.into() };
        let hold = |facts: &Facts, token: &ClaimToken, seconds| {
            claim_hold(facts, token, FREE, &stamp_after(seconds))
        };
        let mine = token(1, "x");
        assert_eq!(hold(&held, &mine, 59), ClaimHold::Held);
        assert_eq!(hold(&held, &mine, 60), ClaimHold::Over);
        assert_eq!(claim_hold(&held, &mine, FREE, &rebooted), ClaimHold::Over);
        assert_eq!(hold(&pulled(Some(sample::lease_result(false))), &mine, 1), ClaimHold::Over, "released");
        for other in [token(1, "y"), token(2, "x")] {
            assert_eq!(hold(&held, &other, 1), ClaimHold::Unknown);
        }
        let mut taken = held.clone();
        let other = Lease { at: stamp_after(70), secret: Some("z".into()), ..sample::lease() };
        taken.leases.push((2, Read::Present(other)));
        assert_eq!(hold(&taken, &mine, 71), ClaimHold::Overtaken);
        assert_eq!(hold(&taken, &token(2, "z"), 71), ClaimHold::Held);
        assert_eq!(hold(&taken, &mine, 131), ClaimHold::Over, "the other one let it go as well");
    }

    fn leased_without_end(n: u32) -> Facts {
        let mut facts = leased(n, n - 1, None);
        if let (Read::Present(spec), Read::Present(lease)) = (&mut facts.spec, &mut facts.leases[0].1) {
            spec.sinks.clear();
            lease.secret = Some("x".into());
        }
        facts
    }

    #[test]
    fn what_an_attempt_came_to_decides_about_the_next() {
        let result = sample::lease_result(false);
        assert_eq!(at(&leased(3, 2, Some(result.clone())), FREE, 5), now(4, 3, 0));
        let busy = LeaseResult { busy: true, ..result.clone() };
        assert_eq!(at(&leased(3, 2, Some(busy)), FREE, 5), now(4, 2, 0), "no attempt is spent");
        let gone = LeaseResult { gone: true, next_ms: 0, ..result.clone() };
        assert_eq!(at(&leased(3, 2, Some(gone)), FREE, 0), now(4, 1, 1), "the next sink starts afresh");
        assert_eq!(at(&leased(9, 8, None), FREE, 99), Due::GiveUp { n: 9 });
        assert_eq!(
            at(&leased(9, 8, Some(result)), FREE, 99),
            now(10, 9, 0),
            "fewer are allowed by now: the last"
        );
        assert_eq!(
            at(&leased(9, 8, Some(sample::lease_result(true))), FREE, 99),
            Due::Never,
            "a dead letter"
        );
        assert_eq!(at(&leased(10, 0, None), FREE, 5), now(11, 1, 0), "retried by hand");
    }

    #[test]
    fn scenario_141_a_session_that_cannot_be_reached_is_tried_again_and_the_chain_is_told_once() {
        let busy = LeaseResult { busy: true, ..sample::lease_result(false) };
        let unreachable = LeaseResult { unreachable: true, ..busy.clone() };
        let stand_in = |n, sink| Due::Now(Claim { n, attempts_used: 2, sink, in_place_of: Some(0) });
        let mut facts = leased(1, 2, Some(unreachable.clone()));
        assert_eq!(at(&facts, FREE, 0), stand_in(2, 1), "the next sink is told at once");
        let in_place = Lease { attempts_used: 2, sink: 1, in_place_of: Some(0), ..sample::lease() };
        facts.leases.push((2, Read::Present(in_place.clone())));
        assert_eq!(at(&facts, FREE, 5), now(3, 3, 0), "a death in between leads back, and is counted");
        facts.results.push((2, Read::Present(busy.clone())));
        assert_eq!(at(&facts, FREE, 5), now(3, 2, 0), "the last of the chain did not take it");
        if let Read::Present(spec) = &mut facts.spec {
            spec.sinks.push("third".into());
        }
        assert_eq!(at(&facts, FREE, 0), stand_in(3, 2), "each of the chain is asked");
        facts.results.pop();
        facts.results.push((2, Read::Present(LeaseResult { taken_in_place: true, ..busy.clone() })));
        assert_eq!(at(&facts, FREE, 4), Due::In(Duration::from_secs(1)));
        assert_eq!(at(&facts, FREE, 5), now(3, 2, 0), "then the session is tried again");
        facts.leases.push((3, Read::Present(Lease { attempts_used: 2, ..sample::lease() })));
        facts.results.push((3, Read::Present(unreachable)));
        assert_eq!(at(&facts, FREE, 0), Due::In(Duration::from_secs(5)), "nothing is told twice");
    }

    #[test]
    fn scenario_141_when_the_process_has_ended_in_which_the_session_was_open_it_is_due_at_once() {
        let open_in = Some(sample::process(7));
        let result = LeaseResult { busy: true, unreachable: true, open_in, ..sample::lease_result(false) };
        let mut facts = leased(1, 1, Some(result));
        if let Read::Present(spec) = &mut facts.spec {
            spec.sinks.pop();
        }
        let seen_as = |presence| {
            let around = Around { last_lease: FREE, open_in: Some(presence) };
            due(&seen(&facts), &Here::default(), around, &stamp_after(0), &Retry::default())
        };
        for unknown in [Presence::Same, Presence::Unproved] {
            assert_eq!(seen_as(unknown), Due::In(Duration::from_secs(5)));
        }
        assert_eq!(seen_as(Presence::Gone), now(2, 1, 0));
    }

    #[test]
    fn a_month_later_it_is_expired_whatever_became_of_it() {
        let month = 31 * 24 * 60 * 60;
        assert_eq!(at(&ended(), FREE, month), Due::Expired);
        assert_eq!(at(&leased(9, 8, Some(sample::lease_result(true))), FREE, month), Due::Expired);
        // A wall clock that jumps by a year within one boot expires nothing.
        let mut jumped = stamp_after(10);
        jumped.wall_ms = hearback_core::Timestamp::from_millis(jumped.wall_ms.as_millis() + 31_536_000_000);
        let found = due(&seen(&ended()), &Here::default(), alone(FREE), &jumped, &Retry::default());
        assert_eq!(found, now(1, 1, 0));
    }

    #[test]
    fn a_wall_clock_that_was_set_before_this_boot_expires_nothing_unheard() {
        // The machine has no clock of its own: the end is of 1970, and this boot knows the time.
        let mut facts = ended();
        let mut end = sample::end(0);
        end.at = Some(Stamp { wall_ms: hearback_core::Timestamp::from_millis(0), ..sample::stamp() });
        facts.end = Read::Present(end);
        let boot = Some(hearback_core::BootId::new("later"));
        let later =
            |seconds: u64| Stamp { boot: boot.clone(), since_boot_ms: seconds * 1000, ..sample::stamp() };
        let find = |facts: &Facts, seconds| {
            due(&seen(facts), &Here::default(), alone(FREE), &later(seconds), &Retry::default())
        };
        assert_eq!(find(&facts, 60), now(1, 1, 0), "it is offered");
        let month = 31 * 24 * 60 * 60;
        assert_eq!(find(&facts, month), Due::Expired, "so long it has certainly waited");
        // It was offered in this boot, in vain: the age that the wall clock shows counts.
        facts.leases.push((1, Read::Present(Lease { at: later(60), ..sample::lease() })));
        assert_eq!(find(&facts, 61), Due::Expired);
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_differ() {
        let retry = Retry::default();
        let exact = |n| retry.pause(n, 25);
        assert_eq!([1, 2, 3, 40].map(exact), [5, 10, 20, 3600].map(Duration::from_secs));
        assert!((0..1000).all(|chance| (3_750..=6_250).contains(&retry.pause(1, chance).as_millis())));
    }
}
