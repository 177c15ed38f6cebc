//! Arguments of several types in one list.

/// Arguments for a program: anything that is text for the system, as an array of `OsString`.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => { [$(::std::convert::AsRef::<::std::ffi::OsStr>::as_ref(&$arg).to_owned()),*] };
}
