//! `hearback prune`

use hearback::Hearback;
use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::PruneDocument;

use crate::args::PruneArgs;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, args: &PruneArgs, output: &Output) -> Result<u32, CliError> {
    let mut retention = hearback.settings().retention;
    retention.max_age = args.older_than.unwrap_or(retention.max_age);
    retention.max_jobs = args.max_jobs.unwrap_or(retention.max_jobs);
    let report = hearback.prune(retention, args.dry_run)?;
    let failed = (!report.failed.is_empty()).then_some(CliError::Partly);
    if output.is_json() {
        let document = PruneDocument {
            format: DOCUMENT_FORMAT,
            dry_run: args.dry_run,
            pruned: report.pruned,
            tidied: report.tidied,
            problems: super::problems(report.failed),
        };
        return output.reply(document, failed.as_ref());
    }
    for id in &report.pruned {
        output.line(id.as_str())?;
    }
    for (id, error) in &report.failed {
        output.warn(&format!("job `{id}` could not be removed: {error}"));
    }
    let did = if args.dry_run { "would be removed" } else { "removed" };
    output.hint(&format!("{} jobs {did}", report.pruned.len()));
    failed.map_or(Ok(0), Err)
}
