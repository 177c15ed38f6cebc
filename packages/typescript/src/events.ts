import type { EventDocument } from "./types.js";

/** How many events wait for a reader. What is behind them is read again from the store when it has caught up. */
export const BUFFERED_MAX = 1000;

/** What a stream needs of the client. */
export interface EventSource {
  /** Subscribes behind `since`; resolves when `serve` has confirmed it. */
  subscribe(stream: EventStream, since: string): Promise<void>;
  unsubscribe(stream: EventStream): void;
  /** The stream has ended, and is not to be restored. */
  forget(stream: EventStream): void;
}

/** Events, in order, each once. Leaving the loop ends the subscription. */
export class EventStream implements AsyncIterableIterator<EventDocument> {
  /** Resolves when `serve` has confirmed the subscription: what happens from then on is in it. */
  readonly ready: Promise<void>;
  /** @internal */
  readonly session: string | undefined;
  readonly #source: EventSource;
  readonly #signal: AbortSignal | undefined;
  readonly #cancel = () => this.#finish(this.#signal?.reason);
  #since: string;
  #cursor: string;
  #buffer: EventDocument[] = [];
  #behind = false;
  #failed: { error: unknown } | undefined;
  #over = false;
  #wake: (() => void) | undefined;

  /** @internal */
  constructor(source: EventSource, since: string, session: string | undefined, signal: AbortSignal | undefined) {
    this.#source = source;
    this.#since = since;
    this.#cursor = since;
    this.session = session;
    this.#signal = signal;
    this.ready = signal?.aborted ? Promise.reject(signal.reason) : source.subscribe(this, since);
    this.ready.catch((error) => this.#finish(error));
    signal?.addEventListener("abort", this.#cancel, { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** What to pass as `since` to read on behind the last event that was read. */
  get cursor(): string {
    return this.#cursor;
  }

  async next(): Promise<IteratorResult<EventDocument>> {
    for (;;) {
      const event = this.#buffer.shift();
      if (event !== undefined) {
        this.#cursor = event.cursor;
        return { done: false, value: event };
      }
      if (this.#failed) {
        const { error } = this.#failed;
        this.#failed = undefined;
        throw error;
      }
      if (this.#over) return { done: true, value: undefined };
      if (this.#behind) {
        this.#behind = false;
        this.#source.subscribe(this, this.#since).catch((error) => this.#finish(error));
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async return(): Promise<IteratorResult<EventDocument>> {
    this.#buffer = [];
    this.#finish();
    return { done: true, value: undefined };
  }

  /** Where a new subscription begins. @internal */
  get since(): string {
    return this.#since;
  }

  /** Whether it has ended. @internal */
  get over(): boolean {
    return this.#over;
  }

  /** `serve` has confirmed the subscription, and says where it begins. @internal */
  began(cursor: string): void {
    if (this.#cursor === this.#since) this.#cursor = cursor;
    this.#since = cursor;
  }

  /** @internal */
  push(event: EventDocument): void {
    if (this.#over || this.#behind) return;
    this.#buffer.push(event);
    this.#since = event.cursor;
    if (this.#buffer.length >= BUFFERED_MAX) {
      this.#behind = true;
      this.#source.unsubscribe(this);
    }
    this.#wake?.();
  }

  /** The client cannot go on. @internal */
  fail(error: unknown): void {
    this.#finish(error);
  }

  /** The client was closed. @internal */
  end(): void {
    this.#finish();
  }

  #finish(error?: unknown): void {
    if (this.#over) return;
    this.#over = true;
    if (error !== undefined) this.#failed = { error };
    this.#signal?.removeEventListener("abort", this.#cancel);
    this.#source.unsubscribe(this);
    this.#source.forget(this);
    this.#wake?.();
  }
}
