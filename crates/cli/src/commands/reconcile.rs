//! `hearback reconcile`

use hearback::Hearback;
use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::{ReconcileDocument, StepDocument};
use hearback::reconcile::Step;

use crate::args::DryRunArgs;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, args: &DryRunArgs, output: &Output) -> Result<u32, CliError> {
    let report = hearback.reconcile(args.dry_run)?;
    let failed = (!report.failed.is_empty()).then_some(CliError::Partly);
    if output.is_json() {
        let steps = report
            .steps
            .into_iter()
            .map(|(id, step)| StepDocument { id, step: word(step).to_owned() })
            .collect();
        let document = ReconcileDocument {
            format: DOCUMENT_FORMAT,
            dry_run: args.dry_run,
            steps,
            problems: super::problems(report.failed),
        };
        return output.reply(document, failed.as_ref());
    }
    for (id, step) in &report.steps {
        output.prose(&format!("{id} {step}"))?;
    }
    for (id, error) in &report.failed {
        output.warn(&format!("job `{id}` could not be brought up to date: {error}"));
    }
    if report.steps.is_empty() && failed.is_none() {
        output.hint("everything is up to date");
    }
    failed.map_or(Ok(0), Err)
}

fn word(step: Step) -> &'static str {
    match step {
        Step::Abandon => "abandon",
        Step::Lose(_) => "lose",
        Step::Answer => "answer",
        Step::Sweep => "sweep",
        Step::Settle => "settle",
        Step::Archive => "archive",
    }
}
