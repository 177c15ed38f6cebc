//! What this process is part of, and ends with, detached or not: the units of a service manager, and a pid namespace
//! that is not that of the machine.

use hearback_core::port::executor::Detachment;

/// The units around this process, outermost first; none where there is no service manager that groups processes.
#[cfg(target_os = "linux")]
pub(crate) fn around_us() -> Vec<String> {
    units_in(&fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn around_us() -> Vec<String> {
    Vec::new()
}

/// How far a job that is started by this process is detached.
pub(crate) fn detachment() -> Detachment {
    detachment_in(around_us(), namespace())
}

/// The pid namespace of this process, if it is not that of the machine: a container, or a sandbox.
#[cfg(target_os = "linux")]
fn namespace() -> Option<String> {
    let name = fs_err::read_link("/proc/self/ns/pid").ok()?.display().to_string();
    (name != super::identity::FIRST_PIDS).then_some(name)
}

#[cfg(not(target_os = "linux"))]
fn namespace() -> Option<String> {
    None
}

/// The same within these units and this namespace.
///
/// A namespace ends when its first process does, and the launcher may be that process or its child: its parent, the
/// terminal of it or its group may be what ends it. So nothing is claimed there. A service ends when its main process
/// does, so that living through the parent is not claimed there. A scope has no main process.
fn detachment_in(mut units: Vec<String>, namespace: Option<String>) -> Detachment {
    let survives: &[&str] = match units.last() {
        _ if namespace.is_some() => &[],
        Some(unit) if unit.ends_with(".service") => &["terminal", "process_group"],
        _ => &["parent", "terminal", "process_group"],
    };
    let namespace = namespace.map(|name| format!("a container or sandbox, the pid namespace {name}"));
    Detachment {
        survives: survives.iter().map(|what| (*what).to_owned()).collect(),
        bound_to: namespace.or_else(|| units.pop()),
    }
}

/// Reads the text of `/proc/PID/cgroup`. systemd keeps its units in the unified hierarchy, which has no controllers
/// before its path, or in one of its own name where there are several.
#[cfg(any(target_os = "linux", test))]
fn units_in(cgroups: &str) -> Vec<String> {
    let units = |path: &str| -> Vec<String> {
        // The manager's own processes are in `init.scope`, which is never stopped; what is around that one counts.
        let is_unit =
            |name: &&str| (name.ends_with(".service") || name.ends_with(".scope")) && *name != "init.scope";
        path.split('/').filter(is_unit).map(str::to_owned).collect()
    };
    let paths = cgroups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        matches!(controllers, "" | "name=systemd").then_some(path)
    });
    paths.map(units).find(|units| !units.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_82_inside_a_unit_nothing_is_claimed_that_stopping_it_would_end() {
        let everything = &["parent", "terminal", "process_group"][..];
        let in_service = &["terminal", "process_group"][..];
        let cases: [(&str, &[&str], &[&str]); 12] = [
            ("", &[], everything),
            ("0::/\n", &[], everything),
            ("0::/docker/0123456789abcdef\n", &[], everything),
            ("0::/system.slice\n", &[], everything),
            ("0::/init.scope\n", &[], everything),
            ("0::/system.slice/cron.service\n", &["cron.service"], in_service),
            ("0::/system.slice/agent.service/payload\n", &["agent.service"], in_service),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", &["session-3.scope"], everything),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/agent.service\n",
                &["user@1000.service", "agent.service"],
                in_service,
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope\n",
                &["user@1000.service", "vte-spawn-1.scope"],
                everything,
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n",
                &["user@1000.service"],
                in_service,
            ),
            // Several hierarchies, and a path with a colon in it.
            (
                "4:memory:/other.service\n1:name=systemd:/system.slice/a:b.service\n0::/\n",
                &["a:b.service"],
                in_service,
            ),
        ];
        for (cgroups, units, claimed) in cases {
            assert_eq!(units_in(cgroups), units, "{cgroups}");
            let detachment = detachment_in(units_in(cgroups), None);
            assert_eq!(detachment.survives, claimed, "{cgroups}");
            assert_eq!(detachment.bound_to.as_deref(), units.last().copied(), "{cgroups}");
        }
    }

    #[test]
    fn scenario_122_inside_a_pid_namespace_nothing_is_claimed() {
        let detachment = detachment_in(vec!["agent.service".into()], Some("pid:[7]".into()));
        assert!(detachment.survives.is_empty(), "{detachment:?}");
        assert!(detachment.bound_to.unwrap().ends_with("the pid namespace pid:[7]"));
    }
}
