import { findBinary } from "./binary.js";
import { HearbackError } from "./error.js";
import { EventStream, type EventSource } from "./events.js";
import type { Attended, CallOptions, ClientOptions, EventsOptions, KillOptions, LaunchOptions, ListOptions, OutputOptions, SendOptions, ShowOptions, TurnOptions, WaitOptions } from "./params.js";
import { Pipe, type PipeListener } from "./pipe.js";
import { Slots } from "./slots.js";
import { Turn } from "./turn.js";
import { TurnQueue } from "./turns.js";
import type { AttendParams, EventDocument, HelloDocument, Notification, ServeParams, ServeResults, SubscribedDocument, TurnOpenedDocument } from "./types.js";

/** How often a process is started without a hello before the client gives up. A call begins anew. */
const STARTS_MAX = 10;
const PAUSE_MS = { first: 100, most: 5_000 };
/** How often a call that is safe to repeat is sent. */
const SENDS_MAX = 5;

/** `serve` takes 128 unanswered requests. Those that it answers at once are fewer, which leaves room for those that wait. */
const QUICK_AT_ONCE = 32;
const LONG = new Set(["wait", "turn.open"]);

/** Whether a call may be sent again when its process has ended before it answered. */
type Repeat = "safe" | "once";

interface Connected {
  pipe: Pipe;
  /** The turns of this process that are open. */
  turns: Map<string, Turn>;
  /** Its subscriptions, by the number that `serve` gave them. */
  streams: Map<number, EventStream>;
}

/**
 * A client of one store, over one `hearback serve` process, which it starts at the first call and again whenever it ends.
 *
 * The process does not keep this program alive, but a call, an open turn and a loop over turns or events do.
 */
export class Client implements AsyncDisposable {
  readonly #options: ClientOptions;
  #connected: Connected | undefined;
  #connecting: Promise<Connected> | undefined;
  readonly #quick = new Slots(QUICK_AT_ONCE);
  #greetedOnce = false;
  #closed = false;
  #draining = false;
  #holds = 0;
  /** What this host attends, as it was asked for: restored in every new process. */
  readonly #attended = new Map<string, Attended>();
  readonly #streams = new Set<EventStream>();
  /** The streams that have a subscription, which a new process gets. One whose reader is behind has none. */
  readonly #subscribed = new Set<EventStream>();
  readonly #queue = new TurnQueue();

  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /** Whether a monitor restarts or stops. No turn begins until that is over. */
  get draining(): boolean {
    return this.#draining;
  }

  /** The first line of the process that runs now. */
  async hello(): Promise<HelloDocument> {
    return (await this.#connection()).pipe.hello;
  }

  /** Launches a job: a program with its arguments, or `{ shell: "text" }`. It outlives this program. */
  async launch(command: readonly string[] | { shell: string }, options: LaunchOptions = {}): Promise<ServeResults["launch"]> {
    // A caller without types may well try it.
    if (typeof command === "string") throw new HearbackError("usage", "a command is a list of words", { tip: 'text for a shell is `{ shell: "text" }`' });
    const { signal, ...params } = options;
    const what = "shell" in command ? { shell: command.shell } : { command: [...command] };
    // With a key, a launch that is sent again finds the job of the first.
    return this.#call("launch", { ...what, ...params }, params.key ? "safe" : "once", signal);
  }

  list(options: ListOptions = {}): Promise<ServeResults["list"]> {
    const { signal, ...params } = options;
    return this.#call("list", params, "safe", signal);
  }

  /**
   * Shows a job, by its id, four characters of either end of it, its label or `@last`, or by `{ key }`. With
   * `output_bytes` it has the end of its output as `log`.
   */
  show(job: string | null, options: ShowOptions = {}): Promise<ServeResults["show"]> {
    const { signal, ...params } = options;
    return this.#call("show", { job, ...params }, "safe", signal);
  }

  output(job: string, options: OutputOptions = {}): Promise<ServeResults["output"]> {
    const { signal, ...params } = options;
    return this.#call("output", { job, ...params }, "safe", signal);
  }

  /** Waits for jobs to end: all, or with `any` the first. Cancelling it leaves the jobs alone. */
  wait(jobs: string | readonly string[], options: WaitOptions = {}): Promise<ServeResults["wait"]> {
    const { signal, timeout_ms, ...params } = options;
    const began = performance.now();
    // A wait that is sent again has the rest of its time.
    const left = () => Math.max(0, (timeout_ms ?? 0) - Math.floor(performance.now() - began));
    return this.#call("wait", () => ({ jobs: [jobs].flat(), ...params, ...(timeout_ms == null ? {} : { timeout_ms: left() }) }), "safe", signal);
  }

  /** Kills jobs, each with every process that it started. */
  kill(jobs: string | readonly string[], options: KillOptions = {}): Promise<ServeResults["kill"]> {
    const { signal, ...params } = options;
    return this.#call("kill", { jobs: [jobs].flat(), ...params }, "once", signal);
  }

  /** Sends a message to a session. */
  send(session: string, text: string, options: SendOptions = {}): Promise<ServeResults["send"]> {
    const { signal, ...params } = options;
    return this.#call("send", { session, text, ...params }, "once", signal);
  }

  /** From now on, what is due for the session comes to `turns()`. `{ all: true }` is every session. */
  async attend(session: Attended, options: CallOptions = {}): Promise<void> {
    const params = attendParams(session);
    await this.#call("attend", params, "safe", options.signal);
    this.#attended.set(JSON.stringify(params), session);
  }

  async unattend(session: Attended, options: CallOptions = {}): Promise<void> {
    const params = attendParams(session);
    this.#attended.delete(JSON.stringify(params));
    await this.#call("unattend", params, "safe", options.signal);
  }

  /** Opens a turn, in which the host itself runs the agent. Fails with the kind `busy` while another turn runs there. */
  turn(session: string, options: TurnOptions = {}): Promise<Turn> {
    const { signal, ...params } = options;
    return this.#send("turn.open", () => ({ session, ...params }), "once", signal, (result, connected) =>
      this.#opened(result as TurnOpenedDocument, connected),
    );
  }

