#!/usr/bin/env python3
"""Writes src/hearback/documents.py, the types of all documents, from `hearback schema`.

    generate.py [--check] [HEARBACK]

HEARBACK is the program, by default $HEARBACK or `hearback` on the PATH. With --check, nothing is written, and the
exit code is 1 if the file is not what would be written."""

import argparse
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

TARGET = pathlib.Path(__file__).parent / "src" / "hearback" / "documents.py"
HEADER = '''\
"""The documents that hearback prints and sends, as types.

Written by generate.py from `hearback schema`: do not edit. A field without a value is left out, and a newer hearback
may add fields and kinds.
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 120


def type_of(schema):
    """The Python type of a schema that stands within another."""
    if "$ref" in schema:
        return f'"{schema["$ref"].rpartition("/")[2]}"'
    if "const" in schema:
        return f"Literal[{schema['const']!r}]".replace("'", '"')
    for either in ("anyOf", "oneOf"):
        if either in schema:
            return union(type_of(part) for part in schema[either])
    kind = schema.get("type")
    if isinstance(kind, list):
        return union(type_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        items = type_of(schema["items"]) if "items" in schema else "Any"
        return f"list[{items}]"
    if kind == "object":
        values = schema.get("additionalProperties", True)
        return f"dict[str, {type_of(values) if isinstance(values, dict) else 'Any'}]"
    return PLAIN[kind] if kind else "Any"


def union(types):
    parts = list(dict.fromkeys(types))
    words = [part[8:-1] for part in parts if part.startswith("Literal[")]
    if words:
        parts = [part for part in parts if not part.startswith("Literal[")] + [f"Literal[{', '.join(words)}]"]
    # Within a union, names are quoted together: `"A" | None` is no expression.
    if len(parts) > 1 and any(part.startswith('"') for part in parts):
        return '"' + " | ".join(part.strip('"') for part in parts) + '"'
    return " | ".join(parts)


def documentation(schema, indent):
    text = " ".join(schema.get("description", "").split())
    if not text:
        return []
    text = text.replace("\\", "\\\\")
    lines = textwrap.wrap(f'"""{text}"""', WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
    return [indent + line for line in lines]


def document(name, schema, bases=("TypedDict",)):
    """A class with the properties of a schema."""
    lines = [f"class {name}({', '.join(bases)}):", *documentation(schema, "    ")]
    required = schema.get("required", [])
    if not all(field.isidentifier() for field in schema.get("properties", {})):
        fields = [f'        "{field}": {type_of(inner)},' for field, inner in schema["properties"].items()]
        lines = [f"{name} = TypedDict(", f'    "{name}",', "    {", *fields, "    },", "    total=False,", ")"]
        return "\n".join([*lines, *documentation(schema, "")])
    for field, inner in schema.get("properties", {}).items():
        kind = type_of(inner)
        if field not in required:
            kind = f"NotRequired[{kind}]"
        lines += ["", f"    {field}: {kind}", *documentation(inner, "    ")]
    if len(lines) == 1:
        lines.append("    pass")
    return "\n".join(lines)


def variants(name, schema):
    """A class for each variant of an object, one for what they share, and their union."""
    parts, names = [], []
    shared = schema.get("properties", {})
    if shared:
        parts.append(document(f"{name}Base", {**schema, "description": f"What every `{name}` has."}))
    for variant in schema["oneOf"]:
        tag = next(inner["const"] for inner in variant["properties"].values() if "const" in inner)
        mine = "".join(word.capitalize() for word in re.split("[_.]", tag)) + name
        bases = [f"{name}Base"] if shared else []
        if "$ref" in variant:
            bases.append(variant["$ref"].rpartition("/")[2])
        parts.append(document(mine, variant, bases or ["TypedDict"]))
        names.append(mine)
    return [*parts, alias(name, " | ".join(names), schema)]


def alias(name, kind, schema):
    line = f"{name}: TypeAlias = {kind}"
    if len(line) > WIDTH:
        inner = kind[8:-1].split(", ") if kind.startswith("Literal[") else kind.split(" | ")
        glue, opened, closed = (",", "Literal[", "]") if kind.startswith("Literal[") else (" |", "(", ")")
        body = textwrap.wrap(f"{glue} ".join(part.replace(" ", "\0") for part in inner), WIDTH - 4)
        body = "\n".join("    " + part for part in body).replace("\0", " ")
        line = f"{name}: TypeAlias = {opened}\n{body}\n{closed}"
    return "\n".join([line, *documentation(schema, "")])


def is_variants(schema):
    """Whether it is one of several objects that a tag tells apart."""
    return all(
        any("const" in inner for inner in variant.get("properties", {}).values())
        for variant in schema.get("oneOf", [{}])
    )


def base_names(schema):
    return [variant["$ref"].rpartition("/")[2] for variant in schema.get("oneOf", []) if "$ref" in variant]


def generate(schema):
    defs = schema["$defs"]
    texts, aliases, done = [], [], set()

    def write(name):
        if name in done:
            return
        done.add(name)
        one = defs[name]
        # A class is written before those that extend it.
        for base in base_names(one):
            write(base)
        if is_variants(one):
            texts.extend(part + "\n\n" for part in variants(name, one))
        elif "properties" in one:
            texts.append(document(name, one) + "\n\n")
        else:
            aliases.append(alias(name, type_of(one), one) + "\n")

    for name in sorted(defs):
        write(name)
    names = sorted(done)
    everything = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n"
    # An alias may name a class only in quotes, so it can come first.
    body = "\n".join(["\n".join(aliases), *texts])
    return HEADER + body.rstrip("\n") + "\n\n\n" + everything


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("hearback", nargs="?", default=os.environ.get("HEARBACK") or "hearback")
    options = parser.parse_args()
    printed = subprocess.run([options.hearback, "schema"], stdout=subprocess.PIPE, check=True).stdout
    wanted = generate(json.loads(printed))
    if not options.check:
        TARGET.write_text(wanted, encoding="utf-8")
        return 0
    found = TARGET.read_text(encoding="utf-8")
    if found == wanted:
        return 0
    diff = difflib.unified_diff(
        found.splitlines(), wanted.splitlines(), "documents.py", "hearback schema", n=1, lineterm=""
    )
    print("\n".join(diff))
    print("documents.py differs from `hearback schema`: run generate.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
