"""Conversion of text to typed values. A missing value is None, and the reason is noted under the field's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .tree import LONG, SHORT, ReadError, Tool, Tree, plain

T = TypeVar("T")
_LONGEST_VALUE = 4096
_LARGEST = 1 << 63


class Reading:
    """Reads values of one part of the inventory. `unknown` belongs to the part: field -> reason."""

    def __init__(self, tree: Tree, unknown: dict[str, str]) -> None:
        self.tree = tree
        self.unknown = unknown

    def text(self, field: str, *paths: str) -> str | None:
        """One line of text, from the first path that has one."""
        return self._first(field, paths, lambda text: text)

    def number(self, field: str, *paths: str) -> int | None:
        """A whole number."""
        return self._first(field, paths, whole_number)

    def flag(self, field: str, *paths: str) -> bool | None:
        """0 or 1."""
        return self._first(field, paths, _flag)

    def _first(self, field: str, paths: tuple[str, ...], make: Callable[[str], T]) -> T | None:
        whys = []
        for path in paths:
            try:
                return make(self._line(path))
            except ReadError as missing:
                whys.append(str(missing))
            except ValueError as wrong:
                whys.append(f"{path}: {wrong}")
        self.lack(field, whys[0] if whys else "no source for it")
        return None

    def _line(self, path: str) -> str:
        text = self.tree.read(path).decode(errors="replace").strip("\n\0 \t")
        if not text:
            raise ValueError("empty")
        if len(text) > _LONGEST_VALUE:
            raise ValueError(f"a value of {len(text)} characters")
        if "\ufffd" in text or not text.isprintable():
            raise ValueError("not a line of text")
        return text

    def lack(self, field: str, why: str) -> None:
        """Note the reason for a missing value; the first reason stays."""
        self.unknown.setdefault(field, plain(why))

    def known(self, *fields: str) -> None:
        """Remove the reasons of fields that another source provided."""
        for field in fields:
            self.unknown.pop(field, None)

    def table(self, path: str) -> str | None:
        """A longer text of many lines, or None."""
        return _table(self.tree, path)

    def output(self, field: str, tool: Tool) -> str | None:
        """Output of a tool; the reason under `field` if there is none."""
        try:
            return self.tree.output(tool)
        except ReadError as missing:
            self.lack(field, str(missing))
            return None

    def json(self, field: str, tool: Tool) -> dict[str, Any] | None:
        """Output of a tool as a JSON object."""
        text = self.output(field, tool)
        if text is None:
            return None
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            self.lack(field, f"{tool.command[0]} {tool.of}: its output is not a JSON object")
            return None
        return found


def _table(tree: Tree, path: str) -> str | None:
    try:
        return tree.read(path, LONG).decode(errors="replace")
    except ReadError:
        return None


def value(tree: Tree, path: str) -> str | None:
    """One line of text; a missing one needs no reason."""
    return Reading(tree, {}).text("", path)


def number(tree: Tree, path: str) -> int | None:
    """A whole number; a missing one needs no reason."""
    return Reading(tree, {}).number("", path)


def raw(tree: Tree, path: str) -> bytes | None:
    """Bytes of a binary file, or None."""
    try:
        return tree.read(path, SHORT)
    except ReadError:
        return None


def whole_number(text: str) -> int:
    """Parse a decimal or 0x number of up to 64 bits, and nothing else that Python accepts (1_000, Arabic digits)."""
    if not re.fullmatch(r"-?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}", text):
        raise ValueError(f"{plain(text[:40])!r} is not a whole number")
    found = int(text, 0) if text[:2].lower() == "0x" else int(text)
    if not -_LARGEST <= found < _LARGEST:
        raise ValueError(f"{text} is too large")
    return found


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"{plain(text[:40])!r} is neither 0 nor 1")
    return text == "1"


def dig(data: Any, *keys: str) -> Any:
    """A value deep in JSON from outside; None if the path ends."""
    for key in keys:
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def dig_int(data: Any, *keys: str) -> int | None:
    """A whole number deep in JSON."""
    found = dig(data, *keys)
    return found if type(found) is int and -_LARGEST <= found < _LARGEST else None


def dig_text(data: Any, *keys: str) -> str | None:
    """A line of text deep in JSON."""
    found = dig(data, *keys)
    return plain(found) or None if isinstance(found, str) else None


def dig_flag(data: Any, *keys: str) -> bool | None:
    """A truth value deep in JSON."""
    found = dig(data, *keys)
    return found if isinstance(found, bool) else None


def dig_list(data: Any, *keys: str) -> list[Any]:
    """A list deep in JSON; empty where there is none."""
    found = dig(data, *keys)
    return found if isinstance(found, list) else []
