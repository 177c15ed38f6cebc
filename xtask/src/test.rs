//! The `test` step: build the programs that end-to-end tests start, then run every test but the doctests.

use anyhow::Result;

use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace, extra: &[String]) -> Result<()> {
    // Cargo builds a program for the tests of its own package only, and ours are started from another one.
    workspace.cargo(&["build", "--workspace", "--bins", "--all-features"])?;
    let nextest = workspace.works("cargo", &["nextest", "--version"]);
    if !nextest {
        eprintln!("cargo-nextest is not installed: `cargo test` runs the same tests, more slowly");
    }
    workspace.cargo(&runner_args(nextest, extra))
}

/// Doctests are left out on both roads: nextest cannot run them, and the `doctest` step does.
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
