"""The client for programs without an event loop: the asynchronous one, in a thread of its own. Any number of threads
may use it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from . import documents, params
from ._async import AsyncClient, AsyncEvents, AsyncItem, AsyncTurn
from .errors import HearbackError

Result = TypeVar("Result")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hearback", daemon=True)
        self._thread.start()

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def run(self, call: Coroutine[Any, Any, Result]) -> Result:
        """The result of a call. Ctrl-C, and any other exception in this thread, cancels it."""
        if not self.runs:
            call.close()
            raise HearbackError("closed", "the client is closed")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise HearbackError("closed", "the client is closed") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the loop. Calls of other threads that are under way end first, or are cancelled."""

        async def rest() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if others:
                _, late = await asyncio.wait(others, timeout=1)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)

        self.run(rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Client:
    """Jobs, turns and events over one pipe to `hearback serve`: `AsyncClient` with calls that block."""

    def __init__(
        self,
        *,
        binary: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> None:
        self._client = AsyncClient(binary=binary, home=home, env=env)
        self._loop = _Loop()
        self._closing = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Starts the process. Each call does so, too; this one fails at once if it cannot be started."""
        self._loop.run(self._client.start())

    def close(self) -> None:
        """Ends the process. Turns that are open are cut short, and what was due in them is free."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._loop.run(self._client.close())
                self._loop.stop()

    @property
    def hello(self) -> documents.HelloDocument:
        """What the process that runs now says about itself: version, protocol, store, pid."""
        return self._client.hello

    @property
    def draining(self) -> bool:
        """Whether a monitor restarts or stops, and no turn begins until that is over."""
        return self._client.draining

    def launch(
        self, command: Sequence[str] | None = None, **more: Unpack[params.LaunchParams]
    ) -> documents.LaunchDocument:
        """Starts a job that outlives this process."""
        return self._loop.run(self._client.launch(command, **more))

    def list(self, **more: Unpack[params.ListParams]) -> documents.ListDocument:
        """Jobs, newest first."""
        return self._loop.run(self._client.list(**more))

    def show(self, job: str | None = None, **more: Unpack[params.ShowParams]) -> documents.ShowDocument:
        """One job, by its name or by `key`; with `output_bytes` it has the end of its output as `log`."""
        return self._loop.run(self._client.show(job, **more))

    def output(self, job: str, **more: Unpack[params.OutputParams]) -> documents.LogDocument:
        """The output of a job, or a part of it."""
        return self._loop.run(self._client.output(job, **more))

    def wait(self, *jobs: str, **more: Unpack[params.WaitParams]) -> documents.WaitedDocument:
        """Waits until the jobs have ended. `timed_out` in the result says that the time was too short."""
        return self._loop.run(self._client.wait(*jobs, **more))

    def kill(self, *jobs: str, **more: Unpack[params.KillParams]) -> documents.KilledDocument:
        """Kills jobs and every process they started. The result has each job as it then is."""
        return self._loop.run(self._client.kill(*jobs, **more))

    def send(self, session: str, text: str, **more: Unpack[params.SendParams]) -> documents.SentDocument:
        """Puts a message behind all others of a session. When this returns, it is on disk."""
        return self._loop.run(self._client.send(session, text, **more))

    def attend(self, session: str | None = None, *, all: bool = False) -> None:
        """From now on, this client is handed what is due for a session, or for all: see `turns`."""
        self._loop.run(self._client.attend(session, all=all))

    def unattend(self, session: str | None = None, *, all: bool = False) -> None:
        """Ends what `attend` began."""
        self._loop.run(self._client.unattend(session, all=all))

    def turn(self, session: str, **more: Unpack[params.TurnParams]) -> Turn:
        """Opens a turn of a session; the error has the kind `busy` if it is in another one."""
        return Turn(self._loop, self._loop.run(self._client.turn(session, **more)))

    def turns(self) -> Iterator[Turn]:
        """The turns that hearback begins for sessions that this client attends, as they come."""
        while (turn := self.next_turn()) is not None:
            yield turn

    def next_turn(self) -> Turn | None:
        """One step of `turns`; None when the client is closed."""
        turn = self._loop.run(self._client.next_turn())
        return None if turn is None else Turn(self._loop, turn)

    def events(self, since: str = "now", session: str | None = None) -> Events:
        """What happens to jobs and sessions, as it happens, from a cursor, from the `beginning`, or from `now` on:
        from the moment at which this returns, nothing is missed."""
        return Events(self._loop, self._loop.run(self._client.events(since, session)))

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """The result of any method, as it comes."""
        return self._loop.run(self._client.call(method, **given))


class Events:
    """A stream of events, until the client is closed or the reader calls `close` (`with` does)."""

    def __init__(self, loop: _Loop, events: AsyncEvents) -> None:
        self._loop, self._events = loop, events

    @property
    def cursor(self) -> str:
        """What to pass as `since`, to read on later behind what this reader has read."""
        return self._events.cursor

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> documents.EventDocument:
        async def step() -> documents.EventDocument | None:
            return await anext(self._events, None)

        event = self._loop.run(step())
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """Ends the stream, also for a thread that waits for the next event."""
        if self._loop.runs:
            self._loop.run(self._events.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Item:
    """A follow-up or a message that is due in a turn. `id` never changes, so that a repeat is recognisable."""

    def __init__(self, loop: _Loop, item: AsyncItem) -> None:
        self._loop, self._item = loop, item
        self.token, self.kind, self.id = item.token, item.kind, item.id
        self.attempt, self.payload, self.text = item.attempt, item.payload, item.text

    def ack(self) -> None:
        """It is done, and is not offered again."""
        self._loop.run(self._item.ack())

    def release(self, how: documents.ReleaseHow, **more: Unpack[params.ReleaseParams]) -> None:
        """Gives it back."""
        self._loop.run(self._item.release(how, **more))


class Turn:
    """A turn of a session, which this host holds until `done` or `failed`; `with` calls one of them."""

    def __init__(self, loop: _Loop, turn: AsyncTurn) -> None:
        self._loop, self._turn = loop, turn
        self.token, self.session, self.number = turn.token, turn.session, turn.number
        self.note, self.destination, self.text, self.env = turn.note, turn.destination, turn.text, turn.env

    @property
    def items(self) -> list[Item]:
        return [Item(self._loop, item) for item in self._turn.items]

    @property
    def interrupted(self) -> str | None:
        """Why the turn is to end soon; `lost` if hearback has already cut it short."""
        return self._turn.interrupted

    @property
    def lost(self) -> bool:
        """Whether the process behind it has ended: what was due is offered again, in another turn."""
        return self._turn.lost

    def with_note(self, text: str) -> str:
        """A text for the agent, behind the note if there is one."""
        return self._turn.with_note(text)

    def run(self, *command: str, input: str = "", env: Mapping[str, str] | None = None) -> str:
        """Runs an agent that is a program as this turn, and returns its output. If the turn is to end, it is killed."""
        return self._loop.run(self._turn.run(*command, input=input, env=env))

    def claim(self) -> list[Item]:
        """Takes what has become due since the turn began, to hand it over to the agent that runs."""
        return [Item(self._loop, item) for item in self._loop.run(self._turn.claim())]

    def due(self) -> None:
        """Waits until `claim` has something to take."""
        self._loop.run(self._turn.due())

    def interruption(self) -> str:
        """Waits until the turn is to end, and returns why."""
        return self._loop.run(self._turn.interruption())

    def done(self) -> None:
        """Ends the turn, and acknowledges what was due in it."""
        self._loop.run(self._turn.done())

    def failed(self, error: str) -> None:
        """Ends the turn. What was due in it is offered again later; one attempt is spent."""
        self._loop.run(self._turn.failed(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._turn.__aexit__(kind, error, trace))
