//! Windows shows no working directory of another process, so none is looked for: a session of an agent is found by
//! its variables alone.

use crate::ancestors::Ancestor;

pub(crate) fn parent(_: u32) -> Option<u32> {
    None
}

pub(crate) fn start_ticks(_: u32) -> Option<u64> {
    None
}

pub(crate) fn look(pid: u32) -> Ancestor {
    Ancestor { pid, executable: None, arguments: Vec::new(), cwd: None }
}
