//! Requests about turns, and what a host is told of them. Each is a call of the library.

use std::time::Duration;

use hearback::core::{DOCUMENT_FORMAT, SinkPayload};
use hearback::documents::serve::{
    AckParams, AttendParams, ClaimedDocument, DoneDocument, DrainingDocument, DueDocument, InterruptDocument,
    ItemDocument, ItemKind, Notification, ReleaseHow, ReleaseParams, TurnClaimParams, TurnCloseHow,
    TurnCloseParams, TurnDocument, TurnOpenParams, TurnOpenedDocument,
};
use hearback::{
    Attend, CancelWait, HostItem, HostNews, HostTurn, Release, SessionHost, TurnClose, TurnRequest,
};

use super::server::Answer;
use crate::error::CliError;

fn done() -> Answer {
    Answer::new(&DoneDocument { format: DOCUMENT_FORMAT })
}

fn attended(params: AttendParams) -> Result<Attend, CliError> {
    match (params.session, params.all) {
        (Some(session), false) => Ok(Attend::Session(session)),
        (None, true) => Ok(Attend::All),
        _ => Err(CliError::Usage("give either `session` or `all`".into())),
    }
}

pub(super) fn attend(host: &SessionHost, params: AttendParams) -> Result<Answer, CliError> {
    host.attend(attended(params)?);
    Ok(done())
}

pub(super) fn unattend(host: &SessionHost, params: AttendParams) -> Result<Answer, CliError> {
    host.unattend(&attended(params)?);
    Ok(done())
}

pub(super) fn open(
    host: &SessionHost,
    params: TurnOpenParams,
    cancel: &CancelWait,
) -> Result<Answer, CliError> {
    let TurnOpenParams { session, wait_ms, destination, history } = params;
    let mut request = TurnRequest::default();
    request.destination = destination;
    request.history = history.map(Into::into).unwrap_or_default();
    let turn = host.open_turn(&session, Duration::from_millis(wait_ms), request, cancel)?;
    Ok(Answer::new(&turn_document(turn)))
}

pub(super) fn claim(host: &SessionHost, params: TurnClaimParams) -> Result<Answer, CliError> {
    let (items, text) = host.claim(&params.turn)?;
    let items = items.into_iter().map(item).collect();
    Ok(Answer::new(&ClaimedDocument { format: DOCUMENT_FORMAT, items, text }))
}

pub(super) fn close(host: &SessionHost, params: TurnCloseParams) -> Result<Answer, CliError> {
    let how = match params.how {
        TurnCloseHow::Done => TurnClose::Done,
        TurnCloseHow::Failed => {
            TurnClose::Failed { error: params.error.unwrap_or_else(|| "the host says that it failed".into()) }
        }
    };
    host.close_turn(&params.turn, &how)?;
    Ok(done())
}

pub(super) fn ack(host: &SessionHost, params: AckParams) -> Result<Answer, CliError> {
    host.acknowledge_item(&params.token)?;
    Ok(done())
}

pub(super) fn release(host: &SessionHost, params: ReleaseParams) -> Result<Answer, CliError> {
    let reason = params.reason.unwrap_or_default();
    let retry_after = params.retry_after_ms.map(Duration::from_millis);
    let release = match params.how {
        ReleaseHow::Busy => Release::Busy { reason, retry_after },
        ReleaseHow::Failed => Release::Failed { reason, retry_after },
        ReleaseHow::Gone => Release::Gone { reason },
    };
    host.release_item(&params.token, release)?;
    Ok(done())
}

fn turn_document(turn: HostTurn) -> TurnOpenedDocument {
    TurnOpenedDocument {
        format: DOCUMENT_FORMAT,
        env: turn.env(),
        turn: turn.token,
        session: turn.session,
        number: turn.number,
        note: turn.note,
        destination: turn.destination,
        items: turn.items.into_iter().map(item).collect(),
    }
}

fn item(item: HostItem) -> ItemDocument {
    let HostItem { token, payload } = item;
    let kind = match payload {
        SinkPayload::Message(_) => ItemKind::Message,
        _ => ItemKind::FollowUp,
    };
    let (id, attempt) = (payload.id().to_owned(), payload.attempt());
    ItemDocument { token, kind, id, attempt, payload: payload.event() }
}

/// What a host is told, as a line; none for what this protocol does not tell.
pub(super) fn notification(news: HostNews) -> Option<Notification> {
    let format = DOCUMENT_FORMAT;
    Some(match news {
        HostNews::Turn { turn, text } => {
            Notification::Turn(Box::new(TurnDocument { turn: turn_document(turn), text }))
        }
        HostNews::Due { session, turn, count } => {
            Notification::Due(DueDocument { format, session, turn, count })
        }
        HostNews::Interrupt { session, turn, reason } => {
            Notification::Interrupt(InterruptDocument { format, session, turn, reason })
        }
        HostNews::Draining { kind, over } => Notification::Draining(DrainingDocument { format, kind, over }),
        _ => return None,
    })
}
