"""The client for programs with an event loop. It keeps one process of `hearback serve` running and starts another when
that one ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack, cast

from . import documents, params
from ._agent import run_agent
from ._binary import find_binary
from ._connection import Connection, Ended, Reply
from .errors import HearbackError

BUFFERED_EVENTS_MAX = 1000
FIRST_PAUSE, LONGEST_PAUSE, STARTS_MAX = 0.1, 5.0, 10
"""Seconds between the starts of a process that ends at once, and how many of them fail before the client gives up."""
REPEATABLE = frozenset(["list", "show", "output", "wait", "attend", "unattend", "events"])
"""Calls that are sent again to the next process: they change nothing, or the same thing. `launch` is one if it has a
key."""


class AsyncClient:
    """Jobs, turns and events over one pipe to `hearback serve`.

    Any number of tasks may use it. A task that is cancelled cancels its call, and a cancelled `wait` leaves the job
    alone.

    When the process ends, the client starts another one, attends the same sessions and continues event streams where
    they were. Turns that were open are `lost`, and what was due in them is offered again under the same ids."""

    def __init__(
        self,
        *,
        binary: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> None:
        # As for a job: more variables, and None removes one.
        changed = {**os.environ, **(env or {})}
        self._env = {name: value for name, value in changed.items() if value is not None}
        if home is not None:
            self._env["HEARBACK_HOME"] = os.fspath(home)
        self._binary = None if binary is None else os.fspath(binary)
        self.draining = False
        """Whether a monitor restarts or stops, and no turn begins until that is over."""
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[Connection] | None = None
        self._closed = False
        self._attended: dict[str | None, None] = {}
        self._open_turns: dict[str, AsyncTurn] = {}
        self._handed: asyncio.Queue[AsyncTurn | HearbackError | None] = asyncio.Queue()
        self._subscriptions: dict[tuple[Connection, int], AsyncEvents] = {}
        self._readers: dict[AsyncEvents, None] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts the process. Each call does so, too; this one fails at once if it cannot be started."""
        if self._connection is None and not self._closed:
            await self._use(await self._open())

    async def close(self) -> None:
        """Ends the process. Turns that are open are cut short, and what was due in them is free."""
        if self._closed:
            return
        self._closed = True
        if self._connecting is not None:
            # A process that is being started is killed before this returns.
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()
        self._handed.put_nowait(None)
        for reader in list(self._readers):
            reader.fail(_closed())

    @property
    def hello(self) -> documents.HelloDocument:
        """What the process that runs now says about itself: version, protocol, store, pid."""
        if self._connection is None:
            raise HearbackError("disconnected", "no process of `hearback serve` runs at the moment")
        return cast(documents.HelloDocument, self._connection.hello)

    # Jobs.

    async def launch(
        self, command: Sequence[str] | None = None, **more: Unpack[params.LaunchParams]
    ) -> documents.LaunchDocument:
        """Starts a job that outlives this process."""
        if isinstance(command, str):
            raise HearbackError("usage", "a command is a list of words", tip="text for a shell is `shell=`")
        call = _given(command=command, **more)
        return cast(documents.LaunchDocument, await self._call("launch", call, repeat="key" in more))

    async def list(self, **more: Unpack[params.ListParams]) -> documents.ListDocument:
        """Jobs, newest first."""
        return cast(documents.ListDocument, await self.call("list", **more))

    async def show(self, job: str | None = None, **more: Unpack[params.ShowParams]) -> documents.ShowDocument:
        """One job, by its name or by `key`; with `output_bytes` it has the end of its output as `log`."""
        return cast(documents.ShowDocument, await self.call("show", **_given(job=job, **more)))

    async def output(self, job: str, **more: Unpack[params.OutputParams]) -> documents.LogDocument:
        """The output of a job, or a part of it."""
        return cast(documents.LogDocument, await self.call("output", job=job, **more))

    async def wait(self, *jobs: str, **more: Unpack[params.WaitParams]) -> documents.WaitedDocument:
        """Waits until the jobs have ended. `timed_out` in the result says that the time was too short."""
        call = _given(jobs=[*jobs], **more)
        began = time.monotonic()
        limit = more.get("timeout_ms")

        def again() -> None:
            if limit is not None:
                call["timeout_ms"] = max(0, limit - int((time.monotonic() - began) * 1000))

        return cast(documents.WaitedDocument, await self._call("wait", call, repeat=True, before_repeat=again))

    async def kill(self, *jobs: str, **more: Unpack[params.KillParams]) -> documents.KilledDocument:
        """Kills jobs and every process they started. The result has each job as it then is."""
        return cast(documents.KilledDocument, await self.call("kill", jobs=[*jobs], **more))

    # Sessions.

    async def send(self, session: str, text: str, **more: Unpack[params.SendParams]) -> documents.SentDocument:
        """Puts a message behind all others of a session. When this returns, it is on disk."""
        return cast(documents.SentDocument, await self.call("send", session=session, text=text, **more))

    async def attend(self, session: str | None = None, *, all: bool = False) -> None:
        """From now on, this client is handed what is due for a session, or for all: see `turns`."""
        await self.call("attend", **_whose(session, all))
        self._attended[session] = None

    async def unattend(self, session: str | None = None, *, all: bool = False) -> None:
        """Ends what `attend` began."""
        self._attended.pop(session, None)
        await self.call("unattend", **_whose(session, all))

    async def turn(self, session: str, **more: Unpack[params.TurnParams]) -> AsyncTurn:
        """Opens a turn of a session, for something that the host has itself: a message of a user, say.

        A session is in one turn at a time. If it is in another, the error has the kind `busy`.
        """
        opened: list[AsyncTurn] = []

        def on_reply(connection: Connection, reply: dict[str, Any], is_wanted: bool) -> None:
            turn = AsyncTurn(self, connection, {"session": session, "destination": more.get("destination"), **reply})
            self._open_turns[turn.token] = turn
            opened.append(turn)
            if not is_wanted:
                self._in_background(turn.failed("cancelled"))

        try:
            await self._call("turn.open", _given(session=session, **more), on_reply=on_reply)
        except asyncio.CancelledError:
            # Cancelled in the moment in which it was opened: the caller does not have it.
            for turn in opened:
                self._in_background(turn.failed("cancelled"))
            raise
        return opened[0]

    async def turns(self) -> AsyncIterator[AsyncTurn]:
        """The turns that hearback begins for sessions that this client attends, as they come. Ends when the client is
        closed. Handle each in a task of its own, or one slow agent delays all sessions."""
        while (turn := await self.next_turn()) is not None:
            yield turn

    async def next_turn(self) -> AsyncTurn | None:
        """One step of `turns`; None when the client is closed."""
        turn = await self._handed.get()
        if turn is None:
            # For other tasks that wait, too.
            self._handed.put_nowait(None)
            return None
        if isinstance(turn, HearbackError):
            raise turn
        return turn

    # Events.

    async def events(self, since: str = "now", session: str | None = None) -> AsyncEvents:
        """What happens to jobs and sessions, as it happens, from a cursor, from the `beginning`, or from `now` on:
        from the moment at which this returns, nothing is missed."""
        events = AsyncEvents(self, since, session)
        self._readers[events] = None
        try:
            await self._subscribe(events)
        except BaseException:
            await events.aclose()
            raise
        return events

    async def call(self, method: str, **given: Any) -> dict[str, Any]:
        """The result of any method, as it comes. Parameters that are None are left out."""
        return await self._call(method, _given(**given), repeat=method in REPEATABLE)

    # What is behind them.

    async def _call(
        self,
        method: str,
        given: dict[str, Any],
        *,
        repeat: bool = False,
        before_repeat: Callable[[], None] | None = None,
        on_reply: Reply | None = None,
    ) -> dict[str, Any]:
        while True:
            connection = await self._connected()
            try:
                return await connection.call(method, given, on_reply)
            except Ended:
                if self._closed:
                    raise _closed() from None
                if not repeat:
                    raise HearbackError(
                        "disconnected",
                        f"`hearback serve` ended before its reply to `{method}`; whether it was done is unknown",
                    ) from None
                if before_repeat is not None:
                    before_repeat()

    async def _connected(self) -> Connection:
        if self._closed:
            raise _closed()
        if self._connection is not None:
            return self._connection
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._reconnect())
        # One attempt for all who wait: the first that is cancelled must not end it.
        return await asyncio.shield(self._connecting)

    async def _open(self) -> Connection:
        binary = self._binary or find_binary(self._env)
        return await Connection.start([binary, "serve"], self._env, self._on_notification, self._on_end)

    async def _use(self, connection: Connection) -> None:
        """Makes a new process know what the last one knew, and gives it to all calls."""
        for session in list(self._attended):
            await connection.call("attend", _whose(session, session is None))
        for reader in list(self._readers):
            if not reader.is_behind:
                try:
                    await self._subscribe_at(connection, reader)
                except HearbackError as error:
                    reader.fail(error)
        if connection.ended:
            raise Ended
        self._connection = connection

    async def _reconnect(self) -> Connection:
        pause = FIRST_PAUSE
        for left in reversed(range(STARTS_MAX)):
            connection: Connection | None = None
            try:
                connection = await self._open()
                await self._use(connection)
                self._connecting = None
                return connection
            except asyncio.CancelledError:
                if connection is not None:
                    await connection.kill()
                raise
            except (Ended, HearbackError) as error:
                if connection is not None:
                    await connection.kill()
                if left == 0:
                    self._connecting = None
                    reason = error if isinstance(error, HearbackError) else _gone()
                    self._handed.put_nowait(reason)
                    for reader in list(self._readers):
                        reader.fail(reason)
                    raise reason from None
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        raise AssertionError("the last attempt returns or raises")

    def _on_end(self, connection: Connection) -> None:
        turns = [turn for turn in self._open_turns.values() if turn.connection is connection]
        for turn in turns:
            self._open_turns.pop(turn.token, None)
            turn.lose()
        for at in [at for at in self._subscriptions if at[0] is connection]:
            self._subscriptions.pop(at).at = None
        if connection is not self._connection:
            return
        self._connection = None
        self.draining = False
        if not self._closed and self._connecting is None:
            self._connecting = asyncio.create_task(self._reconnect())
            # A failure reaches those who wait; without any, the next call tries again.
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _on_notification(self, connection: Connection, method: str, message: dict[str, Any]) -> None:
        if method == "turn":
            turn = AsyncTurn(self, connection, message)
            self._open_turns[turn.token] = turn
            self._handed.put_nowait(turn)
        elif method == "event":
            reader = self._subscriptions.get((connection, message.pop("subscription")))
            if reader is not None and not reader.put(cast(documents.EventDocument, message)):
                # It is subscribed again behind the last event that was kept, when these have been read.
                self._drop(reader)
        elif method == "events.ended":
            ended = self._subscriptions.pop((connection, message["subscription"]), None)
            if ended is not None:
                ended.at = None
                ended.fail(HearbackError(**message["error"]))
        elif method == "draining":
            self.draining = not message.get("over", False)
        elif method in ("due", "interrupt") and (known := self._open_turns.get(message["turn"])) is not None:
            if method == "due":
                known.on_due()
            else:
                known.on_interrupt(message.get("reason") or "interrupt")

    async def _subscribe(self, reader: AsyncEvents) -> None:
        while True:
            connection = await self._connected()
            if reader.at is not None:
                return
            try:
                return await self._subscribe_at(connection, reader)
            except Ended:
                continue

    async def _subscribe_at(self, connection: Connection, reader: AsyncEvents) -> None:
        def on_reply(connection: Connection, reply: dict[str, Any], is_wanted: bool) -> None:
            at = (connection, reply["subscription"])
            reader.begin(at, reply.get("cursor"))
            self._subscriptions[at] = reader
            if not is_wanted:
                self._drop(reader)

        await connection.call("events", _given(since=reader.since, session=reader.session), on_reply)

    def _stop(self, reader: AsyncEvents) -> None:
        self._readers.pop(reader, None)
        self._drop(reader)

    def _drop(self, reader: AsyncEvents) -> None:
        if reader.at is None:
            return
        (connection, number), reader.at = reader.at, None
        if self._subscriptions.pop((connection, number), None) is not None and not connection.ended:
            self._in_background(connection.call("events.stop", {"subscription": number}))

    def _in_background(self, call: Coroutine[Any, Any, Any]) -> None:
        """For what nobody waits for: if it fails, the process has ended, and with it what was to be closed."""

        async def quietly() -> None:
            try:
                await call
            except (Ended, HearbackError):
                pass

        task = asyncio.create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self, turn: AsyncTurn) -> None:
        self._open_turns.pop(turn.token, None)


