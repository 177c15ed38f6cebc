//! The `mcp` task: real clients of the Model Context Protocol against `hearback mcp`. They come from the npm registry
//! and from PyPI, each in a pinned version, into `target/mcp`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A package of npm, in a folder of its own.
struct Package {
    folder: &'static str,
    name: &'static str,
    version: &'static str,
}

/// Pinned, all of them: without a version, an old Node gets an old inspector, which passes and has tried nothing.
const NODE: Package = Package { folder: "node", name: "node", version: "22.23.3" };
const TYPESCRIPT_2: Package =
    Package { folder: "typescript-2", name: "@modelcontextprotocol/client", version: "2.4.0" };
const TYPESCRIPT_1: Package =
    Package { folder: "typescript-1", name: "@modelcontextprotocol/sdk", version: "1.32.2" };
const INSPECTOR: Package =
    Package { folder: "inspector", name: "@modelcontextprotocol/inspector", version: "2.12.0" };
const PACKAGES: [&Package; 4] = [&NODE, &TYPESCRIPT_2, &TYPESCRIPT_1, &INSPECTOR];
/// Folders and versions of the Python SDK.
const PYTHON_2: (&str, &str) = ("python-2", "2.3.0");
const PYTHON_1: (&str, &str) = ("python-1", "1.30.0");

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let install = match args {
        [] => false,
        [only] if only == "--install" => true,
        [other, ..] => bail!("`mcp` takes `--install`, not `{other}`"),
    };
    let place = workspace.target_directory()?.join("mcp");
    if install {
        install_all(workspace, &place)?;
    }
    for package in PACKAGES {
        check_installed(&place, package)?;
    }
    workspace.cargo(&["build", "-p", "hearback-cli", "--bin", "hearback"])?;
    let clients =
        Clients { workspace, program: text(&workspace.target_directory()?.join("debug/hearback"))?, place };
    clients.python(PYTHON_2.0, "auto")?;
    clients.python(PYTHON_2.0, "legacy")?;
    clients.python(PYTHON_1.0, "v1")?;
    clients.typescript(&TYPESCRIPT_2, "2")?;
    clients.typescript(&TYPESCRIPT_1, "1")?;
    clients.inspector()
}

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().context("a path that is not text")?.to_owned())
}

fn manifest(place: &Path, package: &Package) -> PathBuf {
    place.join(package.folder).join("node_modules").join(package.name).join("package.json")
}

/// What is there has to be the pinned version: npm takes another one if Node is too old for it.
fn check_installed(place: &Path, package: &Package) -> Result<()> {
    let path = manifest(place, package);
    let found = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "{} is not installed\ntip: `cargo xtask mcp --install` needs the npm registry and PyPI",
            package.name
        )
    })?;
    if !found.contains(&format!("\"version\": \"{}\"", package.version)) {
        bail!("{} is there in another version than {}: {}", package.name, package.version, path.display());
    }
    Ok(())
}

fn install_all(workspace: &Workspace, place: &Path) -> Result<()> {
    for package in PACKAGES {
        if check_installed(place, package).is_ok() {
            continue;
        }
        let folder = text(&place.join(package.folder))?;
        std::fs::create_dir_all(&folder)?;
        let wanted = format!("{}@{}", package.name, package.version);
        let args =
            ["install", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", &folder, &wanted];
        workspace
            .run_with_env("npm", &args, &[])
            .with_context(|| format!("{wanted} could not be installed: is the npm registry reachable?"))?;
    }
    for (folder, version) in [PYTHON_2, PYTHON_1] {
        let folder = place.join(folder);
        let python = text(&python(&folder))?;
        let wanted = format!("mcp=={version}");
        let has = "import importlib.metadata as m, sys; sys.exit(m.version('mcp') != sys.argv[1])";
        if workspace.works(&python, &["-c", has, version]) {
            continue;
        }
        workspace.run_with_env("python3", &["-m", "venv", &text(&folder)?], &[])?;
        workspace
            .run_with_env(&python, &["-m", "pip", "install", "--quiet", &wanted], &[])
            .with_context(|| format!("{wanted} could not be installed: is PyPI reachable?"))?;
    }
    Ok(())
}

fn python(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") }
}

/// The clients, and the program that they talk to.
struct Clients<'a> {
    workspace: &'a Workspace,
    program: String,
    place: PathBuf,
}

