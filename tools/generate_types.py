"""Writes the Python types of what the Rust core says, from the Rust types themselves (`make generate`).

Only what serde says in these sources is understood: structs of public fields, enums of plain names and enums tagged by
`kind`; anything else is an error. Properties are written by hand: a class of the same name in the module `properties`
becomes a base of the generated one.
"""

from __future__ import annotations

import ast
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUFF = Path(sys.executable).parent / "ruff"

MODULE = '''"""{about}

Generated from {sources} by `make generate`: not to be edited.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

{properties}

class Kind(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """One of several forms, distinguished by `kind`."""


{classes}

def {reader}_from_json(text: str | bytes) -> {root}:
    """Read what the core wrote."""
    return msgspec.json.decode(text, type={root})
'''

INTEGERS = {f"{sign}{bits}": "int" for sign in "ui" for bits in (8, 16, 32, 64, "size")}
SIMPLE = INTEGERS | {"f64": "float", "bool": "bool", "String": "str"}
EMPTY = {"int": "0", "float": "0.0", "bool": "False", "str": '""', "list": "[]"}


@dataclass(frozen=True)
class Module:
    """A module to be written."""

    about: str
    sources: tuple[str, ...]
    root: str
    """The type that is read, with all that it needs."""
    properties: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    """Python's where they differ."""
    suffixes: dict[str, str] = field(default_factory=dict)
    """What is put behind the variants of a tagged enum, if not the name of the enum."""
    defaults: dict[str, str] = field(default_factory=dict)
    """Of types that have one of their own."""


MODULES = {
    "python/spindle/result/workload.py": Module(
        about="The resolved workload as the core writes it. Times are ns, sizes bytes, fractions 0 to 1.",
        sources=("crates/workload/src/request.rs", "crates/workload/src/spec.rs"),
        root="Workload",
        properties="spindle.result.workload_properties",
        names={"Stream": "WorkloadStream"},
        suffixes={"Pattern": "", "Arrival": "", "RateLimit": "Limit"},
        defaults={"Peak": "Peak(center=None, scattered=True)"},
    ),
}


@dataclass
class Field:
    """A public field of a struct or variant."""

    name: str
    type: str
    about: str
    optional: bool


@dataclass
class Type:
    """A struct (`fields`), or an enum (`variants`; tagged if `tagged`)."""

    name: str
    about: str
    fields: list[Field] = field(default_factory=list)
    variants: list[Type] = field(default_factory=list)
    tagged: bool = False

    @property
    def mentions(self) -> set[str]:
        """Types of its fields."""
        owners = [self, *self.variants]
        return {word for owner in owners for one in owner.fields for word in re.findall(r"\w+", one.type)}


ITEM = re.compile(r"((?:^///[^\n]*\n|^#\[[^\n]*\n)+)^pub (struct|enum) (\w+) \{\n(.*?)^\}", re.M | re.S)
MEMBER = re.compile(
    r"((?:^ *///[^\n]*\n|^ *#\[[^\n]*\n)*)^ *(?:(?:pub )?(?P<field>[a-z]\w*): (?P<type>[^\n]+),"
    r"|(?P<variant>[A-Z]\w*)(?: = \d+)?(?P<body>,| \{\n.*?^ *\},))\n",
    re.M | re.S,
)


def types(source: str) -> Iterator[Type]:
    """The serialised types of a Rust file."""
    for head, what, name, body in ITEM.findall(source):
        if "Serialize" not in head:
            continue
        found = Type(name, _about(head), tagged="tag = " in head)
        if what == "struct":
            found.fields = list(_fields(body))
        else:
            found.variants = list(_variants(body, head))
        yield found


def _fields(body: str) -> Iterator[Field]:
    for member in _members(body):
        yield Field(member["field"], member["type"], _about(member[1]), "#[serde(default" in member[1])


def _variants(body: str, head: str) -> Iterator[Type]:
    style = re.search(r'rename_all = "([\w-]+)"', head)
    for member in _members(body):
        name = member["variant"]
        words = re.findall(r"[A-Z][a-z0-9]*", name)
        written = {"kebab-case": "-", "lowercase": ""}[style[1]].join(words).lower() if style else name
        inner = member["body"].removeprefix(" {\n").removesuffix("},").rstrip(" ,")
        yield Type(f"{name}={written}", _about(member[1]), list(_fields(inner)))


def _members(body: str) -> Iterator[re.Match[str]]:
    body = re.sub(r"^ *// .*\n", "", body, flags=re.M)
    at = 0
    while body[at:].strip():
        member = MEMBER.match(body, at + len(body[at:]) - len(body[at:].lstrip("\n")))
        if member is None:
            raise SystemExit(f"not understood: {body[at:].strip().splitlines()[0]}")
        yield member
        at = member.end()


