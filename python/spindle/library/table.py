"""Tables for notebooks and other programs: rows, Arrow, pandas, HTML."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from spindle.base.errors import SpindleError
from spindle.base.numbers import plain
from spindle.library.figures import NoName

MOST_SHOWN = 60
"""Rows of a table in a notebook."""


class NotInstalled(SpindleError):
    """An optional package is needed."""


def needed(package: str, extra: str) -> Any:
    """Import an optional package. Raises `NotInstalled`."""
    if importlib.util.find_spec(package) is None:
        raise NotInstalled(f"this needs {package}; pip install 'spindle[{extra}]'")
    return importlib.import_module(package)


class Table:
    """Columns of equal length, by name; a cell is a text, an int, a float or None (unknown).

    Programs that read Arrow (pyarrow, polars, DuckDB, pandas 3) take it as it is, through `__arrow_c_stream__`.
    """

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True))

    def __getitem__(self, name: str) -> list[Any]:
        """One column. Raises `spindle.Error`."""
        if name not in self.columns:
            raise NoName(f"{name}: not a column of the table; it has {', '.join(self.columns) or 'none'}")
        return self.columns[name]

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`: integers as int64, numbers as double, all else as text. Needs pyarrow."""
        arrow = needed("pyarrow", "notebook")
        from spindle.store.export import typed

        return arrow.table([typed(arrow, column) for column in self.columns.values()], names=list(self.columns))

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`. Needs pandas."""
        return needed("pandas", "notebook").DataFrame(self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface: an ArrowArrayStream. Needs pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return html_table(list(self.columns), [list(row.values()) for row in self][:MOST_SHOWN])


def html_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as HTML; numbers are on the right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    match value:
        case None:
            return "<td></td>"
        case int() | float():
            shown = str(value) if isinstance(value, int) or type(value) is not float else plain(value)
            return f'<td style="text-align:right">{escape(shown)}</td>'
        case _:
            return f"<td>{escape(str(value))}</td>"
