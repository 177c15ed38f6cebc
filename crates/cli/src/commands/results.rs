//! `hearback results`

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::answer_text;
use hearback::documents::ResultsDocument;
use hearback::{Acknowledged, Hearback, Results, ResultsQuery};

use crate::args::ResultsArgs;
use crate::error::CliError;
use crate::output::Output;

/// No answer has arrived.
const NOTHING: u32 = 1;

pub(crate) fn run(hearback: &Hearback, args: &ResultsArgs, output: &Output) -> Result<u32, CliError> {
    let parent = super::parent(args.session.as_ref())?;
    let mut by = ResultsQuery { parent, reader: args.reader.clone(), jobs: Vec::new() };
    for text in &args.jobs {
        let id = hearback.find(text, &by.parent.clone().into())?;
        if !hearback.is_asked(&id)? {
            return Err(CliError::NotAsked(id));
        }
        by.jobs.push(id);
    }
    let within = args.wait.unwrap_or_default();
    let results =
        if args.ack { hearback.take_results(&by, within)? } else { hearback.results(&by, within)? };
    let some = !results.ended.is_empty();
    print(hearback, &results, output)?;
    if args.ack {
        acknowledge(hearback, &by, results, output)?;
    }
    Ok(if some { 0 } else { NOTHING })
}

fn print(hearback: &Hearback, results: &Results, output: &Output) -> Result<(), CliError> {
    if output.is_json() {
        return output.document(&ResultsDocument {
            format: DOCUMENT_FORMAT,
            results: results.ended.iter().map(|job| job.view.clone()).collect(),
            running: results.running.clone(),
            read: results.read.clone(),
            more: results.more,
        });
    }
    for job in &results.ended {
        if let Some(answer) = &job.view.answer {
            output.text(&hearback.secrets().masked(&answer_text(&job.view, answer)))?;
        }
    }
    for id in &results.read {
        output.say(&format!("{id} nothing to do: already acknowledged"));
    }
    match results.running.len() {
        0 if results.ended.is_empty() && results.read.is_empty() => {
            output.say("no unread answers, and no job that will answer")
        }
        0 => {}
        n => output.say(&format!("{n} still running")),
    }
    if results.more > 0 {
        output.say(&format!("{} more have ended: run this again", results.more));
    }
    Ok(())
}

/// Acknowledges the answers after they were printed: if printing fails, they are printed again next time.
fn acknowledge(
    hearback: &Hearback,
    by: &ResultsQuery,
    results: Results,
    output: &Output,
) -> Result<(), CliError> {
    for job in &results.ended {
        let id = &job.view.id;
        match hearback.acknowledge(id, by.reader.as_ref())? {
            Acknowledged::Now => {}
            Acknowledged::Before if output.is_json() => {}
            Acknowledged::Before => output.say(&format!("{id} nothing to do: already acknowledged")),
            Acknowledged::Nothing => output.warn(&format!(
                "{id} could not be acknowledged: the job was pruned, or this hearback must not change it"
            )),
        }
    }
    Ok(())
}
