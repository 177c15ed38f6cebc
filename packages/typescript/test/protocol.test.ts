// What the client does when `serve` does not behave, and with lines that arrive together.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, HearbackError } from "../src/index.js";
import { BUFFERED_MAX } from "../src/events.js";

const FAKE = fileURLToPath(new URL("../../test/fake-serve.mjs", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "hearback-fake-"));
after(() => rmSync(folder, { recursive: true }));
let fakes = 0;

function fake(replies: Record<string, unknown>): Client {
  const file = join(folder, `${fakes++}.json`);
  writeFileSync(file, JSON.stringify(replies));
  return new Client({ binary: FAKE, env: { FAKE: file }, diagnostics: () => {} });
}

function reply(result: unknown): string {
  return JSON.stringify({ jsonrpc: "2.0", id: 0, result }).replace('"id":0', '"id":$ID');
}

function notification(method: string, params: unknown): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

async function kindOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    assert(error instanceof HearbackError, String(error));
    return error.kind;
  }
  assert.fail("it succeeded");
}

test("another protocol, no hello, a line that is not JSON and one without an end are errors, not a hang", async () => {
  const hello = (protocol: number) => notification("hello", { format: 1, protocol });
  for (const said of [hello(2), notification("turn", {}), "Segmentation fault", "x".repeat(17 * 1024 * 1024)]) {
    await using client = fake({ hello: said });
    assert.equal(await kindOf(client.list()), "protocol", said.slice(0, 50));
  }
  await using client = fake({ list: ["{"] });
  assert.equal(await kindOf(client.list()), "protocol");
});

test("a program that is not there, and one that ends at once, say so", async () => {
  await using absent = new Client({ binary: "/nonexistent/hearback" });
  assert.equal(await kindOf(absent.list()), "not_found");
  await using brief = new Client({ binary: process.execPath, env: {}, diagnostics: () => {} });
  // Too much for the system to start a program with.
  await using swollen = new Client({ binary: FAKE, env: { FAKE: "x".repeat(1 << 22) } });
  assert.equal(await kindOf(swollen.list()), "disconnected");
  await assert.rejects(brief.list(), (error: HearbackError) => error.kind === "disconnected" && /Cannot find module/.test(error.message));
});

test("an error has kind, message, tip, subject and code", async () => {
  const error = { code: -32000, message: "no job `x`", data: { kind: "unknown_job", tip: "look", subject: "x" } };
  await using client = fake({ show: [`{"jsonrpc":"2.0","id":$ID,"error":${JSON.stringify(error)}}`] });
  await assert.rejects(client.show("x"), { name: "HearbackError", kind: "unknown_job", message: "no job `x`", tip: "look", subject: "x", code: -32000 });
});

test("a call that is safe to repeat is sent again a bounded number of times, and others once", async () => {
  await using client = fake({ list: ["exit"], kill: ["exit"] });
  assert.equal(await kindOf(client.list()), "disconnected");
  assert.equal(await kindOf(client.kill("x")), "disconnected");
});

test("what follows a reply in the same write finds what the reply made", async () => {
  const opened = reply({ format: 1, turn: "t", session: "s", number: 1, items: [], env: {} });
  const news = [notification("due", { session: "s", turn: "t", count: 1 }), notification("interrupt", { turn: "t", session: "s", reason: "drain" })];
  await using client = fake({ "turn.open": [opened, ...news], "turn.close": [reply({ format: 1 })] });
  const turn = await client.turn("s");
  await turn.due();
  assert.equal(turn.interrupted, "drain");
  assert.equal(turn.signal.reason.kind, "interrupted");
  await turn.done();
  await turn.done();
});

test("a reader that is slower than the events bounds what is buffered, and no reply waits for it", async () => {
  const event = (n: number) => notification("event", { subscription: 1, format: 1, id: `${n}`, cursor: `c${n}`, at: "", type: "settled" });
  const flood = Array.from({ length: BUFFERED_MAX + 500 }, (_, n) => event(n));
  await using client = fake({ events: [reply({ format: 1, subscription: 1, cursor: "c" }), ...flood], "events.stop": [reply({ format: 1 })], list: [reply({ format: 1, jobs: [] })] });
  const events = client.events({ since: "beginning" });
  await events.ready;
  assert.deepEqual((await client.list()).jobs, []);
  for (let n = 0; n < BUFFERED_MAX; n++) {
    const { value } = await events.next();
    assert.equal(value?.id, `${n}`);
  }
  // The buffer is empty now: it asks again, behind the last that it had.
  assert.equal(events.since, `c${BUFFERED_MAX - 1}`);
  assert.equal((await events.next()).value?.id, "0");
  await events.return();
  assert.equal((await events.next()).done, true);
});

test("a client that is closed fails its calls and ends its loops", async () => {
  const client = fake({});
  const waiting = kindOf(client.wait("x"));
  const turns = client.turns();
  const next = turns.next();
  await client.hello();
  await client.close();
  assert.equal(await waiting, "closed");
  assert.equal((await next).done, true);
  assert.equal(await kindOf(client.list()), "closed");
});
