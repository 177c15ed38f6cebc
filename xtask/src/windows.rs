//! The `windows` step: unit and end-to-end tests as Windows programs, run under Wine.
//!
//! On Windows itself there is nothing to prepare: there the step is the same as `test`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::skips::Skips;
use crate::workspace::{self, Workspace};
use crate::{targets, test, tidy};

const TARGET: &str = "x86_64-pc-windows-gnu";
const LINKER: &str = "x86_64-w64-mingw32-gcc";
/// What the commands above and below come from, where apt-get is the package manager.
const PACKAGES: [&str; 3] = ["wine64", "wine", "gcc-mingw-w64-x86-64"];
/// Written into a prefix when it is complete. Another number makes every prefix anew.
const PREFIX_VERSION: &str = "1";
/// How often the tests are listed at most.
const LISTINGS_MOST: usize = 3;
/// Wine's server does its work for all of them in one thread, so more at once only wait for each other.
const THREADS: &str = "4";
/// Set where mounts are invisible to all other processes: by us, for Wine and for the tests.
const PRIVATE_MOUNTS: &str = "HEARBACK_TESTS_PRIVATE_MOUNTS";
/// How long Wine's server stays without a client: longer than a test takes, and not for ever if we are interrupted.
const SERVER_STAYS: &str = "-p600";

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let Asked { install, extra } = Asked::parse(args)?;
    if cfg!(windows) {
        return test::run(workspace, extra);
    }
    ensure_tools(workspace, install)?;
    if let Some(outcome) = in_private(workspace, args) {
        return outcome;
    }
    targets::ensure_installed(workspace, TARGET)?;
    let wine = Wine::new(workspace)?;
    // xtask is left out: it is the program that runs on the developer's own machine.
    let what = ["--workspace", "--exclude", "xtask", "--all-features", "--target", TARGET];
    let env = wine.env();
    workspace.cargo_with_env(&[&["test", "--no-run"], &what[..]].concat(), &env)?;
    // Some tests have something done by the system around Wine, with fixtures that were built for it.
    workspace.cargo(&test::PROGRAMS)?;
    let nextest = workspace.works("cargo", &["nextest", "--version"]);
    let runner: &[&str] = match nextest {
        true => &["nextest", "run", "--no-fail-fast", "--test-threads", THREADS],
        false => &["test", "--no-fail-fast", "--lib", "--bins", "--tests"],
    };
    let running = wine.start()?;
    let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
    let list = wine.prefix.join("skipped-tests");
    let skips = Skips::begin(list.clone(), spelled(&list))?;
    let fixtures = workspace.target_directory()?.join("debug").display().to_string();
    let about = [skips.variable(), ("HEARBACK_TESTS_OUTSIDE", &fixtures)];
    let test = || workspace.cargo_with_env(&[runner, &what, &extra].concat(), &[&env[..], &about].concat());
    let mut tested = test();
    for _ in 1..LISTINGS_MOST {
        if !is_unlisted(&tested) {
            break;
        }
        tested = test();
    }
    drop(running);
    skips.tell()?;
    tell_what_is_absent(workspace)?;
    tested
}

/// Whether the tests could not even be listed, so that none was run: Wine sometimes ends a program without a message
/// that is only asked for its tests.
fn is_unlisted(tested: &Result<()>) -> bool {
    // `TEST_LIST_CREATION_FAILED` of nextest.
    tested.as_ref().is_err_and(|error| error.to_string().ends_with("exit status: 104"))
}

/// Does it all again where no other process sees the mounts of tests; nothing where that is not permitted, or already
/// so.
///
/// Wine's server opens files for all programs, so it has to be in there as well.
fn in_private(workspace: &Workspace, args: &[String]) -> Option<Result<()>> {
    let unshare = ["--mount", "--propagation", "private", "--"];
    let permitted = || workspace.works("unshare", &[&unshare[..], &["true"]].concat());
    if std::env::var_os(PRIVATE_MOUNTS).is_some() || !permitted() {
        return None;
    }
    // Through cargo: the steps before this one may have built this program anew, in the place of the one that runs.
    let cargo = workspace::cargo().to_string_lossy().into_owned();
    let again = [&cargo, "run", "--quiet", "--package", "xtask", "--", "windows"];
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let whole = [&unshare[..], &again, &args].concat();
    Some(workspace.run_with_env("unshare", &whole, &[(PRIVATE_MOUNTS, "yes")]))
}

