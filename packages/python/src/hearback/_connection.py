"""One process of `hearback serve` and the pipe to it: requests, their replies, and notifications. What to do when the
process ends is left to the client."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from .errors import HearbackError

PROTOCOL = 1
LINE_MAX = 16 * 1024 * 1024
HELLO_WITHIN = 30.0
"""Seconds. A store on a slow disk is no reason to give up; a program that is not hearback is."""
END_WITHIN = 10.0
"""Seconds from the end of its input to the end of the process, before it is killed."""

Reply = Callable[["Connection", dict[str, Any], bool], None]
"""What a reply means, called as soon as it is read: a notification that refers to it may be the next line. The last
argument says whether the caller still waits."""


class Ended(Exception):
    """The process has ended; nothing is known about calls without a reply."""


class _Request:
    def __init__(self, future: asyncio.Future[dict[str, Any]], on_reply: Reply | None) -> None:
        self.future = future
        self.on_reply = on_reply


class Connection:
    """Starts the process; `hello` is its first line."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        on_notification: Callable[[Connection, str, dict[str, Any]], None],
        on_end: Callable[[Connection], None],
    ) -> None:
        self._process = process
        self._on_notification = on_notification
        self._on_end = on_end
        self._requests: dict[int, _Request] = {}
        self._last_id = 0
        self._hello: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.ended = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        command: list[str],
        env: Mapping[str, str],
        on_notification: Callable[[Connection, str, dict[str, Any]], None],
        on_end: Callable[[Connection], None],
    ) -> Connection:
        # In a session or group of its own, Ctrl-C in a terminal reaches the host alone, which decides what ends.
        # Windows ignores a session. The number is CREATE_NEW_PROCESS_GROUP, a name that only Windows has.
        flags = 0x200 if os.name == "nt" else 0
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=dict(env),
                limit=LINE_MAX + 1024,
                start_new_session=True,
                creationflags=flags,
            )
        except OSError as error:
            raise HearbackError("not_found", f"could not start `{command[0]}`: {error}") from error
        connection = cls(process, on_notification, on_end)
        try:
            async with asyncio.timeout(HELLO_WITHIN):
                hello = await asyncio.shield(connection._hello)
        except TimeoutError:
            await connection.kill()
            raise HearbackError(
                "protocol", f"`{command[0]} serve` wrote no first line in {HELLO_WITHIN:.0f} s"
            ) from None
        except BaseException:
            await connection.kill()
            raise
        if hello.get("protocol") != PROTOCOL:
            await connection.kill()
            found = hello.get("protocol")
            raise HearbackError(
                "protocol",
                f"`{command[0]}` speaks protocol {found}, this package speaks {PROTOCOL}",
                tip="install a hearback and a package of the same version",
            )
        return connection

    @property
    def hello(self) -> dict[str, Any]:
        return self._hello.result()

    async def call(self, method: str, params: dict[str, Any], on_reply: Reply | None = None) -> dict[str, Any]:
        """Sends a request and waits for its reply. A call that is cancelled is cancelled on the other side, too."""
        if self.ended:
            raise Ended
        self._last_id += 1
        number = self._last_id
        request = _Request(asyncio.get_running_loop().create_future(), on_reply)
        self._requests[number] = request
        try:
            await self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            return await request.future
        except asyncio.CancelledError:
            request.future.cancel()
            if number in self._requests:
                self._cancel(number)
            raise
        except HearbackError:
            self._requests.pop(number, None)
            raise

    def _cancel(self, number: int) -> None:
        stdin = self._process.stdin
        if stdin is not None and not self.ended and not stdin.is_closing():
            stdin.write(_line({"jsonrpc": "2.0", "method": "cancel", "params": {"id": number}}))

    async def close(self) -> None:
        """Ends its input, and with that the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(END_WITHIN):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
        await self._reader

    async def kill(self) -> None:
        if self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass
        await self._process.wait()
        await self._reader

    async def _write(self, message: dict[str, Any]) -> None:
        line = _line(message)
        if len(line) > LINE_MAX:
            raise HearbackError("usage", f"the request is longer than {LINE_MAX} bytes")
        stdin = self._process.stdin
        assert stdin is not None, "the process was started with a pipe"
        try:
            stdin.write(line)
            # Waits while the pipe is full, so that a fast caller does not fill the memory.
            await stdin.drain()
        except (ConnectionError, RuntimeError):
            # The reader sees the end of the process, and fails every request.
            pass

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None, "the process was started with a pipe"
        wrong: HearbackError | None = None
        try:
            while line := await stdout.readline():
                # A line without an end was being written when the process died.
                if not line.endswith(b"\n"):
                    break
                self._dispatch(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wrong = HearbackError("protocol", f"`hearback serve` wrote a line that is no message: {error}")
        except ConnectionError:
            pass
        finally:
            self.ended = True
        if wrong is not None and self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass
        try:
            async with asyncio.timeout(END_WITHIN):
                code = await self._process.wait()
        except TimeoutError:
            self._process.kill()
            code = await self._process.wait()
        if not self._hello.done():
            early = f"`hearback serve` ended with exit code {code} before its first line; its standard error says why"
            self._hello.set_exception(wrong or HearbackError("disconnected", early))
            # Nobody may be waiting for it any more.
            self._hello.exception()
        requests, self._requests = self._requests, {}
        for request in requests.values():
            if not request.future.done():
                request.future.set_exception(wrong or Ended())
        self._on_end(self)

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "method" in message:
            params: dict[str, Any] = message.get("params", {})
            if message["method"] == "hello":
                if not self._hello.done():
                    self._hello.set_result(params)
            else:
                self._on_notification(self, message["method"], params)
            return
        request = self._requests.pop(message["id"], None) if message.get("id") is not None else None
        if request is None:
            return
        if "error" in message:
            if not request.future.done():
                request.future.set_exception(HearbackError.from_reply(message["error"]))
            return
        # Also for a call that was cancelled in the meantime: what it opened has to be closed.
        if request.on_reply is not None:
            request.on_reply(self, message["result"], not request.future.done())
        if not request.future.done():
            request.future.set_result(message["result"])


def _line(message: dict[str, Any]) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError as error:
        raise HearbackError("usage", f"a text is not valid Unicode: {error}") from error
    except (TypeError, ValueError) as error:
        raise HearbackError("usage", f"a value cannot be sent: {error}") from error
