"""Jobs and events by the package and by the command line are the same ones."""

import asyncio
import json
import os
import signal
import subprocess
import threading
import unittest

from support import DEADLINE, World, eventually, program

from hearback import AsyncClient, Client, HearbackError


class RealWorld(World):
    def client(self):
        client = Client(binary=program(), env={**self.removed, **self.env})
        self.addCleanup(client.close)
        return client

    def cli(self, *arguments, code=0):
        """What the command line prints with --json."""
        ran = subprocess.run(
            [program(), "--json", *arguments],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(ran.returncode, code, (arguments, ran.stdout, ran.stderr))
        return json.loads(ran.stdout)


class Jobs(RealWorld):
    def test_scenario_146_a_job_is_the_same_by_the_package_and_by_the_command_line(self):
        client = self.client()
        launched = client.launch(["sh", "-c", "echo one; exit 3"], label="three", session="s", sinks=[])
        self.assertTrue(launched["created"])
        waited = client.wait(launched["id"], timeout_ms=int(DEADLINE * 1000))
        self.assertFalse(waited["timed_out"])
        (job,) = waited["jobs"]
        self.assertEqual(
            (job["id"], job["state"], job["outcome"]), (launched["id"], "failed", {"kind": "exited", "code": 3})
        )
        shown = client.show(launched["id"])
        self.assertEqual(shown, self.cli("show", launched["id"]))
        self.assertEqual([one["id"] for one in client.list(label="three")["jobs"]], [launched["id"]])
        text = "".join(part["text"] for part in client.output(launched["id"])["parts"])
        self.assertEqual(text, "one\n")

        other = self.cli("launch", "--", "true")["id"]
        self.assertEqual(client.wait(other)["jobs"][0]["state"], "done")

    def test_scenario_146_an_error_is_the_same_by_the_package_and_by_the_command_line(self):
        client = self.client()
        with self.assertRaises(HearbackError) as caught:
            client.show("nothing-like-it")
        error = self.cli("show", "nothing-like-it", code=1)["error"]
        mine = caught.exception
        self.assertEqual((mine.kind, mine.message, mine.tip), (error["kind"], error["message"], error.get("tip")))
        for wrong in (lambda: client.launch([]), lambda: client.launch(), lambda: client.launch(["x"], cwd="relative")):
            with self.assertRaises(HearbackError) as caught:
                wrong()
            self.assertEqual(caught.exception.kind, "usage")

    def test_a_launch_with_a_key_is_found_again(self):
        client = self.client()
        first = client.launch(["sleep", "60"], key="k")
        again = client.launch(["sleep", "60"], key="k")
        self.assertEqual(
            (first["id"], first["created"], again["id"], again["created"]), (first["id"], True, first["id"], False)
        )
        killed = client.kill(first["id"], reason="enough")["jobs"][0]
        self.assertEqual(client.show(first["id"])["outcome"]["kind"], "killed", killed)

    def test_a_wait_that_is_too_short_says_so_and_leaves_the_job(self):
        client = self.client()
        job = client.launch(["sleep", "60"])["id"]
        self.assertTrue(client.wait(job, timeout_ms=10)["timed_out"])
        self.assertEqual(client.show(job)["state"], "running")
        client.kill(job)

    def test_threads_wait_side_by_side(self):
        client = self.client()
        gate = self.folder / "gate"
        os.mkfifo(gate)
        jobs = [client.launch(["cat", str(gate)])["id"] for _ in range(5)]
        ends = []
        threads = [threading.Thread(target=lambda job=job: ends.append(client.wait(job))) for job in jobs]
        for thread in threads:
            thread.start()
        # All of them are asleep, and another call gets its reply.
        self.assertEqual(client.list(state="running")["jobs"].__len__(), 5)
        gate_end = os.open(gate, os.O_WRONLY)
        os.close(gate_end)
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual([end["jobs"][0]["state"] for end in ends], ["done"] * 5)

    def test_a_wait_goes_on_when_the_process_behind_it_is_killed(self):
        client = self.client()
        client.start()
        job = client.launch(["sleep", "60"], key="k")["id"]
        ends = []
        thread = threading.Thread(target=lambda: ends.append(client.wait(job)))
        thread.start()
        first = client.hello["pid"]
        os.kill(first, signal.SIGKILL)
        eventually("another process is there", lambda: client.call("list") and client.hello["pid"] != first)
        client.kill(job)
        thread.join(DEADLINE)
        self.assertEqual(ends[0]["jobs"][0]["outcome"]["kind"], "killed")

    def test_scenario_145_events_miss_nothing_when_the_process_behind_them_is_killed(self):
        client = self.client()
        with client.events() as events:
            first = client.launch(["true"])["id"]
            seen = []
            while not seen or seen[-1]["type"] != "settled":
                seen.append(next(events))
            self.assertEqual({event["job"]["id"] for event in seen}, {first})
            os.kill(client.hello["pid"], signal.SIGKILL)
            # While no process reads them.
            second = self.cli("launch", "--", "true")["id"]
            seen = []
            while not seen or seen[-1]["type"] != "settled":
                seen.append(next(events))
            self.assertEqual({event["job"]["id"] for event in seen}, {second})
            self.assertEqual(seen[0]["type"], "launched")
            cursor = events.cursor
        third = client.launch(["true"])["id"]
        with client.events(cursor) as events:
            self.assertEqual(next(events)["job"]["id"], third)


class Asynchronous(RealWorld, unittest.IsolatedAsyncioTestCase):
    async def test_a_cancelled_wait_leaves_the_job(self):
        async with AsyncClient(binary=program(), env={**self.removed, **self.env}) as client:
            job = (await client.launch(["sleep", "60"]))["id"]
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(client.wait(job), 0.2)
            self.assertEqual((await client.show(job))["state"], "running")
            waiting = asyncio.create_task(client.wait(job))
            await client.kill(job)
            self.assertEqual((await asyncio.wait_for(waiting, DEADLINE))["jobs"][0]["state"], "failed")


if __name__ == "__main__":
    unittest.main()