class AsyncItem:
    """A follow-up or a message that is due in a turn. `id` never changes, so that a repeat is recognisable."""

    def __init__(self, turn: AsyncTurn, item: dict[str, Any]) -> None:
        self._turn = turn
        self.token: str = item["token"]
        self.kind: documents.ItemKind = item["kind"]
        self.id: str = item["id"]
        self.attempt: int = item["attempt"]
        self.payload: dict[str, Any] = item["payload"]
        """What a sink would get: a `CloudEvent`, with a `Delivery` or a `MessagePayload` in `data`."""

    @property
    def text(self) -> str:
        """What to tell a model."""
        return str(self.payload["data"]["text"])

    async def ack(self) -> None:
        """It is done, and is not offered again. Closing its turn does the same for all that are left."""
        await self._turn.ask("ack", {"token": self.token})

    async def release(self, how: documents.ReleaseHow, **more: Unpack[params.ReleaseParams]) -> None:
        """Gives it back: it is offered again later, or, if its session is gone, held for a person."""
        await self._turn.ask("release", _given(token=self.token, how=how, **more))


class AsyncTurn:
    """A turn of a session, which this host holds until `done` or `failed`.

    As a context manager it ends by itself: `done` at the end of the block, `failed` if an exception leaves it.
    """

    def __init__(self, client: AsyncClient, connection: Connection, turn: dict[str, Any]) -> None:
        self._client = client
        self.connection = connection
        self.token: str = turn["turn"]
        self.session: str = turn["session"]
        self.number: int = turn["number"]
        self.note: documents.Note | None = turn.get("note")
        """What the agent should hear first, if the last turn was cut short."""
        self.destination: str | None = turn.get("destination")
        self.env: dict[str, str] = turn.get("env", {})
        """Variables for the processes of the agent: by these they are found, and ended, if this host dies."""
        self.text: str = turn.get("text", "")
        """What is due, for a model, with the note."""
        self.items: list[AsyncItem] = [AsyncItem(self, item) for item in turn.get("items", ())]
        self.interrupted: str | None = None
        """Why the turn is to end soon; `lost` if hearback has already cut it short."""
        self._ended = False
        self._due = asyncio.Event()
        self._interrupted = asyncio.Event()

    @property
    def lost(self) -> bool:
        """Whether the process behind it has ended: what was due is offered again, in another turn."""
        return self.interrupted == "lost"

    def with_note(self, text: str) -> str:
        """A text for the agent, behind the note if there is one."""
        return f"{self.note['text']}\n\n{text}" if self.note else text

    async def run(self, *command: str, input: str = "", env: Mapping[str, str] | None = None) -> str:
        """Runs an agent that is a program as this turn, and returns its output.

        It gets `input` on standard input, and the variables of the turn. If the turn is to end, or this task is
        cancelled, the agent and its process group are killed. The error has the kind `interrupted` then, and `failed`
        if the agent does not exit with 0."""
        variables = {"HEARBACK_SESSION": self.session, **self.env, **(env or {})}
        ended = await run_agent(command, input, variables, self.interruption())
        if self.interrupted is not None:
            reason = f"turn {self.number} of session `{self.session}` was interrupted: {self.interrupted}"
            raise HearbackError("interrupted", reason, subject=self.session)
        if ended.code != 0:
            how = f"signal {-ended.code}" if ended.code < 0 else f"exit code {ended.code}"
            raise HearbackError("failed", f"the agent `{command[0]}` ended with {how}", subject=self.session)
        return ended.output

    async def claim(self) -> list[AsyncItem]:
        """Takes what has become due since the turn began, to hand it over to the agent that runs."""
        taken: list[AsyncItem] = []

        def on_reply(_: Connection, reply: dict[str, Any], _is_wanted: bool) -> None:
            # They belong to the turn even if the caller has gone.
            taken.extend(AsyncItem(self, item) for item in reply["items"])
            self.items.extend(taken)

        self._due.clear()
        await self.ask("turn.claim", {"turn": self.token}, on_reply)
        return taken

    async def due(self) -> None:
        """Waits until `claim` has something to take."""
        await self._due.wait()

    async def interruption(self) -> str:
        """Waits until the turn is to end, and returns why."""
        await self._interrupted.wait()
        return self.interrupted or "interrupt"

    async def done(self) -> None:
        """Ends the turn, and acknowledges what was due in it. Nothing of it is offered again."""
        await self._end({"how": "done"})

    async def failed(self, error: str) -> None:
        """Ends the turn. What was due in it is offered again later; one attempt is spent."""
        await self._end({"how": "failed", "error": error})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is None:
            await self.done()
            return
        try:
            await self.failed(str(error) or type(error).__name__)
        except HearbackError:
            # The turn has ended in another way, and `error` says more.
            pass

    async def ask(self, method: str, given: dict[str, Any], on_reply: Reply | None = None) -> dict[str, Any]:
        """A call to the process that holds the turn: another one does not know it."""
        try:
            return await self.connection.call(method, given, on_reply)
        except Ended:
            raise HearbackError(
                "disconnected",
                f"turn {self.number} of session `{self.session}` was cut short, because `hearback serve` ended",
                tip="what was due in it is offered again, under the same ids",
                subject=self.session,
            ) from None

    async def _end(self, how: dict[str, Any]) -> None:
        if self._ended:
            return
        self._ended = True
        self._client._forget(self)  # pyright: ignore[reportPrivateUsage]
        await self.ask("turn.close", {"turn": self.token, **how})

    def lose(self) -> None:
        self.on_interrupt("lost")

    def on_due(self) -> None:
        self._due.set()

    def on_interrupt(self, reason: str) -> None:
        self.interrupted = reason
        self._interrupted.set()


