//! One broken rule at one place.

use std::fmt;

/// Shown as `path:line: what is wrong, and why the rule exists`, which editors can jump to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    message: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }

    #[cfg(test)]
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// The lines of `findings`: most tests of a rule ask only where it fired.
#[cfg(test)]
pub(crate) fn lines_of(findings: &[Finding]) -> Vec<usize> {
    findings.iter().map(Finding::line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_starts_with_its_place() {
        let finding = Finding::new("xtask/src/main.rs", 7, "too wide, so it wraps in a review");
        assert_eq!(finding.to_string(), "xtask/src/main.rs:7: too wide, so it wraps in a review");
    }
}
