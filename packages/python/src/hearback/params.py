"""The parameters of the calls, which both clients share. Times are in milliseconds, as in every document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from .documents import HistoryWord, NotifyPolicy, StateWord


class LaunchParams(TypedDict):
    shell: NotRequired[str]
    """Text for a shell, in place of a command."""
    session: NotRequired[str]
    """Who owns the job. Without `sinks`, its follow-up comes to the host that attends the session."""
    cwd: NotRequired[str]
    env: NotRequired[Mapping[str, str | None]]
    """More variables; None removes one."""
    label: NotRequired[str]
    key: NotRequired[str]
    """A second launch with the same key finds the first job and starts nothing: it is safe to repeat."""
    timeout_ms: NotRequired[int | None]
    """The longest time that it may run; None means no limit."""
    idle_timeout_ms: NotRequired[int]
    grace_ms: NotRequired[int]
    notify: NotRequired[NotifyPolicy]
    sinks: NotRequired[Sequence[str]]
    log_cap_bytes: NotRequired[int | None]
    """How much of its output is kept; None for all."""


class ListParams(TypedDict):
    session: NotRequired[str]
    state: NotRequired[StateWord]
    outcome: NotRequired[str]
    label: NotRequired[str]
    limit: NotRequired[int]
    all: NotRequired[bool]


class ShowParams(TypedDict):
    session: NotRequired[str]
    key: NotRequired[str]
    output_bytes: NotRequired[int]


class OutputParams(TypedDict):
    session: NotRequired[str]
    """Only jobs of this session; what it reads, its owner has read."""
    offset: NotRequired[int]
    head: NotRequired[int]
    tail: NotRequired[int]
    max_bytes: NotRequired[int]


class WaitParams(TypedDict):
    session: NotRequired[str]
    """Only jobs of this session; what it reads, its owner has read."""
    any: NotRequired[bool]
    """Return when one of them has ended, not all."""
    timeout_ms: NotRequired[int]
    peek: NotRequired[bool]
    """Leave the follow-ups pending."""


class KillParams(TypedDict):
    session: NotRequired[str]
    """Only jobs of this session."""
    reason: NotRequired[str]
    grace_ms: NotRequired[int]
    force: NotRequired[bool]


class SendParams(TypedDict):
    sink: NotRequired[str]
    destination: NotRequired[str]


class TurnParams(TypedDict):
    wait_ms: NotRequired[int]
    """How long to wait while the session is in another turn; 0, the default, refuses at once."""
    destination: NotRequired[str]
    history: NotRequired[HistoryWord]


class ReleaseParams(TypedDict):
    reason: NotRequired[str]
    retry_after_ms: NotRequired[int]
