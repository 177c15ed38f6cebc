//! `hearback mcp`

use hearback::Hearback;
use hearback_mcp::Options;

use crate::args::McpArgs;
use crate::error::CliError;

/// Serves one client. Standard output belongs to the protocol: nothing else is printed there.
pub(crate) fn run(hearback: Hearback, args: McpArgs) -> Result<u32, CliError> {
    let options = Options { session: args.session, sinks: args.sinks };
    hearback_mcp::serve(hearback, options)?;
    Ok(0)
}
