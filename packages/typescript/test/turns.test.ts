import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import type { Client, Turn } from "../src/index.js";
import { eventually, failure, program, World } from "./world.js";

async function next(turns: AsyncIterator<Turn>): Promise<Turn> {
  const { value, done } = await turns.next();
  assert(!done, "the client was closed");
  return value;
}

async function attending(client: Client, session = "s"): Promise<AsyncIterator<Turn>> {
  await client.attend(session);
  return client.turns();
}

test("a message and a follow-up each come in a turn, once", async () => {
  await using world = new World();
  const client = world.client();
  const turns = await attending(client);
  await client.send("s", "hello");
  const first = await next(turns);
  assert.deepEqual([first.session, first.items.map((item) => [item.kind, item.attempt])], ["s", [["message", 1]]]);
  assert.match(first.text, /hello/);
  const [item] = first.items;
  assert(item?.kind === "message");
  assert.equal(item.payload.data.message, "hello");
  const { id } = await client.launch(["true"], { session: "s" });
  await first.done();
  const second = await next(turns);
  const [follow_up] = second.items;
  assert(follow_up?.kind === "follow_up");
  assert.equal(follow_up.id, `${id}.end`);
  assert.equal(follow_up.payload.data.job.id, id);
  await second.use(() => {});
  await eventually("the follow-up is delivered", async () => ((await client.show(id)).follow_up.state === "delivered" ? true : undefined));
  assert.deepEqual((await world.cli("inbox", "--session", "s")).messages ?? [], []);
});

test("what becomes due while a turn runs is claimed into it", async () => {
  await using world = new World();
  const client = world.client();
  const turns = await attending(client);
  await client.send("s", "one");
  const turn = await next(turns);
  await client.send("s", "two");
  await turn.due();
  const claimed = await turn.claim();
  assert.deepEqual(claimed.map((item) => item.kind), ["message"]);
  assert.match(claimed[0]!.text, /two/);
  assert.equal(turn.items.length, 2);
  await turn.done();
});

test("a turn that failed gives its items back, and they come again with the same id", async () => {
  await using world = new World();
  const client = world.client();
  const turns = await attending(client);
  await client.send("s", "hello");
  const turn = await next(turns);
  const broken = new Error("the model is away");
  await assert.rejects(turn.use(() => Promise.reject(broken)), broken);
  const again = await next(turns);
  assert.deepEqual(again.items.map((item) => [item.id, item.attempt]), turn.items.map((item) => [item.id, 2]));
  await again.items[0]!.ack();
  await again.done();
});

test("an agent that is a program runs as a turn, and is killed when the turn is lost", async () => {
  await using world = new World();
  const client = world.client();
  const turn = await client.turn("s");
  const said = await turn.run(["sh", "-c", "cat; echo $HEARBACK_SESSION $HEARBACK_TURN $MORE"], { input: turn.withNote("hello "), env: { MORE: "more" } });
  assert.equal(said, `hello s ${turn.number} more\n`);
  assert.deepEqual([(await failure(turn.run(["sh", "-c", "exit 3"]))).kind, (await failure(turn.run(["/nonexistent"]))).kind], ["failed", "not_found"]);
  // The grandchild holds the pipe of the output open, so that this returns only when it is killed, too.
  const slow = failure(turn.run(["sh", "-c", "sleep 100 & sleep 100"]));
  process.kill((await client.hello()).pid, "SIGKILL");
  assert.equal((await slow).kind, "interrupted");
  assert.equal(turn.lost, true);
});

test("a session is in one turn at a time", async () => {
  await using world = new World();
  const client = world.client();
  const turn = await client.turn("s");
  assert.deepEqual([turn.text, turn.items.length], ["", 0]);
  assert.equal((await failure(client.turn("s"))).kind, "busy");
  const waiting = client.turn("s", { wait_ms: 60_000 });
  await turn.done();
  await (await waiting).done();
  // A cancelled wait for a turn leaves the session free.
  const holder = await client.turn("s");
  const stop = new AbortController();
  const cancelled = client.turn("s", { wait_ms: 60_000, signal: stop.signal });
  stop.abort();
  await assert.rejects(cancelled, { name: "AbortError" });
  await holder.done();
  await (await client.turn("s")).done();
});

test("when the serve process is killed, what was open is offered again and calls are repeated", async () => {
  await using world = new World();
  const client = world.client();
  const turns = await attending(client);
  await client.send("s", "hello");
  const turn = await next(turns);
  const { id } = await client.launch(["sleep", "60"]);
  const waiting = client.wait(id);
  await client.show(id);
  const { pid } = await client.hello();
  process.kill(pid, "SIGKILL");
  const again = await next(turns);
  assert.equal(turn.lost, true);
  assert.equal(turn.signal.reason.kind, "disconnected");
  assert.equal((await failure(turn.done())).kind, "disconnected");
  assert.deepEqual(again.items.map((item) => item.id), turn.items.map((item) => item.id));
  assert.notEqual((await client.hello()).pid, pid);
  await again.done();
  await client.kill(id, { grace_ms: 0 });
  assert.equal((await waiting).jobs[0]?.outcome?.kind, "killed");
});

test("what a host held is offered to another one when it is killed, and to no two at once", async () => {
  await using world = new World();
  const index = new URL("../src/index.js", import.meta.url).href;
  const source = `import { Client } from ${JSON.stringify(index)};
    const client = new Client();
    await client.attend("s");
    console.log("ready");
    for await (const turn of client.turns()) console.log(turn.items[0].id);`;
  const env = { ...process.env, HEARBACK_HOME: world.home, HEARBACK: program() };
  const host = spawn(process.execPath, ["--input-type=module", "-e", source], { env, stdio: ["ignore", "pipe", "inherit"] });
  await using _killed = { [Symbol.asyncDispose]: async () => void host.kill("SIGKILL") };
  const lines: string[] = [];
  host.stdout.setEncoding("utf8").on("data", (text: string) => lines.push(...text.split("\n").filter(Boolean)));
  await eventually("the host is there", async () => (lines.includes("ready") ? true : undefined));
  await world.text("send", "--session", "s", "--sink", "host", "hello");
  const held = await eventually("the host has it", async () => lines[1]);
  const client = world.client();
  const turns = await attending(client);
  assert.equal((await failure(client.turn("s"))).kind, "busy");
  const ended = once(host, "close");
  host.kill("SIGKILL");
  await ended;
  const turn = await next(turns);
  assert.deepEqual(turn.items.map((item) => item.id), [held]);
  assert(turn.note, "the agent hears that its turn was cut short");
  await turn.done();
});
