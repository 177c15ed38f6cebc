import { runAgent, type RunOptions } from "./agent.js";
import { HearbackError } from "./error.js";
import type { Pipe } from "./pipe.js";
import type { ClaimedDocument, CloudEvent, Delivery, ItemDocument, ItemKind, MessagePayload, Note, ReleaseHow, ReleaseParams, TurnOpenedDocument } from "./types.js";

/** What a sink gets (`docs/sinks.md`): a document in its envelope. */
export type Envelope<Data> = Omit<CloudEvent, "data"> & { data: Data };

/** A follow-up or message that this host holds. No other host has it until it is released or this host dies. */
export class HeldItem<Kind extends ItemKind, Data extends { text: string }> {
  readonly kind: Kind;
  /** The same in every attempt: a repeat is recognised by it. */
  readonly id: string;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  readonly payload: Envelope<Data>;
  readonly token: string;
  readonly #pipe: Pipe;

  /** @internal */
  constructor(document: ItemDocument, pipe: Pipe) {
    this.kind = document.kind as Kind;
    this.id = document.id;
    this.attempt = document.attempt;
    this.payload = document.payload as Envelope<Data>;
    this.token = document.token;
    this.#pipe = pipe;
  }

  /** The text for the agent. */
  get text(): string {
    return this.payload.data.text;
  }

  /** Acknowledges it: it is never offered again. */
  async ack(): Promise<void> {
    await this.#pipe.request("ack", { token: this.token }, () => {});
  }

  /** Gives it back. It is free when its turn ends. */
  async release(how: ReleaseHow, options: Omit<ReleaseParams, "token" | "how"> = {}): Promise<void> {
    await this.#pipe.request("release", { token: this.token, how, ...options }, () => {});
  }
}

/** `kind` tells which of the two it is, and so what its payload holds. */
export type Item = HeldItem<"follow_up", Delivery> | HeldItem<"message", MessagePayload>;

function held(documents: readonly ItemDocument[], pipe: Pipe): Item[] {
  return documents.map((document) => new HeldItem(document, pipe) as Item);
}

/** One run of the agent in a session, which this host has. At most one runs in a session at a time. */
export class Turn {
  readonly session: string;
  readonly number: number;
  /** What the agent is to hear first, because its last turn was cut short. `text` has it, too. */
  readonly note: Note | undefined;
  /** Where the host shows what the agent says. */
  readonly destination: string | undefined;
  /** Variables for the processes of the agent. By these they are found, and ended, if this host dies. */
  readonly env: Record<string, string>;
  /** What the agent is to be told: the note and the items. In a turn that the host opened, the note. */
  readonly text: string;
  readonly token: string;
  readonly #pipe: Pipe;
  readonly #onClosed: (turn: Turn) => void;
  readonly #abort = new AbortController();
  #items: Item[];
  #closed: Promise<void> | undefined;
  #interrupted: string | undefined;
  #lost = false;
  #due = 0;
  #awaitingDue: Array<() => void> = [];

  /** @internal */
  constructor(document: TurnOpenedDocument & { text?: string }, pipe: Pipe, onClosed: (turn: Turn) => void) {
    this.session = document.session;
    this.number = document.number;
    this.note = document.note ?? undefined;
    this.destination = document.destination ?? undefined;
    this.env = document.env;
    this.text = document.text ?? document.note?.text ?? "";
    this.token = document.turn;
    this.#items = held(document.items, pipe);
    this.#pipe = pipe;
    this.#onClosed = onClosed;
  }

  /** What it holds; `claim` adds to it. */
  get items(): readonly Item[] {
    return this.#items;
  }

  /** Whether the `serve` process of this turn has ended. The turn was cut short, and its items come again in another one. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Why the turn is to end, if it is: a drain, a message that interrupts, a kill, or `lost`. */
  get interrupted(): string | undefined {
    return this.#interrupted;
  }

  /** Is aborted when the turn is to end. Its reason is a `HearbackError` of the kind `interrupted` or `disconnected`. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Takes what has become due into this turn, and returns it. */
  async claim(): Promise<readonly Item[]> {
    this.#due = 0;
    return await this.#pipe.request("turn.claim", { turn: this.token }, (result) => {
      const items = held((result as ClaimedDocument).items, this.#pipe);
      this.#items.push(...items);
      return items;
    });
  }

  /** Waits until something is due that `claim` would take, or the turn is over. */
  async due(): Promise<void> {
    if (this.#due > 0 || this.#interrupted !== undefined || this.#closed) return;
    await new Promise<void>((resolve) => this.#awaitingDue.push(resolve));
  }

  /** Closes the turn and acknowledges what it still holds. Later calls do nothing. */
  done(): Promise<void> {
    return this.#close({ how: "done" });
  }

  /** Closes the turn and gives back what it still holds, one attempt spent. Later calls do nothing. */
  failed(error: string): Promise<void> {
    return this.#close({ how: "failed", error });
  }

  /** A text for the agent, behind the note if there is one. */
  withNote(text: string): string {
    return this.note ? `${this.note.text}\n\n${text}` : text;
  }

  /**
   * Runs an agent that is a program as this turn, and returns its output. It gets `input` on standard input, and the
   * variables of the turn. If the turn is to end, the agent and its process group are killed.
   *
   * The error has the kind `interrupted` then, `failed` if the agent's exit code is not 0, and `not_found` if there is none.
   */
  run(command: readonly string[], options: RunOptions = {}): Promise<string> {
    const env = { ...process.env, HEARBACK_SESSION: this.session, ...this.env, ...options.env };
    return runAgent(command, { env, input: options.input ?? "", signal: this.signal });
  }

  /** Does `work`, then closes the turn: as done, or as failed if `work` threw, which is thrown on. */
  async use<T>(work: (turn: Turn) => Promise<T> | T): Promise<T> {
    let result: T;
    try {
      result = await work(this);
    } catch (error) {
      // What `work` threw says more than a pipe that is gone.
      await this.failed(error instanceof Error ? error.message : String(error)).catch(() => {});
      throw error;
    }
    await this.done();
    return result;
  }

  #close(params: object): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = this.#pipe.request("turn.close", { turn: this.token, ...params }, () => {});
      this.#closed.then(() => this.#over(), () => this.#over());
    }
    return this.#closed;
  }

  #over(): void {
    this.#wake();
    this.#onClosed(this);
  }

  #wake(): void {
    for (const resolve of this.#awaitingDue.splice(0)) resolve();
  }

  /** @internal */
  becameDue(count: number): void {
    this.#due = count;
    this.#wake();
  }

  /** @internal */
  interrupt(reason: string): void {
    this.#interrupted ??= reason;
    this.#abort.abort(new HearbackError("interrupted", reason));
    this.#wake();
  }

  /** @internal */
  lose(why: HearbackError): void {
    this.#lost = true;
    this.#interrupted ??= "lost";
    this.#abort.abort(why);
    this.#wake();
  }
}
