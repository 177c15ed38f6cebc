"""A wheel with the program inside installs, and the package then finds the program there."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
import unittest
import zipfile

from support import ROOT, World, program

spec = importlib.util.spec_from_file_location("build_hearback", ROOT / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)

JOB = """
import json, hearback
with hearback.Client() as client:
    job = client.launch(["/bin/echo", "hello"])["id"]
    client.wait(job)
    print(json.dumps([hearback.find_binary(), client.output(job)["parts"][0]["text"]]))
"""


def elf(machine=62, headers=(1, 2)):
    """The beginning of a program for Linux, with program headers of these kinds."""
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    struct.pack_into("<H", head, 18, machine)
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, len(headers))
    return bytes(head) + b"".join(struct.pack("<I", kind) + bytes(52) for kind in headers)


class Wheel(World):
    def test_the_tags_are_those_of_the_machine(self):
        linux = ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"]
        self.assertEqual(build.tags_of(elf()), linux)
        self.assertEqual(build.tags_of(elf(machine=183))[0], "manylinux_2_17_aarch64")
        for unfit in (elf(headers=(1, 3)), elf(machine=1), b"#!/bin/sh\n"):
            with self.assertRaises(build.Unfit):
                build.tags_of(unfit)

    def test_the_same_wheel_is_the_same_file(self):
        first, second = (build.write_wheel(self.folder / name, elf()).read_bytes() for name in "ab")
        self.assertEqual(first, second)

    def test_a_wheel_with_the_program_runs_a_job(self):
        with open(program(), "rb") as file:
            binary = file.read()
        # The program under test may be linked dynamically; it runs on this machine.
        original, build.tags_of = build.tags_of, lambda _: ["linux_x86_64"]
        try:
            wheel = build.write_wheel(self.folder, binary)
        finally:
            build.tags_of = original
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        for wanted in ("hearback/py.typed", "hearback/bin/hearback", "hearback-0.1.0.dist-info/licenses/LICENSE-MIT"):
            self.assertIn(wanted, names)

        target = self.folder / "installed"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
        subprocess.run([*pip, str(wheel)], check=True, env=self.env)
        env = {**self.env, "PYTHONPATH": str(target), "PATH": "/nowhere"}
        env.pop("HEARBACK", None)
        ran = subprocess.run([sys.executable, "-c", JOB], env=env, stdout=subprocess.PIPE, check=True, cwd=self.folder)
        found, text = json.loads(ran.stdout)
        self.assertEqual((found, text), (str(target / "hearback/bin/hearback"), "hello\n"))
        command = subprocess.run([target / "bin/hearback", "--version"], env=env, stdout=subprocess.PIPE, check=True)
        self.assertEqual(command.stdout, b"hearback 0.1.0\n")

    def test_a_wheel_without_the_program_finds_it_by_the_variable(self):
        wheel = self.folder / build.build_wheel(self.folder)
        self.assertEqual(wheel.name, "hearback-0.1.0-py3-none-any.whl")
        env = {**self.env, "PYTHONPATH": str(wheel), "HEARBACK": program()}
        ran = subprocess.run([sys.executable, "-c", JOB], env=env, stdout=subprocess.PIPE, check=True, cwd=self.folder)
        self.assertEqual(json.loads(ran.stdout), [program(), "hello\n"])

    def test_the_sources_can_be_packed(self):
        name = build.build_sdist(self.folder)
        self.assertTrue(os.path.getsize(self.folder / name) > 1000)


if __name__ == "__main__":
    unittest.main()
