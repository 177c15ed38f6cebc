//! The `slim` step: the smallest program (docs/decisions/0016-a-program-under-3-mb.md) stays below its limit and works.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::Workspace;

/// What the program may weigh on x86-64 Linux, in bytes. docs/cost.md says what is in it.
const MOST: u64 = 3_000_000;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let what = [
        "--profile",
        "slim",
        "--no-default-features",
        "--features",
        "info-only",
        "--package",
        "hearback-cli",
    ];
    workspace.cargo(&[&["build", "--config", ".cargo/slim.toml"], &what[..]].concat())?;
    let folder = workspace.target_directory()?.join("slim");
    let program = folder.join(format!("hearback{}", std::env::consts::EXE_SUFFIX));
    let size = fs_err::metadata(&program)?.len();
    println!("slim program: {:.2} MB", size as f64 / 1e6);
    // The flags are those of one target, and the limit with them.
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        check(size)?;
    }
    let home = folder.join(format!("trial.{}", std::process::id()));
    let tried = try_out(&program, &home);
    let _ = fs_err::remove_dir_all(&home);
    tried
}

fn check(size: u64) -> Result<()> {
    if size > MOST {
        bail!(
            "the slim program has {size} bytes, and {MOST} is the limit: see docs/cost.md for what is in it"
        );
    }
    Ok(())
}

/// Whether the program does what it is for: a job that ends and is heard of, and one that is killed.
pub(crate) fn try_out(program: &Path, home: &Path) -> Result<()> {
    let run = |words: &[&str], code: i32| {
        let mut command = Command::new(program);
        command.args(words).env("HEARBACK_HOME", home).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().with_context(|| program.display().to_string())?;
        let found = output.status.code();
        ensure!(found == Some(code), "`hearback {}` exited with {found:?}, not {code}", words.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let says = |words: &[&str], what: &str| {
        let said = run(words, 0)?;
        ensure!(said.contains(what), "`hearback {}` does not say `{what}`: {said}", words.join(" "));
        Ok(())
    };
    run(&["launch", "--session", "trial", "--label", "ends", "--shell", "echo hello; exit 3"], 0)?;
    run(&["wait", "ends"], 3)?;
    says(&["logs", "ends"], "hello")?;
    says(&["followups", "--session", "trial"], "ends")?;
    says(&["followups", "next", "--session", "trial"], "hello")?;
    run(&["launch", "--label", "stays", "--shell", "sleep 600"], 0)?;
    says(&["list", "--state", "running"], "stays")?;
    run(&["kill", "stays"], 0)?;
    says(&["list", "--outcome", "killed"], "stays")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_above_the_limit_fails() {
        assert!(check(MOST).is_ok() && check(MOST + 1).is_err());
    }
}
