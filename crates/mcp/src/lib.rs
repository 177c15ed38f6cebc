//! The MCP server of hearback: a door for agents. It translates between the protocol and the library `hearback`, and
//! holds no rules of its own.
//!
//! The server is never the owner of a job: it ends with its client, and every job goes on. Its truth is the store, so
//! another server process answers for the same jobs and tasks.

mod answers;
mod caller;
mod failure;
mod inputs;
mod promise;
mod resources;
mod schema;
mod server;
mod subscriptions;
mod tasks;
mod told;
mod tools;
mod wait;

use std::io;
use std::sync::Arc;

use hearback::Hearback;
use hearback::core::Session;
use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::runtime;

use crate::server::Server;
use crate::told::{Confirming, Told};

/// What the person who registers the server chooses.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The session of every call, whatever the client says.
    pub session: Option<Session>,
    /// The sinks of every launch that has a session; by default those of the settings.
    pub sinks: Vec<String>,
}

/// Why the server ended before its client did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There is no async runtime to be had.
    #[error("the server could not be started")]
    Runtime(#[source] io::Error),
    /// The client did not speak the protocol.
    #[error("the client did not begin as the protocol demands")]
    Handshake(#[source] Box<ServerInitializeError>),
    /// A task of the server panicked.
    #[error("the server failed")]
    Failed(#[source] tokio::task::JoinError),
}

/// Serves one client on standard input and output until the client closes them.
///
/// # Errors
///
/// When the client does not speak the protocol, or the server itself fails.
pub fn serve(hearback: Hearback, options: Options) -> Result<(), ServeError> {
    // One thread: calls into the library sleep in threads of their own.
    let runtime =
        runtime::Builder::new_current_thread().enable_time().build().map_err(ServeError::Runtime)?;
    let served = runtime.block_on(serve_streams(hearback, options));
    // A read of standard input cannot be cut short, and no call that still runs may keep the process alive.
    runtime.shutdown_background();
    served
}

async fn serve_streams(hearback: Hearback, options: Options) -> Result<(), ServeError> {
    let hearback = Arc::new(hearback);
    let told = Arc::new(Told::new(Arc::clone(&hearback)));
    let server = Server::new(hearback, options, Arc::clone(&told));
    let streams = AsyncRwTransport::new_server(tokio::io::stdin(), tokio::io::stdout());
    let running = match server.serve(Confirming::new(streams, told)).await {
        Ok(running) => running,
        // A client that only looked whether the server starts is no error.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Handshake(Box::new(error))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Failed(error)),
        Ok(_) => Ok(()),
    }
}
