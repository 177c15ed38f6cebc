//! The processes above this one, from /proc.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::snapshot::Stat;
use crate::ancestors::Ancestor;

pub(crate) fn parent(pid: u32) -> Option<u32> {
    Stat::read(pid).ok().flatten().map(|stat| stat.parent)
}

pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    Stat::read(pid).ok().flatten().map(|stat| stat.started)
}

pub(crate) fn look(pid: u32) -> Ancestor {
    let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).ok();
    let arguments = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Ancestor {
        pid,
        // The file may have been replaced by a newer one of the same name: that one is the program now.
        executable: link("exe").map(|path| {
            let bytes = path.into_os_string().into_vec();
            PathBuf::from(OsString::from_vec(bytes.strip_suffix(b" (deleted)").unwrap_or(&bytes).to_vec()))
        }),
        arguments: words.map(|word| OsString::from_vec(word.to_vec())).collect(),
        cwd: link("cwd"),
    }
}
