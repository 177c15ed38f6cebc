//! `hearback list`

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::documents::ListDocument;
use hearback::{Hearback, Select};

use crate::args::ListArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::table;

/// How many jobs of the history are shown without `--all`.
const NEWEST: usize = 20;

pub(crate) fn run(hearback: &Hearback, args: &ListArgs, output: &Output) -> Result<u32, CliError> {
    let select = Select {
        scope: super::scope(&args.scope)?,
        state: args.state.map(Into::into),
        history_max: (!args.all).then_some(NEWEST),
    };
    let listing = hearback.jobs(&select)?;
    let failed = super::unread(&listing.problems, output);
    if output.is_json() {
        let document = ListDocument {
            format: DOCUMENT_FORMAT,
            jobs: listing.jobs.into_iter().map(|job| job.view).collect(),
            problems: super::problems(listing.problems),
        };
        return output.reply(document, failed.as_ref());
    }
    // With a job that cannot be read, "no jobs" would not be true.
    if listing.jobs.is_empty() && failed.is_none() {
        output.say(
            match select.scope.session() {
                Some(session) => {
                    let session = clean_line(session.as_str());
                    format!(
                        "no jobs in session `{session}`; `--all-sessions` shows the jobs of every session"
                    )
                }
                None => "no jobs; try: hearback launch -- sleep 5".into(),
            }
            .as_str(),
        );
        return Ok(0);
    }
    if !listing.jobs.is_empty() {
        output.text(&table::jobs(&listing.jobs, hearback.now(), output.width()))?;
    }
    failed.map_or(Ok(0), Err)
}
