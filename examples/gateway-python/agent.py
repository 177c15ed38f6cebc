#!/usr/bin/env python3
"""An agent in miniature, for the gateway: it repeats what it reads. A message with `run TEXT` in it launches TEXT for
a shell in the background; the key makes that harmless when the message comes again after a death."""

import os
import re
import subprocess
import sys

text = sys.stdin.read()
if found := re.search(r"^(\S+): run (.+)$", text, re.MULTILINE):
    key, command = found.groups()
    launch = [os.environ.get("HEARBACK", "hearback"), "launch", "--sink", "host", "--key", key, "--shell", command]
    subprocess.run(launch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    print(f"launched {command!r}, and will say how it ended")
else:
    print(f"you said: {text}")
