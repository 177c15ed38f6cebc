//! A terminal with a program in it, as each system makes one.

#[cfg(target_os = "linux")]
mod linux;
// Wherever there are tests, since it is tested by itself.
#[cfg(any(windows, test))]
mod screen;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::Terminal;
#[cfg(windows)]
pub use windows::Terminal;
