import type { ErrorKind } from "./types.js";

/**
 * What kind of error it is: those of hearback (`docs/exit-codes.md`), those of `serve`, and three that this package makes.
 *
 * - `cancelled`: the request was cancelled.
 * - `disconnected`: the `serve` process ended before it answered, and the call is not safe to repeat; or the turn belongs
 *   to a process that has ended.
 * - `not_found_binary`: there is no hearback program.
 * - `protocol`: the program speaks another protocol.
 *
 * A newer hearback may have more of them.
 */
export type HearbackErrorKind =
  | ErrorKind
  | "cancelled"
  | "disconnected"
  | "not_found_binary"
  | "protocol"
  // Any other text, without losing the completion of those above.
  | (string & {});

/** A call that failed. `kind` is for programs, `message` for people. */
export class HearbackError extends Error {
  readonly kind: HearbackErrorKind;
  /** What to try. */
  readonly tip: string | undefined;
  /** Which job or delivery it is about, as the caller named it. */
  readonly subject: string | undefined;
  /** The code of JSON-RPC, where `serve` sent the error. */
  readonly code: number | undefined;

  constructor(kind: HearbackErrorKind, message: string, more: { tip?: string | undefined; subject?: string | undefined; code?: number | undefined } = {}) {
    super(message);
    this.name = "HearbackError";
    this.kind = kind;
    this.tip = more.tip;
    this.subject = more.subject;
    this.code = more.code;
  }

  override toString(): string {
    return this.tip === undefined ? `${this.name}: ${this.message}` : `${this.name}: ${this.message}\ntip: ${this.tip}`;
  }
}
