#!/usr/bin/env python3
"""Makes a wheel with the program inside, and prints its path.

    build.py BINARY OUT

BINARY is a program of hearback for this or another machine: what it is made for decides on the tag of the wheel. For
Linux it has to be linked statically (musl), so that it runs everywhere. OUT is a folder.

The module is also the build backend of pyproject.toml: `pip install packages/python` makes a wheel without a program,
which finds one by $HEARBACK or on the PATH. It needs nothing but the standard library."""

import base64
import hashlib
import io
import os
import pathlib
import stat
import struct
import sys
import tarfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
# The same wheel is the same file, whenever it is made. A zip file knows no earlier time.
TIME = (1980, 1, 1, 0, 0, 0)


class Unfit(Exception):
    """The program cannot be part of a wheel."""


def tags_of(program):
    """The platforms on which a program runs, for the name of its wheel."""
    if program[:4] == b"\x7fELF":
        return tags_of_elf(program)
    if program[:2] == b"MZ":
        (start,) = struct.unpack_from("<I", program, 0x3C)
        (machine,) = struct.unpack_from("<H", program, start + 4)
        return [{0x8664: "win_amd64", 0xAA64: "win_arm64"}[machine]]
    if program[:4] == b"\xcf\xfa\xed\xfe":
        (machine,) = struct.unpack_from("<I", program, 4)
        return [{0x01000007: "macosx_10_12_x86_64", 0x0100000C: "macosx_11_0_arm64"}[machine]]
    raise Unfit("it is no program for Linux, macOS or Windows")


def tags_of_elf(program):
    (machine,) = struct.unpack_from("<H", program, 18)
    name = {62: "x86_64", 183: "aarch64"}.get(machine)
    if name is None or program[4] != 2:
        raise Unfit(f"machine {machine} is not known")
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    kinds = [struct.unpack_from("<I", program, table + number * size)[0] for number in range(count)]
    # PT_INTERP names the dynamic linker: such a program needs the C library of the machine on which it was built.
    if 3 in kinds:
        raise Unfit("it is linked dynamically; build it with `--target x86_64-unknown-linux-musl`")
    return [f"manylinux_2_17_{name}", f"manylinux2014_{name}", f"musllinux_1_1_{name}"]


def project():
    return tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def metadata(about):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {about['name']}",
        f"Version: {about['version']}",
        f"Summary: {about['description']}",
        f"License-Expression: {about['license']}",
        *(f"License-File: {licence.name}" for licence in licences()),
        f"Requires-Python: {about['requires-python']}",
        "Description-Content-Type: text/markdown",
        "",
        (HERE / about["readme"]).read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def licences():
    # Beside this file in a source archive, and at the root of the repository otherwise.
    found = [folder / name for name in LICENCES for folder in (HERE, HERE.parent.parent)]
    return [path for path in found if path.is_file()]


def sources():
    found = sorted((HERE / "src" / "hearback").rglob("*"))
    files = [path for path in found if path.suffix == ".py" or path.name == "py.typed"]
    return [(path.relative_to(HERE / "src").as_posix(), path.read_bytes()) for path in files]


def write_wheel(out, program=None):
    """Writes a wheel, and returns its path."""
    about = project()
    platforms = ["any"] if program is None else tags_of(program)
    name = f"{about['name']}-{about['version']}"
    info = f"{name}.dist-info"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    pure = "true" if program is None else "false"
    scripts = "".join(f"{command} = {target}\n" for command, target in about["scripts"].items())
    files = [(path, content, 0o644) for path, content in sources()]
    if program is not None:
        binary = "hearback.exe" if platforms[0].startswith("win") else "hearback"
        files.append((f"hearback/bin/{binary}", program, 0o755))
        files.append((f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode(), 0o644))
    files += [(f"{info}/licenses/{path.name}", path.read_bytes(), 0o644) for path in licences()]
    files.append((f"{info}/METADATA", metadata(about).encode(), 0o644))
    wheel = f"Wheel-Version: 1.0\nGenerator: hearback\nRoot-Is-Purelib: {pure}\n{tags}"
    files.append((f"{info}/WHEEL", wheel.encode(), 0o644))
    record = "".join(f"{path},{digest(content)},{len(content)}\n" for path, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))

    path = pathlib.Path(out) / f"{name}-py3-none-{'.'.join(platforms)}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for inner, content, mode in files:
            entry = zipfile.ZipInfo(inner, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # Installers make a file executable if the archive says that it is.
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, content)
    os.replace(partial, path)
    return path


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: a wheel without a program."""
    return write_wheel(wheel_directory).name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: the sources."""
    about = project()
    name = f"{about['name']}-{about['version']}"
    path = pathlib.Path(sdist_directory) / f"{name}.tar.gz"
    own = [HERE / file for file in ("pyproject.toml", "README.md", "build.py", "generate.py")]
    with tarfile.open(path, "w:gz") as archive:
        for file in [*own, *licences()]:
            archive.add(file, f"{name}/{file.name}")
        for inner, _ in sources():
            archive.add(HERE / "src" / inner, f"{name}/src/{inner}")
        info = tarfile.TarInfo(f"{name}/PKG-INFO")
        content = metadata(about).encode()
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return path.name


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    binary, out = arguments
    try:
        print(write_wheel(out, pathlib.Path(binary).read_bytes()))
    except (OSError, Unfit) as error:
        print(f"error: {binary}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
