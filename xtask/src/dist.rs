//! The `dist` task: what a package of hearback holds, in `target/dist`: the program, man pages, completions, licences.

use anyhow::{Context, Result};
use fs_err as fs;

use crate::workspace::Workspace;

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

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let target = workspace.target_directory()?;
    let dist = target.join("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist)?;
    }
    let (man, completions) = (dist.join("man"), dist.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;

    // The pages come from a build of their own, so that the program need not know how to write them.
    workspace.cargo(&["build", "--package", "hearback-cli", "--features", "man"])?;
    let writer = target.join("debug").join(format!("hearback{}", std::env::consts::EXE_SUFFIX));
    let folder = man.to_str().context("the target directory is not Unicode")?;
    workspace.capture(writer.to_str().context("the target directory is not Unicode")?, &["__man", folder])?;

    workspace.cargo(&["build", "--package", "hearback-cli", "--release"])?;
    let name = format!("hearback{}", std::env::consts::EXE_SUFFIX);
    let program = dist.join(&name);
    fs::copy(target.join("release").join(&name), &program)?;
    let program = program.to_str().context("the target directory is not Unicode")?;
    for (shell, file) in COMPLETIONS {
        fs::write(completions.join(file), workspace.capture(program, &["completions", shell])?)?;
    }
    for licence in LICENCES {
        fs::copy(workspace.root().join(licence), dist.join(licence))?;
    }
    println!("wrote {}", dist.display());
    Ok(())
}
