//! The steps of `cargo xtask ci`, in order. Cheap steps come first, so that a typo is not reported after a
//! whole test run.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{deny, features, layers, reuse, slim, targets, test, tidy, windows};

/// One check, which is also a task of its own.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The second argument is what followed the name; only the steps that run tests are ever given any.
    pub(crate) run: fn(&Workspace, &[String]) -> Result<()>,
}

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "rustfmt has nothing to change",
        run: |workspace, _| workspace.cargo(&["fmt", "--all", "--check"]),
    },
    Step { name: "tidy", about: "our own rules about files hold", run: |workspace, _| tidy::run(workspace) },
    Step {
        name: "layers",
        about: "dependencies between crates point inward",
        run: |workspace, _| layers::run(workspace),
    },
    Step {
        name: "deny",
        about: "licences, advisories and bans of dependencies hold (where cargo-deny is installed)",
        run: |workspace, _| deny::run(workspace),
    },
    Step {
        name: "clippy",
        about: "no warnings anywhere",
        run: |workspace, _| {
            workspace.cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ])
        },
    },
    Step {
        name: "features",
        about: "the library builds without the command line",
        run: |workspace, _| features::run(workspace),
    },
    Step {
        name: "test",
        about: "unit and end-to-end tests pass (`-- ARGS` go to the runner)",
        run: test::run,
    },
    Step {
        name: "doctest",
        about: "examples in the documentation run",
        run: |workspace, _| workspace.cargo(&["test", "--workspace", "--all-features", "--doc"]),
    },
    Step {
        name: "reuse",
        about: "projects outside of the workspace can use each crate alone",
        run: |workspace, _| reuse::run(workspace),
    },
    Step {
        name: "docs",
        about: "the documentation builds without warnings",
        run: |workspace, _| {
            workspace.cargo_with_env(
                &["doc", "--workspace", "--no-deps", "--all-features"],
                &[("RUSTDOCFLAGS", "-D warnings")],
            )
        },
    },
    Step {
        name: "targets",
        about: "no warnings for the other operating systems either",
        run: |workspace, _| targets::run(workspace),
    },
    Step {
        name: "slim",
        about: "the smallest program stays below its limit, and works",
        run: |workspace, _| slim::run(workspace),
    },
    Step {
        name: "windows",
        about: "the same tests pass as Windows programs, under Wine (`--install` adds it; `-- ARGS`)",
        run: windows::run,
    },
];

/// Runs every step in order, and stops at the first that fails.
///
/// Where Wine is missing, its step is skipped with a message, as tests do that lack something. In CI it is a failure.
pub(crate) fn ci(workspace: &Workspace) -> Result<()> {
    let lacking = match std::env::var_os("CI") {
        Some(_) => None,
        None => windows::obstacle(workspace),
    };
    let is_left_out = |step: &Step| lacking.is_some() && step.name == "windows";
    let steps: Vec<_> = STEPS.iter().filter(|step| !is_left_out(step)).collect();
    run_all(workspace, &steps)?;
    if let Some(why) = lacking {
        eprintln!("skipped: `windows`, the same tests as Windows programs: {why}");
    }
    Ok(())
}

fn run_all(workspace: &Workspace, steps: &[&Step]) -> Result<()> {
    let began = Instant::now();
    for (index, step) in steps.iter().enumerate() {
        eprintln!("\n=== {} ({} of {}): {} ===", step.name, index + 1, steps.len(), step.about);
        let step_began = Instant::now();
        let outcome = (step.run)(workspace, &[]);
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        eprintln!("=== {}: {verdict} in {:.1}s ===", step.name, step_began.elapsed().as_secs_f64());
        outcome.with_context(|| {
            format!("ci stopped at `{0}`; rerun this step alone with `cargo xtask {0}`", step.name)
        })?;
    }
    eprintln!("\nci passed: {} steps in {:.1}s", steps.len(), began.elapsed().as_secs_f64());
    Ok(())
}

/// The text of `cargo xtask help`.
pub(crate) fn help() -> String {
    let mut text = "Usage: cargo xtask <task>\n\nTasks:\n".to_owned();
    text +=
        &format!("  {:<9} {}\n", "ci", "run every task below in this order, stopping at the first failure");
    for step in STEPS {
        text += &format!("  {:<9} {}\n", step.name, step.about);
    }
    text += &format!(
        "  {:<9} {}\n",
        "dist", "target/dist: the static program, man pages, completions, packages, sums; not part of ci"
    );
    text += &format!(
        "  {:<9} {}\n",
        "measure",
        "what a release build costs on this machine (`monitor`, `peers`: that alone); not part of ci"
    );
    text += &format!("  {:<9} {}\n", "record", "docs/recording.svg from a real terminal; not part of ci");
    text += &format!(
        "  {:<9} {}\n",
        "semver",
        "the libraries stay compatible with the last release, or a REVISION (where cargo-semver-checks is installed)"
    );
    text += &format!(
        "  {:<9} {}\n",
        "mcp", "real MCP clients can use `hearback mcp` (`--install` adds them); not part of ci"
    );
    text += &format!(
        "  {:<9} {}\n",
        "packages",
        "the packages for other languages and their examples (`--install` adds type checkers; names); not part of ci"
    );
    text += &format!("  {:<9} {}", "help", "show this list");
    text
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn the_first_failure_stops_and_names_its_task() {
        let steps = [
            Step { name: "fine", about: "", run: |_, _| Ok(()) },
            Step { name: "broken", about: "", run: |_, _| bail!("no luck") },
            Step { name: "never", about: "", run: |_, _| panic!("ran after a failure") },
        ];
        let error = run_all(&Workspace::locate(), &steps.each_ref()).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "ci stopped at `broken`; rerun this step alone with `cargo xtask broken`: no luck"
        );
    }

    #[test]
    fn help_lists_every_step() {
        let help = help();
        assert!(STEPS.iter().all(|step| help.contains(step.about)), "{help}");
    }
}
