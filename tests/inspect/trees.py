"""Captured trees in a compact form: one readable text file each, laid out as files and links, in a folder or in memory.

# a comment
include other.tree        that tree first; what follows replaces its lines
device sys/devices/...    the folder of a block device, with links from /sys/class/block and /sys/block
holder sda md0            a link to md0 in the `holders` of sda, a device named before
[sys/devices/...]         paths that follow are below this folder; [] is the root
name=value                a file with this line
name <<END ... END        a file of several lines
name hex= 00 b1           a file of bytes
name -> target            a link
name/                     an empty folder
name absent               of an included tree, removed with what is below
each X,Y in a,1 b,2       the lines up to `end` once for each, with {X} and {Y} replaced
define NAME ... end       lines that `use NAME X=a Y=b~c` puts elsewhere, with {X} and {Y} replaced; ~ is a blank
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from spindle.inspect.tree import MemoryTree

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.tree") if not path.stem.startswith("_"))

Files = dict[str, bytes]
Links = dict[str, str]
Folders = set[str]


class Layout:
    """Files, links and empty folders by their path."""

    def __init__(self) -> None:
        self.files: Files = {}
        self.links: Links = {}
        self.folders: Folders = set()

    def held(self) -> MemoryTree:
        """The tree in memory."""
        held = MemoryTree()
        for folder in sorted(self.folders):
            held.add_folder(folder)
        for path, content in self.files.items():
            held.add(path, content)
        for path, target in self.links.items():
            held.add_link(path, target)
        return held

    def lay_out(self, root: Path) -> Path:
        """Write it to disk."""
        for folder in self.folders:
            (root / folder).mkdir(parents=True, exist_ok=True)
        for path, content in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        for path, target in self.links.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)
        return root

    def remove(self, path: str) -> None:
        """Remove a path and all below it."""
        for held in (self.files, self.links):
            for name in [name for name in held if name == path or name.startswith(path + "/")]:
                del held[name]
        self.folders = {name for name in self.folders if name != path and not name.startswith(path + "/")}


def load(name: str) -> Layout:
    """The fixture of this name."""
    layout = Layout()
    for source in _with_included(FIXTURES / f"{name}.tree"):
        _fill(layout, source)
    return layout


def _with_included(path: Path) -> Iterator[list[str]]:
    lines = path.read_text().splitlines()
    for line in [line for line in lines if line.startswith("include ")]:
        yield from _with_included(path.parent / line.removeprefix("include ").strip())
    definitions: dict[str, list[str]] = {}
    for shared in sorted(path.parent.glob("_*.tree")):
        _take_definitions(shared.read_text().splitlines(), definitions)
    own = _take_definitions([line for line in lines if not line.startswith("include ")], definitions)
    yield _expand(own, definitions)


def _take_definitions(lines: list[str], definitions: dict[str, list[str]]) -> list[str]:
    rest: list[str] = []
    pending = iter(lines)
    for line in pending:
        if line.startswith("define "):
            definitions[line.split()[1]] = _block(pending)
        else:
            rest.append(line)
    return rest


def _block(pending: Iterator[str]) -> list[str]:
    inside: list[str] = []
    depth = 1
    for line in pending:
        depth += line.startswith("each ")
        depth -= line == "end"
        if depth == 0:
            return inside
        inside.append(line)
    raise ValueError("no `end`")


def _expand(lines: list[str], definitions: dict[str, list[str]]) -> list[str]:
    found: list[str] = []
    pending = iter(lines)
    for line in pending:
        if line.startswith("each "):
            names, _, rows = line.removeprefix("each ").partition(" in ")
            inside = _block(pending)
            for value in rows.split():
                replaced = [_replace(row, dict(zip(names.split(","), value.split(","), strict=True))) for row in inside]
                found.extend(_expand(replaced, definitions))
        elif line.startswith("use "):
            _, name, *pairs = line.split()
            values = {key: value.replace("~", " ") for key, _, value in (pair.partition("=") for pair in pairs)}
            found.extend(_expand([_replace(row, values) for row in definitions[name]], definitions))
        else:
            found.append(line)
    return found


def _replace(line: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        line = line.replace("{" + name + "}", value)
    return line


def _fill(layout: Layout, lines: list[str]) -> None:
    prefix = ""
    pending = iter(lines)
    for line in pending:
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            prefix = line.strip("[]")
            continue
        if line.startswith("device sys/"):
            prefix = line.split()[1]
            _link_device(layout, prefix)
            continue
        if line.startswith("holder "):
            _, name, over = line.split()
            below = posixpath.normpath(posixpath.join("sys/class/block", layout.links[f"sys/class/block/{name}"]))
            layout.links[f"{below}/holders/{over}"] = f"/sys/class/block/{over}"
            continue
        head = line.split(maxsplit=1)[0]
        path = posixpath.normpath(posixpath.join(prefix, head.partition("=")[0]))
        if line.endswith("/") and " " not in line and "=" not in line:
            layout.folders.add(path)
        elif " -> " in line:
            layout.links[path] = line.split(" -> ", 1)[1]
        elif " hex= " in line:
            layout.files[path] = bytes.fromhex(line.split(" hex= ", 1)[1])
        elif line.endswith(" absent"):
            layout.remove(path)
        elif " <<" in line and "=" not in line:
            end = line.rsplit(" <<", 1)[1]
            rows = []
            for row in pending:
                if row == end:
                    break
                rows.append(row)
            layout.files[path] = "".join(f"{row}\n" for row in rows).encode()
        elif "=" in line:
            layout.files[path] = (line.split("=", 1)[1] + "\n").encode()
        else:
            raise ValueError(f"not understood: {line}")


def _link_device(layout: Layout, folder: str) -> None:
    name = os.path.basename(folder)
    inside = folder.removeprefix("sys/")
    layout.links[f"sys/class/block/{name}"] = f"../../{inside}"
    if os.path.basename(os.path.dirname(folder)) in ("block", "nvme-subsys0") or "/nvme/" in folder:
        layout.links.setdefault(f"sys/block/{name}", f"../{inside}")
