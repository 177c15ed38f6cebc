//! Python, for what is worth having from somebody else: an independent implementation, or a plugin in another language.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fs_err as fs;

/// The interpreter. Without one a test says so and is over; on CI that is a failure.
///
/// # Panics
///
/// If there is none and `CI` is set.
pub fn interpreter() -> Option<PathBuf> {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    match asked {
        Ok(told) if told.status.success() => Some(String::from_utf8_lossy(&told.stdout).trim().into()),
        _ => missing("python3 is not installed"),
    }
}

/// A folder for `PYTHONPATH` with this package in it, fetched once for a target folder (`name==version`).
///
/// # Panics
///
/// If it cannot be had and `CI` is set.
pub fn package(target_tmpdir: &str, requirement: &str) -> Option<PathBuf> {
    let python = interpreter()?;
    let folder = PathBuf::from(target_tmpdir).join(requirement);
    if folder.is_dir() {
        return Some(folder);
    }
    // Under its name only once it is complete.
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--target"]);
    let installed = pip.arg(&partial).arg(requirement).stdin(Stdio::null()).output();
    match installed {
        Ok(done) if done.status.success() => {
            // Somebody else who was faster has fetched the same.
            let _ = fs::rename(&partial, &folder);
            Some(folder)
        }
        Ok(done) => {
            missing(&format!("pip cannot install {requirement}: {}", String::from_utf8_lossy(&done.stderr)))
        }
        Err(error) => missing(&error.to_string()),
    }
}

fn missing<T>(why: &str) -> Option<T> {
    assert!(env::var_os("CI").is_none(), "this test needs Python 3 with pip: {why}");
    crate::skipped(format_args!("it needs Python 3 with pip: {why}"));
    None
}
