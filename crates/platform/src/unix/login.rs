//! What systemd's login manager does at the end of a login, by its settings.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hearback_core::finding::{Logout, Tried};
use nix::unistd::{User, geteuid};

/// Where settings are: the first folder beats the others, and files beside the main one beat it.
const PLACES: [&str; 4] = ["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];
const LINGERING: &str = "/var/lib/systemd/linger";

pub(crate) fn look() -> Tried<Logout> {
    // Its own test for whether it runs the machine: see sd_booted(3).
    if !Path::new("/run/systemd/system").is_dir() {
        return Tried::untried("systemd does not run this machine, so no login manager ends anything");
    }
    let user = match User::from_uid(geteuid()) {
        Ok(Some(user)) => user.name,
        Ok(None) => geteuid().to_string(),
        Err(error) => return Tried::Failed(error.into()),
    };
    settings()
        .map(|texts| Logout {
            ends_processes: ends_processes(&texts, &user),
            lingers: Path::new(LINGERING).join(&user).exists(),
        })
        .into()
}

/// The texts in force, the weakest first.
fn settings() -> io::Result<Vec<String>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    paths.extend(PLACES.iter().map(|place| Path::new(place).join("logind.conf")).find(|path| path.exists()));
    // A file of the same name in a stronger place hides the weaker one; names decide the order.
    let mut beside = BTreeMap::new();
    for place in PLACES.iter().rev() {
        let Ok(entries) = fs_err::read_dir(Path::new(place).join("logind.conf.d")) else { continue };
        for entry in entries {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "conf") {
                beside.insert(entry.file_name(), entry.path());
            }
        }
    }
    paths.extend(beside.into_values());
    paths.iter().map(fs_err::read_to_string).collect()
}

/// Whether what this user leaves running is ended with the login.
fn ends_processes(texts: &[String], user: &str) -> bool {
    // Its defaults.
    let (mut ends, mut only, mut exclude) = (false, String::new(), "root".to_owned());
    for line in texts.iter().flat_map(|text| text.lines()) {
        let Some((name, value)) = line.split_once('=') else { continue };
        match name.trim() {
            "KillUserProcesses" => {
                ends =
                    matches!(value.trim().to_lowercase().as_str(), "1" | "yes" | "y" | "true" | "t" | "on");
            }
            "KillOnlyUsers" => value.trim().clone_into(&mut only),
            "KillExcludeUsers" => value.trim().clone_into(&mut exclude),
            _ => {}
        }
    }
    let names = |list: &str| list.split_whitespace().any(|name| name == user);
    ends && (only.is_empty() || names(&only)) && !names(&exclude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_counts_and_root_is_spared() {
        let says = |texts: &[&str], user: &str| {
            ends_processes(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), user)
        };
        assert!(!says(&[], "alice"));
        assert!(!says(&["[Login]\n#KillUserProcesses=yes\n"], "alice"), "a comment sets nothing");
        assert!(says(&["[Login]\nKillUserProcesses = yes\n"], "alice"));
        assert!(!says(&["KillUserProcesses=yes"], "root"));
        assert!(says(&["KillUserProcesses=yes\nKillExcludeUsers=\n"], "root"));
        assert!(!says(&["KillUserProcesses=yes", "KillUserProcesses=no"], "alice"));
        assert!(!says(&["KillUserProcesses=true\nKillOnlyUsers=bob carol"], "alice"));
        assert!(says(&["KillUserProcesses=1\nKillOnlyUsers=bob alice"], "alice"));
        assert!(!says(&["KillUserProcesses=on\nKillExcludeUsers=root alice"], "alice"));
    }
}
