//! The `agents` task: real agents, each against a model on loopback. Each is told to launch a job in its own shell, and
//! then has to hear how it ended: while it is closed, while it is open in a terminal, and while it is busy.

mod candidate;
mod hostile;
mod http;
mod install;
mod leftovers;
mod model;
mod report;
mod settings;
mod stage;
mod terminal;
mod trial;

use anyhow::{Result, bail};

use crate::test;
use crate::workspace::Workspace;

use self::candidate::{CANDIDATES, Candidate};
use self::install::Installed;
use self::trial::{Row, Trial};

/// What followed the name of the task.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// Installs agents that are missing.
    install: bool,
    /// Writes the table into the documentation.
    write: bool,
    /// Only these agents; all if there are none.
    names: Vec<String>,
    /// Only these trials; all if there are none.
    trials: Vec<Trial>,
}

impl Asked {
    fn parse(args: &[String]) -> Result<Self> {
        let mut asked = Self::default();
        for arg in args {
            match arg.as_str() {
                "--install" => asked.install = true,
                "--write" => asked.write = true,
                name if CANDIDATES.iter().any(|candidate| candidate.name == name) => {
                    asked.names.push(name.into())
                }
                other if let Some(trial) = Trial::ALL.into_iter().find(|trial| trial.key() == other) => {
                    asked.trials.push(trial)
                }
                other => {
                    let mut known: Vec<_> =
                        CANDIDATES.iter().map(|candidate| candidate.name.to_owned()).collect();
                    known.extend(Trial::ALL.map(Trial::key));
                    bail!(
                        "task `agents` does not take `{other}`; it takes --install, --write, agents and trials: {}",
                        known.join(", ")
                    );
                }
            }
        }
        Ok(asked)
    }

    fn wants(&self, candidate: &Candidate) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == candidate.name)
    }
}

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let asked = Asked::parse(args)?;
    if !workspace.works("tmux", &["-V"]) {
        bail!("`tmux` is missing: agents are opened in it");
    }
    workspace.cargo(&test::PROGRAMS)?;
    let place = workspace.target_directory()?.join("agents");
    let mut rows = Vec::new();
    let mut failed = 0;
    for candidate in CANDIDATES.iter().filter(|candidate| asked.wants(candidate)) {
        let row = match Installed::find(workspace, &place, candidate, asked.install)? {
            Ok(installed) => Row::of(candidate, &installed, workspace, &place, &asked.trials)?,
            Err(missing) => {
                eprintln!("{}: not tried: {missing}", candidate.name);
                Row::missing(candidate, missing)
            }
        };
        failed += row.failures();
        rows.push(row);
    }
    if asked.write {
        report::write(workspace, &rows)?;
    }
    println!("{}", report::table(&rows));
    let passed: usize = rows.iter().map(Row::passes).sum();
    println!("agents: {passed} passed, {failed} failed");
    if failed > 0 {
        bail!("{failed} trials with agents failed; what was seen is in `{}`", place.join("stage").display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Asked> {
        Asked::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn agents_are_named_and_options_are_known() {
        let asked = parse(&["claude", "--install"]).unwrap();
        assert!(asked.install && !asked.write && asked.names == ["claude"]);
        assert!(asked.wants(&CANDIDATES[0]) && !asked.wants(&CANDIDATES[1]));
        assert!(parse(&[]).unwrap().wants(&CANDIDATES[1]));
        assert_eq!(parse(&["no-such-session"]).unwrap().trials, [Trial::NoSession]);
        assert!(parse(&["cloud"]).unwrap_err().to_string().contains("does not take `cloud`"));
    }

    #[test]
    fn every_trial_has_a_name_of_its_own() {
        let names: std::collections::HashSet<_> = Trial::ALL.iter().map(|trial| trial.name()).collect();
        assert_eq!(names.len(), Trial::ALL.len());
    }
}
