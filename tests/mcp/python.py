"""The official Python SDK as a client of `hearback mcp`: python.py HEARBACK auto|legacy|v1

It launches, waits, is told, kills, and finds its job again through another server process. The SDK checks every
structured answer against the schema of its tool. `cargo xtask mcp` runs it.
"""

import contextlib
import os
import sys

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

HEARBACK, MODE = sys.argv[1:3]
SERVER = StdioServerParameters(command=HEARBACK, args=["mcp"], env=dict(os.environ))
HOLD = "import sys, os, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\nsys.exit(3)"


class Peer:
    """The few calls that differ between the lines of the SDK."""

    def __init__(self, client):
        self.client = client
        self.updated = []

    async def tool(self, name, **arguments):
        result = await self.client.call_tool(name, arguments)
        is_error = result.is_error if MODE != "v1" else result.isError
        document = result.structured_content if MODE != "v1" else result.structuredContent
        assert not is_error, result
        return document

    async def tell(self, message):
        uri = getattr(getattr(getattr(message, "root", message), "params", None), "uri", None)
        if uri is not None:
            self.updated.append(str(uri))

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        if MODE == "auto":
            async with self.client.listen(resource_subscriptions=[uri]) as events:

                async def told():
                    async for event in events:
                        self.updated.append(str(event.uri))

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(told)
                    yield
                    tasks.cancel_scope.cancel()
        else:
            await self.client.subscribe_resource(uri)
            yield


@contextlib.asynccontextmanager
async def connected():
    if MODE == "v1":
        async with stdio_client(SERVER) as (read, write):
            peer = Peer(None)
            async with ClientSession(read, write, message_handler=peer.tell) as session:
                await session.initialize()
                peer.client = session
                yield peer
    else:
        from mcp import Client

        peer = Peer(None)
        # A subscription has its own events. The handler would hear of them a second time.
        handler = None if MODE == "auto" else peer.tell
        async with Client(SERVER, mode=MODE, message_handler=handler) as client:
            peer.client = client
            yield peer


def held(gate):
    return {"argv": [sys.executable, "-c", HOLD, gate], "label": "held"}


async def main():
    gate = os.path.join(os.environ["HEARBACK_HOME"], "..", f"gate-python-{MODE}")
    async with connected() as peer:
        tools = (await peer.client.list_tools()).tools
        assert [tool.name for tool in tools][0] == "launch", tools
        launched = await peer.tool("launch", command="echo hello from a job")
        waited = await peer.tool("wait", jobs=[launched["job"]["id"]])
        assert waited["ended"][0]["outcome"] == {"kind": "exited", "code": 0}, waited
        printed = await peer.tool("output", job=launched["job"]["id"])
        assert "hello from a job" in printed["parts"][0]["text"], printed
        assert (await peer.tool("show", job=launched["job"]["id"]))["follow_up"]["state"] == "read"
        killed = await peer.tool("launch", **held(gate))
        assert (await peer.tool("kill", job=killed["job"]["id"]))["outcome"]["kind"] == "killed"
        kept = (await peer.tool("launch", **held(gate)))["job"]["id"]
        uri = f"hearback://jobs/{kept}"
        async with peer.subscribed(uri):
            await peer.tool("show", job=kept)
            open(gate, "w").close()
            with anyio.fail_after(20):
                while not peer.updated:
                    await anyio.sleep(0.02)
            await peer.client.read_resource(uri)
            assert peer.updated == [uri], peer.updated
        missing = await peer.client.call_tool("show", {"job": "00000000"})
        assert (missing.is_error if MODE != "v1" else missing.isError), missing
    # Another server process, which knows nothing but the store.
    async with connected() as peer:
        job = await peer.tool("show", job=kept)
        assert job["outcome"] == {"kind": "exited", "code": 3}, job
        assert job["follow_up"]["state"] == "read", job
        assert kept in [job["id"] for job in (await peer.tool("list"))["jobs"]]
    print(f"python {MODE}: launched, waited, told, killed, reconnected")


anyio.run(main)
