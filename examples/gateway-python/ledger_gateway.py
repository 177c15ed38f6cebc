"""The gateway of the campaign: it records in $LEDGER what was acknowledged, as soon as hearback has said so."""

import asyncio
import json
import os
import sys

import gateway
from hearback import AsyncTurn

ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
done = AsyncTurn.done


async def done_with_record(turn):
    await done(turn)
    if ids := [item.id for item in turn.items]:
        os.write(ledger, json.dumps({"acknowledged": ids}).encode() + b"\n")


AsyncTurn.done = done_with_record
asyncio.run(gateway.main(*sys.argv[1:]))
