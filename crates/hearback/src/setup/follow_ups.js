// written by `hearback agent setup`; `--remove` takes it away
import { spawn } from "node:child_process"

const PROGRAM = "{hearback}"
// A call waits for so long, and begins again: a session that was closed is left alone after the next answer.
const WAIT = "10m"

const hearback = (...words) =>
  new Promise((done) => {
    const child = spawn(PROGRAM, words, { stdio: ["ignore", "pipe", "ignore"] })
    let text = ""
    child.stdout.on("data", (bytes) => (text += bytes))
    const end = () => child.kill()
    const answer = (code) => {
      process.off("exit", end)
      done({ code, text })
    }
    process.once("exit", end)
    child.on("error", () => answer(-1))
    child.on("close", answer)
  })

const read = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const pause = () => new Promise((done) => setTimeout(done, 1000).unref?.())

// Hands the follow-ups of a session to `turn`, one after the other. `turn` ends when the session has answered and says
// whether it has: an agent that ends before that has not heard it, and it comes again.
async function handOver(session, turn) {
  for (;;) {
    const answer = await hearback("followups", "next", "--session", session, "--wait", WAIT, "--json")
    if (answer.code === -1) return
    const event = answer.code === 0 ? read(answer.text) : undefined
    if (!event?.data?.text) {
      // Nothing came, or hearback failed: not again at once.
      await pause()
    } else if (await turn(event.data.text)) {
      await hearback("followups", "ack", "--session", session, event.id)
    } else {
      await pause()
    }
  }
}

