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
    if output.is_json() {
        output.document(&ListDocument {
            format: DOCUMENT_FORMAT,
            jobs: listing.jobs.into_iter().map(|job| job.view).collect(),
            problems: super::problems(listing.problems),
        })?;
        return Ok(0);
    }
    for (id, error) in &listing.problems {
        output.warn(&format!("job `{id}` cannot be shown: {error}"));
    }
    if listing.jobs.is_empty() {
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
    output.text(&table::jobs(&listing.jobs, hearback.now(), output.width()))?;
    Ok(0)
}
