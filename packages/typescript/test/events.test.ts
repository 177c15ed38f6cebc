import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventDocument } from "../src/index.js";
import { World } from "./world.js";

test("events come in order, are narrowed by their type, and go on behind a cursor", async () => {
  await using world = new World();
  const client = world.client();
  const events = client.events({ since: "beginning" });
  await events.ready;
  const { id } = await client.launch(["true"], { session: "s", notify: "never" });
  const types: string[] = [];
  let cursor = "";
  for await (const event of events) {
    assert.equal(event.job?.id, id);
    types.push(event.type);
    if (event.type === "started") cursor = event.cursor;
    if (event.type === "settled") break;
  }
  assert.deepEqual(types.slice(0, 2), ["launched", "started"]);
  const later: string[] = [];
  for await (const event of client.events({ since: cursor })) {
    later.push(event.type);
    if (event.type === "settled") break;
  }
  assert.deepEqual(later, types.slice(types.indexOf("started") + 1));
});

test("a reader misses and repeats nothing when the process is killed again and again", async () => {
  await using world = new World();
  const client = world.client();
  const seen: EventDocument[] = [];
  const wanted = 12;
  const events = client.events();
  await events.ready;
  const reading = (async () => {
    let settled = 0;
    for await (const event of events) {
      seen.push(event);
      if (event.type === "settled" && ++settled === wanted) return;
    }
  })();
  for (let n = 0; n < wanted; n++) {
    await client.launch(["true"], { key: `k${n}`, notify: "never" });
    if (n % 3 === 0) process.kill((await client.hello()).pid, "SIGKILL");
  }
  await reading;
  const ids = seen.map((event) => event.id);
  assert.equal(new Set(ids).size, ids.length, "an event was repeated");
  assert.equal(seen.filter((event) => event.type === "launched").length, wanted);
});

test("a signal ends a loop over events", async () => {
  await using world = new World();
  const client = world.client();
  const stop = new AbortController();
  const events = client.events({ signal: stop.signal });
  await events.ready;
  const next = events.next();
  stop.abort();
  await assert.rejects(next, { name: "AbortError" });
});