/// A path of the host as Wine names it.
fn spelled(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}

/// What followed the name of the task.
struct Asked<'a> {
    install: bool,
    extra: &'a [String],
}

impl<'a> Asked<'a> {
    fn parse(args: &'a [String]) -> Result<Self> {
        let (install, rest) = match args.split_first() {
            Some((first, rest)) if first == "--install" => (true, rest),
            _ => (false, args),
        };
        match rest.split_first() {
            None => Ok(Self { install, extra: rest }),
            Some((dashes, extra)) if dashes == "--" => Ok(Self { install, extra }),
            Some((other, _)) => bail!("task `windows` does not take `{other}`"),
        }
    }
}

/// What prevents running programs here, and what to do about it.
pub(crate) fn obstacle(workspace: &Workspace) -> Option<String> {
    let tool = if cfg!(windows) { None } else { missing(workspace) }?;
    let packages = PACKAGES.join(" ");
    Some(format!(
        "`{tool}` is missing, and without it nothing can be said about Windows\n\
         tip: `cargo xtask windows --install`, or install {packages}"
    ))
}

fn missing(workspace: &Workspace) -> Option<&'static str> {
    ["wine", "wineserver", LINKER].into_iter().find(|tool| !workspace.works(tool, &["--version"]))
}

fn ensure_tools(workspace: &Workspace, install: bool) -> Result<()> {
    let Some(obstacle) = obstacle(workspace) else { return Ok(()) };
    if !install {
        bail!(obstacle);
    }
    let packages = PACKAGES.join(" ");
    if !workspace.works("apt-get", &["--version"]) {
        bail!("there is no apt-get to install what is missing\ntip: install {packages} or the like");
    }
    let quietly = [("DEBIAN_FRONTEND", "noninteractive")];
    workspace.run_with_env("apt-get", &["update", "-qq"], &quietly)?;
    let args = [&["install", "-y", "-qq", "--no-install-recommends"][..], &PACKAGES].concat();
    workspace.run_with_env("apt-get", &args, &quietly)?;
    match missing(workspace) {
        None => Ok(()),
        Some(tool) => bail!("{packages} are installed, and `{tool}` is still missing"),
    }
}

/// A Windows of our own, in the target directory.
struct Wine<'a> {
    workspace: &'a Workspace,
    prefix: PathBuf,
    /// The same as text, for variables.
    shown: String,
    /// Where the sources are, as Wine names it.
    sources: String,
    /// What runs a test program.
    runner: String,
}

