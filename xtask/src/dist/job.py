"""Runs a job through the installed package, in the store that the argument names."""

import subprocess
import sys
import sysconfig

from hearback import Client

with Client(home=sys.argv[1]) as client:
    launched = client.launch([sys.executable, "-c", "print('hello'); raise SystemExit(3)"])
    ended = client.wait(launched["id"], timeout_ms=60_000)
    assert not ended["timed_out"], ended
    assert ended["jobs"][0]["outcome"] == {"kind": "exited", "code": 3}, ended

# The wheel carries the command, too.
command = sysconfig.get_path("scripts") + "/hearback"
shown = subprocess.run([command, "show", launched["id"]], env={"HEARBACK_HOME": sys.argv[1]}, capture_output=True, text=True)
assert "exit code 3" in shown.stdout, shown
