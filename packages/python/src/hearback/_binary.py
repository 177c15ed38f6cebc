"""Where the program is: in the package, else in $HEARBACK, else on the PATH."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping

from .errors import HearbackError

_NAME = "hearback.exe" if os.name == "nt" else "hearback"
_BUNDLED = pathlib.Path(__file__).parent / "bin" / _NAME


def find_binary(env: Mapping[str, str] | None = None) -> str:
    """The path of the program that a client starts."""
    env = os.environ if env is None else env
    if _BUNDLED.is_file():
        return str(_BUNDLED)
    # Otherwise a program of the same name could be found by chance: what is named is meant.
    if named := env.get("HEARBACK"):
        if found := shutil.which(named, path=env.get("PATH")):
            return found
        raise HearbackError("not_found", f"$HEARBACK names `{named}`, which is not a program")
    if found := shutil.which(_NAME, path=env.get("PATH")):
        return found
    raise HearbackError(
        "not_found",
        "the program `hearback` is not in the package and not on the PATH",
        tip="install a wheel that has it, or set HEARBACK to its path",
    )


def main() -> int:
    """The command `hearback` of an environment in which the package is installed."""
    # This script is on the PATH itself, and would find itself there.
    if not _BUNDLED.is_file():
        print(
            f"error: the package `hearback` was installed without the program: {_BUNDLED} is missing", file=sys.stderr
        )
        return 127
    command = [str(_BUNDLED), *sys.argv[1:]]
    if os.name == "nt":
        return subprocess.call(command)
    os.execv(command[0], command)
