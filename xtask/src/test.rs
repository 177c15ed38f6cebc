//! The `test` step: every test but the doctests.

use anyhow::Result;

use crate::skips::Skips;
use crate::workspace::Workspace;

/// Builds hearback and the fixture programs for this machine.
pub(crate) const PROGRAMS: [&str; 4] = ["build", "--workspace", "--bins", "--all-features"];

pub(crate) fn run(workspace: &Workspace, extra: &[String]) -> Result<()> {
    // Cargo does not build it for the tests of one package alone: those would start an older program.
    workspace.cargo(&PROGRAMS)?;
    let nextest = workspace.works("cargo", &["nextest", "--version"]);
    if !nextest {
        eprintln!("cargo-nextest is not installed: `cargo test` runs the same tests, more slowly");
    }
    let list = workspace.target_directory()?.join("skipped-tests");
    let skips = Skips::begin(list.clone(), list.display().to_string())?;
    let tested = workspace.cargo_with_env(&runner_args(nextest, extra), &[skips.variable()]);
    skips.tell()?;
    tested
}

/// Doctests are left out with both runners: nextest cannot run them, and the `doctest` step does.
fn runner_args(nextest: bool, extra: &[String]) -> Vec<&str> {
    let runner: &[&str] = if nextest {
        &["nextest", "run", "--workspace", "--all-features"]
    } else {
        &["test", "--workspace", "--all-features", "--lib", "--bins", "--tests"]
    };
    runner.iter().copied().chain(extra.iter().map(String::as_str)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_is_given_the_extra_arguments() {
        let extra = ["kill".to_owned()];
        assert_eq!(runner_args(true, &extra), ["nextest", "run", "--workspace", "--all-features", "kill"]);
    }

    #[test]
    fn without_nextest_cargo_runs_the_same_tests() {
        assert_eq!(
            runner_args(false, &[]),
            ["test", "--workspace", "--all-features", "--lib", "--bins", "--tests"]
        );
    }
}
