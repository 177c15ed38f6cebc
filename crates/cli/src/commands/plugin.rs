//! `hearback plugin`

use std::fmt::Write as _;

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::core::port::sink::SinkError;
use hearback::documents::{ConformanceDocument, ErrorKind, PluginCheckDocument};
use hearback::{Guarded, Hearback, PluginCheck};

use crate::args::PluginCommand;
use crate::error::CliError;
use crate::output::{BAD, GOOD, Output};

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
    output.text(&report(&checks))?;
    failed.map_or(Ok(0), Err)
}

fn document(check: PluginCheck) -> ConformanceDocument {
    ConformanceDocument { name: check.name.to_owned(), passed: check.passed, message: check.seen }
}

/// One line for each check, and the totals at the end.
fn report(checks: &[PluginCheck]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for PluginCheck { name, passed, seen } in checks {
        let (style, word) = if *passed { (GOOD, "ok") } else { (BAD, "fail") };
        let _ = writeln!(text, "{style}{word:<4}{style:#}  {name:<width$}  {}", clean_line(seen));
    }
    let passed = checks.iter().filter(|check| check.passed).count();
    let _ = writeln!(text, "{} checks: {passed} ok, {} failed", checks.len(), checks.len() - passed);
    text
}
