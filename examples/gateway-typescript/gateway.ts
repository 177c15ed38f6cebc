/**
 * A chat gateway: it runs an agent for each message of a user, and for each background job that has ended.
 *
 *     node gateway.ts JOURNAL AGENT…
 *
 * It prints a port of loopback, to which the chat platform connects. The platform's first line is {"since": N}, and it is
 * told every answer after the first N: {"chat", "re": [IDS], "text"}. It writes a line for each message, {"chat", "id", "text"},
 * and writes it again after a new connection until it is answered. The agent reads a message and prints its answer; what it
 * launches with hearback belongs to the chat.
 *
 * Any of it may be killed at any moment. An answer is in the journal, under the ids of what it answers, before anything is
 * acknowledged; what comes again and is in the journal is not handled again.
 */
import { once } from "node:events";
import { fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Client, type Turn } from "hearback";
type Message = { chat: string; id: string; text: string };

const [path = "journal", ...agent] = process.argv.slice(2);
const hearback = new Client();
const file = openSync(path, "a+");
const journal = readFileSync(path, "utf8").split("\n");
// What stands behind the last end of a line was being written at a death: it was not answered.
journal.pop();
ftruncateSync(file, Buffer.byteLength(journal.map((line) => `${line}\n`).join("")));
const answers = journal.map((line) => JSON.parse(line) as { chat: string; re: string[] });
const answered = new Set(answers.flatMap((answer) => answer.re));
/** The last message of each chat that is attended: the next one waits for it. */
const chats = new Map<string, Promise<void>>();
const underWay = new Set<string>();
const platforms = new Set<Socket>();

function answer(chat: string, re: string[], text: string): void {
  const line = JSON.stringify({ chat, re, text });
  writeSync(file, `${line}\n`);
  fsyncSync(file);
  journal.push(line);
  for (const id of re) answered.add(id);
  for (const platform of platforms) platform.write(`${line}\n`);
}

/** A message of a user: the gateway has it, and opens a turn for it. */
async function onMessage({ chat, id, text }: Message): Promise<void> {
  while (!answered.has(id)) {
    try {
      const turn = await hearback.turn(chat, { wait_ms: 3_600_000 });
      await turn.use(async () => answer(chat, [id], await turn.run(agent, { input: turn.withNote(text) })));
    } catch (error) {
      console.error(`${chat}: ${error}`);
      await pause(500);
    }
  }
}

/** What is due for a chat: hearback has it, and has begun a turn for it. */
async function onTurn(turn: Turn): Promise<void> {
  // A turn for a message was cut short. The agent hears of it when that message comes again.
  if (turn.items.length === 0) throw new Error("the platform repeats the message");
  const fresh = turn.items.filter((item) => !answered.has(item.id));
  if (fresh.length === 0) return;
  const text = turn.withNote(fresh.map((item) => item.text).join("\n\n"));
  answer(turn.session, fresh.map((item) => item.id), await turn.run(agent, { input: text }));
}

async function onPlatform(socket: Socket): Promise<void> {
  socket.on("error", () => {}).on("close", () => platforms.delete(socket));
  for await (const line of createInterface({ input: socket })) {
    const message = JSON.parse(line) as { since: number } | Message;
    if ("since" in message) {
      for (const line of journal.slice(message.since)) socket.write(`${line}\n`);
      platforms.add(socket);
    } else if (!underWay.has(message.id)) {
      underWay.add(message.id);
      const before = chats.get(message.chat) ?? hearback.attend(message.chat);
      chats.set(message.chat, before.then(() => onMessage(message)).finally(() => underWay.delete(message.id)));
    }
  }
}

for (const chat of new Set(answers.map((answer) => answer.chat))) chats.set(chat, hearback.attend(chat));
await Promise.all(chats.values());
const server = createServer((socket) => onPlatform(socket).catch(() => socket.destroy())).listen(0, "127.0.0.1");
await once(server, "listening");
console.log((server.address() as AddressInfo).port);
for await (const turn of hearback.turns()) {
  turn.use(onTurn).catch((error) => console.error(`${turn.session}: ${error}; it comes again`));
}
