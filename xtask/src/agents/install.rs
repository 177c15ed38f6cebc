//! Installing agents from the npm registry, below the target folder.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use super::candidate::Candidate;
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
        let programs = folder.join("node_modules").join(".bin");
        let program = programs.join(candidate.program);
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).ok().as_deref() != Some(candidate.package) {
            if !install {
                let name = candidate.name;
                return Ok(Err(format!("not installed; `cargo xtask agents {name} --install` does that")));
            }
            fs::create_dir_all(&folder)?;
            let prefix = folder.display().to_string();
            let install =
                ["install", "--no-audit", "--no-fund", "--prefix", &prefix, NODE, candidate.package];
            if let Err(error) = workspace.run_with_env("npm", &install, &[]) {
                return Ok(Err(format!("the npm registry was not reachable, or refused: {error:#}")));
            }
            fs::write(&stamp, candidate.package)?;
        }
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let shown = std::process::Command::new(&program).arg("--version").env("PATH", path).output();
        let version = shown.ok().filter(|shown| shown.status.success()).map(|shown| {
            let text = String::from_utf8_lossy(&shown.stdout).into_owned();
            let is_version = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
            text.split_whitespace().find(is_version).unwrap_or("unknown").to_owned()
        });
        Ok(version
            .map(|version| Self { programs, version })
            .ok_or_else(|| format!("`{}` does not run", program.display())))
    }
}
