// Hands follow-ups to the session while it is open. Copilot loads extensions with `--experimental`. When it has ended,
// the sink `copilot` resumes the session instead.
import { joinSession } from "@github/copilot-sdk/extension"

// How long a turn may take before its follow-up comes again.
const TURN_MS = 60 * 60 * 1000

const session = await joinSession()
handOver(session.sessionId, (prompt) =>
  session.sendAndWait({ prompt }, TURN_MS).then(
    () => true,
    () => false,
  ),
)