class AsyncEvents:
    """A stream of events, until the client is closed or the reader calls `aclose` (`async with` does).

    A reader may be slow: nothing is lost, and at most a thousand events are kept for it. It does not notice when the
    process behind the client is replaced."""

    def __init__(self, client: AsyncClient, since: str, session: str | None) -> None:
        self._client = client
        self.cursor = since
        """What to pass as `since`, to read on later behind what this reader has read."""
        self.session = session
        self.since = since
        self.at: tuple[Connection, int] | None = None
        self.is_behind = False
        self.buffered: deque[documents.EventDocument] = deque()
        self._changed = asyncio.Event()
        self._error: HearbackError | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> documents.EventDocument:
        while not self.buffered:
            if self._error is not None:
                if self._error.kind == "closed":
                    raise StopAsyncIteration
                raise self._error
            if self.is_behind:
                await self._client._subscribe(self)  # pyright: ignore[reportPrivateUsage]
                continue
            self._changed.clear()
            await self._changed.wait()
        event = self.buffered.popleft()
        self.cursor = event["cursor"]
        return event

    async def aclose(self) -> None:
        """Ends the stream."""
        self.fail(_closed())
        self.buffered.clear()
        self._client._stop(self)  # pyright: ignore[reportPrivateUsage]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def begin(self, at: tuple[Connection, int], cursor: str | None) -> None:
        self.at, self.is_behind = at, False
        # Where `now` is: the next process has to begin there, even if nothing has happened since.
        if cursor is not None and self.since == "now":
            self.since = self.cursor = cursor

    def put(self, event: documents.EventDocument) -> bool:
        """Keeps an event; False if there is no room, and the subscription has to stop."""
        if len(self.buffered) >= BUFFERED_EVENTS_MAX:
            self.is_behind = True
            return False
        self.buffered.append(event)
        self.since = event["cursor"]
        self._changed.set()
        return True

    def fail(self, error: HearbackError) -> None:
        self._error = error
        self._changed.set()


_NULLABLE = frozenset(["timeout_ms", "log_cap_bytes"])
"""Parameters whose null is not the same as their absence: it means that there is no limit."""


def _given(**given: Any) -> dict[str, Any]:
    """Parameters without those that are None."""
    return {name: value for name, value in given.items() if value is not None or name in _NULLABLE}


def _whose(session: str | None, all: bool) -> dict[str, Any]:
    if (session is None) != all:
        raise HearbackError("usage", "name a session, or say `all=True`")
    return {"all": True} if all else {"session": session}


def _closed() -> HearbackError:
    return HearbackError("closed", "the client is closed")


def _gone() -> HearbackError:
    return HearbackError("disconnected", "`hearback serve` ends again and again")