impl Clients<'_> {
    /// Runs a client in a store of its own.
    fn run(&self, name: &str, program: &Path, args: &[&str]) -> Result<()> {
        let home = text(&self.store(name)?)?;
        let env = [("HEARBACK_HOME", home.as_str()), ("HEARBACK_SESSION", "mcp-clients")];
        let ran = self.workspace.run_with_env(&text(program)?, args, &env);
        ran.with_context(|| format!("the client `{name}` is not content"))
    }

    /// An empty place for a store.
    fn store(&self, name: &str) -> Result<PathBuf> {
        let folder = self.place.join("store").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        Ok(folder.join("home"))
    }

    fn python(&self, folder: &str, mode: &str) -> Result<()> {
        let script = text(&self.workspace.root().join("tests/mcp/python.py"))?;
        self.run(
            &format!("{folder}-{mode}"),
            &python(&self.place.join(folder)),
            &[&script, &self.program, mode],
        )
    }

    fn node(&self) -> PathBuf {
        self.place.join(NODE.folder).join("node_modules/node/bin/node")
    }

    fn typescript(&self, package: &Package, line: &str) -> Result<()> {
        let script = text(&self.workspace.root().join("tests/mcp/typescript.mjs"))?;
        let packages = text(&self.place.join(package.folder))?;
        self.run(package.folder, &self.node(), &[&script, &self.program, &packages, line])
    }

    /// Tool schemas that every provider takes, and a launch in each era: with its answer at once, and as a task.
    fn inspector(&self) -> Result<()> {
        let node = text(&self.node())?;
        let inspector = text(&self.place.join(INSPECTOR.folder).join("node_modules/.bin/mcp-inspector"))?;
        for (era, answer) in
            [("legacy", "No process will wake you"), ("modern", "has ended: done: exit code 0")]
        {
            let home = format!("HEARBACK_HOME={}", text(&self.store(&format!("inspector-{era}"))?)?);
            let ask = |more: &[&str]| {
                let common =
                    [&inspector, "--cli", &self.program, "mcp", "-e", &home, "-e", "HEARBACK_SESSION=s"];
                let args = [&common, &["--protocol-era", era][..], more].concat();
                self.workspace.capture(&node, &args)
            };
            ask(&["--method", "tools/list", "--strict"])?;
            let call =
                ["--method", "tools/call", "--tool-name", "launch", "--tool-arg", "command=echo hello"];
            let answered = ask(&call)?;
            if !answered.contains(answer) {
                bail!("the inspector ({era}) was not answered with `{answer}`: {answered}");
            }
            println!("inspector {era}: no strict findings, launched");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_pinned_and_the_inspector_gets_a_node_that_it_runs_on() {
        let pinned = PACKAGES.map(|package| package.version).into_iter().chain([PYTHON_2.1, PYTHON_1.1]);
        for version in pinned {
            let parts: Vec<Option<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
            assert!(parts.len() == 3 && parts.iter().all(Option::is_some), "{version} is not one version");
        }
        // Inspector 2.12 needs Node 22.19. On an older one npm installs an inspector that knows no `--strict`.
        let node: Vec<u32> = NODE.version.split('.').map(|part| part.parse().unwrap()).collect();
        assert!(node >= vec![22, 19, 0], "{node:?}");
    }

    /// Trap 7 of the clients: on an old Node, npm installs an old inspector, which passes and has tried nothing.
    #[test]
    fn a_client_of_another_version_than_the_pinned_one_is_refused() {
        let place = std::env::temp_dir().join(format!("hearback-xtask-mcp-{}", std::process::id()));
        let path = manifest(&place, &INSPECTOR);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        let mut refused = Vec::new();
        for version in ["0.15.0", INSPECTOR.version] {
            std::fs::write(&path, format!("{{\n  \"version\": \"{version}\"\n}}\n"))
                .expect("it can be written");
            refused.push(check_installed(&place, &INSPECTOR).is_err());
        }
        std::fs::remove_dir_all(&place).expect("it can be removed");
        assert_eq!(refused, [true, false]);
        assert!(check_installed(&place, &INSPECTOR).is_err(), "it is not there");
    }
}
