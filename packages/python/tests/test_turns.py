"""Turns over the real program: what is due is handed over once, and comes again if it was not acknowledged."""

import os
import signal
import subprocess
import sys
import threading

from support import DEADLINE, ROOT, World, eventually, program

from hearback import Client, HearbackError

QUICK = 'retry_first = "50ms"\nretry_most = "200ms"\n'


class Turns(World):
    def setUp(self):
        super().setUp()
        self.home.mkdir()
        self.config(QUICK)

    def config(self, text):
        (self.home / "config.toml").write_text(text)

    def client(self):
        client = Client(binary=program(), env={**self.removed, **self.env})
        self.addCleanup(client.close)
        return client

    def ended(self, client, session="s", **more):
        job = client.launch(["sh", "-c", "echo hello; exit 3"], session=session, **more)["id"]
        client.wait(job, peek=True)
        return job

    def state(self, client, job):
        return client.show(job)["follow_up"]["state"]

    def test_a_follow_up_is_handed_over_with_all_about_it_and_acknowledged(self):
        client = self.client()
        client.attend("s")
        job = self.ended(client)
        with client.next_turn() as turn:
            (item,) = turn.items
            self.assertEqual((turn.session, item.kind, item.id, item.attempt), ("s", "follow_up", f"{job}.end", 1))
            self.assertEqual(item.payload["data"]["job"]["outcome"], {"kind": "exited", "code": 3})
            self.assertIn("hello", item.text)
            self.assertIn("hello", turn.text)
        eventually("it is told", lambda: self.state(client, job) == "delivered")

    def test_what_failed_comes_again_under_the_same_id(self):
        client = self.client()
        client.attend("s")
        job = self.ended(client)
        with self.assertRaises(ZeroDivisionError), client.next_turn() as turn:
            raise ZeroDivisionError("no luck")
        with client.next_turn() as again:
            (item,) = again.items
            self.assertEqual((item.id, item.attempt), (turn.items[0].id, 2))
        eventually("it is told", lambda: self.state(client, job) == "delivered")

    def test_one_item_is_acknowledged_and_another_given_back(self):
        client = self.client()
        jobs = [self.ended(client) for _ in range(2)]
        turn = client.turn("s")
        items = turn.claim()
        self.assertEqual({item.id for item in items}, {f"{job}.end" for job in jobs})
        items[0].ack()
        items[1].release("busy", retry_after_ms=10)
        turn.done()
        client.attend("s")
        with client.next_turn() as again:
            self.assertEqual([item.id for item in again.items], [items[1].id])

    def test_a_session_is_in_one_turn_at_a_time_whoever_asks(self):
        one, other = self.client(), self.client()
        turn = one.turn("s")
        with self.assertRaises(HearbackError) as caught:
            other.turn("s")
        self.assertEqual(caught.exception.kind, "busy")
        with other.turn("t"):
            pass
        opened = []
        thread = threading.Thread(target=lambda: opened.append(other.turn("s", wait_ms=int(DEADLINE * 1000))))
        thread.start()
        turn.done()
        thread.join(DEADLINE)
        self.assertEqual(opened[0].number, turn.number + 1)
        opened[0].done()
        # Twice does nothing.
        turn.done()

    def test_several_wait_for_their_turn_in_one_session(self):
        client = self.client()
        numbers = []

        def take():
            with client.turn("s", wait_ms=int(DEADLINE * 1000)) as turn:
                numbers.append(turn.number)

        threads = [threading.Thread(target=take) for _ in range(7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * DEADLINE)
        self.assertEqual(numbers, list(range(1, 8)))

    def test_news_in_the_middle_of_a_turn_can_be_claimed(self):
        client = self.client()
        client.attend("s")
        with client.turn("s") as turn:
            job = self.ended(client)
            turn.due()
            (item,) = turn.claim()
            self.assertEqual(item.id, f"{job}.end")
        eventually("it is told", lambda: self.state(client, job) == "delivered")

    def test_a_message_comes_back_as_a_turn(self):
        client = self.client()
        client.attend("s")
        client.send("s", "the build machine is back", sink="host")
        with client.next_turn() as turn:
            self.assertEqual([item.kind for item in turn.items], ["message"])
            self.assertIn("the build machine is back", turn.text)

    def test_a_turn_hears_that_it_is_to_end(self):
        self.config(QUICK + 'busy = "interrupt"\n')
        client = self.client()
        client.attend("s")
        turn = client.turn("s")
        client.send("s", "stop that", sink="host")
        self.assertTrue(turn.interruption())
        self.assertFalse(turn.lost)
        turn.failed("interrupted")
        with client.next_turn() as following:
            self.assertIn("stop that", following.text)

    def test_when_the_process_dies_its_turn_is_lost_and_its_item_comes_again_with_a_note(self):
        client = self.client()
        client.attend("s")
        self.ended(client)
        turn = client.next_turn()
        os.kill(client.hello["pid"], signal.SIGKILL)
        self.assertEqual(turn.interruption(), "lost")
        with self.assertRaises(HearbackError) as caught:
            turn.done()
        self.assertEqual(caught.exception.kind, "disconnected")
        with client.next_turn() as again:
            self.assertEqual([item.id for item in again.items], [item.id for item in turn.items])
            self.assertEqual(again.note["reason"], "crash")
            self.assertTrue(again.with_note("hello").startswith(again.note["text"]))

    def test_two_hosts_never_get_the_same(self):
        hosts = [self.client(), self.client()]
        for host in hosts:
            host.attend(all=True)
        jobs = {self.ended(hosts[0], session=f"s{number % 5}", notify="always") for number in range(20)}
        seen, lock = [], threading.Lock()

        def listen(host):
            while True:
                try:
                    turn = host.next_turn()
                except HearbackError:
                    return
                if turn is None:
                    return
                with turn:
                    with lock:
                        seen.extend(item.id for item in turn.items)

        threads = [threading.Thread(target=listen, args=[host]) for host in hosts]
        for thread in threads:
            thread.start()
        eventually("all are told", lambda: all(self.state(hosts[0], job) == "delivered" for job in jobs))
        for host in hosts:
            host.close()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual(sorted(seen), sorted(f"{job}.end" for job in jobs))

    def test_the_agent_of_a_host_that_died_is_ended_before_the_next_turn(self):
        pid = self.folder / "pid"
        host = f"""if True:
            import asyncio, hearback
            async def main():
                async with hearback.AsyncClient() as client:
                    async with await client.turn("s") as turn:
                        await turn.run("sh", "-c", "echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600")
            asyncio.run(main())"""
        env = {**self.env, "HEARBACK": program(), "PYTHONPATH": str(ROOT / "src")}
        process = subprocess.Popen([sys.executable, "-c", host], env=env)
        eventually("the agent runs", pid.exists)
        process.kill()
        process.wait()
        with self.client().turn("s", wait_ms=int(DEADLINE * 1000)) as turn:
            self.assertFalse(os.path.exists(f"/proc/{pid.read_text().strip()}/exe"), "the agent still runs")
            self.assertEqual(turn.note["reason"], "crash")
