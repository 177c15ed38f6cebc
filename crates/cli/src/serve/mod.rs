//! `hearback serve`: one pipe for a host in any language. It translates lines of JSON-RPC into calls of the library,
//! and holds no rule of its own.

mod events;
mod jobs;
mod pipe;
mod rpc;
mod server;
mod turns;

pub(crate) use server::run;
