#!/usr/bin/env python3
"""A chat gateway: it runs an agent for each message of a user, and for each background job that has ended.

    gateway.py JOURNAL AGENT…

It prints a port of loopback, to which the chat platform connects. The platform's first line is {"since": N}, and it
is told every answer after the first N: {"chat", "re": [IDS], "text"}. It writes a line for each message, {"chat",
"id", "text"}, and writes it again after a new connection until it is answered. The agent reads a message and prints
its answer; what it launches with hearback belongs to the chat.

Any of it may be killed at any moment. An answer is in the journal, under the ids of what it answers, before anything is
acknowledged; what comes again and is in the journal is not handled again.
"""

import asyncio
import json
import os
import sys

from hearback import AsyncClient, HearbackError


class Gateway:
    def __init__(self, hearback, journal, agent):
        self.hearback, self.agent, self.file = hearback, agent, open(journal, "ab+")
        self.file.seek(0)
        *self.journal, rest = self.file.read().split(b"\n")
        # What stands behind the last end of a line was being written at a death: it was not answered.
        self.file.truncate(self.file.tell() - len(rest))
        lines = [json.loads(line) for line in self.journal]
        self.answered = {identity for line in lines for identity in line["re"]}
        self.chats = {line["chat"]: asyncio.Lock() for line in lines}
        self.tasks, self.platforms = {}, set()

    def answer(self, chat, ids, text):
        line = json.dumps({"chat": chat, "re": ids, "text": text}).encode()
        self.file.write(line + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.journal.append(line)
        self.answered.update(ids)
        for platform in self.platforms:
            platform.write(line + b"\n")

    async def on_message(self, chat, id, text):
        """A message of a user: the gateway has it, and opens a turn for it."""
        # Those of one chat in their order.
        async with self.chats.setdefault(chat, asyncio.Lock()):
            await self.hearback.attend(chat)
            while id not in self.answered:
                try:
                    async with await self.hearback.turn(chat, wait_ms=3_600_000) as turn:
                        self.answer(chat, [id], await turn.run(*self.agent, input=turn.with_note(text)))
                except HearbackError as error:
                    print(f"{chat}: {error}", file=sys.stderr)
                    await asyncio.sleep(0.5)

    async def on_turn(self, turn):
        """What is due for a chat: hearback has it, and has begun a turn for it."""
        try:
            if not turn.items:  # A turn for a message was cut short. That message comes again.
                return await turn.failed("the platform repeats it")
            async with turn:
                if new := [item for item in turn.items if item.id not in self.answered]:
                    text = await turn.run(*self.agent, input="\n\n".join(item.text for item in new))
                    self.answer(turn.session, [item.id for item in new], text)
        except HearbackError as error:
            print(f"{turn.session}: {error}; it comes again", file=sys.stderr)

    async def on_platform(self, reader, writer):
        since = json.loads(await reader.readline())["since"]
        writer.writelines(line + b"\n" for line in self.journal[since:])
        self.platforms.add(writer)
        async for line in reader:
            message = json.loads(line)
            self.start(message["id"], self.on_message(**message))
        self.platforms.discard(writer)

    def start(self, name, work):
        """Runs a task, unless one of that name runs."""
        if name in self.tasks:
            return work.close()
        self.tasks[name] = asyncio.create_task(work)
        self.tasks[name].add_done_callback(lambda _: self.tasks.pop(name))


async def main(journal, *agent):
    async with AsyncClient() as hearback:
        gateway = Gateway(hearback, journal, agent)
        for chat in gateway.chats:
            await hearback.attend(chat)
        server = await asyncio.start_server(gateway.on_platform, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        async for turn in hearback.turns():
            gateway.start(turn.token, gateway.on_turn(turn))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
