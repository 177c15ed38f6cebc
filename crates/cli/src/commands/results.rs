//! `hearback results`

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::answer_text;
use hearback::documents::{ErrorKind, ResultsDocument};
use hearback::{Acknowledged, Capability, Hearback, Results, ResultsQuery};

use crate::args::ResultsArgs;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, args: &ResultsArgs, output: &Output) -> Result<u32, CliError> {
    if args.ack {
        hearback.permissions().check(Capability::Ack)?;
    }
    let parent = super::parent(args.session.as_ref())?;
    let mut by = ResultsQuery { parent, reader: args.reader.clone(), jobs: Vec::new() };
    for text in &args.jobs {
        let id = super::find_one(hearback, text, &by.parent.clone().into())?;
        if !hearback.is_asked(&id)? {
            return Err(CliError::NotAsked(id).of(text));
        }
        by.jobs.push(id);
    }
    let within = args.wait.unwrap_or_default();
    let mut results =
        if args.ack { hearback.take_results(&by, within)? } else { hearback.results(&by, within)? };
    let nothing = || CliError::no(ErrorKind::Nothing, "no unread answers");
    let failed = super::unread(&results.problems, output).or_else(|| results.ended.is_empty().then(nothing));
    print(hearback, &mut results, failed.as_ref(), output)?;
    if args.ack {
        acknowledge(hearback, &by, results, output)?;
    }
    match failed {
        Some(error) if !output.is_json() => Err(error),
        failed => Ok(failed.map_or(0, |error| error.exit_code())),
    }
}

fn print(
    hearback: &Hearback,
    results: &mut Results,
    failed: Option<&CliError>,
    output: &Output,
) -> Result<(), CliError> {
    if output.is_json() {
        let document = ResultsDocument {
            format: DOCUMENT_FORMAT,
            results: results.ended.iter().map(|job| job.view.clone()).collect(),
            running: results.running.iter().map(|job| job.view.clone()).collect(),
            read: results.read.clone(),
            more: results.more,
            problems: super::problems(std::mem::take(&mut results.problems)),
        };
        return output.reply(document, failed).map(drop);
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
        0 if results.ended.is_empty() && results.read.is_empty() && results.problems.is_empty() => {
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
