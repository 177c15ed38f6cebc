//! `cargo xtask <task>`: the checks that CI runs, each of which can also be run alone.
//!
//! Exit codes: 0 when everything holds, 1 when a check failed, 2 when the task could not be understood.
#![expect(
    clippy::disallowed_methods,
    reason = "the platform crate and its Clock are under test here, so xtask starts cargo and times it directly"
)]

mod agents;
mod deny;
mod dist;
mod features;
mod layers;
mod mcp;
mod measure;
mod packages;
mod record;
mod reuse;
mod semver;
mod skips;
mod slim;
mod steps;
mod targets;
mod test;
mod tidy;
mod windows;
mod workspace;

use std::process::ExitCode;

use crate::measure::Part;
use crate::steps::{STEPS, Step};
use crate::workspace::Workspace;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let task = match Task::parse(&args) {
        Ok(task) => task,
        Err(why) => {
            eprintln!("error: {why}\n\n{}", steps::help());
            return ExitCode::from(2);
        }
    };
    let workspace = Workspace::locate();
    let outcome = match task {
        Task::Help => {
            println!("{}", steps::help());
            Ok(())
        }
        Task::Ci => steps::ci(&workspace),
        Task::Dist => dist::run(&workspace),
        Task::Measure(part) => measure::run(&workspace, part),
        Task::Record => record::run(&workspace),
        Task::Semver(revision) => semver::run(&workspace, revision),
        Task::Mcp(args) => mcp::run(&workspace, args),
        Task::Agents(args) => agents::run(&workspace, args),
        Task::Packages(args) => packages::run(&workspace, args),
        Task::One(step, extra) => (step.run)(&workspace, extra),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line asked for.
enum Task<'a> {
    Help,
    Ci,
    /// What a package holds.
    Dist,
    Measure(Part),
    /// The picture of the README.
    Record,
    /// What programs can see of the libraries, compared with a revision.
    Semver(Option<&'a str>),
    /// Real MCP clients, with what followed.
    Mcp(&'a [String]),
    /// Real agents, with what followed.
    Agents(&'a [String]),
    /// Packages for other languages, with what followed.
    Packages(&'a [String]),
    /// One step, with the arguments for it.
    One(&'static Step, &'a [String]),
}

impl<'a> Task<'a> {
    fn parse(args: &'a [String]) -> Result<Self, String> {
        let Some((name, rest)) = args.split_first() else { return Ok(Self::Help) };
        let extra = match rest.split_first() {
            None => rest,
            Some((dashes, extra)) if dashes == "--" && name == "test" => extra,
            // They take options of their own, and read them.
            Some(_)
                if matches!(
                    name.as_str(),
                    "windows" | "mcp" | "agents" | "measure" | "packages" | "semver"
                ) =>
            {
                rest
            }
            Some((other, _)) => return Err(format!("task `{name}` does not take `{other}`")),
        };
        match name.as_str() {
            "help" | "--help" | "-h" => Ok(Self::Help),
            "ci" => Ok(Self::Ci),
            "dist" => Ok(Self::Dist),
            "record" => Ok(Self::Record),
            "measure" => match extra {
                [] => Ok(Self::Measure(Part::All)),
                [part] if part == "monitor" => Ok(Self::Measure(Part::Monitor)),
                [part] if part == "peers" => Ok(Self::Measure(Part::Peers)),
                _ => Err("`measure` takes nothing, `monitor` or `peers`".to_owned()),
            },
            "semver" => match extra {
                [] => Ok(Self::Semver(None)),
                [revision] => Ok(Self::Semver(Some(revision))),
                _ => Err("`semver` takes one revision".to_owned()),
            },
            "mcp" => Ok(Self::Mcp(rest)),
            "agents" => Ok(Self::Agents(rest)),
            "packages" => Ok(Self::Packages(rest)),
            _ => match STEPS.iter().find(|step| step.name == name) {
                Some(step) => Ok(Self::One(step, extra)),
                None => Err(format!("there is no task `{name}`")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
        Task::parse(&args).map(|task| match task {
            Task::Help => "help".to_owned(),
            Task::Ci => "ci".to_owned(),
            Task::Dist => "dist".to_owned(),
            Task::Record => "record".to_owned(),
            Task::Measure(part) => format!("measure {part:?}"),
            Task::Semver(revision) => format!("semver {revision:?}"),
            Task::Mcp(args) => format!("mcp {args:?}"),
            Task::Agents(args) => format!("agents {args:?}"),
            Task::Packages(args) => format!("packages {args:?}"),
            Task::One(step, extra) => format!("{} {extra:?}", step.name),
        })
    }

    #[test]
    fn nothing_asks_for_help() {
        assert_eq!(parse(&[]).unwrap(), "help");
        assert_eq!(parse(&["help"]).unwrap(), "help");
    }

    #[test]
    fn every_step_is_a_task() {
        for step in STEPS {
            assert_eq!(parse(&[step.name]).unwrap(), format!("{} []", step.name));
        }
    }

    #[test]
    fn only_tests_take_more_arguments() {
        assert_eq!(parse(&["test", "--", "kill"]).unwrap(), "test [\"kill\"]");
        assert_eq!(parse(&["windows", "--install"]).unwrap(), "windows [\"--install\"]");
        assert!(parse(&["test", "kill"]).is_err());
        assert!(parse(&["ci", "--", "kill"]).is_err());
    }

    #[test]
    fn an_unknown_task_is_named() {
        assert_eq!(parse(&["tydi"]).unwrap_err(), "there is no task `tydi`");
    }
}
