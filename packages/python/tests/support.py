"""What the tests share: a place of their own, the real program, and the stand-in."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

DEADLINE = 60.0
"""Seconds. Only a failure takes as long: a test ends as soon as what it waits for is there."""


def program():
    """The program under test."""
    named = os.environ.get("HEARBACK")
    if not named:
        raise RuntimeError("set HEARBACK to the program under test; `cargo xtask packages` does")
    return os.path.abspath(shutil.which(named) or named)


def eventually(what, condition, deadline=DEADLINE):
    """Waits until a condition holds, and returns its value."""
    until = time.monotonic() + deadline
    while not (value := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"not within {deadline:.0f} s: {what}")
        time.sleep(0.02)
    return value


def children(pid):
    """The processes that a process has started, with their command lines. Each of its threads has children of its
    own."""
    found = {}
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in file.read_text().split():
                found[int(child)] = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            # It has ended.
            continue
    return found


class World(unittest.TestCase):
    """A test with a store of its own, which knows of no session and no agent."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hearback-"))
        self.addCleanup(self.clean)
        self.home = self.folder / "home"
        # Names of sessions and agents of the environment in which the tests run.
        self.removed = {name: None for name in os.environ if name.startswith(("HEARBACK", "CLAUDE", "CODEX"))}
        kept = {name: value for name, value in os.environ.items() if name not in self.removed}
        self.env = {**kept, "HEARBACK_HOME": str(self.home), "HEARBACK_DURABILITY": "process"}

    def clean(self):
        """Leaves no job and no file behind."""
        if self.home.exists():
            kill = [program(), "kill", "--all", "--all-sessions"]
            subprocess.run(kill, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, check=False)

        def is_gone():
            # A supervisor that is about to end may still write.
            shutil.rmtree(self.folder, ignore_errors=True)
            return not self.folder.exists()

        eventually("the folder is gone", is_gone)


class FakeWorld(World):
    """A test with the stand-in in place of hearback."""

    def setUp(self):
        super().setUp()
        self.log = self.folder / "log"
        self.binary = self.folder / "hearback"
        script = pathlib.Path(__file__).with_name("fake_serve.py")
        self.binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        self.binary.chmod(0o755)
        self.env["FAKE_LOG"] = str(self.log)

    def received(self, method=None):
        """What the stand-in was sent."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        messages = [json.loads(line) for line in lines]
        return [message for message in messages if method in (None, message["method"])]
