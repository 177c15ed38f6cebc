//! The packages for other languages: each is built around the program, installed where nothing was before, and runs a
//! job from there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::text;
use crate::workspace::Workspace;

/// A package under `packages/`.
struct Package {
    name: &'static str,
    /// Builds it: what runs the script, and the script. It gets the program and the folder for the result.
    build: [&'static str; 2],
    /// Installs the files `{files}` into `{place}`, which is empty.
    install: &'static [&'static [&'static str]],
    /// The name of the script in `{place}` that runs a job in the store that its argument names, and its text.
    job: (&'static str, &'static str),
    /// Runs the script.
    run: &'static [&'static str],
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "python",
        build: ["python3", "packages/python/build.py"],
        install: &[
            &["python3", "-m", "venv", "{place}/venv"],
            // Without an index: a package that needs another one would not install.
            &["{place}/venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "{files}"],
        ],
        job: ("job.py", include_str!("job.py")),
        run: &["{place}/venv/bin/python", "job.py"],
    },
    Package {
        name: "typescript",
        build: ["node", "packages/typescript/build.mjs"],
        install: &[
            &["npm", "init", "--yes", "--init-type", "module"],
            &["npm", "install", "--offline", "--no-audit", "--no-fund", "{files}"],
        ],
        job: ("job.mjs", include_str!("job.mjs")),
        run: &["node", "job.mjs"],
    },
];

/// Builds and tries all packages. Returns their files, relative to `dist`.
pub(super) fn packages(workspace: &Workspace, program: &Path, dist: &Path) -> Result<Vec<PathBuf>> {
    let mut published = Vec::new();
    for package in &PACKAGES {
        let files = package
            .make(workspace, program, dist)
            .with_context(|| format!("the package `{}` does not work", package.name))?;
        println!("package {}: installed, and ran a job", package.name);
        published.extend(files);
    }
    Ok(published)
}

impl Package {
    /// Builds, installs and tries it. Returns its files, relative to `dist`.
    fn make(&self, workspace: &Workspace, program: &Path, dist: &Path) -> Result<Vec<PathBuf>> {
        let out = dist.join("packages").join(self.name);
        fs::create_dir_all(&out)?;
        let [runner, script] = self.build;
        workspace.capture(runner, &[script, text(program)?, text(&out)?])?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&out)? {
            files.push(entry?.path());
        }
        files.sort();
        ensure!(!files.is_empty(), "`{runner} {script}` wrote nothing to {}", out.display());

        // Outside of the workspace: what lies in a folder above could be found by mistake.
        let place = std::env::temp_dir().join(format!("hearback-dist-{}-{}", self.name, std::process::id()));
        fs::create_dir(&place)?;
        let tried = self.try_in(&place, &files);
        fs::remove_dir_all(&place)?;
        tried?;
        let relative = |file: PathBuf| Ok(file.strip_prefix(dist)?.to_owned());
        files.into_iter().map(relative).collect()
    }

    fn try_in(&self, place: &Path, files: &[PathBuf]) -> Result<()> {
        let run = |words: &[&str], more: &[&str]| -> Result<()> {
            let mut all = Vec::new();
            for word in words.iter().chain(more) {
                match *word {
                    "{files}" => all.extend(files.iter().map(|file| file.as_os_str().to_owned())),
                    word => all.push(word.replace("{place}", text(place)?).into()),
                }
            }
            let (first, rest) = all.split_first().context("a command is empty")?;
            let mut command = Command::new(first);
            // The program has to be that of the package, and not another that is installed here.
            command.args(rest).current_dir(place).env_remove("HEARBACK").stdin(Stdio::null());
            let output = command.output().with_context(|| format!("could not start {first:?}"))?;
            if !output.status.success() {
                let said = [output.stdout, output.stderr].concat();
                bail!("{all:?} failed with {}:\n{}", output.status, String::from_utf8_lossy(&said));
            }
            Ok(())
        };
        self.install.iter().try_for_each(|words| run(words, &[]))?;
        let (name, script) = self.job;
        fs::write(place.join(name), script)?;
        run(self.run, &["{place}/store"])
    }
}
