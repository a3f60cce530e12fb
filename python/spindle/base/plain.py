"""Types whose JSON is what they are made of."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class Plain:
    """A dataclass whose JSON has its fields, and these of its properties."""

    COMPUTED: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Its JSON as dicts and lists."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found | {name: msgspec.to_builtins(getattr(self, name)) for name in self.COMPUTED}
