"""The clients when the process behind them dies, lies or is slow. The stand-in does these things at once."""

import asyncio
import threading
import unittest

from support import DEADLINE, FakeWorld, eventually

from hearback import AsyncClient, Client, HearbackError
from hearback import _async


def is_alive(pid):
    """Whether a process runs; one that has ended and is not collected does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Asynchronous(FakeWorld, unittest.IsolatedAsyncioTestCase):
    def client(self, **env):
        return AsyncClient(binary=self.binary, env={**self.env, **env})

    async def within(self, awaitable):
        return await asyncio.wait_for(awaitable, DEADLINE)

    async def test_an_error_has_its_kind_its_message_and_its_tip(self):
        async with self.client() as client:
            with self.assertRaises(HearbackError) as caught:
                await client.call("fail")
        error = caught.exception
        self.assertEqual((error.kind, error.message, error.subject), ("unknown_job", "no job `x`", "x"))
        self.assertEqual(str(error), "no job `x`\ntip: see `hearback list`")

    async def test_a_call_that_is_cancelled_is_cancelled_on_the_other_side(self):
        async with self.client() as client:
            waiting = asyncio.create_task(client.wait("j"))
            await asyncio.to_thread(eventually, "it waits", lambda: self.received("wait"))
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            # Others go on over the same pipe.
            await client.call("list")
            self.assertEqual(self.received("cancel")[0]["params"], {"id": self.received("wait")[0]["id"]})

    async def test_a_safe_call_is_sent_again_to_the_next_process(self):
        async with self.client() as client:
            first = client.hello["pid"]
            waiting = asyncio.create_task(client.wait("j", timeout_ms=60_000))
            await asyncio.to_thread(eventually, "it waits", lambda: self.received("wait"))
            with self.assertRaises(HearbackError) as caught:
                await client.call("die")
            self.assertEqual(caught.exception.kind, "disconnected")
            reply = await self.within(waiting)
            self.assertNotEqual(reply["pid"], first)
            # What is left of its time, not all of it again.
            self.assertLessEqual(reply["params"]["timeout_ms"], 60_000)
            self.assertEqual(len(self.received("wait")), 2)

    async def test_a_launch_is_repeated_only_with_a_key(self):
        async with self.client(FAKE_DIES_AT="launch") as client:
            with self.assertRaises(HearbackError) as caught:
                await self.within(client.launch(["make"]))
            self.assertEqual(caught.exception.kind, "disconnected")
            self.assertEqual(len(self.received("launch")), 1)
        self.log.with_suffix(".died").unlink()
        async with self.client(FAKE_DIES_AT="launch") as client:
            await self.within(client.launch(["make"], key="k"))
        sent = self.received("launch")
        self.assertEqual([message["params"].get("key") for message in sent], [None, "k", "k"])

    async def test_a_look_is_repeated(self):
        async with self.client(FAKE_DIES_AT="list") as client:
            await self.within(client.list())
        self.assertEqual(len(self.received("list")), 2)

    async def test_a_message_is_never_sent_twice(self):
        async with self.client(FAKE_DIES_AT="send") as client:
            with self.assertRaises(HearbackError) as caught:
                await self.within(client.send("s", "hello"))
            self.assertEqual(caught.exception.kind, "disconnected")
            await client.call("list")
        self.assertEqual(len(self.received("send")), 1)

    async def test_sessions_are_attended_again_and_turns_of_the_dead_are_lost(self):
        async with self.client() as client:
            await client.attend("s")
            turn = await self.within(client.next_turn())
            self.assertFalse(turn.lost)
            with self.assertRaises(HearbackError):
                await client.call("die")
            self.assertEqual(await self.within(turn.interruption()), "lost")
            with self.assertRaises(HearbackError) as caught:
                await turn.done()
            self.assertEqual(caught.exception.kind, "disconnected")
            again = await self.within(client.next_turn())
            self.assertNotEqual(again.token, turn.token)
            await again.done()
        self.assertEqual(
            [message["params"] for message in self.received("turn.close")], [{"turn": again.token, "how": "done"}]
        )

    async def test_a_turn_hears_what_is_due_in_it_and_that_it_is_to_end(self):
        async with self.client() as client:
            async with await client.turn("s") as turn:
                await self.within(turn.due())
                (item,) = await turn.claim()
                self.assertEqual((item.id, item.text), ("j.end", "it has ended"))
                self.assertEqual(turn.items, [item])
                await client.call("interrupt", turn=turn.token)
                self.assertEqual(await self.within(turn.interruption()), "drain")
                self.assertFalse(turn.lost)
        self.assertEqual(self.received("turn.close")[0]["params"], {"turn": "t1", "how": "done"})

    async def test_an_exception_in_a_turn_fails_it(self):
        async with self.client() as client:
            with self.assertRaises(ZeroDivisionError):
                async with await client.turn("s"):
                    raise ZeroDivisionError("division by zero")
        closed = self.received("turn.close")[0]["params"]
        self.assertEqual(closed, {"turn": "t1", "how": "failed", "error": "division by zero"})

    async def test_an_agent_runs_as_long_as_its_turn_may(self):
        async with self.client() as client:
            async with await client.turn("s") as turn:
                text = await self.within(turn.run("sh", "-c", 'echo "$HEARBACK_SESSION: $(cat)"', input="hello"))
                self.assertEqual(text, "s: hello\n")
                for code, kind in [("exit 3", "failed"), ("kill -9 $$", "failed"), ("", "not_found")]:
                    with self.assertRaises(HearbackError) as caught:
                        await self.within(turn.run(*(["sh", "-c", code] if code else ["/no/such/agent"])))
                    self.assertEqual(caught.exception.kind, kind)
                pid = self.folder / "pid"
                running = asyncio.create_task(turn.run("sh", "-c", f"sleep 600 & echo $! > {pid}; wait"))
                await asyncio.to_thread(eventually, "it runs", lambda: pid.exists() and pid.read_text().strip())
                await client.call("interrupt", turn=turn.token)
                with self.assertRaises(HearbackError) as caught:
                    await self.within(running)
                self.assertEqual(caught.exception.kind, "interrupted")
                await asyncio.to_thread(eventually, "its child has ended", lambda: not is_alive(int(pid.read_text())))

    async def test_a_slow_reader_of_events_loses_none_and_blocks_nobody(self):
        many = 3 * _async.BUFFERED_EVENTS_MAX
        async with self.client(FAKE_EVENTS=str(many)) as client:
            events = await client.events("beginning")
            seen = [await self.within(anext(events))]
            # It has not read the rest; others get their replies all the same.
            await self.within(client.call("list"))
            self.assertLessEqual(max(len(reader.buffered) for reader in client._readers), _async.BUFFERED_EVENTS_MAX)
            while len(seen) < many:
                seen.append(await self.within(anext(events)))
            await events.aclose()
            await client.call("list")
        self.assertEqual([int(event["id"]) for event in seen], list(range(many)))
        self.assertGreater(len(self.received("events")), 1)
        self.assertEqual(len(self.received("events.stop")), len(self.received("events")))

    async def test_events_go_on_behind_the_last_one_after_a_death(self):
        async with self.client(FAKE_EVENTS="5") as client:
            events = await client.events("beginning")
            seen = [await self.within(anext(events)) for _ in range(5)]
            with self.assertRaises(HearbackError):
                await client.call("die")
            await self.within(client.call("list"))
            await events.aclose()
        self.assertEqual(len(seen), 5)
        self.assertEqual([message["params"]["since"] for message in self.received("events")], ["beginning", "4"])

    async def test_a_line_that_is_no_message_ends_that_process_alone(self):
        async with self.client() as client:
            with self.assertRaises(HearbackError) as caught:
                await self.within(client.call("garble"))
            self.assertEqual(caught.exception.kind, "protocol")
            await self.within(client.call("list"))

    async def test_what_cannot_be_started_is_said_at_once(self):
        for mode, kind in [("mute", "disconnected"), ("garbage", "protocol"), ("newer", "protocol")]:
            with self.subTest(mode), self.assertRaises(HearbackError) as caught:
                await self.within(self.client(FAKE_MODE=mode).start())
            self.assertEqual(caught.exception.kind, kind)
        with self.assertRaises(HearbackError) as caught:
            await AsyncClient(env={"PATH": "", "HEARBACK": ""}).start()
        self.assertEqual(caught.exception.kind, "not_found")
        with self.assertRaises(HearbackError) as caught:
            await AsyncClient(env={"HEARBACK": "/no/such/program"}).start()
        self.assertEqual(caught.exception.kind, "not_found")

    async def test_a_process_that_never_starts_again_is_given_up(self):
        client = self.client()
        pauses = (_async.FIRST_PAUSE, _async.LONGEST_PAUSE)
        self.addCleanup(
            lambda: (setattr(_async, "FIRST_PAUSE", pauses[0]), setattr(_async, "LONGEST_PAUSE", pauses[1]))
        )
        _async.FIRST_PAUSE = _async.LONGEST_PAUSE = 0.01
        async with client:
            await client.attend("s")
            await client.next_turn()
            self.binary.unlink()
            with self.assertRaises(HearbackError):
                await client.call("die")
            for call in (client.next_turn(), client.call("list")):
                with self.assertRaises(HearbackError) as caught:
                    await self.within(call)
                self.assertEqual(caught.exception.kind, "not_found")

    async def test_a_closed_client_says_so_and_its_iterators_end(self):
        client = self.client()
        await client.start()
        events = await client.events()
        first = asyncio.create_task(anext(events, None))
        turns = asyncio.create_task(client.next_turn())
        await asyncio.to_thread(eventually, "it listens", lambda: self.received("events"))
        await client.close()
        self.assertIsNone(await self.within(first))
        self.assertIsNone(await self.within(turns))
        with self.assertRaises(HearbackError) as caught:
            await client.list()
        self.assertEqual(caught.exception.kind, "closed")
        await client.close()

    async def test_wrong_arguments_are_refused(self):
        async with self.client() as client:
            for call in [
                client.launch("make all"),
                client.attend(),
                client.attend("s", all=True),
                client.call("list", label="\ud800"),
                client.call("list", label=object()),
            ]:
                with self.assertRaises(HearbackError) as caught:
                    await call
                self.assertEqual(caught.exception.kind, "usage")
            with self.assertRaises(HearbackError) as caught:
                await client.send("s", "x" * (17 * 1024 * 1024))
            self.assertEqual(caught.exception.kind, "usage")
            await client.call("list")


class Synchronous(FakeWorld):
    def client(self, **env):
        return Client(binary=self.binary, env={**self.env, **env})

    def test_threads_share_a_client(self):
        with self.client() as client:
            replies = []
            threads = [
                threading.Thread(target=lambda one=one: replies.append(client.call("echo", n=one)["params"]["n"]))
                for one in range(20)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(DEADLINE)
            self.assertEqual(sorted(replies), list(range(20)))

    def test_a_turn_is_a_context(self):
        with self.client() as client:
            with client.turn("s") as turn:
                turn.due()
                self.assertEqual([item.text for item in turn.claim()], ["it has ended"])
                self.assertEqual(len(turn.items), 1)
        self.assertEqual(self.received("turn.close")[0]["params"]["how"], "done")

    def test_events_are_an_iterator(self):
        with self.client(FAKE_EVENTS="3") as client:
            events = client.events("beginning")
            self.assertEqual([next(events)["id"] for _ in range(3)], ["0", "1", "2"])
            events.close()

    def test_a_thread_that_waits_hears_of_the_end(self):
        client = self.client()
        client.start()
        ends = []
        thread = threading.Thread(target=lambda: ends.append(list(client.turns())))
        waiting = threading.Thread(target=lambda: ends.append(self.kind_of(client.wait, "j")))
        thread.start()
        waiting.start()
        eventually("it waits", lambda: self.received("wait"))
        client.close()
        thread.join(DEADLINE)
        waiting.join(DEADLINE)
        self.assertCountEqual(map(str, ends), ["[]", "closed"])
        self.assertEqual(self.kind_of(client.list), "closed")
        client.close()

    def kind_of(self, call, *arguments):
        try:
            call(*arguments)
        except HearbackError as error:
            return error.kind
        return None


if __name__ == "__main__":
    unittest.main()
