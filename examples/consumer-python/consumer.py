#!/usr/bin/env python3
"""An agent in miniature: launches jobs, sleeps, and handles the end of each once, however often it is killed.

    consumer.py --session me --state DIR [--nap 30s] TASKS

TASKS is a file with a line of shell text for each job. DIR/heard.jsonl is what the agent did: one line for each job.
Three things make this work, and none of them is a process that has to stay alive:

  * Each launch has a key, so a consumer that starts over finds the jobs that it launched before.
  * A follow-up is offered until it is acknowledged, whenever the consumer asks.
  * Its identity never changes. The consumer records what it did under that identity *before* it acknowledges, so it
    recognises a repeat and does nothing a second time.
"""

import argparse
import json
import os
import subprocess
import sys

HEARBACK = os.environ.get("HEARBACK", "hearback")
NOTHING_PENDING = 1


def hearback(*arguments, may_be=(0,)):
    ran = subprocess.run([HEARBACK, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if ran.returncode not in may_be:
        sys.exit(f"hearback {arguments[0]} ended with {ran.returncode}")
    return ran.stdout


class Heard:
    """What was done, by the identity of the follow-up."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "heard.jsonl")
        self.jobs = {}
        try:
            with open(self.path, "rb+") as file:
                lines = file.read().splitlines(keepends=True)
                # A line without an end was being written when the consumer died: it was not done.
                if lines and not lines[-1].endswith(b"\n"):
                    file.truncate(sum(map(len, lines[:-1])))
                    lines.pop()
        except FileNotFoundError:
            lines = []
        for line in map(json.loads, lines):
            self.jobs[line["delivery"]] = line["job"]

    def take(self, event):
        """Handles a follow-up, unless that was done before."""
        delivery, job = event["id"], event["data"]["job"]
        if delivery in self.jobs:
            return
        line = json.dumps({"delivery": delivery, "job": job["id"], "outcome": job["outcome"]})
        with open(self.path, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")
            os.fsync(file.fileno())
        self.jobs[delivery] = job["id"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--session", required=True)
    parser.add_argument("--state", required=True)
    # How long one call sleeps. The loop asks again afterwards, so this is not a deadline.
    parser.add_argument("--nap", default="30s")
    parser.add_argument("tasks")
    options = parser.parse_args()
    session = ("--session", options.session)

    with open(options.tasks, encoding="utf-8") as file:
        tasks = [line.strip() for line in file if line.strip()]
    launched = set()
    for number, task in enumerate(tasks):
        key = f"{options.session}-{number}"
        job = hearback("launch", *session, "--key", key, "--shell", task)
        launched.add(job.decode().strip())

    heard = Heard(options.state)
    while not launched <= set(heard.jobs.values()):
        event = hearback("followups", "next", *session, "--wait", options.nap, "--json", may_be=(0, NOTHING_PENDING))
        if event.strip():
            event = json.loads(event)
            heard.take(event)
            hearback("followups", "ack", *session, event["id"])


if __name__ == "__main__":
    main()
