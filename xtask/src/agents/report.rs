//! The table of what was seen, for the terminal and for the documentation.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use fs_err as fs;

use super::trial::{Outcome, Row, Trial};
use crate::workspace::Workspace;

const PAGE: &str = "docs/agents.md";
const BEGIN: &str = "<!-- made by `cargo xtask agents --write` -->";
const END: &str = "<!-- end -->";

/// A row for each agent, a column for each trial.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = "| agent | version |".to_owned();
    for trial in Trial::ALL {
        let _ = write!(table, " {} |", trial.name());
    }
    table.push_str("\n| --- | --- |");
    table.push_str(&" --- |".repeat(Trial::ALL.len()));
    for row in rows {
        let _ = write!(table, "\n| {} | {} |", row.name, row.version);
        for result in &row.results {
            let cell = match result {
                Outcome::Passed(seen) => (*seen).to_owned(),
                Outcome::Failed => "**no**".to_owned(),
                Outcome::NotTried(why) => format!("not tried: {why}"),
            };
            let _ = write!(table, " {cell} |");
        }
    }
    table
}

/// Puts the table into its place in the documentation.
pub(super) fn write(workspace: &Workspace, rows: &[Row]) -> Result<()> {
    let path = workspace.root().join(PAGE);
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no `{BEGIN}`"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PAGE} has no `{END}`"))?;
    let date = workspace.capture("date", &["+%Y-%m-%d"])?;
    let made = format!("{before}{BEGIN}\n\nLinux, {}\n\n{}\n\n{END}{after}", date.trim(), table(rows));
    Ok(fs::write(path, made)?)
}
