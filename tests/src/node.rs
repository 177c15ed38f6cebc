//! Node, and our TypeScript package compiled for it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use serde_json::Value;

use crate::{is_wine, run, skipped};

/// The same as in `cargo xtask packages`: that of a distribution may be too old.
const NODE: &str = "node@22.23.3";

/// Node and the compiler, in a folder of the target directory.
#[derive(Debug)]
pub struct Node(PathBuf);

impl Node {
    /// Fetches them, once for a target folder. Without npm or its registry a test says so and ends.
    ///
    /// # Panics
    ///
    /// If they cannot be had and `CI` is set.
    pub fn fetch(target_tmpdir: &str) -> Option<Node> {
        if is_wine() || cfg!(windows) {
            skipped("the packages are tried on Unix");
            return None;
        }
        let manifest = fs::read_to_string(package().join("package.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let tools = manifest["devDependencies"].as_object().unwrap();
        let mut wanted: Vec<_> =
            tools.iter().map(|(name, version)| format!("{name}@{}", version.as_str().unwrap())).collect();
        wanted.push(NODE.to_owned());
        let folder = Path::new(target_tmpdir).join(wanted.join("-").replace('/', "-"));
        if folder.is_dir() {
            return Some(Node(folder));
        }
        // Under its name only once it is complete.
        let partial = folder.with_extension(format!("partial-{}", std::process::id()));
        fs::create_dir_all(&partial).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix"]).arg(&partial);
        if !npm.args(&wanted).stdin(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return missing(&format!("npm cannot install {}", wanted.join(" ")));
        }
        // Another test was faster and has fetched the same.
        let _ = fs::rename(&partial, &folder);
        Some(Node(folder))
    }

    /// A command that runs a program with Node.
    pub fn command(&self) -> Command {
        Command::new(self.0.join("node_modules/node/bin/node"))
    }

    /// Compiles our package into a folder, and returns the module to import.
    #[track_caller]
    pub fn compile_package(&self, into: &Path) -> PathBuf {
        let mut compiler = self.command();
        compiler.arg(self.0.join("node_modules/typescript/bin/tsc")).arg("--project").arg(package());
        compiler.arg("--typeRoots").arg(self.0.join("node_modules/@types")).arg("--outDir").arg(into);
        run(compiler).ok();
        fs::copy(package().join("package.json"), into.join("package.json")).unwrap();
        into.join("src/index.js")
    }
}

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("packages/typescript")
}

fn missing<T>(why: &str) -> Option<T> {
    assert!(env::var_os("CI").is_none(), "this test needs npm: {why}");
    skipped(format_args!("it needs npm: {why}"));
    None
}
