import type { LaunchParams, ListParams, OutputParams, SendParams, ShowParams, KillParams, TurnOpenParams, WaitParams, EventsParams } from "./types.js";

export interface ClientOptions {
  /** The hearback program. Else: the package for this system, `$HEARBACK`, the `PATH`. */
  binary?: string;
  /** Variables for the process, over those of this one; `undefined` takes one away. */
  env?: Record<string, string | undefined>;
  /** The folder of the store: `HEARBACK_HOME`. */
  home?: string;
  /** Hears what the process writes to standard error. Else it goes to that of this program. */
  diagnostics?: (text: string) => void;
}

export interface CallOptions {
  /** Cancels the call, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** A session, or all of them. */
export type Attended = string | { all: true };

export type LaunchOptions = Omit<LaunchParams, "command" | "shell"> & CallOptions;
export type ListOptions = ListParams & CallOptions;
export type ShowOptions = Omit<ShowParams, "job"> & CallOptions;
export type OutputOptions = Omit<OutputParams, "job"> & CallOptions;
export type WaitOptions = Omit<WaitParams, "jobs"> & CallOptions;
export type KillOptions = Omit<KillParams, "jobs"> & CallOptions;
export type SendOptions = Omit<SendParams, "session" | "text"> & CallOptions;
export type TurnOptions = Omit<TurnOpenParams, "session"> & CallOptions;
export type EventsOptions = EventsParams & CallOptions;
