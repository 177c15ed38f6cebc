import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { failure, program, World } from "./world.js";

test("a job is launched, waited for, shown, listed and read, and is the one that the command line shows", async () => {
  await using world = new World();
  const client = world.client();
  const launched = await client.launch(["sh", "-c", "echo out; exit 3"], { label: "build", key: "k", session: "s" });
  const waited = await client.wait(launched.id);
  assert.equal(waited.timed_out, false);
  assert.deepEqual(waited.jobs.map((job) => [job.id, job.outcome?.kind]), [[launched.id, "exited"]]);
  const shown = await client.show(launched.id);
  const { follow_up, ...by_cli } = await world.cli("show", launched.id);
  const { follow_up: _, ...by_client } = shown;
  assert.deepEqual(by_client, by_cli);
  assert.equal((await client.list({ all: true })).jobs[0]?.id, launched.id);
  const log = await client.output(launched.id);
  assert.match(JSON.stringify(log), /out\\n/);
  // The key finds it: nothing is launched a second time.
  const again = await client.launch(["sh", "-c", "echo out; exit 3"], { label: "build", key: "k", session: "s" });
  assert.equal(again.id, launched.id);
});

test("a shell's text is a command, too", async () => {
  await using world = new World();
  const client = world.client();
  const { id } = await client.launch({ shell: "echo $GREETING" }, { env: { GREETING: "hello" } });
  await client.wait(id);
  assert.match(JSON.stringify(await client.output(id)), /hello\\n/);
});

test("errors are those of the command line", async () => {
  await using world = new World();
  const client = world.client({ env: { HEARBACK_DENY: "kill" } });
  const unknown = await failure(client.show("zzzz"));
  const { error } = await world.cli("show", "zzzz");
  assert.deepEqual([unknown.kind, unknown.message, unknown.subject], [error.kind, error.message, error.subject]);
  assert.equal(unknown.kind, "unknown_job");
  const { id } = await client.launch(["sleep", "60"]);
  assert.equal((await failure(client.kill(id))).kind, "denied");
  const bad = await failure(client.call("launch", { command: "not a list" }));
  assert.deepEqual([bad.kind, bad.code], ["usage", -32602]);
  assert.deepEqual([(await failure(client.call("no.such"))).code], [-32601]);
  assert.equal((await failure(client.launch([]))).kind, "usage");
  assert.equal((await failure(client.launch("echo hi" as any))).kind, "usage");
});

test("a signal cancels a wait, and leaves the job alone", async () => {
  await using world = new World();
  const client = world.client();
  const { id } = await client.launch(["sleep", "60"]);
  const stop = new AbortController();
  const waiting = client.wait(id, { signal: stop.signal });
  // It waits there: another call is answered meanwhile.
  assert.equal((await client.show(id)).state, "running");
  const why = new Error("enough");
  stop.abort(why);
  await assert.rejects(waiting, why);
  await assert.rejects(client.wait(id, { signal: AbortSignal.abort(why) }), why);
  assert.equal((await client.wait(id, { timeout_ms: 1 })).timed_out, true);
  assert.equal((await client.show(id)).state, "running");
  const killed = await client.kill(id, { reason: "tidy up" });
  assert.equal(killed.jobs.length, 1);
  assert.equal((await client.wait(id)).jobs[0]?.outcome?.kind, "killed");
});

test("a thousand calls at once are all answered", async () => {
  await using world = new World();
  const client = world.client();
  const { id } = await client.launch(["true"]);
  const shown = await Promise.all(Array.from({ length: 1000 }, () => client.show(id)));
  assert(shown.every((job) => job.id === id));
});

test("a program that forgets to close its client ends", async () => {
  await using world = new World();
  const index = new URL("../src/index.js", import.meta.url).href;
  const source = `import { Client } from ${JSON.stringify(index)}; console.log((await new Client().list()).format);`;
  const env = { ...process.env, HEARBACK_HOME: world.home, HEARBACK: program() };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], { env, timeout: 60_000 });
  assert.equal(stdout, "1\n");
});

test("a store that cannot be opened is an error that says so", async () => {
  await using world = new World();
  const error = await failure(world.client({ home: "/dev/null/x", diagnostics: () => {} }).list());
  assert.match(error.message, /cannot be opened[^]*\/dev\/null/);
  assert.match(error.tip ?? "", /HEARBACK_HOME/);
});

test("the types are those of the schema", async () => {
  const script = fileURLToPath(new URL("../../scripts/types.mjs", import.meta.url));
  await promisify(execFile)(process.execPath, [script, program(), "--check"]);
});
