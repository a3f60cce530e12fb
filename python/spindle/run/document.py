"""A cursor over a TOML document written by a person: values are taken with a type, unknown keys are an error, and every
error is one line with its place.

The standard library's parser does not report places of keys, so the line is searched in the text.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from spindle import _core
from spindle.base.suggestions import meant
from spindle.run.errors import Usage

Path = tuple[str, ...]


def parse(text: str, source: str) -> dict[str, Any]:
    """Parse TOML. Raises Usage with file and line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        line = (found[2] or str(text.count("\n") + 1)) if found else "1"
        said = (found[1] if found else str(error)).rstrip(".")
        raise Usage(f"{source}:{line}: not TOML: {said[:1].lower()}{said[1:]}") from None
    except RecursionError:
        raise Usage(f"{source}: nested too deeply") from None


def line_of(text: str, path: Sequence[str]) -> int | None:
    """Line of a key, or of the beginning of the nearest table around it."""
    best: tuple[int, int] | None = None  # parts that agree, line
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if header := re.match(r"\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$", stripped):
            table = _parts(header[1])
            found = table
        elif (key := re.match(r"([A-Za-z0-9_\-.\"' ]+?)\s*=", stripped)) is not None:
            found = table + _parts(key[1])
            rest = tuple(path[len(found) :])
            if found == tuple(path[: len(found)]) and rest and re.search(rf"\b{re.escape(rest[-1])}\b", stripped):
                found = tuple(path)  # in an inline table on the same line
        else:
            continue
        agree = len(found) if found == tuple(path[: len(found)]) else 0
        if agree and (best is None or agree > best[0]):
            best = (agree, number)
    return best[1] if best is not None else None


def _only(text: str, path: Path, wanted: int) -> str:
    """The text with the other tables of a list left blank, so that lines of one are found in it."""
    number, lines = -1, []
    inside = False
    for line in text.splitlines():
        if header := re.match(r"\[(\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$", line.strip()):
            found = _parts(header[2])
            if header[1] and found == path:
                number += 1
            inside = found[: len(path)] == path
        lines.append("" if inside and number != wanted else line)
    return "\n".join(lines)


def _parts(dotted: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.]+', dotted))


