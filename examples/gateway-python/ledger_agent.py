"""The agent of the campaign: it records what it handles in $LEDGER, and takes its time, so that it can be killed in
between."""

import json
import os
import re
import runpy
import random
import sys
import time
import io

text = sys.stdin.read()
# The id of a message begins it; a follow-up names its job.
ids = re.findall(r"^(m\d+): ", text, re.MULTILINE) + [
    f"{job}.end" for job in re.findall(r"^job: (\w+)$", text, re.MULTILINE)
]
ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(ledger, json.dumps({"handled": ids, "pid": os.getpid()}).encode() + b"\n")
if held := re.search(r"hold until (\S+)$", text, re.MULTILINE):
    while not os.path.exists(held.group(1)):
        time.sleep(0.02)
time.sleep(random.random() * 0.1)
sys.stdin = io.StringIO(text)
runpy.run_path(os.path.join(os.path.dirname(__file__), "agent.py"))
time.sleep(random.random() * 0.1)
