//! `hearback events`

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::event::{EventSubject, Happened, ToldHow};
use hearback::core::message::{clean_line, quoted};
use hearback::core::session::{MessageHow, TurnCause, TurnHow};
use hearback::documents::{EventDocument, ReadyDocument, ReadyType};
use hearback::{Event, Events, EventsSince, Hearback, Job, StopWatch};

use crate::args::{BEGINNING, EventsArgs, ScopeArgs};
use crate::error::CliError;
use crate::output::Output;
use crate::status::INTERRUPTED;
use crate::table;

/// The cursor behind the last event that was printed; none if nothing has ever happened.
type Place = Arc<Mutex<Option<String>>>;

/// How often it is looked whether anybody still reads what is printed.
const READER_LOOKED_FOR_EVERY: Duration = Duration::from_secs(60);

pub(crate) fn run(hearback: &Hearback, args: &EventsArgs, output: &Output) -> Result<u32, CliError> {
    let scope = super::scope(&args.scope)?;
    let default = if args.once { EventsSince::Beginning } else { EventsSince::Now };
    let mut events = hearback.events(&scope, args.since.clone().unwrap_or(default))?;
    if args.output {
        events = events.with_output()?;
    }
    if output.is_json() && !args.once {
        let cursor = events.cursor().map_or_else(|| BEGINNING.to_owned(), ToString::to_string);
        output.object(&ReadyDocument { format: DOCUMENT_FORMAT, r#type: ReadyType::Ready, cursor })?;
    }
    let place = Arc::new(Mutex::new(None));
    let keep_place = |events: &Events<'_>| {
        *place.lock().unwrap_or_else(PoisonError::into_inner) = events.cursor().map(ToString::to_string);
    };
    keep_place(&events);
    if output.is_guided() && !args.once {
        output.hint("from now on; Ctrl-C ends this, and says how to read on from there");
        say_place_when_interrupted(Arc::clone(&place), args.scope.clone(), *output);
    }
    let within = if args.once { Duration::ZERO } else { READER_LOOKED_FOR_EVERY };
    loop {
        match events.next(within)? {
            Some(event) if output.is_json() => output.object(&EventDocument::from(event))?,
            Some(event) => {
                output.prose(&text(&event))?;
                keep_place(&events);
            }
            None if args.once || hearback::stdout_is_connected() == Some(false) => {
                say_place(&place, &args.scope, output);
                return Ok(0);
            }
            None => {}
        }
    }
}

/// Says how to read on from here when Ctrl-C ends the command.
fn say_place_when_interrupted(place: Place, scope: ScopeArgs, output: Output) {
    // Without these, Ctrl-C ends the process as ever.
    let Ok(stop) = StopWatch::new() else { return };
    let thread = std::thread::Builder::new().name("events".into());
    let _ = thread.spawn(move || {
        while !stop.wait(READER_LOOKED_FOR_EVERY) {}
        output.say("");
        say_place(&place, &scope, &output);
        std::process::exit(INTERRUPTED);
    });
}

/// Says how to read on from here. Programs find the cursor in each event.
fn say_place(place: &Place, scope: &ScopeArgs, output: &Output) {
    let place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cursor) = place.as_ref() {
        let session =
            scope.session.as_ref().map(|session| format!(" --session {}", quoted(session.as_str())));
        let scope =
            if scope.all_sessions { " --all-sessions".to_owned() } else { session.unwrap_or_default() };
        output.next(&[format!("hearback events{scope} --since {cursor}")]);
    }
}

/// One line for people.
fn text(event: &Event) -> String {
    let name = match (&event.key.subject, &event.job) {
        (_, Some(job)) => job_name(job),
        (EventSubject::Session(session), _) => format!("session {}", clean_line(session.as_str())),
        (EventSubject::Job(id), None) => id.to_string(),
    };
    format!("{}  {name}: {}", table::local_time(event.at), clean_line(&what(event)))
}

fn job_name(job: &Job) -> String {
    let id = &job.view.id;
    match &job.view.label {
        Some(label) => format!("{id} ({})", clean_line(label)),
        None => id.to_string(),
    }
}

fn what(event: &Event) -> String {
    let outcome = || event.job.as_ref().and_then(|job| job.view.outcome.as_ref());
    let through =
        |sink: &Option<String>| sink.as_ref().map(|sink| format!(" through `{sink}`")).unwrap_or_default();
    let because =
        |error: &Option<String>| error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    match &event.what {
        Happened::Launched => "launched".into(),
        Happened::Started => "started".into(),
        Happened::KillRequested { by, reason } => format!("kill requested by {by}{}", because(reason)),
        Happened::Output { last_line } => format!("printed: {}", last_line.as_deref().unwrap_or_default()),
        Happened::Ended => match outcome() {
            Some(outcome) => format!("ended: {outcome}"),
            None => "ended".into(),
        },
        Happened::NotTold { attempt, sink, reason } => {
            format!("attempt {attempt} to tell its owner{} failed{}", through(sink), because(reason))
        }
        Happened::DeadLetter { attempt, sink, reason } => {
            format!("dead letter after attempt {attempt}{}{}", through(sink), because(reason))
        }
        Happened::Retried => "a person had the dead letter tried again".into(),
        Happened::Told { how } => match how {
            ToldHow::Delivered => "its owner was told".into(),
            ToldHow::Queued => "the agent keeps it in its queue".into(),
            ToldHow::Read => "its owner has read it".into(),
            ToldHow::Discarded => "the follow-up was discarded".into(),
            ToldHow::Expired => "the follow-up expired".into(),
            _ => "the follow-up is closed".into(),
        },
        Happened::Settled => "settled: nothing more will happen to it".into(),
        Happened::TurnBegun { turn, cause } => {
            let why = match cause {
                TurnCause::Command => "a command",
                TurnCause::FollowUp { .. } => "a job that has ended",
                TurnCause::Message { .. } => "a message",
                TurnCause::Resume { .. } => "an earlier turn that was cut short",
                TurnCause::Unknown => "a cause that a newer hearback knows",
            };
            format!("turn {turn} begun for {why}")
        }
        Happened::TurnEnded { turn, how } => match how {
            TurnHow::Done => format!("turn {turn} ended"),
            TurnHow::Failed { error } => format!("turn {turn} failed: {error}"),
            TurnHow::Interrupted { reason } => format!("turn {turn} was cut short: {reason}"),
            TurnHow::Unknown => format!("turn {turn} ended in a way that a newer hearback knows"),
        },
        Happened::MessageQueued { message } => format!("message {message} waits"),
        Happened::MessageNotDelivered { message, reason, dead_letter } => {
            let word = if *dead_letter { "is a dead letter" } else { "was not delivered" };
            format!("message {message} {word}: {reason}")
        }
        Happened::MessageClosed { message, how } => {
            let word = match how {
                MessageHow::Delivered => "was delivered",
                MessageHow::Expired => "expired",
                MessageHow::Overtaken => "was overtaken by a newer one",
                MessageHow::Discarded => "was discarded",
                MessageHow::Unknown => "is closed",
            };
            format!("message {message} {word}")
        }
        _ => "something that a newer hearback knows".into(),
    }
}
