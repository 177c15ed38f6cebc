"""An agent that is a program: it runs as long as its turn may."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from .errors import HearbackError


class Ended(NamedTuple):
    code: int
    """Negative for a signal."""
    output: str


async def run_agent(
    command: Sequence[str], input: str, env: Mapping[str, str], interruption: Coroutine[Any, Any, Any]
) -> Ended:
    """Runs a program until it ends or `interruption` returns; in that case, and if this task is cancelled, its
    process group is killed."""
    until = asyncio.create_task(interruption)
    try:
        agent = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **env},
            # A group of its own; Windows has none.
            start_new_session=True,
        )
        talk = asyncio.create_task(agent.communicate(input.encode()))
        try:
            await asyncio.wait([talk, until], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not talk.done():
                _kill_group(agent)
            output, _ = await talk
    except OSError as error:
        raise HearbackError("not_found", f"could not start `{command[0]}`: {error}") from error
    finally:
        until.cancel()
    return Ended(agent.returncode or 0, output.decode(errors="replace"))


def _kill_group(agent: asyncio.subprocess.Process) -> None:
    try:
        if os.name == "nt":
            agent.kill()
        else:
            os.killpg(agent.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
