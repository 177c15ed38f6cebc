"""Run a command in the background, always hear back.

`Client` and `AsyncClient` talk to `hearback serve`: they launch jobs and wait for them, open the turns of sessions,
are handed what is due for them, and hear events.

    from hearback import Client

    with Client() as hearback:
        job = hearback.launch(["make"], label="build")
        ended = hearback.wait(job["id"])["jobs"][0]
        print(ended["state"], ended.get("outcome"))

The types of all documents are in `hearback.documents`.
"""

from ._async import AsyncClient, AsyncEvents, AsyncItem, AsyncTurn
from ._binary import find_binary
from ._sync import Client, Events, Item, Turn
from .errors import HearbackError

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncEvents",
    "AsyncItem",
    "AsyncTurn",
    "Client",
    "Events",
    "HearbackError",
    "Item",
    "Turn",
    "find_binary",
]
