import type { ErrorDetail, ErrorKind } from "./types.js";

/**
 * What kind of error it is: those of hearback (`docs/exit-codes.md`), and three that this package makes.
 *
 * - `disconnected`: the `serve` process ended before it answered, and the call is not safe to repeat; or the turn belongs
 *   to a process that has ended.
 * - `closed`: the client was closed.
 * - `protocol`: the program speaks another protocol.
 *
 * Without a hearback program, it is `not_found`. A newer hearback may have more of them.
 */
export type HearbackErrorKind =
  | ErrorKind
  | "disconnected"
  | "closed"
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

  /** @internal */
  static of(detail: ErrorDetail, code?: number): HearbackError {
    const { kind, message, tip, subject } = detail;
    return new HearbackError(kind, message, { tip: tip ?? undefined, subject: subject ?? undefined, code });
  }

  override toString(): string {
    return this.tip === undefined ? `${this.name}: ${this.message}` : `${this.name}: ${this.message}\ntip: ${this.tip}`;
  }
}
