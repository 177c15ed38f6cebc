"""The tracker of background jobs that a chat server has, with hearback behind it.

Every server that runs agents has grown one: a dictionary of jobs, a thread that polls them, a file that is written
now and then. This one keeps nothing. Jobs outlive the server, exit codes are true after any crash, and the end of a
job is told once."""

from contextlib import contextmanager

from hearback import Client, HearbackError


class Tracker:
    def __init__(self, **options):
        self.hearback = Client(**options)

    def launch(self, chat, text, *, timeout_ms=None, cwd=None, key=None):
        """Starts text for a shell in the background, and returns the id of the job."""
        more = {name: value for name, value in [("cwd", cwd), ("key", key)] if value is not None}
        return self.hearback.launch(shell=text, session=chat, timeout_ms=timeout_ms, **more)["id"]

    def list(self, chat):
        """The jobs of a chat, newest first."""
        return [self.entry(job) for job in self.hearback.list(session=chat, all=True)["jobs"]]

    def get(self, chat, job):
        """A job with its output, or None if the chat has no such job."""
        try:
            found = self.hearback.show(job, session=chat)
            # Without the session: the server looks, and the chat is told all the same.
            log = self.hearback.output(job, max_bytes=16_384)
            return {**self.entry(found), "output": "".join(map(as_text, log["parts"]))}
        except HearbackError as error:
            if error.kind == "unknown_job":
                return None
            raise

    def kill(self, chat, job):
        """Kills a job and all its processes. A chat that kills its own job is not told that it ended."""
        self.hearback.kill(job, session=chat, reason="the chat asked for it")
        return self.get(chat, job)

    @contextmanager
    def pending(self, chat):
        """What has ended and was not told: texts for a model. They are told when the block ends; if it fails, or the
        server dies in it, they are pending again. Nobody else gets them meanwhile."""
        with self.hearback.turn(chat, wait_ms=60_000) as turn:
            yield [item.text for item in turn.claim()]

    @staticmethod
    def entry(job):
        outcome = job.get("outcome") or {}
        told = job["follow_up"]["state"] not in ("waiting", "pending", "leased")
        ended = {"ended": outcome.get("kind"), "exit_code": outcome.get("code")}
        return {"id": job["id"], "state": job["state"], **ended, "told": told}


def as_text(part):
    return part.get("text") or f"\n[{part['end'] - part['offset']} bytes are missing]\n"
