//! The units of a service manager that this process is part of. Stopping one ends everything in it, detached or not.

/// The units around this process, outermost first; none where there is no service manager that groups processes.
#[cfg(target_os = "linux")]
pub(crate) fn around_us() -> Vec<String> {
    units_in(&fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn around_us() -> Vec<String> {
    Vec::new()
}

/// What a job within these units lives through.
///
/// A service ends when its main process does, and the launcher may be that process or its child, so that living
/// through the parent is not claimed there. A scope has no main process.
pub(crate) fn survives(units: &[String]) -> &'static [&'static str] {
    match units.last() {
        Some(unit) if unit.ends_with(".service") => &["terminal", "process_group"],
        _ => &["parent", "terminal", "process_group"],
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
            assert_eq!(survives(&units_in(cgroups)), claimed, "{cgroups}");
        }
    }
}
