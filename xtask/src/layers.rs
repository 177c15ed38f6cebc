//! The `layers` step: dependencies between our crates point inward, and each kind of foreign crate stays in
//! the one place that may know it. Reads manifests only, so it needs neither a build nor the network.

use std::fmt;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::workspace::Workspace;

/// What one of our packages may depend on among our packages.
struct Layer {
    package: &'static str,
    normal: &'static [&'static str],
    dev: &'static [&'static str],
    reason: &'static str,
}

const CORE: &str = "hearback-core";
const PLATFORM: &str = "hearback-platform";
const STORE: &str = "hearback-store";
const MONITOR: &str = "hearback-monitor";
const LIBRARY: &str = "hearback";
const MCP: &str = "hearback-mcp";
const CLI: &str = "hearback-cli";
const TESTS: &str = "hearback-tests";

// A package in its own `dev` list turns on its own features, such as `testing`, for its tests.
const LAYERS: &[Layer] = &[
    Layer {
        package: CORE,
        normal: &[],
        dev: &[CORE],
        reason: "core is the innermost layer, so it knows none of the others",
    },
    Layer {
        package: PLATFORM,
        normal: &[CORE],
        dev: &[CORE],
        reason: "platform implements ports of core, and never meets the other implementations",
    },
    Layer {
        package: STORE,
        normal: &[CORE],
        dev: &[CORE],
        reason: "store implements ports of core, and never meets the other implementations",
    },
    Layer {
        package: MONITOR,
        normal: &[CORE],
        dev: &[CORE],
        reason: "monitor decides, and reaches the world only through ports of core",
    },
    Layer {
        package: LIBRARY,
        normal: &[CORE, PLATFORM, STORE, MONITOR],
        dev: &[CORE, PLATFORM, STORE, MONITOR, LIBRARY],
        reason: "hearback wires the crates together, and ships without doors, tests or xtask",
    },
    Layer {
        package: MCP,
        normal: &[LIBRARY],
        dev: &[LIBRARY],
        reason: "the MCP server is a door: it translates for the library, and never reaches past it",
    },
    Layer {
        package: CLI,
        normal: &[LIBRARY, MCP],
        dev: &[LIBRARY],
        reason: "the command line is a door: it translates for the library, and holds no logic of its own",
    },
    Layer {
        package: TESTS,
        normal: &[CORE, PLATFORM, STORE, MONITOR, LIBRARY],
        dev: &[CORE, PLATFORM, STORE, MONITOR, LIBRARY],
        reason: "the end-to-end tests may use whatever ships",
    },
    Layer {
        package: "xtask",
        normal: &[],
        dev: &[],
        reason: "xtask must build and run while our own crates do not compile",
    },
];

const CORE_MAY_USE: &[&str] = &["serde", "serde_json", "thiserror"];
/// Allowed in core only while optional: embedders seldom want it.
const CORE_MAY_OFFER: &[&str] = &["schemars"];

/// Crates that speak to the operating system.
const OS_CRATES: &[&str] = &["nix", "libc", "rustix", "windows-sys", "sysinfo"];

/// What an async runtime comes with. A supervisor must not have one, so only the MCP server does.
const ASYNC_CRATES: &[&str] = &["rmcp", "tokio", "tokio-util", "futures", "async-trait"];

/// One dependency as its manifest declares it.
#[derive(Clone, Debug)]
struct Arrow {
    from: String,
    to: String,
    kind: DependencyKind,
    optional: bool,
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {} ({} dependency)", self.from, self.to, self.kind)
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("could not read the workspace's manifests")?;
    let mut members = Vec::new();
    let mut arrows = Vec::new();
    for package in &metadata.packages {
        members.push(package.name.to_string());
        arrows.extend(package.dependencies.iter().map(|dependency| Arrow {
            from: package.name.to_string(),
            to: dependency.name.clone(),
            kind: dependency.kind,
            optional: dependency.optional,
        }));
    }
    let violations = violations(&members, &arrows);
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!("dependencies that cross a layer: {}", violations.len());
    }
    Ok(())
}

/// Everything wrong with these dependencies, each with its reason.
fn violations(members: &[String], arrows: &[Arrow]) -> Vec<String> {
    let mut found = Vec::new();
    for member in members {
        if layer(member).is_none() {
            found
                .push(format!("{member}: give it a row in xtask/src/layers.rs, so that its layer is chosen"));
        }
    }
    for arrow in arrows {
        let reason = if members.contains(&arrow.to) { against_layers(arrow) } else { against_foreign(arrow) };
        if let Some(reason) = reason {
            found.push(format!("{arrow}: {reason}"));
        }
    }
    found
}

fn layer(package: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.package == package)
}

fn against_layers(arrow: &Arrow) -> Option<&'static str> {
    // A package without a row has been reported as such.
    let layer = layer(&arrow.from)?;
    // A build dependency is held to the rules of a normal one: it too must be there for the crate to build.
    let allowed = if arrow.kind == DependencyKind::Development { layer.dev } else { layer.normal };
    (!allowed.contains(&arrow.to.as_str())).then_some(layer.reason)
}

