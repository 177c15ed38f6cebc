//! `hearback doctor`

use anstyle::Style;
use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::documents::{CheckDocument, DoctorDocument, ErrorKind};
use hearback::{Check, Diagnosis, Hearback, Level, Options};

use crate::error::CliError;
use crate::output::{BAD, BUSY, FAINT, GOOD, Output};
use crate::table;
use crate::wrap::wrap;

pub(crate) fn run(output: &Output) -> Result<u32, CliError> {
    let diagnosis = Hearback::doctor(&Options::default())?;
    for warning in &diagnosis.settings.warnings {
        output.warn(warning);
    }
    let failed: Vec<_> =
        diagnosis.checks.iter().filter(|check| check.level == Level::Fail).map(|check| check.name).collect();
    let failed = (!failed.is_empty())
        .then(|| CliError::no(ErrorKind::CheckFailed, format!("failed checks: {}", failed.join(", "))));
    if output.is_json() {
        return output.reply(document(diagnosis), failed.as_ref());
    }
    output.text(&report(&diagnosis.checks, output.width()))?;
    failed.map_or(Ok(0), Err)
}

fn document(diagnosis: Diagnosis) -> DoctorDocument {
    DoctorDocument {
        format: DOCUMENT_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: diagnosis.home.map(|home| hearback::from_os(home.as_os_str())),
        durability: diagnosis.settings.durability,
        checks: diagnosis
            .checks
            .into_iter()
            .map(|check| CheckDocument {
                name: check.name.to_owned(),
                level: word(check.level).to_owned(),
                message: check.message,
                tip: check.tip,
            })
            .collect(),
    }
}

/// One row for each check, with its tip below it, and the totals at the end.
fn report(checks: &[Check], width: Option<usize>) -> String {
    let row = |check: &Check| {
        let (style, level) = (style(check.level), word(check.level));
        let tip = check.tip.as_deref().map(|tip| format!("\n{GOOD}tip:{GOOD:#} {}", clean_line(tip)));
        let message = format!("{}{}", clean_line(&check.message), tip.unwrap_or_default());
        vec![format!("{style}{level:<4}{style:#}"), check.name.to_owned(), message]
    };
    let rows: Vec<_> = checks.iter().map(row).collect();
    let of = |level| count(checks, level);
    let totals = format!(
        "{} checks: {} ok, {} with a warning, {} failed, {} skipped",
        checks.len(),
        of(Level::Ok),
        of(Level::Warn),
        of(Level::Fail),
        of(Level::Skip)
    );
    format!("{}{}\n", table::grid(&[], &rows, 2, width), wrap(&totals, width, 0))
}

fn count(checks: &[Check], level: Level) -> usize {
    checks.iter().filter(|check| check.level == level).count()
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Warn => "warn",
        Level::Fail => "fail",
        Level::Skip => "skip",
    }
}

fn style(level: Level) -> Style {
    match level {
        Level::Ok => GOOD,
        Level::Warn => BUSY,
        Level::Fail => BAD,
        Level::Skip => FAINT,
    }
}
