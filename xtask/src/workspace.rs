//! Where the workspace is, and how programs are run in it. What to run belongs to each step.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The workspace that is being checked.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Finds the workspace that `cargo xtask` was called in.
    pub(crate) fn locate() -> Self {
        // Cargo sets the variable at run time too. It goes first because a target directory that is shared
        // between two checkouts may hold an xtask which was compiled in the other one.
        let manifest_dir =
            std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest_dir).parent().expect("xtask is a directory of the workspace");
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs cargo with its output passed through, so that test counts and diagnostics reach the reader.
    pub(crate) fn cargo(&self, args: &[&str]) -> Result<()> {
        self.cargo_with_env(args, &[])
    }

    /// Runs cargo like [`Self::cargo`], with more environment variables.
    pub(crate) fn cargo_with_env(&self, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
        self.run_with_env("cargo", args, env)
    }

    /// Runs a program and returns what it wrote to stdout; its stderr is passed through.
    pub(crate) fn capture(&self, program: &str, args: &[&str]) -> Result<String> {
        let shown = format!("{program} {}", args.join(" "));
        let program = if program == "cargo" { cargo() } else { program.into() };
        let output = self
            .command(&program, args)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("could not start `{shown}`"))?;
        if !output.status.success() {
            bail!("`{shown}` failed with {}", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not write UTF-8"))
    }

    /// Whether a program is there and succeeds; asked before anything optional is used.
    pub(crate) fn works(&self, program: &str, args: &[&str]) -> bool {
        let program = if program == "cargo" { cargo() } else { program.into() };
        let status = self.command(&program, args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    /// Runs a program with more environment variables and its output passed through.
    pub(crate) fn run_with_env(&self, program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
        self.run_changed(program, args, env, |command| command)
    }

    /// Runs a program like [`Self::run_with_env`], but discards its output.
    pub(crate) fn run_without_streams(
        &self,
        program: &str,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Result<()> {
        self.run_changed(program, args, env, |command| command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    fn run_changed(
        &self,
        program: &str,
        args: &[&str],
        env: &[(&str, &str)],
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<()> {
        let mut shown: String = env.iter().map(|(name, value)| format!("{name}='{value}' ")).collect();
        shown += &format!("{program} {}", args.join(" "));
        eprintln!("$ {shown}");
        let program = if program == "cargo" { cargo() } else { program.into() };
        let mut command = self.command(&program, args);
        let status = change(command.envs(env.iter().copied()))
            .status()
            .with_context(|| format!("could not start `{shown}`"))?;
        if !status.success() {
            bail!("`{shown}` failed with {status}");
        }
        Ok(())
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target_directory(&self) -> Result<PathBuf> {
        let metadata = cargo_metadata::MetadataCommand::new().no_deps().current_dir(&self.root).exec()?;
        Ok(metadata.target_directory.into_std_path_buf())
    }

    fn command(&self, program: &OsString, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.root).stdin(Stdio::null());
        command
    }
}

/// The cargo that started us, so that `cargo +nightly xtask` stays on one toolchain.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        assert!(Workspace::locate().root().join("Cargo.toml").exists());
    }

    #[test]
    fn output_is_captured() {
        let version = Workspace::locate().capture("cargo", &["--version"]).unwrap();
        assert!(version.starts_with("cargo "), "{version}");
    }

    #[test]
    fn a_failed_command_is_named_in_full() {
        let error = Workspace::locate().cargo(&["no-such-command"]).unwrap_err();
        assert!(error.to_string().starts_with("`cargo no-such-command` failed with "), "{error}");
    }

    #[test]
    fn a_missing_program_does_not_work() {
        let workspace = Workspace::locate();
        assert!(workspace.works("cargo", &["--version"]));
        assert!(!workspace.works("no-such-program", &[]));
    }
}
