//! A terminal with a program in it, as each system makes one.

#[cfg(target_os = "linux")]
mod linux;
// Wherever there are tests, since it is tested by itself.
#[cfg(any(windows, test))]
mod screen;
#[cfg(target_os = "linux")]
mod tmux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::Terminal;
#[cfg(target_os = "linux")]
pub use tmux::Tmux;
#[cfg(windows)]
pub use windows::Terminal;
