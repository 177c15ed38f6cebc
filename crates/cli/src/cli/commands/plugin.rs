//! `hearback plugin`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hearback_core::DOCUMENT_FORMAT;
use hearback_core::message::clean_line;
use hearback_core::port::sink::SinkError;

use crate::cli::args::PluginCommand;
use crate::cli::documents::{ConformanceDocument, PluginCheckDocument};
use crate::cli::error::CliError;
use crate::cli::output::{BAD, GOOD, Output};
use crate::{Hearback, PluginCheck};

/// A check failed.
const UNFIT: u32 = 1;

pub(crate) fn run(hearback: &Hearback, command: &PluginCommand, output: &Output) -> Result<u32, CliError> {
    let PluginCommand::Check(args) = command;
    let program = program(hearback, &args.plugin)?;
    let checks = hearback.check_plugin(&program);
    let passed = checks.iter().all(|check| check.passed);
    if output.is_json() {
        let program = hearback_platform::from_os(program.as_os_str());
        let checks = checks.into_iter().map(document).collect();
        output.document(&PluginCheckDocument { format: DOCUMENT_FORMAT, program, passed, checks })?;
    } else {
        output.text(&report(&checks))?;
    }
    Ok(if passed { 0 } else { UNFIT })
}

/// A name is looked up as it is for a delivery; whatever has more than one part is a path.
fn program(hearback: &Hearback, plugin: &Path) -> Result<PathBuf, CliError> {
    if plugin.components().count() > 1 || plugin.is_absolute() {
        return fs_err::canonicalize(plugin).map_err(|error| CliError::Usage(error.to_string()));
    }
    let name = plugin.to_string_lossy();
    hearback.plugin(&name).ok_or_else(|| SinkError::Missing(name.into_owned()).into())
}

fn document(check: PluginCheck) -> ConformanceDocument {
    ConformanceDocument { name: check.name.to_owned(), passed: check.passed, seen: check.seen }
}

/// One line a check, and the sum of it all at the end.
fn report(checks: &[PluginCheck]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for PluginCheck { name, passed, seen } in checks {
        let (style, word) = if *passed { (GOOD, "ok") } else { (BAD, "fail") };
        let _ = writeln!(text, "{style}{word:<4}{style:#}  {name:<width$}  {}", clean_line(seen));
    }
    let passed = checks.iter().filter(|check| check.passed).count();
    let _ = writeln!(text, "{} checks: {passed} fine, {} failed", checks.len(), checks.len() - passed);
    text
}
