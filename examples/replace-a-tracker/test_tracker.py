"""The tracker against the real program: `cargo xtask packages` runs it."""

import os
import signal
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../packages/python/tests"))
from support import World, eventually, program

from tracker import Tracker


class TrackerTest(World):
    def setUp(self):
        super().setUp()
        self.tracker = self.new_tracker()

    def new_tracker(self):
        tracker = Tracker(binary=program(), env={**self.removed, **self.env})
        self.addCleanup(tracker.hearback.close)
        return tracker

    def ended(self, chat, job):
        eventually("it has ended", lambda: self.tracker.get(chat, job)["ended"])

    def test_a_job_is_listed_shown_and_told_once(self):
        job = self.tracker.launch("chat-1", "echo hello; exit 3")
        self.tracker.hearback.wait(job, peek=True)
        found = self.tracker.get("chat-1", job)
        self.assertEqual((found["state"], found["exit_code"], found["output"]), ("failed", 3, "hello\n"))
        self.assertEqual([entry["id"] for entry in self.tracker.list("chat-1")], [job])
        self.assertEqual(self.tracker.list("chat-2"), [])
        self.assertIsNone(self.tracker.get("chat-2", job))

    def test_what_is_pending_is_told_once_and_to_its_chat_alone(self):
        job = self.tracker.launch("chat-1", "echo hello")
        self.tracker.hearback.wait(job, peek=True)
        with self.tracker.pending("chat-2") as texts:
            self.assertEqual(texts, [])
        with self.assertRaises(ZeroDivisionError), self.tracker.pending("chat-1") as texts:
            self.assertIn(job, texts[0])
            raise ZeroDivisionError("division by zero")

        # It failed, so it is pending again, after a pause.
        def again():
            with self.tracker.pending("chat-1") as texts:
                return texts

        self.assertIn("hello", eventually("it is told", again)[0])
        with self.tracker.pending("chat-1") as texts:
            self.assertEqual(texts, [])
        self.assertTrue(self.tracker.list("chat-1")[0]["told"])

    def test_a_chat_that_kills_its_job_is_not_told(self):
        job = self.tracker.launch("chat-1", "sleep 60")
        self.assertEqual(self.tracker.kill("chat-1", job)["ended"], "killed")
        with self.tracker.pending("chat-1") as texts:
            self.assertEqual(texts, [])

    def test_jobs_survive_the_server(self):
        job = self.tracker.launch("chat-1", "read line < gate; exit 5", cwd=self.gate())
        os.kill(self.tracker.hearback.hello["pid"], signal.SIGKILL)
        self.tracker.hearback.close()
        with open(self.folder / "gate", "w"):
            pass
        other = self.new_tracker()
        other.hearback.wait(job, peek=True)
        self.assertEqual(other.get("chat-1", job)["exit_code"], 5)

    def gate(self):
        os.mkfifo(self.folder / "gate")
        return str(self.folder)

    def test_two_servers_do_not_tell_the_same(self):
        job = self.tracker.launch("chat-1", "true")
        self.tracker.hearback.wait(job, peek=True)
        other, told = self.new_tracker(), []
        with self.tracker.pending("chat-1") as texts:

            def ask():
                with other.pending("chat-1") as theirs:
                    told.append(theirs)

            thread = threading.Thread(target=ask)
            thread.start()
            self.assertEqual(len(texts), 1)
        thread.join(60)
        self.assertEqual(told, [[]])


if __name__ == "__main__":
    unittest.main()