fn against_foreign(arrow: &Arrow) -> Option<&'static str> {
    let to = arrow.to.as_str();
    // Fixture programs ignore signals and start sessions, which needs nix and nothing more.
    let os_allowed = arrow.from == PLATFORM || (arrow.from == TESTS && to == "nix");
    if OS_CRATES.contains(&to) && !os_allowed {
        return Some(
            "only hearback-platform talks to the operating system (and hearback-tests, through nix)",
        );
    }
    if ASYNC_CRATES.contains(&to) && arrow.from != MCP {
        return Some("only hearback-mcp has an async runtime");
    }
    if arrow.from != CORE || arrow.kind == DependencyKind::Development || CORE_MAY_USE.contains(&to) {
        return None;
    }
    match (CORE_MAY_OFFER.contains(&to), arrow.optional) {
        (true, true) => None,
        (true, false) => {
            Some("core offers this only as an optional feature, because embedders seldom want it")
        }
        (false, _) => Some("core does no I/O, so it needs only serde, serde_json, thiserror"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str, kind: DependencyKind) -> Arrow {
        Arrow { from: from.to_owned(), to: to.to_owned(), kind, optional: false }
    }

    fn reasons(arrows: &[Arrow]) -> Vec<String> {
        let members: Vec<String> = LAYERS.iter().map(|layer| layer.package.to_owned()).collect();
        violations(&members, arrows)
    }

    #[track_caller]
    fn assert_allowed(from: &str, to: &str, kind: DependencyKind) {
        assert_eq!(reasons(&[arrow(from, to, kind)]), [""; 0]);
    }

    #[track_caller]
    fn assert_refused(from: &str, to: &str, kind: DependencyKind) {
        assert_eq!(reasons(&[arrow(from, to, kind)]).len(), 1, "{from} -> {to} went unnoticed");
    }

    #[test]
    fn arrows_inward_are_allowed() {
        for inner in [PLATFORM, STORE, MONITOR] {
            assert_allowed(inner, CORE, DependencyKind::Normal);
            assert_allowed(LIBRARY, inner, DependencyKind::Normal);
            assert_allowed(TESTS, inner, DependencyKind::Normal);
        }
        assert_allowed(CORE, CORE, DependencyKind::Development);
        assert_allowed(CLI, LIBRARY, DependencyKind::Normal);
        assert_allowed(CLI, MCP, DependencyKind::Normal);
        assert_allowed(MCP, LIBRARY, DependencyKind::Normal);
    }

    #[test]
    fn arrows_outward_and_sideways_are_refused() {
        for kind in [DependencyKind::Normal, DependencyKind::Development, DependencyKind::Build] {
            assert_refused(CORE, STORE, kind);
            assert_refused(STORE, PLATFORM, kind);
            assert_refused(MONITOR, STORE, kind);
            assert_refused(LIBRARY, TESTS, kind);
            assert_refused(LIBRARY, CLI, kind);
            assert_refused(CLI, MONITOR, kind);
            assert_refused(MCP, STORE, kind);
            assert_refused(LIBRARY, MCP, kind);
            assert_refused("xtask", CORE, kind);
        }
    }

    #[test]
    fn core_stays_small() {
        assert_allowed(CORE, "serde_json", DependencyKind::Normal);
        assert_allowed(CORE, "proptest", DependencyKind::Development);
        assert_refused(CORE, "fs-err", DependencyKind::Normal);
        // What core decides is a value; the crates that act on it say so.
        assert_refused(CORE, "tracing", DependencyKind::Normal);
        assert_refused(CORE, "schemars", DependencyKind::Normal);
        let optional = Arrow { optional: true, ..arrow(CORE, "schemars", DependencyKind::Normal) };
        assert_eq!(reasons(&[optional]), [""; 0]);
    }

    #[test]
    fn only_platform_knows_the_operating_system() {
        assert_allowed(PLATFORM, "windows-sys", DependencyKind::Normal);
        assert_allowed(TESTS, "nix", DependencyKind::Normal);
        assert_refused(TESTS, "libc", DependencyKind::Normal);
        assert_refused(CLI, "nix", DependencyKind::Normal);
        assert_refused(CORE, "libc", DependencyKind::Development);
    }

    #[test]
    fn only_the_mcp_server_has_an_async_runtime() {
        assert_allowed(MCP, "tokio", DependencyKind::Normal);
        for other in [CORE, MONITOR, LIBRARY, CLI, TESTS] {
            assert_refused(other, "tokio", DependencyKind::Normal);
        }
        assert_refused(LIBRARY, "rmcp", DependencyKind::Normal);
    }

    #[test]
    fn every_violation_is_reported_and_a_new_package_needs_a_row() {
        let arrows =
            [arrow(STORE, PLATFORM, DependencyKind::Normal), arrow(STORE, "libc", DependencyKind::Normal)];
        assert_eq!(reasons(&arrows).len(), 2);
        assert_eq!(violations(&["hearback-new".to_owned()], &[]).len(), 1);
    }
}
