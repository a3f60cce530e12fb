"""What can be wrong with a change that was asked for. Each text is one line: what, where, what to do."""

from __future__ import annotations

from ..errors import Refused, TargetError


class KnobUsage(TargetError):
    """What was asked for is wrong: no such knob, not a value of it."""

    exit_code = 2


class KnobRefused(Refused):
    """The kernel, another program or caution forbids it; nothing is left changed."""
