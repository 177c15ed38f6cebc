// A store of its own for each test, and the program under test: `$HEARBACK`.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, HearbackError, type ClientOptions } from "../src/index.js";

export class World implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "hearback-ts-"));
  readonly home = join(this.folder, "home");
  readonly #clients: Client[] = [];

  client(options: ClientOptions = {}): Client {
    const client = new Client({ binary: program(), home: this.home, ...options });
    this.#clients.push(client);
    return client;
  }

  /** What the command line prints, as JSON. */
  async cli(...args: string[]): Promise<any> {
    return JSON.parse(await this.text(...args, "--json"));
  }

  async text(...args: string[]): Promise<string> {
    const env = { ...process.env, HEARBACK_HOME: this.home };
    return (await promisify(execFile)(program(), args, { env }).catch((error) => error)).stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client.close();
    const { jobs } = await this.cli("list", "--all", "--all-sessions");
    const open = jobs.filter((job: any) => job.state === "running").map((job: any) => job.id);
    if (open.length > 0) await this.text("kill", "--grace", "0s", ...open);
    // A supervisor that has just ended its job may still settle it.
    await eventually("the store can be removed", async () => {
      try {
        rmSync(this.folder, { recursive: true, force: true });
        return true;
      } catch {
        return undefined;
      }
    });
  }
}

export function program(): string {
  const path = process.env["HEARBACK"];
  if (!path) throw new Error("HEARBACK does not name the program: run `cargo xtask packages typescript`");
  return path;
}

/** The error of a call that has to fail. */
export async function failure(promise: Promise<unknown>): Promise<HearbackError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof HearbackError) return error;
    throw error;
  }
  throw new Error("it succeeded");
}

/** Waits for a condition, with a deadline. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`it does not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
