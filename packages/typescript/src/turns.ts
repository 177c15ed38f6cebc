import type { Turn } from "./turn.js";

/** Turns that `serve` has begun, on their way to the loops that read them: each goes to one. */
export class TurnQueue {
  #turns: Turn[] = [];
  #readers = new Set<() => void>();
  #failed: unknown;
  #ended = false;

  /** The next one; nothing when there will be none. */
  async next(signal?: AbortSignal): Promise<Turn | undefined> {
    for (;;) {
      signal?.throwIfAborted();
      const turn = this.#turns.shift();
      if (turn !== undefined) return turn;
      if (this.#failed !== undefined) throw this.#failed;
      if (this.#ended) return undefined;
      await this.#changed(signal);
    }
  }

  push(turn: Turn): void {
    this.#failed = undefined;
    this.#turns.push(turn);
    this.#wake();
  }

  /** Takes back turns whose process has ended before a reader saw them. */
  drop(turns: readonly Turn[]): void {
    this.#turns = this.#turns.filter((turn) => !turns.includes(turn));
  }

  fail(error: unknown): void {
    this.#failed = error;
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#turns = [];
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#readers) wake();
    this.#readers.clear();
  }

  async #changed(signal: AbortSignal | undefined): Promise<void> {
    let wake!: () => void;
    const changed = new Promise<void>((resolve) => (wake = resolve));
    this.#readers.add(wake);
    signal?.addEventListener("abort", wake, { once: true });
    await changed;
    signal?.removeEventListener("abort", wake);
    this.#readers.delete(wake);
  }
}
