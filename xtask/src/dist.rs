//! The `dist` task: everything that a release consists of, in `target/dist`.
//!
//! `hearback-VERSION-TARGET/` holds the program, man pages, completions and licences, and `.tar.gz` beside it the same;
//! `packages/` holds the packages for other languages, which carry that program; `SHA256SUMS` has the sum of each file
//! to be published. The program and each package are tried: the packages in an environment that was empty before.

mod elf;
mod install;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use sha2::{Digest, Sha256};

use crate::workspace::Workspace;
use crate::{slim, targets};

/// What has to be passed on with the program.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The shells for which there are completions, with the names that they expect.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "hearback"),
    ("zsh", "_hearback"),
    ("fish", "hearback.fish"),
    ("elvish", "hearback.elv"),
    ("powershell", "hearback.ps1"),
];

const SUMS: &str = "SHA256SUMS";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let dist = workspace.target_directory()?.join("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist)?;
    }
    let target = target(workspace)?;
    let name = name(env!("CARGO_PKG_VERSION"), &target);
    let folder = dist.join(&name);
    fs::create_dir_all(&folder)?;
    let program = build(workspace, &target, &folder)?;
    write_pages(workspace, &program, &folder)?;
    for file in LICENCES {
        fs::copy(workspace.root().join(file), folder.join(file))?;
    }
    try_out(&program, &dist)?;
    let archive = format!("{name}.tar.gz");
    workspace.capture("tar", &["-C", text(&dist)?, "-czf", text(&dist.join(&archive))?, &name])?;

    let mut files = vec![PathBuf::from(archive)];
    files.extend(install::packages(workspace, &program, &dist)?);
    write_sums(&dist, &files)?;
    println!("wrote {}", dist.display());
    Ok(())
}

/// The name of what is released for one target. `[package.metadata.binstall]` of the program has it, too.
fn name(version: &str, target: &str) -> String {
    format!("hearback-{version}-{target}")
}

/// What the program is built for. On Linux, with musl: the program then needs no library of the system, so that it runs
/// on every distribution.
fn target(workspace: &Workspace) -> Result<String> {
    if cfg!(target_os = "linux") {
        return Ok(format!("{}-unknown-linux-musl", std::env::consts::ARCH));
    }
    Ok(workspace.capture("rustc", &["--print", "host-tuple"])?.trim().to_owned())
}

/// Builds the program and puts it into `folder`.
fn build(workspace: &Workspace, target: &str, folder: &Path) -> Result<PathBuf> {
    targets::ensure_installed(workspace, target)?;
    // The cryptography of webhooks is C.
    let needs_musl = target.ends_with("-musl") && !workspace.works("musl-gcc", &["--version"]);
    ensure!(!needs_musl, "`musl-gcc` is missing: `apt-get install musl-tools` adds it");
    workspace.cargo(&["build", "--package", "hearback-cli", "--release", "--target", target])?;
    let file = format!("hearback{}", std::env::consts::EXE_SUFFIX);
    let program = folder.join(&file);
    fs::copy(workspace.target_directory()?.join(target).join("release").join(file), &program)?;
    if target.ends_with("-musl") {
        ensure!(elf::is_static(&fs::read(&program)?)?, "{} needs a dynamic linker", program.display());
    }
    println!("program for {target}: {:.2} MB", fs::metadata(&program)?.len() as f64 / 1e6);
    Ok(program)
}

fn write_pages(workspace: &Workspace, program: &Path, folder: &Path) -> Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    // The pages come from a build of their own, so that the program need not know how to write them.
    workspace.cargo(&["build", "--package", "hearback-cli", "--features", "man"])?;
    let writer = format!("hearback{}", std::env::consts::EXE_SUFFIX);
    let writer = workspace.target_directory()?.join("debug").join(writer);
    workspace.capture(text(&writer)?, &["__man", text(&man)?])?;
    for (shell, file) in COMPLETIONS {
        fs::write(completions.join(file), workspace.capture(text(program)?, &["completions", shell])?)?;
    }
    Ok(())
}

/// Runs jobs with the program, in a store that is removed afterwards.
fn try_out(program: &Path, dist: &Path) -> Result<()> {
    let home = dist.join("trial");
    let tried = slim::try_out(program, &home);
    fs::remove_dir_all(&home)?;
    tried
}

/// Writes the sums of files in `dist`, as `sha256sum --check` reads them.
fn write_sums(dist: &Path, files: &[PathBuf]) -> Result<()> {
    let mut sums = String::new();
    for file in files {
        let sum = Sha256::digest(fs::read(dist.join(file))?);
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        sums += &format!("{sum}  {}\n", text(file)?);
    }
    Ok(fs::write(dist.join(SUMS), sums)?)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the target directory is not Unicode")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cargo binstall` makes of a template.
    fn filled(template: &str) -> String {
        let (version, target) = ("1.2.3", "x86_64-unknown-linux-musl");
        let names = [("repo", "R"), ("version", version), ("target", target), ("bin", "hearback")];
        let mut text = template.replace("{ archive-suffix }", ".tar.gz").replace("{ binary-ext }", "");
        for (name, value) in names {
            text = text.replace(&format!("{{ {name} }}"), value);
        }
        text
    }

    #[test]
    fn binstall_finds_what_dist_writes() {
        let metadata = cargo_metadata::MetadataCommand::new()
            .no_deps()
            .current_dir(Workspace::locate().root())
            .exec()
            .unwrap();
        let program = metadata.packages.iter().find(|package| package.name == "hearback-cli").unwrap();
        let binstall = &program.metadata["binstall"];
        let name = name("1.2.3", "x86_64-unknown-linux-musl");
        let get = |key: &str| filled(binstall[key].as_str().unwrap());
        assert_eq!(get("pkg-url"), format!("R/releases/download/v1.2.3/{name}.tar.gz"));
        assert_eq!(get("bin-dir"), format!("{name}/hearback"));
        assert_eq!(binstall["pkg-fmt"], "tgz");
    }

    #[test]
    fn sums_are_those_that_sha256sum_checks() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        write_sums(folder.path(), &["a".into()]).unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n";
        assert_eq!(fs::read_to_string(folder.path().join(SUMS)).unwrap(), sum);
    }
}
