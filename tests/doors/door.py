"""The Python package as a door: a request a line on standard input, its answer on standard output."""

import json
import sys

from hearback import Client, HearbackError

with Client() as client:
    for line in sys.stdin:
        asked = json.loads(line)
        params = asked["params"]
        try:
            match asked["method"]:
                case "launch":
                    result = client.launch(params.pop("command"), **params)
                case "show":
                    result = client.show(params["job"])
                case "wait":
                    result = client.wait(*params["jobs"])
            answer = {"result": result}
        except HearbackError as error:
            answer = {"error": {"kind": error.kind, "message": error.message}}
        print(json.dumps(answer), flush=True)
