/** hearback from TypeScript: launch a job, hear of its end, be a host for an agent. See the README of this package. */

export type { RunOptions } from "./agent.js";
export { findBinary } from "./binary.js";
export { Client } from "./client.js";
export { HearbackError, type HearbackErrorKind } from "./error.js";
export type { EventStream } from "./events.js";
export type * from "./params.js";
export type { Envelope, Item, Turn } from "./turn.js";
export type * from "./types.js";
