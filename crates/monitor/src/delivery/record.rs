//! Recording an attempt: a receipt that closes the delivery, or the result of this attempt.

use std::time::Duration;

use hearback_core::port::process::Presence;
use hearback_core::port::record::StoreError;
use hearback_core::session::{MessageFact, MessageHow};
use hearback_core::{
    Extra, FORMAT, Fact, LeaseResult, Observed, ProcessIdentity, Receipt, ReceiptHow, Session,
};
use tracing::warn;

use super::claim::{FirstMessage, LeaseRule, LeasedFollowUp};
use super::interpret::Verdict;
use crate::Ports;
use crate::session::Turns;

/// How long to try to record a receipt on a disk that is full, unless there is no lease to show that it was sent.
const RECEIPT_WITHIN: Duration = Duration::from_secs(60);
const RECEIPT_PAUSE: Duration = Duration::from_millis(200);
const RECEIPT_PAUSE_MOST: Duration = Duration::from_secs(5);

/// A sink took a follow-up.
pub(super) fn delivered(item: &LeasedFollowUp<'_>, verdict: &Verdict) -> Result<(), StoreError> {
    let within = match item.rule {
        LeaseRule::Required => RECEIPT_WITHIN,
        LeaseRule::MayBeMissing => Duration::MAX,
    };
    let how = if *verdict == Verdict::Queued { ReceiptHow::Queued } else { ReceiptHow::Delivered };
    receipt(item.deliverer.ports, &item.seen, how, within)
}

/// No sink took a follow-up for too long.
pub(super) fn expired(ports: &Ports, seen: &Observed) -> Result<(), StoreError> {
    receipt(ports, seen, ReceiptHow::Expired, RECEIPT_WITHIN)
}

/// Closes a delivery. There is one receipt, and the first stands.
fn receipt(ports: &Ports, seen: &Observed, how: ReceiptHow, within: Duration) -> Result<(), StoreError> {
    let receipt = Fact::Receipt(Receipt::new(how, ports.clock.stamp()));
    let until = ports.clock.awake().saturating_add(within);
    let mut pause = RECEIPT_PAUSE;
    loop {
        match ports.publish(seen, &receipt) {
            Ok(_) => return Ok(()),
            // What was delivered must not be sent again because of a full disk: a person may make room.
            Err(error) if error.is_unwritable() && ports.clock.awake() < until => {
                if pause == RECEIPT_PAUSE {
                    warn!(job = %seen.id, %error, "receipt not recorded, trying again");
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(RECEIPT_PAUSE_MOST);
            }
            Err(error) => return Err(error),
        }
    }
}

/// An attempt at a follow-up did not deliver it.
pub(super) fn lease_result(item: &LeasedFollowUp<'_>, verdict: &Verdict) -> Result<(), StoreError> {
    let processes = &item.deliverer.ports.processes;
    let result = LeaseResult {
        busy: matches!(
            verdict,
            Verdict::Busy { .. }
                | Verdict::Unreachable { .. }
                | Verdict::StandIn { .. }
                | Verdict::Interrupted { .. }
        ),
        unreachable: matches!(verdict, Verdict::Unreachable { .. }),
        open_in: match verdict {
            // The next attempt is due when it has ended, so one that has ended by now would be due for ever.
            Verdict::Busy { process, .. } | Verdict::Unreachable { process, .. } => {
                let lives = |who: &ProcessIdentity| processes.presence(who) == Presence::Same;
                process.clone().filter(lives)
            }
            // What was found out by the attempt before it.
            Verdict::StandIn { .. } => {
                let last = item.seen.facts.result(item.claim.n.saturating_sub(1));
                last.and_then(|result| result.open_in.clone())
            }
            _ => None,
        },
        taken_in_place: matches!(verdict, Verdict::StandIn { told: true, .. }),
        interrupted: match verdict {
            Verdict::Interrupted { reason, .. } => Some(*reason),
            _ => None,
        },
        gone: matches!(verdict, Verdict::NextSink { .. } | Verdict::GiveUp { gone: true, .. }),
        gave_up: verdict.next().is_none(),
        next_ms: verdict.next().map_or(0, millis),
        error: verdict.error().map(str::to_owned),
        ..blank_result(item.deliverer.ports)
    };
    publish_result(item.deliverer.ports, &item.seen, item.claim.n, result)
}

/// The last allowed attempt left no result.
pub(super) fn gave_up(ports: &Ports, seen: &Observed, n: u32, error: &str) -> Result<(), StoreError> {
    let result = LeaseResult { gave_up: true, error: Some(error.to_owned()), ..blank_result(ports) };
    publish_result(ports, seen, n, result)
}

fn blank_result(ports: &Ports) -> LeaseResult {
    LeaseResult {
        format: FORMAT,
        at: ports.clock.stamp(),
        gave_up: false,
        busy: false,
        gone: false,
        unreachable: false,
        open_in: None,
        taken_in_place: false,
        interrupted: None,
        next_ms: 0,
        error: None,
        extra: Extra::new(),
    }
}

fn publish_result(ports: &Ports, seen: &Observed, n: u32, result: LeaseResult) -> Result<(), StoreError> {
    ports.publish(seen, &Fact::LeaseResult(n, result)).map(drop)
}

/// An agent took a message.
pub(super) fn message_delivered(item: &FirstMessage<'_>) -> Result<(), StoreError> {
    close_message(&item.inbox.turns, item.session, item.n, MessageHow::Delivered)
}

/// Closes a message.
pub(super) fn close_message(
    turns: &Turns<'_>,
    session: &Session,
    n: u32,
    how: MessageHow,
) -> Result<(), StoreError> {
    let receipt = MessageFact::receipt(turns.ports.clock.stamp(), how);
    turns.ports.sessions.publish_message(session, n, &receipt, turns.durability).map(drop)
}

/// An attempt at a message did not deliver it.
pub(super) fn message_result(item: &FirstMessage<'_>, verdict: &Verdict) -> Result<(), StoreError> {
    let (spent, turns) = match verdict {
        // What becomes of the message was recorded with the end of its turn: it comes again, or is overtaken.
        Verdict::Interrupted { .. } => return Ok(()),
        Verdict::Busy { .. } | Verdict::Unreachable { .. } => (false, &item.inbox.turns),
        _ => (true, &item.inbox.turns),
    };
    let (error, next) = (verdict.error().unwrap_or_default().to_owned(), verdict.next().map(millis));
    let result = MessageFact::result(item.claim.n, turns.ports.clock.stamp(), error, spent, next);
    turns.ports.sessions.publish_message(item.session, item.n, &result, turns.durability).map(drop)
}

/// A number that spreads pauses: processes that call this at the same moment have different pids.
pub(super) fn chance(ports: &Ports, n: u32) -> u64 {
    let now = ports.clock.stamp().since_boot_ms;
    (now.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) ^ u64::from(n) ^ u64::from(std::process::id())
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
