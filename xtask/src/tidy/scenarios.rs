//! `docs/behaviour.md` and the tests agree on which scenarios are proved.
//!
//! A row reads ``| 27 | done | what happens | `scenario_27_name` |``, or `| 12 | planned | what happens | |`. A
//! claim that no test backs, and a test that no claim mentions, are both findings.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::rust_file::{RustFile, find_word, is_word_char};

pub(crate) const TABLE: &str = "docs/behaviour.md";

const PREFIX: &str = "scenario_";

/// A function that the tree defines, and where.
pub(crate) struct Function {
    path: String,
    line: usize,
    name: String,
}

/// Every function the file defines; a row may list tests whose names do not start with `scenario_` as well.
pub(crate) fn functions(file: &RustFile<'_>) -> Vec<Function> {
    find_word(&file.code, "fn")
        .map(|at| Function {
            path: file.path.to_owned(),
            line: file.line_at(at),
            name: file.code[at + 2..].trim_start().chars().take_while(|c| is_word_char(*c)).collect(),
        })
        .filter(|function| !function.name.is_empty())
        .collect()
}

/// Compares the table with the functions of the whole tree.
pub(crate) fn check(table: Option<&str>, functions: &[Function]) -> Vec<Finding> {
    let Some(table) = table else {
        let message =
            "the file is missing: it is the list of what hearback promises, and of the tests that prove it";
        return vec![Finding::new(TABLE, 1, message)];
    };
    let mut findings = Vec::new();
    let mut rows: BTreeMap<u32, Row<'_>> = BTreeMap::new();
    for (line, text) in (1..).zip(table.lines()) {
        match Row::parse(line, text) {
            None => {}
            Some(Err(message)) => findings.push(Finding::new(TABLE, line, message)),
            Some(Ok(row)) => {
                findings.extend(against_functions(&row, functions));
                if let Some(first) = rows.get(&row.number) {
                    let message = format!(
                        "scenario {} is on line {} already: a number names one promise",
                        row.number, first.line
                    );
                    findings.push(Finding::new(TABLE, line, message));
                } else {
                    rows.insert(row.number, row);
                }
            }
        }
    }
    let scenarios = functions.iter().filter(|function| function.name.starts_with(PREFIX));
    findings.extend(scenarios.filter_map(|function| against_rows(function, &rows)));
    findings
}

struct Row<'a> {
    line: usize,
    number: u32,
    done: bool,
    tests: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// `None` for a line that is no row of a scenario, such as prose or the table's head.
    fn parse(line: usize, text: &'a str) -> Option<Result<Self, String>> {
        let inside = text.trim().strip_prefix('|')?;
        let number = inside.split('|').next()?.trim().parse().ok()?;
        let mut cells = cells(inside.strip_suffix('|').unwrap_or(inside));
        let last = cells.pop().unwrap_or_default();
        let done = match cells[..] {
            [_, "done", _] => true,
            [_, "planned", _] => false,
            _ => {
                return Some(Err(
                    "not `| number | done or planned | text | tests |`: tidy cannot read it".into()
                ));
            }
        };
        Some(Ok(Self { line, number, done, tests: last.split('`').skip(1).step_by(2).collect() }))
    }
}

/// Splits a row at the bars that no backslash escapes.
fn cells(row: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let mut start = 0;
    for (at, _) in row.match_indices('|').filter(|(at, _)| !row[..*at].ends_with('\\')) {
        cells.push(row[start..at].trim());
        start = at + 1;
    }
    cells.push(row[start..].trim());
    cells
}

/// What a row claims and the tree does not hold.
fn against_functions(row: &Row<'_>, functions: &[Function]) -> Vec<Finding> {
    let exists = |name: &str| functions.iter().any(|function| function.name == name);
    let missing = row.tests.iter().filter(|test| !exists(test));
    let mut findings: Vec<Finding> = missing
        .map(|test| {
            let message = format!("there is no test `{test}`: a row may list only what can be run");
            Finding::new(TABLE, row.line, message)
        })
        .collect();
    let own = format!("{PREFIX}{}_", row.number);
    if row.done && !row.tests.iter().any(|test| test.starts_with(&own)) {
        let message = format!(
            "scenario {} is marked done but lists no test `{own}…`: a promise without a test is a hope",
            row.number
        );
        findings.push(Finding::new(TABLE, row.line, message));
    }
    findings
}

