//! Installing agents from the npm registry and from PyPI, below the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use super::candidate::{Candidate, Package};
use crate::workspace::Workspace;

/// Agents want a newer Node than systems have; this package carries one.
const NODE: &str = "node@22";

/// An agent that is there.
pub(super) struct Installed {
    /// The folder of its program, and of the Node that it runs on.
    pub(super) programs: PathBuf,
    pub(super) version: String,
}

impl Installed {
    /// Finds an agent, or installs it; otherwise why it is not there.
    pub(super) fn find(
        workspace: &Workspace,
        place: &Path,
        candidate: &Candidate,
        install: bool,
    ) -> Result<Result<Self, String>> {
        let folder = place.join("packages").join(candidate.name);
        let stamp = folder.join("installed");
        let (Package::Npm(wanted) | Package::Pip(wanted)) = candidate.package;
        if fs::read_to_string(&stamp).ok().as_deref() != Some(wanted) {
            if !install {
                let name = candidate.name;
                return Ok(Err(format!("not installed; `cargo xtask agents {name} --install` does that")));
            }
            fs::create_dir_all(&folder)?;
            if let Err(error) = fetch(workspace, &folder, candidate.package) {
                return Ok(Err(format!("its registry was not reachable, or refused: {error:#}")));
            }
            fs::write(&stamp, wanted)?;
        }
        let programs = match candidate.package {
            Package::Npm(_) => folder.join("node_modules").join(".bin"),
            Package::Pip(_) => folder.join("bin"),
        };
        let program = programs.join(candidate.program);
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let shown = Command::new(&program).arg("--version").env("PATH", path).env("HOME", &folder).output();
        let version = shown.ok().filter(|shown| shown.status.success());
        Ok(version
            .map(|shown| Self { programs, version: version_in(&String::from_utf8_lossy(&shown.stdout)) })
            .ok_or_else(|| format!("`{}` does not run", program.display())))
    }
}

fn fetch(workspace: &Workspace, folder: &Path, package: Package) -> Result<()> {
    let prefix = folder.display().to_string();
    match package {
        Package::Npm(wanted) => {
            let args = [
                "install",
                "--no-audit",
                "--no-fund",
                "--loglevel",
                "error",
                "--prefix",
                &prefix,
                NODE,
                wanted,
            ];
            workspace.run_with_env("npm", &args, &[])
        }
        Package::Pip(wanted) => {
            workspace.run_with_env("python3", &["-m", "venv", &prefix], &[])?;
            let pip = format!("{prefix}/bin/pip");
            workspace.run_with_env(&pip, &["install", "--quiet", wanted], &[])
        }
    }
}

/// The first word that looks like a version.
fn version_in(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    let is_version = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    words.clone().find(is_version).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_say_their_version_in_many_ways() {
        for (said, version) in [
            ("2.1.326 (Claude Code)", "2.1.326"),
            ("codex-cli 0.169.0\n", "0.169.0"),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update'", "1.0.102"),
            ("Hermes Agent v0.19.0 (2026.7.20)", "0.19.0"),
            ("none", "unknown"),
        ] {
            assert_eq!(version_in(said), version);
        }
    }
}
