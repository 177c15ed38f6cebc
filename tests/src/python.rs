//! Python, for what others should write: an independent implementation, or a plugin in another language.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;

use crate::{Ran, is_wine, skipped};

/// The interpreter. Without one a test says so and ends; on CI that is a failure, except under Wine, which has none.
///
/// # Panics
///
/// If there is none and `CI` is set.
pub fn interpreter() -> Option<PathBuf> {
    if is_wine() {
        skipped("Wine has no Python");
        return None;
    }
    installed().or_else(|| missing("python3 is not installed"))
}

fn installed() -> Option<PathBuf> {
    // On Windows it seldom has this name; a program that does may be an advertisement, which fails.
    let names: &[_] = if cfg!(windows) { &["python3", "python", "py"] } else { &["python3"] };
    names.iter().find_map(|name| {
        let told = Command::new(name).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
        told.status.success().then(|| String::from_utf8_lossy(&told.stdout).trim().into())
    })
}

/// A published package, and a Python that runs it: under Wine that of its host.
#[derive(Debug)]
pub struct Package(PathBuf);

impl Package {
    /// Fetches it, once for a target folder (`name==version`).
    ///
    /// # Panics
    ///
    /// If it cannot be had and `CI` is set.
    pub fn fetch(target_tmpdir: &str, requirement: &str) -> Option<Package> {
        // The folder has the name that the compiling system gave it.
        let tmpdir = if is_wine() { format!("Z:{target_tmpdir}") } else { target_tmpdir.to_owned() };
        let folder = PathBuf::from(tmpdir).join(requirement);
        if folder.is_dir() {
            return Some(Package(folder));
        }
        // Under its name only once it is complete.
        let partial = folder.with_extension(format!("partial-{}", std::process::id()));
        let pip =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--target"];
        let done = python(None, &[&pip[..], &[&spelled(&partial), requirement]].concat())?;
        if done.code != Some(0) {
            return missing(&format!("pip cannot install {requirement}: {}", done.stderr));
        }
        // Another test was faster and has fetched the same.
        let _ = fs::rename(&partial, &folder);
        Some(Package(folder))
    }

    /// Runs a program that may use the package, with a file as its argument.
    ///
    /// # Panics
    ///
    /// If there is no Python any more.
    #[track_caller]
    pub fn run(&self, program: &str, file: &Path) -> Ran {
        python(Some(self), &["-c", program, &spelled(file)]).expect("it has fetched the package")
    }
}

/// Runs Python to its end.
#[track_caller]
fn python(with: Option<&Package>, args: &[&str]) -> Option<Ran> {
    let path = with.map(|package| spelled(&package.0)).unwrap_or_default();
    #[cfg(windows)]
    if is_wine() {
        let path = format!("PYTHONPATH={path}");
        return Some(crate::outside::run("env", &[&[&*path, "python3"], args].concat()));
    }
    let Some(interpreter) = installed() else { return missing("python3 is not installed") };
    let mut command = Command::new(interpreter);
    command.args(args).env("PYTHONPATH", path).stdin(Stdio::null());
    Some(crate::run(command))
}

/// A path as that Python has it.
fn spelled(path: &Path) -> String {
    #[cfg(windows)]
    if is_wine() {
        return crate::outside::unix(path);
    }
    path.to_str().expect("paths of tests are text").to_owned()
}

fn missing<T>(why: &str) -> Option<T> {
    assert!(env::var_os("CI").is_none(), "this test needs Python 3 with pip: {why}");
    skipped(format_args!("it needs Python 3 with pip: {why}"));
    None
}
