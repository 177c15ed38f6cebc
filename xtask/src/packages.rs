//! The `packages` task: the packages for other languages and the examples that stand on them, tried against the program
//! that the workspace builds. What `--install` adds goes to `target/packages`.

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A package for a language.
struct Package {
    name: &'static str,
    /// A command that fails where the language is missing or too old.
    needs: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// Commands that install what some of the checks use, into `{place}`.
    install: &'static [&'static [&'static str]],
    checks: &'static [Check],
}

/// One command that has to succeed. `{root}` is the workspace, and `{place}` the package's folder in `target/packages`.
enum Check {
    /// Needs the language alone.
    Always(&'static [&'static str]),
    /// Needs what `--install` adds.
    Installed(&'static [&'static str]),
}

const PACKAGES: &[Package] = &[
    Package {
        name: "python",
        needs: &["python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"],
        env: &[("PYTHONPATH", "{root}/packages/python/src:{place}"), ("PYTHONDONTWRITEBYTECODE", "1")],
        install: &[&[
            "python3",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--upgrade",
            "--target",
            "{place}",
            "mypy==2.4.1",
            "pyright==1.1.414",
            "ruff==0.17.5",
        ]],
        checks: &[
            Check::Always(&["python3", "packages/python/generate.py", "--check"]),
            Check::Always(&["python3", "-m", "unittest", "discover", "-s", "packages/python/tests"]),
            Check::Always(&["python3", "-m", "unittest", "discover", "-s", "examples/replace-a-tracker"]),
            Check::Always(&["python3", "-m", "unittest", "discover", "-s", "examples/event-page"]),
            Check::Always(&["python3", "-m", "unittest", "discover", "-s", "examples/gateway-python"]),
            Check::Installed(&[
                "python3",
                "-m",
                "ruff",
                "check",
                "--config",
                "packages/python/pyproject.toml",
                "packages/python",
                "examples",
            ]),
            Check::Installed(&[
                "python3",
                "-m",
                "ruff",
                "format",
                "--check",
                "--config",
                "packages/python/pyproject.toml",
                "packages/python",
                "examples",
            ]),
            Check::Installed(&["python3", "-m", "mypy", "--config-file", "packages/python/pyproject.toml"]),
            Check::Installed(&["python3", "-m", "pyright", "--project", "packages/python/pyproject.toml"]),
        ],
    },
    Package {
        name: "typescript",
        needs: &["npm", "--version"],
        env: &[
            ("npm_config_audit", "false"),
            ("npm_config_fund", "false"),
            ("npm_config_loglevel", "error"),
            ("NODE", "{place}/node_modules/node/bin/node"),
            ("PYTHONPATH", "{root}/packages/python/src"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ],
        install: &[
            // The Node of a distribution may be older than the package allows.
            &["npm", "install", "--prefix", "{place}", "node@22.23.3"],
            &["npm", "ci", "--prefix", "packages/typescript"],
        ],
        // The compiler is not part of Node.
        checks: &[
            Check::Installed(&["{place}/node_modules/node/bin/node", "packages/typescript/scripts/test.mjs"]),
            Check::Installed(&["python3", "-m", "unittest", "discover", "-s", "examples/gateway-typescript"]),
        ],
    },
];

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let wanted = Wanted::parse(args)?;
    let target = workspace.target_directory()?;
    // With all features, as the tests build it: otherwise everything would be built again.
    workspace.cargo(&["build", "--workspace", "--all-features", "--bin", "hearback"])?;
    let program = target.join("debug").join(format!("hearback{}", std::env::consts::EXE_SUFFIX));
    let program = program.to_str().context("the target directory is not Unicode")?;
    for package in PACKAGES.iter().filter(|package| wanted.includes(package)) {
        let place = target.join("packages").join(package.name);
        let filled = |text: &str| -> Result<String> {
            let root = workspace.root().to_str().context("the workspace's path is not Unicode")?;
            let place = place.to_str().context("the target directory is not Unicode")?;
            Ok(text.replace("{root}", root).replace("{place}", place))
        };
        if !workspace.works(package.needs[0], &package.needs[1..]) {
            let why = format!("`{}` fails", package.needs.join(" "));
            match std::env::var_os("CI") {
                Some(_) => bail!("the package `{}` cannot be tried: {why}", package.name),
                None => eprintln!("skipped: the package `{}`: {why}", package.name),
            }
            continue;
        }
        let mut env = vec![("HEARBACK", program.to_owned())];
        for (name, value) in package.env {
            env.push((name, filled(value)?));
        }
        let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let run = |command: &[&str]| -> Result<()> {
            let words = command.iter().map(|word| filled(word)).collect::<Result<Vec<_>>>()?;
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            workspace.run_with_env(words[0], &words[1..], &env)
        };
        if wanted.install {
            fs_err::create_dir_all(&place)?;
            package.install.iter().try_for_each(|command| run(command))?;
        }
        for check in package.checks {
            match check {
                Check::Always(command) => run(command)?,
                Check::Installed(command) if place.exists() => run(command)?,
                Check::Installed(command) => {
                    let command = command.join(" ");
                    eprintln!("skipped: `{command}`: `cargo xtask packages --install` adds what it needs");
                }
            }
        }
    }
    Ok(())
}

/// What the command line asked for.
struct Wanted<'a> {
    install: bool,
    /// All of them if there is no name.
    names: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    fn parse(args: &'a [String]) -> Result<Self> {
        let mut wanted = Self { install: false, names: Vec::new() };
        for arg in args {
            if arg == "--install" {
                wanted.install = true;
            } else if PACKAGES.iter().any(|package| package.name == arg) {
                wanted.names.push(arg);
            } else {
                let names: Vec<_> = PACKAGES.iter().map(|package| package.name).collect();
                bail!("`packages` takes `--install` and names ({}), not `{arg}`", names.join(", "));
            }
        }
        Ok(wanted)
    }

    fn includes(&self, package: &Package) -> bool {
        self.names.is_empty() || self.names.contains(&package.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &[&str]) -> Result<Vec<&'static str>> {
        let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
        let wanted = Wanted::parse(&args)?;
        Ok(PACKAGES.iter().filter(|package| wanted.includes(package)).map(|package| package.name).collect())
    }

    #[test]
    fn without_a_name_every_package_is_meant() {
        assert_eq!(names(&["--install"]).unwrap().len(), PACKAGES.len());
        assert_eq!(names(&["python"]).unwrap(), ["python"]);
    }

    #[test]
    fn an_unknown_package_is_named() {
        let error = names(&["cobol"]).unwrap_err();
        assert!(error.to_string().ends_with("not `cobol`"), "{error}");
    }
}
