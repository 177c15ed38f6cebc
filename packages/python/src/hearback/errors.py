"""What goes wrong, in one type."""

from __future__ import annotations

from typing import Any


class HearbackError(Exception):
    """A call that failed. `kind` says in which way, `tip` what to try.

    The kinds are those of `ErrorKind` and of `hearback serve`, and three that the package adds: `disconnected` (the
    process behind the client ended before its reply, and the call is not safe to repeat), `protocol` (it speaks
    another protocol) and `closed` (the client is closed)."""

    def __init__(
        self, kind: str, message: str, *, tip: str | None = None, subject: str | None = None, code: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.tip = tip
        self.subject = subject
        self.code = code

    def __str__(self) -> str:
        return f"{self.message}\ntip: {self.tip}" if self.tip else self.message

    @classmethod
    def from_reply(cls, error: dict[str, Any]) -> HearbackError:
        """The error of a JSON-RPC reply."""
        data: dict[str, Any] = error.get("data") or {}
        return cls(
            data.get("kind", "failed"),
            error.get("message", "failed without a message"),
            tip=data.get("tip"),
            subject=data.get("subject"),
            code=error.get("code"),
        )
