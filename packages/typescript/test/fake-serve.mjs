#!/usr/bin/env node
// A `serve` that says what the file FAKE tells it to: { "hello": LINE, METHOD: [LINE…] }, with $ID for the id of the request.
// `exit` in place of a line ends it.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { hello, ...replies } = JSON.parse(readFileSync(process.env.FAKE, "utf8"));
const good = { jsonrpc: "2.0", method: "hello", params: { format: 1, protocol: 1, version: "0", home: "/", pid: process.pid } };
// One write for all, so that they arrive together.
const say = (lines) => process.stdout.write(lines.map((line) => `${line}\n`).join(""), () => {});
say([hello ?? JSON.stringify(good)]);
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  const lines = replies[method] ?? [];
  if (lines.includes("exit")) process.exit(3);
  say(lines.map((one) => one.replaceAll("$ID", id)));
}
