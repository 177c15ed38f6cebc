//! Attending sessions: for a program that runs the turns of sessions itself. It opens turns, is handed what is due, and
//! closes it by tokens. `hearback serve` is this over a pipe.
//!
//! Nothing here is a second engine: what is due, claims, leases and receipts are those of every delivery. A host is the
//! sink [`HOST_SINK`](hearback_core::port::sink::HOST_SINK) of this process, which answers when the host has closed the
//! turn.

mod host;
mod items;
mod listen;
mod look;
mod sink;
mod turns;

pub use host::{Attend, SessionHost};
pub use items::{HostItem, Release};
pub use turns::{HostNews, HostTurn, OpenTurnError, TokenError, TurnClose};
