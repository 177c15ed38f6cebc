"""The types and the methods of the package are those of the program."""

import inspect
import json
import subprocess
import sys
import tomllib
import typing
import unittest

from support import ROOT, program

import hearback
from hearback import AsyncClient, AsyncItem, AsyncTurn, Client, Item, Turn, params

# Where a method of the pipe is called, and by which parameters besides those of its own TypedDict.
CALLS = {
    "launch": (params.LaunchParams, {"command"}),
    "list": (params.ListParams, set()),
    "show": (params.ShowParams, {"job"}),
    "output": (params.OutputParams, {"job"}),
    "wait": (params.WaitParams, {"jobs"}),
    "kill": (params.KillParams, {"jobs"}),
    "send": (params.SendParams, {"session", "text"}),
    "attend": (None, {"session", "all"}),
    "unattend": (None, {"session", "all"}),
    "turn.open": (params.TurnParams, {"session"}),
    "turn.claim": (None, {"turn"}),
    "turn.close": (None, {"turn", "how", "error"}),
    "ack": (None, {"token"}),
    "release": (params.ReleaseParams, {"token", "how"}),
    "events": (None, {"since", "session"}),
    "events.stop": (None, {"subscription"}),
    "cancel": (None, {"id"}),
}


class Documents(unittest.TestCase):
    def test_the_types_are_those_of_the_schema(self):
        check = [sys.executable, str(ROOT / "generate.py"), "--check", program()]
        ran = subprocess.run(check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout[-4000:])

    def test_every_method_of_the_pipe_is_there_with_all_its_parameters(self):
        schema = json.loads(subprocess.run([program(), "schema"], stdout=subprocess.PIPE, check=True).stdout)["$defs"]
        methods = schema["ServeParams"]["properties"]
        self.assertEqual(set(methods), set(CALLS))
        for method, reference in methods.items():
            wanted = set(schema[reference["$ref"].rpartition("/")[2]].get("properties", {}))
            named, others = CALLS[method]
            found = others | set(named.__annotations__ if named else ())
            self.assertEqual(found, wanted, method)

    def test_both_clients_have_the_same_methods_with_the_same_parameters(self):
        for blocking, other in [(Client, AsyncClient), (Turn, AsyncTurn), (Item, AsyncItem)]:
            names = [name for name, kind in vars(blocking).items() if inspect.isfunction(kind) and name[0] != "_"]
            self.assertGreater(len(names), 1)
            for name in names:
                mine, others = (inspect.signature(getattr(one, name)) for one in (blocking, other))
                self.assertEqual(str(mine.parameters), str(others.parameters), name)

    def test_the_version_is_that_of_the_program(self):
        printed = subprocess.run([program(), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        self.assertEqual(printed.split()[1], project["version"])
        self.assertEqual(hearback.__version__, project["version"])

    def test_the_types_can_be_resolved(self):
        for name in hearback.documents.__all__:
            kind = getattr(hearback.documents, name)
            if isinstance(kind, type):
                typing.get_type_hints(kind)


if __name__ == "__main__":
    unittest.main()
