//! What a shell offers for a word that is not typed yet: the jobs, labels, sessions and sinks that there are.

use std::collections::BTreeSet;

use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCandidates;
use clap_complete::env::{CompleteEnv, Shells};
use hearback::core::StateWord;
use hearback::core::message::clean_line;
use hearback::{Hearback, Job, Options, Scope};

use crate::{help, table};

/// Set by the script of a shell that wants to complete a command line.
const VARIABLE: &str = "_HEARBACK_COMPLETE";
/// How many jobs are offered. To look at one takes time, and a longer list is no help.
const OFFERED: usize = 40;

/// Answers a shell, if one asks, and ends this process.
pub(crate) fn answer_shell() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(help::command).var(VARIABLE).complete();
    }
}

/// The script for a shell. It asks the program that is found on the `PATH` as `hearback`.
pub(crate) fn script(shell: &str) -> Option<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(shell)?;
    shell.write_registration(VARIABLE, "hearback", "hearback", "hearback", &mut script).ok()?;
    if shell.name() == "zsh" {
        script.extend(ZSH_AUTOLOAD.as_bytes());
    }
    Some(script)
}

/// A file `_hearback` in zsh's `fpath` is the body of a function that completes. That of the parser only defines
/// another function, so that the first Tab in each shell would offer nothing.
const ZSH_AUTOLOAD: &str = "
if [[ $funcstack[1] == _hearback ]]; then
    _clap_dynamic_completer_hearback \"$@\"
fi
";

/// Jobs by their ids and labels.
pub(crate) fn jobs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| named_jobs(|_| true))
}

/// Jobs that have not ended.
pub(crate) fn running_jobs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| named_jobs(|state| !state.has_ended()))
}

pub(crate) fn labels() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let labels: BTreeSet<_> = seen(|_| true).into_iter().filter_map(|job| job.view.label).collect();
        labels.into_iter().map(CompletionCandidate::new).collect()
    })
}

pub(crate) fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(hearback) = store() else { return Vec::new() };
        let owners =
            hearback.recent(&Scope::All, OFFERED, |_| true).into_iter().filter_map(|job| job.view.session);
        let names: BTreeSet<_> = owners.chain(hearback.session_names()).collect();
        names.into_iter().map(|name| CompletionCandidate::new(name.as_str())).collect()
    })
}

pub(crate) fn sinks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = store().map(|hearback| hearback.sink_names()).unwrap_or_default();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

#[cfg(feature = "setup")]
pub(crate) fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        hearback::core::agents::AGENTS.iter().map(|agent| CompletionCandidate::new(agent.name)).collect()
    })
}

/// The store, if there is one. A shell that asks is no reason to make it.
fn store() -> Option<Hearback> {
    Hearback::open(Options::default().to_read()).ok()
}

fn seen(wanted: impl Fn(StateWord) -> bool) -> Vec<Job> {
    let scope = Scope::current().unwrap_or_default();
    let jobs = store().map(|hearback| hearback.recent(&scope, OFFERED, |job| wanted(job.view.state)));
    jobs.unwrap_or_default()
}

fn named_jobs(wanted: impl Fn(StateWord) -> bool) -> Vec<CompletionCandidate> {
    let jobs = seen(wanted);
    let mut offered = Vec::new();
    let mut labels = BTreeSet::new();
    for job in &jobs {
        let help = format!("{} {}", table::glyph(&job.view), table::cut(&table::title(job), 50));
        offered.push(CompletionCandidate::new(job.view.id.short()).help(Some(help.clone().into())));
        // The newest job with a label is the one that it names.
        if let Some(label) = job.view.label.as_ref().filter(|label| labels.insert((*label).clone())) {
            offered.push(CompletionCandidate::new(clean_line(label)).help(Some(help.into())));
        }
    }
    if !jobs.is_empty() {
        offered.push(CompletionCandidate::new(hearback::LAST).help(Some("the newest job".into())));
    }
    offered
}