/// Why a scenario's test does not agree with the table, if it does not.
fn against_rows(function: &Function, rows: &BTreeMap<u32, Row<'_>>) -> Option<Finding> {
    let name = function.name.as_str();
    let number = name[PREFIX.len()..].split_once('_').and_then(|(number, _)| number.parse::<u32>().ok());
    let message = match number.map(|number| (number, rows.get(&number))) {
        None => format!("`{name}` is not `{PREFIX}<number>_<what happens>`, so no row can be found for it"),
        Some((number, None)) => {
            format!("`{name}` has no row {number} in {TABLE}, which lists what is proved")
        }
        Some((number, Some(row))) if !row.done => {
            format!("`{name}` exists, but {TABLE} marks scenario {number} planned: readers trust that table")
        }
        Some((number, Some(row))) if !row.tests.contains(&name) => {
            format!("row {number} of {TABLE} does not list `{name}`: a reader could not find the proof")
        }
        Some(_) => return None,
    };
    Some(Finding::new(&function.path, function.line, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| # | status | what happens | tests |\n| --- | --- | --- | --- |\n";

    fn check_table(rows: &str, code: &str) -> Vec<String> {
        let functions = functions(&RustFile::new("tests/tests/e2e/a.rs", code));
        let findings = check(Some(&format!("{HEAD}{rows}\n")), &functions);
        findings.iter().map(Finding::to_string).collect()
    }

    #[track_caller]
    fn assert_one(findings: &[String], start: &str, part: &str) {
        assert!(
            findings.len() == 1 && findings[0].starts_with(start) && findings[0].contains(part),
            "{findings:#?}"
        );
    }

    #[test]
    fn a_table_that_agrees_is_fine() {
        let rows =
            "| 2 | done | `a \\| b` works | `scenario_2_pipe`, `plan_is_pure` |\n| 12 | planned | later | |";
        let code = "fn scenario_2_pipe() {}\nfn plan_is_pure() {}\n// fn scenario_3_gone() {}\n";
        assert_eq!(check_table(rows, code), [""; 0]);
    }

    #[test]
    fn a_missing_table_is_a_finding() {
        assert!(check(None, &[])[0].to_string().starts_with("docs/behaviour.md:1: the file is missing"));
    }

    #[test]
    fn a_claim_needs_its_own_test() {
        assert_one(&check_table("| 2 | done | a | |", ""), "docs/behaviour.md:3: ", "lists no test");
        let other = check_table("| 2 | done | a | `plan_is_pure` |", "fn plan_is_pure() {}");
        assert_one(&other, "docs/behaviour.md:3: ", "lists no test `scenario_2_…`");
        let gone = check_table("| 2 | done | a | `scenario_2_a` |", "");
        assert_one(&gone, "docs/behaviour.md:3: ", "there is no test `scenario_2_a`");
    }

    #[test]
    fn a_test_needs_its_row() {
        let code = "\nfn scenario_2_a() {}\n";
        assert_one(&check_table("", code), "tests/tests/e2e/a.rs:2: ", "has no row 2");
        assert_one(&check_table("| 2 | planned | a | |", code), "tests/tests/e2e/a.rs:2: ", "planned");
        let unlisted =
            check_table("| 2 | done | a | `scenario_2_b` |", "fn scenario_2_b() {}\nfn scenario_2_a() {}");
        assert_one(&unlisted, "tests/tests/e2e/a.rs:2: ", "does not list `scenario_2_a`");
        assert_one(
            &check_table("", "fn scenario_two() {}"),
            "tests/tests/e2e/a.rs:1: ",
            "is not `scenario_<number>_",
        );
    }

    #[test]
    fn a_number_is_used_once_and_a_row_has_one_shape() {
        let twice = check_table("| 2 | planned | a | |\n| 2 | planned | b | |", "");
        assert_one(&twice, "docs/behaviour.md:4: ", "is on line 3 already");
        assert_one(&check_table("| 2 | almost | a | |", ""), "docs/behaviour.md:3: ", "done or planned");
        assert_one(&check_table("| 2 | done | a |", ""), "docs/behaviour.md:3: ", "done or planned");
    }
}
