"""The SQL prompt, and results as tables, CSV or JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from spindle.base.plain import as_json

if TYPE_CHECKING:
    from spindle.library.stores import Store

PROMPT, GOES_ON = "spindle> ", "    ...> "
HELP = """\
End SQL with `;`. The store is read-only.
.tables         tables and views
.schema TABLE   its columns
.quit           or Ctrl-D"""


class Form(Enum):
    """Format of a result."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"

    def show(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        """Print to stdout."""
        match self:
            case Form.TABLE:
                _table(columns, rows)
            case Form.CSV:
                from spindle.store.export import Sheet, as_csv

                sys.stdout.write(as_csv(Sheet("answer", columns, [_plain(row) for row in rows])).decode())
            case Form.JSON:
                keys = _unequal(columns)
                objects = [dict(zip(keys, _plain(row), strict=True)) for row in rows]
                sys.stdout.write(as_json(objects) + "\n")


def prompt(store: Store, form: Form) -> None:
    """Answer queries until Ctrl-D. After an error the prompt goes on."""

    from spindle.cli.failure import one_line
    from spindle.store import StoreError

    print(f"{store.place}, read-only; .help lists commands")
    while (text := _asked()) is not None:
        try:
            if text.startswith("."):
                if text.rstrip(";").strip() in (".quit", ".exit"):
                    return
                _command(store, form, text)
            elif text:
                form.show(*store.answer(text))
        except StoreError as error:
            print(one_line(str(error)), file=sys.stderr)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


def _asked() -> str | None:
    """Read a whole statement; None at the end. Ctrl-C discards an unfinished one."""
    lines: list[str] = []
    while True:
        try:
            line = input(GOES_ON if lines else PROMPT)
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            lines = []
            continue
        lines.append(line)
        text = "\n".join(lines).strip()
        if not text or text.startswith(".") or text.endswith(";"):
            return text.rstrip(";").strip()


def _command(store: Store, form: Form, text: str) -> None:
    name, _, rest = text.rstrip(";").partition(" ")
    match name, rest.strip():
        case ".help", "":
            print(HELP)
        case ".tables", "":
            print("\n".join(store.raw.table_names()))
        case ".schema", table if table:
            form.show(["column", "type"], [*store.raw.columns_of(table)])
        case _:
            print(f"{name}: no such command; .help lists them", file=sys.stderr)


def _table(columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    from spindle.report.terminal.style import style_of
    from spindle.report.terminal.table import Column, table

    if not columns:
        return
    words = [not all(isinstance(row[at], int | float) or row[at] is None for row in rows) for at in range(len(columns))]
    heads = [Column(column, words=word) for column, word in zip(columns, words, strict=True)]
    for line in table(heads, [[_shown(value) for value in row] for row in rows], style_of(sys.stdout)):
        print(line)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.6g}" if abs(value) < 1e6 or value != int(value) else f"{value:.0f}"
        case bytes():
            return f"<{len(value)} bytes>"
        case _:
            return "".join(char if char.isprintable() else " " for char in str(value))


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert values that JSON and CSV cannot contain: bytes."""
    return tuple(value.hex() if isinstance(value, bytes) else value for value in row)


def _unequal(columns: Sequence[str]) -> list[str]:
    """Make column names unique for JSON keys: the second `n` is `n:2`."""
    seen: Counter[str] = Counter()
    found = []
    for column in columns:
        seen[column] += 1
        found.append(column if seen[column] == 1 else f"{column}:{seen[column]}")
    return found
