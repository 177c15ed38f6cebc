"""The gateway against the real program, in good days and in bad ones. `cargo xtask packages` runs it.

HEARBACK_TEST_FULL=1 kills 300 processes instead of 20.
"""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "packages/python/tests"))
from support import DEADLINE, ROOT, World, children, eventually, program  # noqa: E402

CONFIG = """\
durability = "process"
attempts = 100
retry_first = "100ms"
retry_most = "500ms"
max_rate = 100000
"""


class Platform:
    """The chat platform: it has the messages of the users, and repeats them after each new connection until they are
    answered."""

    def __init__(self):
        self.messages, self.answers = {}, []
        self.lock = threading.Lock()
        self.socket = None

    def connect(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.socket.settimeout(None)
        with self.lock:
            waiting = [message for message in self.messages.values() if message["id"] not in self.answered()]
            self.write([{"since": len(self.answers)}, *waiting])
        threading.Thread(target=self.listen, args=[self.socket], daemon=True).start()

    def say(self, chat, identity, text):
        message = {"chat": chat, "id": identity, "text": f"{identity}: {text}"}
        with self.lock:
            self.messages[identity] = message
            self.write([message])

    def write(self, lines):
        try:
            self.socket.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        except OSError:
            # The gateway is dead; the next connection has them.
            pass

    def listen(self, connection):
        try:
            for line in connection.makefile("rb"):
                with self.lock:
                    # A connection to a gateway that has died may still have something to say.
                    if connection is self.socket and line.endswith(b"\n"):
                        self.answers.append(json.loads(line))
        except OSError:
            pass

    def answered(self):
        return [identity for answer in self.answers for identity in answer["re"]]


class GatewayTest(World):
    def setUp(self):
        super().setUp()
        self.home.mkdir()
        (self.home / "config.toml").write_text(CONFIG)
        self.ledger, self.journal = self.folder / "ledger", self.folder / "journal"
        self.env |= {"HEARBACK": program(), "LEDGER": str(self.ledger), "PYTHONPATH": str(ROOT / "src")}
        self.platform, self.gateway = Platform(), None
        self.errors = open(self.folder / "errors", "ab")
        self.addCleanup(self.errors.close)
        self.addCleanup(self.end_agents)
        self.addCleanup(self.end)

    def gateway_command(self):
        """The gateway that is tried. One in another language has to keep the same promises."""
        return [sys.executable, str(HERE / "ledger_gateway.py")]

    def begin(self):
        agent = [sys.executable, str(HERE / "ledger_agent.py")]
        self.gateway = subprocess.Popen(
            [*self.gateway_command(), str(self.journal), *agent],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        port = self.gateway.stdout.readline()
        self.assertTrue(port.strip(), (self.folder / "errors").read_text())
        self.platform.connect(int(port))

    def end(self):
        if self.gateway is not None:
            self.gateway.kill()
            self.gateway.wait()
            self.gateway.stdout.close()
            self.platform.socket.close()

    def end_agents(self):
        """The agent of a gateway that has died is ended by the next turn of its chat. After a test there is none."""
        for line in map(json.loads, self.ledger.read_text().splitlines() if self.ledger.exists() else []):
            try:
                # The pid may be that of another process by now.
                command = pathlib.Path(f"/proc/{line['pid']}/environ").read_bytes().split(b"\0")
                if f"LEDGER={self.ledger}".encode() in command:
                    os.kill(line["pid"], signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError, KeyError):
                continue

    def cli(self, *arguments, may_fail=False):
        ran = subprocess.run(
            [program(), "--json", *arguments], env=self.env, stdout=subprocess.PIPE, check=not may_fail
        )
        return json.loads(ran.stdout)

    def children(self):
        """The processes that the gateway has started: hearback serve, and agents."""
        started = children(self.gateway.pid)
        serve = [pid for pid, command in started.items() if "serve" in command]
        agents = [pid for pid, command in started.items() if str(HERE / "ledger_agent.py") in command]
        return {"serve": serve, "agent": agents}

    def follow_ups(self):
        return [f"{job['id']}.end" for job in self.cli("list", "--all", "--all-sessions")["jobs"]]

    def all_answered(self):
        wanted = {*self.platform.messages, *self.follow_ups()}
        return wanted <= set(self.platform.answered())

    def is_settled(self):
        return not self.cli("followups", "--all-sessions")["jobs"]

    def check_books(self):
        """Everything was answered once, and nothing was handled after its acknowledgement."""
        answered = self.platform.answered()
        self.assertEqual(len(answered), len(set(answered)), "an answer was given twice")
        self.assertEqual(set(answered), {*self.platform.messages, *self.follow_ups()})
        for chat in {message["chat"] for message in self.platform.messages.values()}:
            # Messages are numbered in the order in which they were sent.
            numbers = [int(one[1:]) for one in answered if self.platform.messages.get(one, {}).get("chat") == chat]
            self.assertEqual(numbers, sorted(numbers), f"{chat} was answered in another order")
        acknowledged, handled, late = set(), {}, []
        for line in map(json.loads, self.ledger.read_text().splitlines()):
            late += [identity for identity in line.get("handled", []) if identity in acknowledged]
            acknowledged.update(line.get("acknowledged", []))
            for identity in line.get("handled", []):
                handled[identity] = handled.get(identity, 0) + 1
        self.assertEqual(late, [])
        self.assertLessEqual(set(answered), set(handled))
        return sum(handled.values()) - len(handled)

    def test_messages_are_answered_and_ends_are_told_in_their_chat(self):
        self.begin()
        self.platform.say("lounge", "m1", "hello")
        self.platform.say("kitchen", "m2", "run echo the cake is done; exit 3")
        for number in range(3, 8):
            self.platform.say("lounge", f"m{number}", "hello")
        eventually("all is answered", lambda: self.platform.answered() and self.all_answered())
        answers = {identity: answer for answer in self.platform.answers for identity in answer["re"]}
        self.assertEqual(answers["m1"]["text"], "you said: m1: hello\n")
        (told,) = [answer for identity, answer in answers.items() if identity.endswith(".end")]
        self.assertEqual(told["chat"], "kitchen")
        self.assertIn("the cake is done", told["text"])
        self.assertIn("exit code 3", told["text"])
        eventually("all is acknowledged", self.is_settled)
        self.check_books()

    def test_what_ends_while_no_gateway_runs_is_told_afterwards(self):
        self.begin()
        self.platform.say("kitchen", "m1", f"run cat {self.folder}/gate; echo over")
        os.mkfifo(self.folder / "gate")
        eventually("it is launched", lambda: "m1" in self.platform.answered())
        self.end()
        (self.folder / "gate").write_text("")
        self.cli("wait", "--peek", self.cli("list", "--all-sessions")["jobs"][0]["id"], may_fail=True)
        self.begin()
        eventually("it is told", self.all_answered)
        eventually("all is acknowledged", self.is_settled)
        self.check_books()

    def test_an_agent_that_was_cut_short_hears_of_it_when_its_message_comes_again(self):
        self.begin()
        go = self.folder / "go"
        self.platform.say("kitchen", "m1", f"hold until {go}")
        eventually("the agent runs", lambda: "handled" in self.ledger.read_text())
        self.end()
        self.begin()
        eventually("it runs again", lambda: self.ledger.read_text().count("handled") == 2)
        go.touch()
        eventually("it is answered", self.all_answered)
        (answer,) = self.platform.answers
        self.assertIn("may already have taken effect", answer["text"])
        self.check_books()

    def test_what_is_in_the_journal_is_acknowledged_and_not_handled_again(self):
        # A gateway that died between the two.
        job = self.cli("launch", "--session", "kitchen", "--shell", "echo over")["id"]
        self.cli("wait", "--peek", job)
        self.journal.write_text(
            json.dumps({"chat": "kitchen", "re": [f"{job}.end"], "text": "it is over"}) + '\n{"chat": "ki'
        )
        self.begin()
        eventually("it is acknowledged", self.is_settled)
        self.assertEqual([answer["text"] for answer in self.platform.answers], ["it is over"])
        self.assertNotIn("handled", self.ledger.read_text())

    def test_no_death_loses_or_repeats_anything(self):
        full = bool(os.environ.get("HEARBACK_TEST_FULL"))
        kills = 300 if full else 20
        chance = random.Random(os.environ.get("HEARBACK_TEST_SEED", "7"))
        chats = [f"chat-{number}" for number in range(6)]
        killed = {"host": 0, "serve": 0, "agent": 0}
        said = held = 0
        self.begin()
        began = time.monotonic()
        while sum(killed.values()) < kills:
            self.assertLess(time.monotonic() - began, 30 + 4 * kills, f"only {killed}")
            # No more than a few wait for an answer at a time, so that each kill hits something that is under way.
            if said - len(set(self.platform.answered()) & set(self.platform.messages)) < 2 * len(chats):
                said += 1
                task = "run sleep 0.1; echo done" if chance.random() < 0.5 else "hello"
                self.platform.say(chance.choice(chats), f"m{said}", task)
            # Not a wait for a condition: the moment of the next death.
            time.sleep(chance.random() * 0.2)
            whom = chance.choice(list(killed))
            victims = [self.gateway.pid] if whom == "host" else self.children()[whom]
            if chance.random() < 0.5 or not victims:
                continue
            try:
                os.kill(chance.choice(victims), signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed[whom] += 1
            if whom == "host":
                self.end()
                self.begin()

        # What was cut short three times in a row is held for a person. Here is the person.
        def is_over():
            nonlocal held
            letters = [
                job
                for job in self.cli("followups", "--all-sessions")["jobs"]
                if job["follow_up"]["state"] == "dead_letter"
            ]
            for job in letters:
                held += 1
                self.cli("followups", "retry", "--all-sessions", job["id"], may_fail=True)
            return self.all_answered() and self.is_settled()

        eventually("all is answered and acknowledged", is_over, 2 * DEADLINE if not full else 5 * DEADLINE)
        repeats = self.check_books()
        follow_ups = len(self.follow_ups())
        counted = f"{said} messages, {follow_ups} follow-ups; handled again after a death: {repeats}; held: {held}"
        print(f"\nkilled {killed}; {counted}")


if __name__ == "__main__":
    unittest.main()
