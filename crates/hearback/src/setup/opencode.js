// written by `hearback agent setup`; `--remove` takes it away
//
// Names the session to the commands that a model runs, and hands follow-ups to the session while it is open. When
// opencode has ended, the sink `opencode` resumes the session instead.
import { spawn } from "node:child_process"

const PROGRAM = "{hearback}"
// A call waits for so long, and begins again: a session that was closed is left alone after the next answer.
const WAIT = "10m"

const hearback = (...words) =>
  new Promise((done) => {
    const child = spawn(PROGRAM, words, { stdio: ["ignore", "pipe", "ignore"] })
    let text = ""
    child.stdout.on("data", (bytes) => (text += bytes))
    child.on("error", () => done({ code: -1, text }))
    child.on("close", (code) => done({ code, text }))
    process.once("exit", () => child.kill())
  })

const read = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const Hearback = async ({ client, directory }) => {
  const watched = new Set()
  const watch = async (session) => {
    if (watched.has(session)) return
    watched.add(session)
    for (;;) {
      const answer = await hearback("followups", "next", "--session", session, "--wait", WAIT, "--json")
      if (answer.code === -1) break
      const event = answer.code === 0 ? read(answer.text) : undefined
      if (!event?.data?.text) {
        // Nothing came, or hearback failed: not again at once.
        await new Promise((done) => setTimeout(done, 1000).unref?.())
        continue
      }
      const parts = [{ type: "text", text: event.data.text }]
      // Until the turn has ended: an opencode that ends before that has not heard it, and it comes again.
      const turn = await client.session.prompt({ path: { id: session }, query: { directory }, body: { parts } })
      if (turn.error) await new Promise((done) => setTimeout(done, 1000))
      else await hearback("followups", "ack", "--session", session, event.id)
    }
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
