import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { HearbackError } from "./error.js";

export interface RunOptions {
  /** What the agent reads. */
  input?: string;
  /** More variables. */
  env?: Record<string, string>;
}

/** Runs a program to its end, or kills it with its process group when the signal comes. */
export async function runAgent(command: readonly string[], run: { env: NodeJS.ProcessEnv; input: string; signal: AbortSignal }): Promise<string> {
  const [program, ...args] = command;
  if (program === undefined) throw new HearbackError("usage", "there is no agent to run");
  const interrupted = () => new HearbackError("interrupted", `the agent was interrupted: ${run.signal.reason.message}`);
  if (run.signal.aborted) throw interrupted();
  const grouped = process.platform !== "win32";
  const agent = spawn(program, args, { env: run.env, stdio: ["pipe", "pipe", "inherit"], detached: grouped, windowsHide: true });
  const kill = () => {
    try {
      if (grouped && agent.pid !== undefined) process.kill(-agent.pid, "SIGKILL");
      else agent.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  };
  run.signal.addEventListener("abort", kill, { once: true });
  try {
    const ended = new Promise<string>((resolve, reject) => {
      agent.once("error", (error: NodeJS.ErrnoException) => reject(new HearbackError(error.code === "ENOENT" ? "not_found" : "not_started", `${program} cannot be started: ${error.message}`)));
      agent.once("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    // An agent that does not read its input is not an error.
    agent.stdin.on("error", () => {}).end(run.input);
    const [how, said] = await Promise.all([ended, text(agent.stdout)]);
    if (run.signal.aborted) throw interrupted();
    if (how !== "exit code 0") throw new HearbackError("failed", `${program} has ended with ${how}`);
    return said;
  } finally {
    run.signal.removeEventListener("abort", kill);
  }
}
