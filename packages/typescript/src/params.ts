import type { JobViewReply, KillDocumentReply } from "./types.js";

// Names and units are those of the protocol (docs/hosts.md), so that a field has one name everywhere.

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

export interface JobKey {
  key: string;
  session: string;
}

export interface LaunchParams {
  /** The session that owns the job. Without `sinks`, its follow-up comes to a host that attends the session. */
  session?: string;
  cwd?: string;
  /** Variables for the job; `null` takes one away. */
  env?: Record<string, string | null>;
  label?: string;
  /** Launching twice with one key launches once. */
  key?: string;
  /** `null` is no limit. */
  timeout_ms?: number | null;
  idle_timeout_ms?: number | null;
  grace_ms?: number;
  notify?: string;
  sinks?: string[];
  log_cap_bytes?: number;
}

export interface ListParams {
  session?: string;
  state?: string;
  outcome?: string;
  label?: string;
  limit?: number;
  all?: boolean;
}

export interface ShowParams {
  output_bytes?: number;
}

export interface OutputParams {
  offset?: number;
  head?: number;
  tail?: number;
  max_bytes?: number;
}

export interface WaitParams {
  any?: boolean;
  timeout_ms?: number;
  /** Does not count as having told the owner. */
  peek?: boolean;
}

export interface WaitResult {
  format: number;
  jobs: JobViewReply[];
  timed_out: boolean;
}

export interface KillParams {
  reason?: string;
  grace_ms?: number;
  force?: boolean;
}

export interface KillResult {
  format: number;
  jobs: KillDocumentReply[];
}

export interface SendParams {
  sink?: string;
  destination?: string;
}

export interface TurnParams {
  /** How long to wait while another turn runs there. 0 refuses at once. */
  wait_ms?: number;
  destination?: string;
  history?: string;
}

export interface EventsParams {
  since?: string;
  session?: string;
}
