//! The table of what was seen, for the terminal and for the documentation.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use fs_err as fs;

use super::candidate::CANDIDATES;
use super::trial::{Outcome, Row, Trial};
use crate::workspace::Workspace;

const PAGE: &str = "docs/agents.md";
const BEGIN: &str = "<!-- made by `cargo xtask agents --write` -->";
const END: &str = "<!-- end -->";

/// A row for each agent, a column for each trial.
pub(super) fn table(rows: &[Row]) -> String {
    merged("", rows)
}

/// An older table with what was seen now. What was not tried now stays as it was.
fn merged(older: &str, rows: &[Row]) -> String {
    let names: Vec<_> = Trial::ALL.iter().map(|trial| trial.name()).collect();
    let mut table = format!("| agent | version | {} |\n| --- | --- |", names.join(" | "));
    table.push_str(&" --- |".repeat(names.len()));
    for candidate in CANDIDATES {
        let begin = format!("| {} |", candidate.name);
        let before = older.lines().find(|line| line.starts_with(&begin));
        let Some(row) = rows.iter().find(|row| row.name == candidate.name) else {
            table.extend(before.map(|line| format!("\n{line}")));
            continue;
        };
        let _ = write!(table, "\n{begin} {} |", row.version);
        let cells: Vec<_> = before.into_iter().flat_map(|line| line.split(" | ").skip(2)).collect();
        for (n, result) in row.results.iter().enumerate() {
            let cell = match result {
                Outcome::Passed(seen) => *seen,
                Outcome::Failed => "**no**",
                Outcome::NotTried(why) => &format!("not tried: {why}"),
                Outcome::NotAsked => cells.get(n).map_or("-", |cell| cell.trim_end_matches(" |")),
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
    let (older, after) = rest.split_once(END).with_context(|| format!("{PAGE} has no `{END}`"))?;
    let date = workspace.capture("date", &["+%Y-%m-%d"])?;
    let made =
        format!("{before}{BEGIN}\n\nLinux, {}\n\n{}\n\n{END}{after}", date.trim(), merged(older, rows));
    Ok(fs::write(path, made)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_tried_now_stays_as_it_was() {
        let row = |first, rest: fn() -> Outcome| {
            let results = std::iter::once(first).chain(std::iter::repeat_with(rest));
            Row { name: "codex", version: "1".into(), results: results.take(Trial::ALL.len()).collect() }
        };
        let older = table(&[row(Outcome::Failed, || Outcome::Passed("waits"))]);
        let newer = merged(&older, &[row(Outcome::Passed("yes"), || Outcome::NotAsked)]);
        assert_eq!(newer, table(&[row(Outcome::Passed("yes"), || Outcome::Passed("waits"))]));
        assert_eq!(merged(&older, &[]), older);
    }
}
