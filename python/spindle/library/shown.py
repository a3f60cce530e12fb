"""Findings that print as the command line shows them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from spindle.base.plain import as_json

if TYPE_CHECKING:
    from spindle.report.terminal.style import Style


class Printable:
    """`print` and a notebook show it as text; `to_dict` and `to_json` are what the verb prints as JSON."""

    __slots__ = ()

    def page(self, style: Style) -> list[str]:
        """The lines for a terminal."""
        raise NotImplementedError

    def _data(self) -> object:
        """The object that its JSON is made of; it is one itself unless it says otherwise."""
        return self

    def to_dict(self) -> Any:
        """Its JSON as dicts and lists."""
        return msgspec.json.decode(self.to_json())

    def to_json(self) -> bytes:
        """Its JSON, indented."""
        return as_json(self._data()).encode() + b"\n"

    def __str__(self) -> str:
        from spindle.report.terminal.style import Style

        return "\n".join(self.page(Style()))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
