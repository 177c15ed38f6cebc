//! Links, where they can be made.

use std::path::Path;

use crate::skipped;

/// Makes a link to a folder; if that is not possible here, says so.
#[track_caller]
pub fn link_folder(to: &Path, link: &Path) -> bool {
    told(link, sys::link_folder(to, link))
}

/// Makes a link to a file; if that is not possible here, says so.
#[track_caller]
pub fn link_file(to: &Path, link: &Path) -> bool {
    told(link, sys::link_file(to, link))
}

#[track_caller]
fn told(link: &Path, made: std::io::Result<()>) -> bool {
    match made {
        Ok(()) => assert!(fs_err::symlink_metadata(link).unwrap().is_symlink(), "a link is seen as one"),
        Err(ref error) => skipped(format_args!("no link can be made here: {error}")),
    }
    made.is_ok()
}

#[cfg(unix)]
mod sys {
    use std::io;
    use std::path::Path;

    pub(super) fn link_folder(to: &Path, link: &Path) -> io::Result<()> {
        fs_err::os::unix::fs::symlink(to, link)
    }

    pub(super) use link_folder as link_file;
}

#[cfg(windows)]
mod sys {
    use std::io;
    use std::os::windows::fs::{symlink_dir, symlink_file};
    use std::path::Path;
    use std::process::Command;

    /// Wine follows links of its host silently, and makes none that a program could see.
    fn unless_wine() -> io::Result<()> {
        let wine = io::Error::new(io::ErrorKind::Unsupported, "Wine shows no links");
        if crate::is_wine() { Err(wine) } else { Ok(()) }
    }

    pub(super) fn link_folder(to: &Path, link: &Path) -> io::Result<()> {
        unless_wine()?;
        if symlink_dir(to, link).is_err() {
            // A junction takes no privilege.
            let mut command = Command::new("cmd");
            command.args(["/c", "mklink", "/J"]).arg(link).arg(to);
            crate::run(command).ok();
        }
        Ok(())
    }

    pub(super) fn link_file(to: &Path, link: &Path) -> io::Result<()> {
        unless_wine().and_then(|()| symlink_file(to, link))
    }
}
