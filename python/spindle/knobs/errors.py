"""Errors of a requested change. Each text is one line: what, where, what to do."""

from __future__ import annotations

from spindle.host.errors import Refusal, TargetError


class KnobUsage(TargetError):
    """The request is wrong: no such knob, or not a value of it."""

    exit_code = 2


class KnobRefusal(Refusal):
    """The kernel, another program or a safety check forbids it; nothing is left changed."""
