//! Files that belong to another user, or that may not be read.

use std::path::Path;

use crate::skipped;

/// Gives a file, a folder or a link away, and returns how messages name its new owner. Where that is not
/// permitted, says so and returns nothing.
#[track_caller]
pub fn give_away(path: &Path) -> Option<String> {
    let given = sys::give_away(path);
    if given.is_none() {
        skipped(sys::ONLY);
    }
    given
}

/// Takes back what was given away.
#[track_caller]
pub fn take_back(path: &Path) {
    sys::take_back(path);
}

/// How messages name the user that runs the tests.
#[track_caller]
pub fn me() -> String {
    sys::me()
}

/// Forbids all users to read a file, its owner among them, until the returned value is dropped.
///
/// Under Wine it takes [`with_private_mounts`](crate::with_private_mounts).
#[track_caller]
pub fn forbid_reading(path: &Path) -> Forbidden {
    sys::forbid_reading(path)
}

/// A file that no user may read.
#[derive(Debug)]
pub struct Forbidden {
    #[cfg(windows)]
    _over: Option<crate::Mount>,
}

#[cfg(unix)]
mod sys {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use fs_err as fs;
    use nix::unistd::geteuid;

    use super::Forbidden;

    /// The user that owns nothing, on every Unix that the tests are run on as root.
    const NO_OWNER: u32 = 65534;
    pub(super) const ONLY: &str = "only root can give files away";

    pub(super) fn give_away(path: &Path) -> Option<String> {
        if !geteuid().is_root() {
            return None;
        }
        fs::os::unix::fs::lchown(path, Some(NO_OWNER), None).unwrap();
        Some(NO_OWNER.to_string())
    }

    pub(super) fn take_back(path: &Path) {
        fs::os::unix::fs::lchown(path, Some(geteuid().as_raw()), None).unwrap();
    }

    pub(super) fn me() -> String {
        geteuid().to_string()
    }

    pub(super) fn forbid_reading(path: &Path) -> Forbidden {
        fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
        Forbidden {}
    }
}

#[cfg(windows)]
mod sys {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::process::Command;

    use super::Forbidden;
    use crate::{Mount, Ran, is_real_windows, outside, run};

    /// A group that owns nothing: all users with an account.
    const USERS: &str = "S-1-5-32-545";
    /// What Wine takes the user of its host for that it runs as, and every other.
    const WINE: &str = "S-1-5-21-0-0-0-1000";
    const ANONYMOUS: &str = "S-1-5-7";
    pub(super) const ONLY: &str = "only an administrator can give files away, or root around Wine";

    fn tool(name: &str, args: &[&OsStr]) -> Ran {
        let mut command = Command::new(name);
        command.args(args);
        run(command)
    }

    /// Of the name itself, should it be a link.
    fn set_owner(path: &Path, to: &str) -> Ran {
        let to = format!("*{to}");
        tool("icacls", &[path.as_ref(), "/setowner".as_ref(), to.as_ref(), "/L".as_ref()])
    }

    pub(super) fn give_away(path: &Path) -> Option<String> {
        let (given, to) = if is_real_windows() {
            (set_owner(path, USERS), USERS)
        } else {
            // Wine makes the owner of a file out of the host's.
            (outside::run("chown", &["65534", &outside::unix(path)]), ANONYMOUS)
        };
        (given.code == Some(0)).then(|| to.to_owned())
    }

    pub(super) fn take_back(path: &Path) {
        if is_real_windows() {
            set_owner(path, &me()).ok();
        } else {
            outside::run("chown", &["0", &outside::unix(path)]).ok();
        }
    }

    pub(super) fn me() -> String {
        if !is_real_windows() {
            return WINE.to_owned();
        }
        let told = tool("whoami", &["/user", "/fo", "csv", "/nh"].map(AsRef::as_ref)).ok();
        let sid = told.rsplit(',').next().map(|sid| sid.trim_matches('"').to_owned());
        sid.filter(|sid| sid.starts_with("S-1-")).unwrap_or_else(|| panic!("no identifier in {told}"))
    }

    pub(super) fn forbid_reading(path: &Path) -> Forbidden {
        if is_real_windows() {
            tool("icacls", &[path.as_ref(), "/deny".as_ref(), "*S-1-1-0:(RD)".as_ref()]).ok();
            return Forbidden { _over: None };
        }
        // Wine opens what its host lets it open, and root may open everything but what the kernel only listens to.
        Forbidden { _over: Some(Mount::bind("/proc/sys/vm/compact_memory", path)) }
    }
}