def _about(head: str) -> str:
    lines = re.findall(r"^ *///(.*)$", head, re.M)
    return re.sub(r"\[`([^`]+)`\](\([^)]*\))?", r"`\1`", " ".join(line.strip() for line in lines))


class Writer:
    """One module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        read = [found for source in module.sources for found in types((ROOT / source).read_text())]
        self.types = {found.name: found for found in read}
        self.helped = _classes(module.properties)

    def text(self) -> str:
        """The whole module."""
        package, _, name = (self.module.properties or "").rpartition(".")
        return MODULE.format(
            about=self.module.about,
            sources=" and ".join(self.module.sources),
            properties=f"from {package} import {name} as properties\n" if package else "",
            classes="\n\n".join(self._written(found) for found in self._needed()),
            root=self.module.root,
            reader=self.module.root.lower(),
        )

    def _needed(self) -> list[Type]:
        """What the root needs, each behind what it needs itself."""
        order: list[Type] = []

        def add(name: str, above: tuple[str, ...] = ()) -> None:
            found = self.types.get(name)
            if found is None or found in order or name in above:
                return
            for mentioned in sorted(found.mentions):
                add(mentioned, (*above, name))
            order.append(found)

        add(self.module.root)
        return order

    def _written(self, found: Type) -> str:
        name = self.module.names.get(found.name, found.name)
        if not found.variants:
            return self._class(name, "Struct", found)
        pairs = [variant.name.split("=") for variant in found.variants]
        if not found.tagged:
            return f"{name} = Literal[{', '.join(repr(written) for _, written in pairs)}]\n" + _doc(found.about, "")
        suffix = self.module.suffixes.get(found.name, found.name)
        classes = [
            self._class(one + suffix, f'Kind, tag="{written}"', variant)
            for (one, written), variant in zip(pairs, found.variants, strict=True)
        ]
        union = " | ".join(one + suffix for one, _ in pairs)
        return "\n\n".join(classes) + f"\n\n{name} = {union}\n" + _doc(found.about, "")

    def _class(self, name: str, bases: str, found: Type) -> str:
        helped = f"properties.{name}, " if name in self.helped else ""
        base, _, tag = bases.partition(", ")
        options = ", ".join(filter(None, [base, "frozen=True", "kw_only=True", tag]))
        text = f"class {name}({helped}{options}):\n" + _doc(found.about, "    ") + ("\n" if found.fields else "")
        for one in found.fields:
            kind = self._type(one.type)
            default = f" = {self._default(kind)}" if one.optional else ""
            python = one.name
            if keyword.iskeyword(python):
                python, default = f"{python}_", f' = msgspec.field(name="{one.name}")'
            text += f"    {python}: {kind}{default}\n" + _doc(one.about, "    ")
        return text

    def _type(self, rust: str) -> str:
        if inner := re.fullmatch(r"Option<(.*)>", rust):
            return f"{self._type(inner[1])} | None"
        if inner := re.fullmatch(r"Vec<(.*)>", rust):
            return f"list[{self._type(inner[1])}]"
        if inner := re.fullmatch(r"\((.*)\)", rust):
            return f"tuple[{', '.join(self._type(part) for part in inner[1].split(', '))}]"
        if rust in self.types:
            return self.module.names.get(rust, rust)
        return SIMPLE[rust]

    def _default(self, kind: str) -> str:
        if kind.endswith("| None"):
            return "None"
        return self.module.defaults.get(kind) or EMPTY[kind.partition("[")[0]]


def _doc(about: str, indent: str) -> str:
    return "\n".join(textwrap.wrap(f'"""{about}"""', 116, initial_indent=indent, subsequent_indent=indent)) + "\n"


def _classes(module: str | None) -> set[str]:
    if module is None:
        return set()
    tree = ast.parse((ROOT / "python" / f"{module.replace('.', '/')}.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}


def generated(path: str) -> str:
    """The text of a module as it should be."""
    text = Writer(MODULES[path]).text()
    command = [RUFF, "format", "--stdin-filename", path, "-"]
    ended = subprocess.run(command, input=text, text=True, capture_output=True, check=True, cwd=ROOT)
    return ended.stdout


if __name__ == "__main__":
    for path in MODULES:
        text = generated(path)
        if "--check" not in sys.argv:
            (ROOT / path).write_text(text)
        elif text != (ROOT / path).read_text():
            sys.exit(f"{path} is not what its sources say: run `make generate`")
