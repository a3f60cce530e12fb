"""Spindle: measures, explains, tunes and predicts the performance of storage on Linux."""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes time to import
if TYPE_CHECKING:
    from typing import Any

    from spindle._core import Machine
    from spindle.run.simulate import simulate

__all__ = ["Machine", "simulate"]


def __getattr__(name: str) -> Any:
    """The core and what it needs are loaded when they are used: the command line starts without them."""
    if name == "Machine":
        from spindle._core import Machine

        return Machine
    if name == "simulate":
        from spindle.run.simulate import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
