//! `hearback timeline`

use std::path::Path;

use hearback::Hearback;
use hearback::documents::TimelineDocument;

use super::list;
use crate::args::TimelineArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::timeline;

pub(crate) fn run(hearback: &Hearback, args: &TimelineArgs, output: &Output) -> Result<u32, CliError> {
    let select = list::select(hearback, &args.select)?;
    let listing = hearback.jobs(&select)?;
    let failed = super::unread(&listing.problems, output);
    if output.is_json() && args.html.is_none() {
        return output.reply(TimelineDocument::new(hearback, listing), failed.as_ref());
    }
    let cut_short = listing.truncated.then(|| list::cut_short(&listing));
    if listing.jobs.is_empty() && failed.is_none() && args.html.is_none() {
        output.say(&list::nothing(&select, list::is_filtered(&args.select), &listing));
        return Ok(0);
    }
    let now = hearback.now();
    let (groups, span) = timeline::arranged(hearback, listing.jobs, now);
    match args.html.as_deref() {
        Some(path) if path == Path::new("-") => {
            output.bytes(timeline::page(&groups, span, now).as_bytes())?
        }
        Some(path) => {
            fs_err::write(path, timeline::page(&groups, span, now)).map_err(CliError::Output)?;
            output.hint(&format!("wrote {}", path.display()));
        }
        None => {
            let bars = timeline::bars(&groups, span, now, output.width());
            output.text(&bars)?;
            output.hint(&timeline::legend(&bars));
        }
    }
    cut_short.iter().for_each(|line| output.say(line));
    failed.map_or(Ok(0), Err)
}
