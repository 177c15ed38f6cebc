// Names the session to the commands that a model runs, and hands follow-ups to the session while it is open. When
// opencode has ended, the sink `opencode` resumes the session instead.
export const Hearback = async ({ client, directory }) => {
  const watched = new Set()
  const watch = async (session) => {
    if (watched.has(session)) return
    watched.add(session)
    await handOver(session, async (text) => {
      const body = { parts: [{ type: "text", text }] }
      const turn = await client.session.prompt({ path: { id: session }, query: { directory }, body })
      return !turn.error
    })
    watched.delete(session)
  }
  return {
    "shell.env": async (input, output) => {
      if (!input.sessionID) return
      output.env.HEARBACK_SESSION = input.sessionID
      watch(input.sessionID)
    },
  }
}