def text_of(value: object) -> str:
    """A value as on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_scalar(value: object) -> bool:
    """Text, number or truth."""
    return isinstance(value, str | int | float | bool)


class Table:
    """A table of the document. Keys are taken; `finish` refuses the others."""

    def __init__(self, data: Mapping[str, Any], path: Path, text: str, source: str) -> None:
        self._data = dict(data)
        self._given = frozenset(data)
        self._asked: list[str] = []
        self.path, self.text, self.source = path, text, source

    # --- errors ---

    def fail(self, key: str | None, what: str) -> NoReturn:
        """Raise Usage with the place of a key, or of the table."""
        path = (*self.path, key) if key is not None else self.path
        line = line_of(self.text, path)
        where = f"{self.source}:{line}" if line is not None else self.source
        name = ".".join(path)
        raise Usage(f"{where}: {name}: {what}" if name else f"{where}: {what}")

    def finish(self) -> None:
        """Raise Usage for the first key that was not taken."""
        for key in self._data:
            place = f" in [{'.'.join(self.path)}]" if self.path else ""
            self._unknown(key, self._asked, f"unknown key `{key}`{place}", "it has")

    def _unknown(self, key: str, names: Sequence[str], what: str, list_of: str) -> NoReturn:
        hint = meant(key, names, f"{list_of} {', '.join(names)}")
        line = line_of(self.text, (*self.path, key))
        raise Usage(f"{self.source}{f':{line}' if line else ''}: {what}; {hint}")

    def nearest(self, key: str | None, value: str, names: Sequence[str], what: str) -> NoReturn:
        """Raise Usage for an unknown name, with the nearest one."""
        shown = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")
        hint = meant(value, names, f"there are {shown}" if names else "there are none")
        self.fail(key, f"no {what} `{value}`; {hint}")

    # --- taking ---

    def take(self, key: str) -> Any:
        """Take a value of any type; None: missing."""
        self._asked.append(key)
        return self._data.pop(key, None)

    def was_given(self, key: str) -> bool:
        """True if the table has the key, taken or not."""
        return key in self._given

    def left(self) -> list[str]:
        """Keys that were not taken."""
        return list(self._data)

    def table(self, key: str) -> Table:
        """Take a table; empty if missing."""
        value = self.take(key)
        if value is not None and not isinstance(value, dict):
            self.fail(key, f"expected a table, found {_kind(value)}")
        return Table(value or {}, (*self.path, key), self.text, self.source)

    def tables(self, key: str) -> list[Table]:
        """Take a list of tables."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            self.fail(key, f'expected a list of tables such as [{{ size = "4KiB" }}], found {_kind(value)}')
        path = (*self.path, key)
        return [Table(one, path, _only(self.text, path, number), self.source) for number, one in enumerate(value)]

    def word(self, key: str) -> str | None:
        """Take a text."""
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fail(key, f"expected text, found {_kind(value)}")
        if not value.isprintable():
            self.fail(key, "has control characters in it; leave them out")
        return value

    def integer(self, key: str, low: int, high: int, default: int) -> int:
        """Take an integer within bounds, both included."""
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(key, f"expected a whole number, found {_kind(value)}")
        if not low <= value <= high:
            self.fail(key, f"{value} is outside {low} to {high}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.take(key)
        if value is None:
            return default
        if value in ("true", "false"):
            return bool(value == "true")
        if not isinstance(value, bool):
            self.fail(key, f"expected true or false, found {_kind(value)}")
        return value

    def version(self, key: str) -> bool | str | None:
        """Take true, false, or the text of a version, `6.12`."""
        value = self._data.get(key)
        if isinstance(value, str) and re.fullmatch(r"[0-9]+(?:\.[0-9]+)+", value):
            return self.word(key)
        if isinstance(value, float):
            self.fail(key, f'expected true, or a version as text such as "{value}", found {_kind(value)}')
        return None if key not in self._data else self.flag(key, False)

    def share(self, key: str) -> float | None:
        """`5%` or 0.05; above 0 and below 1."""
        value = self.take(key)
        if value is None:
            return None
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(%?)", str(value))
        if found is None or isinstance(value, bool):
            self.fail(key, f"expected a share such as 5%, found {_kind(value)}")
        share = float(found[1]) / (100 if found[2] else 1)
        if not 0 < share < 1:
            self.fail(key, f"{value} is outside 0% to 100%; write for example 5% or 0.05")
        return share

    def duration_ns(self, key: str, default: int, least: int = 0) -> int:
        """`30s`, or a plain number of seconds."""
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(key, f"expected a length of time such as 30s, found {_kind(value)}")
        try:
            plain = re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(value))
            found = _core.parse_duration(f"{value}s" if plain else str(value))
        except _core.ConfigError as error:
            self.fail(key, str(error))
        if found < least:
            self.fail(key, f"{value} is too short; at least {least / 1e9:g} s")
        return found

    def words(self, key: str) -> list[str]:
        """Take a list of texts; a single one needs no brackets."""
        value = self.take(key)
        if value is None:
            return []
        values = value if isinstance(value, list) else [value]
        if not all(is_scalar(one) for one in values):
            self.fail(key, f"expected a list of texts, found {_kind(value)}")
        return [text_of(one) for one in values]

    def choice(self, key: str, names: Sequence[str], default: str) -> str:
        """Take one of some words."""
        value = self.word(key)
        if value is None:
            return default
        if value not in names:
            self.fail(key, f"`{value}` is not known; {meant(value, names, 'it is ' + ' or '.join(names))}")
        return value


def _kind(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            shown = value if len(value) <= 40 else value[:37] + "..."
            return json.dumps(shown, ensure_ascii=False) if shown.isprintable() else "text with control characters"
        case int() | float():
            return str(value)
        case dict():
            return "a table"
        case list():
            return "a list"
        case _:
            return "a date"