impl<'a> Wine<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self> {
        let prefix = workspace.target_directory()?.join("wine");
        let shown =
            prefix.to_str().context("the target directory has a name that is not Unicode")?.to_owned();
        let sources = spelled(workspace.root());
        // Words are told apart by spaces.
        let script = workspace.root().join("xtask/wine/run.sh").display().to_string();
        let runner = if script.contains(' ') { "wine".to_owned() } else { format!("sh {script}") };
        Ok(Self { workspace, prefix, shown, sources, runner })
    }

    /// Starts the server and whatever Wine runs beside every program, in a prefix that is made if there is none.
    ///
    /// A server that goes by itself after its last client resets one that comes just then, so this one stays. And the
    /// first program of all brings Wine's services up, which have its streams for as long as they live: were it a test,
    /// its runner would wait for their end. So the first is one of ours, and has no streams.
    fn start(&self) -> Result<Running<'_>> {
        let complete = self.prefix.join("hearback-prefix");
        let is_complete = fs_err::read_to_string(&complete).is_ok_and(|version| version == PREFIX_VERSION);
        // An interrupted run may have left one behind; mostly there is none.
        let _ = self.run("wineserver", &["-k"]);
        if !is_complete && self.prefix.exists() {
            fs_err::remove_dir_all(&self.prefix)?;
        }
        fs_err::create_dir_all(&self.prefix)?;
        self.run("wineserver", &[SERVER_STAYS])?;
        let running = Running(self);
        self.run("wine", &["cmd", "/c", "exit"])?;
        if !is_complete {
            // Wine 8 claims to be Windows 7 unless it is told otherwise.
            self.run("wine", &["winecfg", "-v", "win10"])?;
            self.add_library()?;
            fs_err::write(complete, PREFIX_VERSION)?;
        }
        Ok(running)
    }

    /// Ends the processes that Wine ended before they had begun. Its server has forgotten them, and they wait for ever.
    fn end_the_stuck(&self) {
        let ours = format!("WINEPREFIX={}", self.shown);
        // Without `/proc`, a process cannot be recognised by the prefix.
        for entry in fs_err::read_dir("/proc").into_iter().flatten().flatten() {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == ours.as_bytes())
                && let Some(pid) = entry.file_name().to_str().filter(|pid| pid.parse::<u32>().is_ok())
            {
                self.workspace.works("kill", &["-9", pid]);
            }
        }
    }

    /// Runs something without streams: what it starts may stay, and would hold them.
    fn run(&self, program: &str, args: &[&str]) -> Result<()> {
        self.workspace.run_without_streams(program, args, &self.env())
    }

    /// Adds what this Wine may lack, and the standard library of Rust asks for.
    fn add_library(&self) -> Result<()> {
        let system = self.prefix.join("drive_c").join("windows").join("system32");
        let library = system.join("bcryptprimitives.dll");
        if library.exists() {
            return Ok(());
        }
        let source = self.workspace.root().join("xtask").join("wine").join("process_prng.c");
        let (source, library) = (source.display().to_string(), library.display().to_string());
        let args = ["-shared", "-O2", "-o", &library, &source, "-ladvapi32"];
        self.workspace.run_with_env(LINKER, &args, &[])
    }

    fn env(&self) -> [(&str, &str); 9] {
        [
            ("WINEPREFIX", &self.shown),
            ("WINEDEBUG", "-all"),
            // Neither a browser engine nor a second runtime is wanted, nor asked for.
            ("WINEDLLOVERRIDES", "mscoree,mshtml="),
            ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &self.runner),
            // Wine reads a whole program each time it starts one, and most of it would be for a debugger.
            ("CARGO_PROFILE_DEV_DEBUG", "none"),
            ("CARGO_PROFILE_DEV_STRIP", "symbols"),
            // For the runner without nextest.
            ("RUST_TEST_THREADS", THREADS),
            // There is no cargo in there to ask, and no person to review new snapshots.
            ("INSTA_WORKSPACE_ROOT", &self.sources),
            ("INSTA_UPDATE", "no"),
        ]
    }
}

/// A prefix whose server runs. It ends with this, and with it what runs in the prefix and nothing else.
struct Running<'a>(&'a Wine<'a>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.0.run("wineserver", &["-k"]);
        self.0.end_the_stuck();
    }
}

fn tell_what_is_absent(workspace: &Workspace) -> Result<()> {
    let absent = tidy::not_on_windows(workspace)?;
    eprintln!("\nnot on Windows: {} end-to-end tests", absent.len());
    for (name, reason) in absent {
        eprintln!("  {name}: {reason}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<(bool, Vec<String>)> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        Asked::parse(&args).map(|asked| (asked.install, asked.extra.to_vec()))
    }

    #[test]
    fn an_option_and_arguments_for_the_runner_are_told_apart() {
        assert_eq!(parse(&[]).unwrap(), (false, vec![]));
        assert_eq!(parse(&["--install"]).unwrap(), (true, vec![]));
        assert_eq!(parse(&["--install", "--", "kill"]).unwrap(), (true, vec!["kill".to_owned()]));
        assert_eq!(parse(&["--", "--install"]).unwrap(), (false, vec!["--install".to_owned()]));
        assert!(parse(&["kill"]).is_err());
    }
}