  /** The turns that `serve` begins, because something is due for a session that this host attends. Ends with the client. */
  async *turns(options: CallOptions = {}): AsyncGenerator<Turn, void, undefined> {
    const release = this.#hold();
    try {
      for (;;) {
        const turn = await this.#queue.next(options.signal);
        if (turn === undefined) return;
        yield turn;
      }
    } finally {
      release();
    }
  }

  /** What happens to jobs and sessions, behind a cursor, from `"beginning"` or from `"now"`. Misses and repeats nothing. */
  events(options: EventsOptions = {}): EventStream {
    const release = this.#hold();
    const source: EventSource = {
      subscribe: (stream, since) => this.#subscribe(stream, since),
      unsubscribe: (stream) => this.#unsubscribe(stream),
      forget: (stream) => {
        this.#streams.delete(stream);
        release();
      },
    };
    const stream = new EventStream(source, options.since ?? "now", options.session ?? undefined, options.signal);
    if (!stream.over) this.#streams.add(stream);
    return stream;
  }

  /** Calls a method that this class does not know. It is not sent again if the process ends. */
  call(method: string, params: object = {}, options: CallOptions = {}): Promise<unknown> {
    return this.#send(method, () => params, "once", options.signal, (result) => result);
  }

  /** Ends the process. Open turns are cut short, loops end, calls fail. Jobs are left alone. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.end();
    this.#queue.end();
    const connected = this.#connected ?? (await this.#connecting?.catch(() => undefined));
    await connected?.pipe.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #call<M extends keyof ServeResults>(method: M, params: ServeParams[M] | (() => ServeParams[M]), repeat: Repeat, signal: AbortSignal | undefined): Promise<ServeResults[M]> {
    const made = typeof params === "function" ? params : () => params;
    return this.#send(method, made, repeat, signal, (result) => result as ServeResults[M]);
  }

  /** Sends a request, and again if that is safe when its process ends. `params` is asked each time. */
  async #send<T>(method: string, params: () => object, repeat: Repeat, signal: AbortSignal | undefined, accept: (result: unknown, connected: Connected) => T): Promise<T> {
    const release = this.#hold();
    try {
      for (let sent = 1; ; sent++) {
        signal?.throwIfAborted();
        const connected = await abortable(this.#connection(), signal);
        await connected.pipe.drained();
        try {
          const request = () => connected.pipe.request(method, params(), (result) => accept(result, connected), signal);
          return await (LONG.has(method) ? request() : this.#quick.run(request));
        } catch (error) {
          const ended = error instanceof HearbackError && error === connected.pipe.over && error.kind === "disconnected";
          if (!ended || repeat === "once" || this.#closed || sent === SENDS_MAX) throw error;
        }
      }
    } finally {
      release();
    }
  }

  /** Keeps this program alive until the returned function is called. */
  #hold(): () => void {
    if (this.#holds++ === 0) this.#connected?.pipe.hold(true);
    let held = true;
    return () => {
      if (held && --this.#holds === 0) this.#connected?.pipe.hold(false);
      held = false;
    };
  }

  #connection(): Promise<Connected> {
    if (this.#closed) return Promise.reject(new HearbackError("closed", "the client was closed"));
    if (this.#connected) return Promise.resolve(this.#connected);
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<Connected> {
    for (let starts = 1; ; starts++) {
      try {
        return await this.#start();
      } catch (error) {
        // A first start that fails would fail again: a wrong program, a wrong store. A later one may be an update under way.
        if (!this.#greetedOnce || this.#closed || starts === STARTS_MAX) throw error;
        await pause(Math.min(PAUSE_MS.first * 2 ** (starts - 1), PAUSE_MS.most));
      }
    }
  }

  async #start(): Promise<Connected> {
    const env = { ...process.env, ...this.#options.env };
    for (const [name, value] of Object.entries(env)) if (value === undefined) delete env[name];
    if (this.#options.home !== undefined) env["HEARBACK_HOME"] = this.#options.home;
    let connected: Connected | undefined;
    // Lines behind the hello can arrive before `start` resolves.
    const early: Array<(connected: Connected) => void> = [];
    const then = (act: (connected: Connected) => void) => (connected ? act(connected) : void early.push(act));
    const listener: PipeListener = {
      notification: (message) => then((connected) => this.#notified(connected, message)),
      ended: (why) => then((connected) => this.#ended(connected, why)),
      diagnostic: this.#options.diagnostics ?? ((text) => void process.stderr.write(text)),
    };
    const pipe = await Pipe.start(this.#options.binary ?? findBinary(env), env, listener);
    connected = { pipe, turns: new Map(), streams: new Map() };
    for (const act of early) act(connected);
    if (pipe.over) throw pipe.over;
    this.#greetedOnce = true;
    pipe.hold(this.#holds > 0);
    try {
      await this.#restore(connected);
      if (this.#closed) throw new HearbackError("closed", "the client was closed");
    } catch (error) {
      await pipe.close();
      throw error;
    }
    this.#connected = connected;
    return connected;
  }

  /** Asks a new process for what the old one was asked for. */
  async #restore(connected: Connected): Promise<void> {
    const attended = [...this.#attended.values()].map((session) => connected.pipe.request("attend", attendParams(session), () => {}));
    const streams = [...this.#subscribed].map((stream) => this.#subscribeTo(connected, stream, stream.since));
    await Promise.all([...attended, ...streams]);
  }

  #ended(connected: Connected, why: HearbackError): void {
    if (this.#connected === connected) this.#connected = undefined;
    this.#draining = false;
    this.#queue.drop([...connected.turns.values()]);
    for (const turn of [...connected.turns.values()]) turn.lose(why);
    connected.turns.clear();
    connected.streams.clear();
    if (this.#closed || (this.#attended.size === 0 && this.#subscribed.size === 0)) return;
    this.#connection().catch((error) => {
      for (const stream of [...this.#subscribed]) stream.fail(error);
      this.#queue.fail(error);
    });
  }

  #notified(connected: Connected, message: Notification): void {
    switch (message.method) {
      case "turn":
        this.#queue.push(this.#opened(message.params, connected));
        break;
      case "due":
        connected.turns.get(message.params.turn)?.becameDue(message.params.count);
        break;
      case "interrupt":
        connected.turns.get(message.params.turn)?.interrupt(message.params.reason);
        break;
      case "event": {
        const { subscription, ...event } = message.params;
        connected.streams.get(subscription)?.push(event as EventDocument);
        break;
      }
      case "draining":
        this.#draining = !message.params.over;
        break;
      case "events.ended": {
        const { subscription, error } = message.params;
        connected.streams.get(subscription)?.fail(HearbackError.of(error));
        break;
      }
      // A newer hearback may send more.
    }
  }

  #opened(document: TurnOpenedDocument & { text?: string }, connected: Connected): Turn {
    const release = this.#hold();
    const turn = new Turn(document, connected.pipe, () => {
      connected.turns.delete(document.turn);
      release();
    });
    turn.signal.addEventListener("abort", () => turn.lost && release(), { once: true });
    connected.turns.set(document.turn, turn);
    return turn;
  }

  async #subscribe(stream: EventStream, since: string): Promise<void> {
    const connected = await this.#connection();
    if (stream.over) return;
    if (connected.pipe.over) return this.#subscribe(stream, since);
    // Only now, so that the process that was just started has not restored it as well.
    this.#subscribed.add(stream);
    try {
      await this.#subscribeTo(connected, stream, since);
    } catch (error) {
      if (error !== connected.pipe.over) throw error;
      // The next process restores it.
      await this.#connection();
    }
  }

  #subscribeTo(connected: Connected, stream: EventStream, since: string): Promise<void> {
    const session = stream.session === undefined ? {} : { session: stream.session };
    return connected.pipe.request("events", { since, ...session }, (result) => {
      const { subscription, cursor } = result as SubscribedDocument;
      connected.streams.set(subscription, stream);
      stream.began(cursor);
    });
  }

  #unsubscribe(stream: EventStream): void {
    this.#subscribed.delete(stream);
    const connected = this.#connected;
    for (const [subscription, one] of connected?.streams ?? []) {
      if (one !== stream) continue;
      connected?.streams.delete(subscription);
      // The process may be ending: then the subscription ends with it.
      connected?.pipe.request("events.stop", { subscription }, () => {}).catch(() => {});
    }
  }
}

function attendParams(session: Attended): AttendParams {
  return typeof session === "string" ? { session } : { all: true };
}

/** The promise, unless the signal comes first. What the promise is for goes on. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
