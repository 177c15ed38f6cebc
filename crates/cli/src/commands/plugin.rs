//! `hearback plugin`

use std::fmt::Write as _;

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::core::port::sink::SinkError;
use hearback::documents::{ConformanceDocument, PluginCheckDocument};
use hearback::{Guarded, Hearback, PluginCheck};

use crate::args::PluginCommand;
use crate::error::CliError;
use crate::output::{BAD, GOOD, Output};

/// A check failed.
const UNFIT: u32 = 1;

pub(crate) fn run(hearback: &Hearback, command: &PluginCommand, output: &Output) -> Result<u32, CliError> {
    let PluginCommand::Check(args) = command;
    let (program, checks) = hearback.check_plugin(&args.plugin).map_err(|error| match error {
        Guarded::Failed(SinkError::Failed(why)) => CliError::Usage(why),
        error => error.into(),
    })?;
    let passed = checks.iter().all(|check| check.passed);
    if output.is_json() {
        let program = hearback::from_os(program.as_os_str());
        let checks = checks.into_iter().map(document).collect();
        output.document(&PluginCheckDocument { format: DOCUMENT_FORMAT, program, passed, checks })?;
    } else {
        output.text(&report(&checks))?;
    }
    Ok(if passed { 0 } else { UNFIT })
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
