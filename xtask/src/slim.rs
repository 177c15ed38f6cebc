//! The `slim` step: the smallest program (`--profile slim --no-default-features`) stays below its limit.

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// What the program may weigh, in bytes. docs/cost.md says what is in it.
const MOST: u64 = 4_200_000;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let words = ["build", "--profile", "slim", "--no-default-features", "--package", "hearback-cli"];
    workspace.cargo(&words)?;
    let name = format!("slim/hearback{}", std::env::consts::EXE_SUFFIX);
    let program = workspace.target_directory()?.join(name);
    let size = std::fs::metadata(&program).with_context(|| program.display().to_string())?.len();
    println!("slim program: {:.2} MB", size as f64 / 1e6);
    check(size)
}

fn check(size: u64) -> Result<()> {
    if size > MOST {
        bail!(
            "the slim program has {size} bytes, and {MOST} is the limit: see docs/cost.md for what is in it"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_above_the_limit_fails() {
        assert!(check(MOST).is_ok() && check(MOST + 1).is_err());
    }
}
