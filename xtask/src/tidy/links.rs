//! Every relative link in a Markdown file leads to a file that is part of the repository.

use std::collections::BTreeSet;

use super::finding::Finding;

/// Refuses links to files that are not among `files`, the paths of the repository from its root.
pub(crate) fn check(path: &str, text: &str, files: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (line, text) in (1..).zip(text.lines()) {
        let trimmed = text.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        for target in targets(&without_code_spans(text)).into_iter().filter(|target| is_relative(target)) {
            if !resolve(path, target).is_some_and(|linked| exists(&linked, files)) {
                let message =
                    format!("the link to `{target}` leads nowhere: a reader would meet a missing page");
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    findings
}

/// `a[0](b)` in code is not a link. What is between backticks goes, and the rest stays.
fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The targets of `[text](target)`, of `![text](target "title")` and of `[name]: target`.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|after| after.split(')').next());
    let definition = line
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
        // A footnote is defined the same way, and holds prose. A definition's name holds no bracket.
        .filter(|(name, _)| !name.starts_with('^') && !name.contains(']'))
        .map(|(_, target)| target);
    inline
        .chain(definition)
        .filter_map(|target| target.split_whitespace().next())
        .map(|target| target.trim_start_matches('<').trim_end_matches('>'))
        .collect()
}

fn is_relative(target: &str) -> bool {
    let has_scheme = target.contains("://") || target.starts_with("mailto:");
    !has_scheme && !target.starts_with('#') && !target.is_empty()
}

/// The path from the root of the repository, or `None` if the link climbs out of it.
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    // Hosts that render Markdown read a leading slash as the root of the repository.
    let mut parts: Vec<&str> = if target.starts_with('/') { Vec::new() } else { from.split('/').collect() };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Directories exist as far as files in them do; the root always does.
fn exists(path: &str, files: &BTreeSet<String>) -> bool {
    let inside = format!("{path}/");
    path.is_empty() || files.contains(path) || files.iter().any(|file| file.starts_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines_of;
    use super::*;

    fn check_at(path: &str, text: &str) -> Vec<usize> {
        let files = ["README.md", "docs/storage.md", "docs/decisions/0001-facts.md"];
        let files = files.iter().map(|file| file.to_string()).collect();
        lines_of(&check(path, text, &files))
    }

    #[test]
    fn links_are_resolved_from_their_own_file() {
        assert_eq!(
            check_at("README.md", "[a](docs/storage.md), ![b](<docs/> \"c\") and [d](storage.md)"),
            [1]
        );
        assert_eq!(
            check_at("docs/storage.md", "[a](storage.md)\n[b](../README.md#c)\n[d](/README.md)"),
            [0; 0]
        );
        assert_eq!(check_at("docs/storage.md", "[a](docs/storage.md)\n[b](../../README.md)"), [1, 2]);
    }

    #[test]
    fn reference_definitions_are_links_and_footnotes_are_not() {
        assert_eq!(check_at("README.md", "[a]: docs/storage.md\n[b]: gone.md\n[^1]: gone.md\n"), [2]);
    }

    #[test]
    fn other_places_and_code_are_left_alone() {
        let text =
            "[a](https://example.org/x) [b](#here) [c](mailto:a@example.org)\n`a[0](b)`\n```\n[d](e)\n```\n";
        assert_eq!(check_at("README.md", text), [0; 0]);
        assert_eq!(check_at("README.md", &format!("{text}[f](g)\n")), [6]);
        assert_eq!(check_at("README.md", "[`code`](gone.md)"), [1]);
    }
}
