//! `hearback plugin`

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::core::port::sink::SinkError;
use hearback::documents::{ConformanceDocument, ErrorKind, PluginCheckDocument};
use hearback::{Guarded, Hearback, PluginCheck};

use crate::args::PluginCommand;
use crate::error::CliError;
use crate::output::{BAD, GOOD, Output};
use crate::table;

pub(crate) fn run(hearback: &Hearback, command: &PluginCommand, output: &Output) -> Result<u32, CliError> {
    let PluginCommand::Check(args) = command;
    let (program, checks) = hearback.check_plugin(&args.plugin).map_err(|error| match error {
        Guarded::Failed(SinkError::Failed(why)) => CliError::Usage(why),
        error => error.into(),
    })?;
    let passed = checks.iter().all(|check| check.passed);
    let failed = (!passed).then(|| {
        let names: Vec<_> = checks.iter().filter(|check| !check.passed).map(|check| check.name).collect();
        CliError::no(ErrorKind::CheckFailed, format!("failed checks: {}", names.join(", ")))
    });
    if output.is_json() {
        let program = hearback::from_os(program.as_os_str());
        let checks = checks.into_iter().map(document).collect();
        let document = PluginCheckDocument { format: DOCUMENT_FORMAT, program, passed, checks };
        return output.reply(document, failed.as_ref());
    }
    output.text(&report(&checks, output.width()))?;
    failed.map_or(Ok(0), Err)
}

fn document(check: PluginCheck) -> ConformanceDocument {
    ConformanceDocument { name: check.name.to_owned(), passed: check.passed, message: check.seen }
}

/// One row for each check, and the totals at the end.
fn report(checks: &[PluginCheck], width: Option<usize>) -> String {
    let row = |PluginCheck { name, passed, seen }: &PluginCheck| {
        let (style, word) = if *passed { (GOOD, "ok") } else { (BAD, "fail") };
        vec![format!("{style}{word:<4}{style:#}"), (*name).to_owned(), clean_line(seen)]
    };
    let rows: Vec<_> = checks.iter().map(row).collect();
    let passed = checks.iter().filter(|check| check.passed).count();
    let totals = format!("{} checks: {passed} ok, {} failed\n", checks.len(), checks.len() - passed);
    table::grid(&[], &rows, 2, width) + &totals
}
