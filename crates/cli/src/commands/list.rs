//! `hearback list`

use std::time::Duration;

use hearback::core::FollowUpState;
use hearback::core::message::clean_line;
use hearback::documents::ListDocument;
use hearback::{Hearback, Job, Listing, Select, StopWatch};

use crate::args::{ListArgs, SelectArgs};
use crate::error::CliError;
use crate::output::{FAINT, Output};
use crate::table;

/// How many jobs of the history are shown without `--all`.
const NEWEST: usize = 20;
/// How often a list that a person watches is drawn again.
const WATCHED_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(hearback: &Hearback, args: &ListArgs, output: &Output) -> Result<u32, CliError> {
    if cfg!(feature = "live") && args.watch {
        return watch(hearback, args, output);
    }
    let select = select(hearback, &args.select)?;
    let mut listing = hearback.jobs(&select)?;
    if super::ONE_CALL && args.preview {
        hearback.add_previews(&mut listing);
    }
    let failed = super::unread(&listing.problems, output);
    if output.is_json() {
        return output.reply(ListDocument::new(listing), failed.as_ref());
    }
    // With a job that cannot be read, "no jobs" would not be true.
    if listing.jobs.is_empty() && failed.is_none() {
        if !hearback.exists() {
            let home = clean_line(&hearback.home().display().to_string());
            output.say(&format!("no jobs: there is no store at {home} yet; try: hearback launch -- sleep 5"));
            return Ok(0);
        }
        output.say(&nothing(&select, is_filtered(&args.select), &listing));
        return Ok(0);
    }
    if args.quiet {
        let ids: String = listing.jobs.iter().map(|job| format!("{}\n", job.view.id)).collect();
        output.text(&ids)?;
    } else if !listing.jobs.is_empty() {
        output.text(&table::jobs(&listing.jobs, hearback.now(), output.width()))?;
    }
    if listing.truncated {
        output.say(&cut_short(&listing));
    }
    let is_dead_letter = |job: &&Job| job.view.follow_up.state == FollowUpState::DeadLetter;
    let mut dead = listing.jobs.iter().filter(is_dead_letter).map(|job| job.view.session.as_ref()).peekable();
    if !args.quiet && dead.peek().is_some() {
        let them = super::to_reach(dead);
        output.hint(&format!(
            "`hearback followups{them}` says why a follow-up is a dead letter, and how to retry it"
        ));
    }
    if let Some(session) =
        select.scope.session().filter(|_| args.select.scope.session.is_none() && !args.quiet)
    {
        let session = clean_line(session.as_str());
        output.hint(&format!("only the jobs of session `{session}`; --all-sessions shows all"));
    }
    failed.map_or(Ok(0), Err)
}

/// Shows the list until Ctrl-C. Each picture is drawn over the one before, in one piece, so that nothing flickers.
fn watch(hearback: &Hearback, args: &ListArgs, output: &Output) -> Result<u32, CliError> {
    if !output.is_watched() {
        return Err(CliError::Usage(
            "--watch needs a terminal; without it, `list` prints the jobs once".into(),
        ));
    }
    let stop = StopWatch::new().map_err(CliError::Output)?;
    let mut drawn = 0;
    loop {
        let listing = hearback.jobs(&select(hearback, &args.select)?)?;
        let (width, height) = output.size().unwrap_or((80, 24));
        let mut lines: Vec<String> =
            table::jobs(&listing.jobs, hearback.now(), Some(width)).lines().map(str::to_owned).collect();
        let running = listing.jobs.iter().filter(|job| !job.view.state.has_ended()).count();
        // The newest are on top, so what does not fit is the oldest.
        let room = height.saturating_sub(2).max(2);
        let hidden = lines.len().saturating_sub(room);
        lines.truncate(room);
        if listing.jobs.is_empty() {
            lines = vec!["no jobs".to_owned()];
        }
        let left_out = if hidden > 0 { format!(", {hidden} more below") } else { String::new() };
        // How to leave comes first, so that it is never cut.
        let status = format!("Ctrl-C leaves; {running} running{left_out}");
        lines.push(format!("{FAINT}{}{FAINT:#}", table::cut(&status, width)));
        output.redraw(&lines, drawn)?;
        drawn = lines.len();
        if stop.wait(WATCHED_EVERY) {
            return Ok(0);
        }
    }
}

/// What the arguments select.
pub(super) fn select(hearback: &Hearback, args: &SelectArgs) -> Result<Select, CliError> {
    let mut select = Select::default();
    select.scope = super::scope(&args.scope)?;
    select.states = args.state.iter().flat_map(|state| state.words()).copied().collect();
    select.outcomes = args.outcome.iter().map(|kind| (*kind).into()).collect();
    select.label = args.label.clone();
    select.launched_since = args.since.map(|within| hearback.now().before(within));
    select.history_max = args.limit.or((!args.all).then_some(NEWEST));
    select.most = args.limit;
    Ok(select)
}

pub(super) fn is_filtered(args: &SelectArgs) -> bool {
    !args.state.is_empty() || !args.outcome.is_empty() || args.label.is_some() || args.since.is_some()
}

/// Why the list is empty, and what to try.
pub(super) fn nothing(select: &Select, is_filtered: bool, listing: &Listing) -> String {
    let session = select.scope.session().map(|session| clean_line(session.as_str()));
    let wider = match &session {
        Some(_) => "; --all-sessions shows the jobs of every session",
        None if listing.truncated => "; --all searches the whole history",
        None => "",
    };
    match (session, is_filtered) {
        (Some(session), true) => format!("no jobs match in session `{session}`{wider}"),
        (Some(session), false) => format!("no jobs in session `{session}`{wider}"),
        (None, true) => format!("no jobs match{wider}"),
        (None, false) => "no jobs; try: hearback launch -- sleep 5".into(),
    }
}

/// Says that the list is cut, and how to see the rest.
pub(super) fn cut_short(listing: &Listing) -> String {
    let shown = listing.jobs.len();
    let of = match listing.total {
        Some(total) => format!("{shown} of {total} jobs"),
        // With a filter, or with so many that they are not counted.
        None => format!("the newest {shown} jobs; there may be more"),
    };
    format!("{of} (more: -n {}, --all)", shown.saturating_mul(2).max(50))
}
