"""Types whose JSON is what they are made of."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class Plain:
    """A dataclass whose JSON has its fields, and these of its properties."""

    COMPUTED: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Its JSON as dicts and lists."""
        found: dict[str, Any] = _json(self)
        return found | {name: _json(getattr(self, name)) for name in self.COMPUTED}


def as_json(value: object) -> str:
    """The JSON of an object for people: indented, without a line break at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _json(value: object) -> Any:
    """The object as a reader of its JSON gets it: lists, where `msgspec.to_builtins` leaves tuples."""
    return msgspec.json.decode(msgspec.json.encode(value))
