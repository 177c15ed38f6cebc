import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { HearbackError } from "./error.js";
import type { HelloDocument, Notification, RpcError } from "./types.js";

export const PROTOCOL = 1;
const LINE_MAX_BYTES = 16 * 1024 * 1024;
/** How long a process that was told to end may take. Its turns are cut short by the kill as by its end. */
const CLOSE_WITHIN_MS = 10_000;
const DIAGNOSTICS_KEPT_BYTES = 4096;

export interface PipeListener {
  /** Called in the order of the lines, and before any promise of the same chunk resolves. */
  notification(message: Notification): void;
  /** The process has ended, or sent what is no protocol. Called once, and never for a start that failed. */
  ended(why: HearbackError): void;
  diagnostic(text: string): void;
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** One `serve` process. It is never started again: the client makes a new one. */
export class Pipe {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #listener: PipeListener;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<void>;
  readonly #greeted: Promise<HelloDocument>;
  #greet!: { resolve(hello: HelloDocument): void; reject(error: unknown): void };
  #hello: HelloDocument | undefined;
  #over: HearbackError | undefined;
  #nextId = 1;
  #chunks: Buffer[] = [];
  #buffered = 0;
  #diagnostics = "";

  private constructor(binary: string, env: NodeJS.ProcessEnv, listener: PipeListener) {
    this.#listener = listener;
    this.#greeted = new Promise((resolve, reject) => (this.#greet = { resolve, reject }));
    // In a process group of its own: Ctrl-C is for the host, which then closes its turns over this pipe.
    const child = spawn(binary, ["serve"], { env, stdio: "pipe", windowsHide: true, detached: process.platform !== "win32" });
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        this.#end(this.#howItEnded(code, signal));
        resolve();
      });
      child.once("error", (error: NodeJS.ErrnoException) => {
        const kind = error.code === "ENOENT" ? "not_found" : "disconnected";
        this.#end(new HearbackError(kind, `${binary} cannot be started: ${error.message}`));
        resolve();
      });
    });
    // A write to a process that has ended fails; its end is what is reported.
    child.stdin.on("error", () => {});
    child.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#diagnostics = (this.#diagnostics + text).slice(-DIAGNOSTICS_KEPT_BYTES);
      // Until it has begun, this is a part of the error.
      if (this.#hello) listener.diagnostic(text);
    });
  }

  static async start(binary: string, env: NodeJS.ProcessEnv, listener: PipeListener): Promise<Pipe> {
    let pipe: Pipe;
    try {
      pipe = new Pipe(binary, env, listener);
    } catch (error) {
      throw new HearbackError("disconnected", `${binary} cannot be started: ${(error as Error).message}`);
    }
    await pipe.#greeted;
    return pipe;
  }

  get hello(): HelloDocument {
    return this.#hello!;
  }

  /** Why it ended, if it has. */
  get over(): HearbackError | undefined {
    return this.#over;
  }

  /**
   * Sends a request. `accept` sees the result before the next line is read, so that what follows it finds what it made.
   *
   * A signal sends `cancel`. The answer still decides: what was done before the cancel arrived is a result.
   */
  async request<T>(method: string, params: object, accept: (result: unknown) => T, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#over) throw this.#over;
    const id = this.#nextId++;
    const line = JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
    if (Buffer.byteLength(line) > LINE_MAX_BYTES) {
      throw new HearbackError("usage", `\`${method}\` has parameters of more than ${LINE_MAX_BYTES} bytes`);
    }
    const cancel = () => this.notify("cancel", { id });
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await new Promise<T>((resolve, reject) => {
        const settle = (result: unknown) => {
          try {
            resolve(accept(result));
          } catch (error) {
            reject(error);
          }
        };
        this.#pending.set(id, { resolve: settle, reject });
        this.#child.stdin.write(line);
      });
    } catch (error) {
      if (signal?.aborted && error instanceof HearbackError && error.kind === "cancelled") throw signal.reason;
      throw error;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#pending.delete(id);
    }
  }

  /** Waits until the process has read what was written, so that a flood of requests stays bounded. */
  async drained(): Promise<void> {
    const { stdin } = this.#child;
    if (!stdin.writableNeedDrain || this.#over) return;
    await Promise.race([new Promise<void>((resolve) => stdin.once("drain", resolve)), this.#exited]);
  }

  notify(method: string, params: object): void {
    if (!this.#over) this.#child.stdin.write(JSON.stringify({ jsonrpc: "2.0", method, params }) + "\n");
  }

  /** Whether the process keeps this program from ending. */
  hold(held: boolean): void {
    for (const one of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr] as unknown as Array<{ ref?(): void; unref?(): void }>) {
      if (held) one.ref?.();
      else one.unref?.();
    }
  }

  /** Closes the pipe, which ends the process. Its open turns are cut short, its claims are free. */
  async close(): Promise<void> {
    this.hold(true);
    this.#end(new HearbackError("closed", "the client was closed"));
    this.#child.stdin.end();
    const late = setTimeout(() => this.#child.kill("SIGKILL"), CLOSE_WITHIN_MS);
    await this.#exited;
    clearTimeout(late);
  }

  #howItEnded(code: number | null, signal: string | null): HearbackError {
    const how = `hearback serve has ended: ${signal ?? `exit code ${code}`}`;
    if (this.#hello) return new HearbackError("disconnected", how);
    // It could not begin, and has said why to people.
    const [said, tip] = this.#diagnostics.trim().replace(/^error: /, "").split("\ntip: ");
    return new HearbackError("disconnected", said ? `${how}: ${said}` : how, { tip });
  }

  #end(why: HearbackError): void {
    if (this.#over) return;
    this.#over = why;
    this.#greet.reject(why);
    for (const pending of this.#pending.values()) pending.reject(why);
    this.#pending.clear();
    if (this.#hello) this.#listener.ended(why);
  }

  /** What is no protocol ends the process: nothing that follows could be trusted. */
  #fail(message: string): void {
    this.#end(new HearbackError("protocol", message));
    this.#child.kill("SIGKILL");
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(10, from);
      const part = chunk.subarray(from, at < 0 ? chunk.length : at);
      this.#chunks.push(part);
      this.#buffered += part.length;
      if (this.#buffered > LINE_MAX_BYTES) return this.#fail(`hearback serve sent a line of more than ${LINE_MAX_BYTES} bytes`);
      if (at < 0) return;
      const line = Buffer.concat(this.#chunks).toString("utf8");
      this.#chunks = [];
      this.#buffered = 0;
      from = at + 1;
      if (this.#over) return;
      this.#line(line);
    }
  }

  #line(line: string): void {
    let message: any;
    try {
      message = JSON.parse(line);
    } catch {
      return this.#fail(`hearback serve sent a line that is not JSON: ${line.slice(0, 200)}`);
    }
    if (typeof message !== "object" || message === null) return this.#fail(`hearback serve sent no object: ${line.slice(0, 200)}`);
    if (!this.#hello) return this.#first(message, line);
    if (typeof message.method === "string") {
      this.#listener.notification(message);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    if (message.error === undefined) pending.resolve(message.result);
    else pending.reject(errorOf(message.error));
  }

  #first(message: any, line: string): void {
    if (message.method !== "hello") return this.#fail(`hearback serve did not say hello: ${line.slice(0, 200)}`);
    if (message.params?.protocol !== PROTOCOL) {
      return this.#fail(`hearback serve speaks protocol ${message.params?.protocol}, and this package ${PROTOCOL}`);
    }
    this.#hello = message.params;
    if (this.#diagnostics !== "") this.#listener.diagnostic(this.#diagnostics);
    this.#greet.resolve(message.params);
  }
}

function errorOf({ code, message, data }: RpcError): HearbackError {
  return HearbackError.of({ ...data, message }, code);
}
