"""`spindle.restore`: settings that a killed session left changed, put back; it loads little."""

from __future__ import annotations

from spindle.host.signals import Stopped as Stopped
from spindle.host.signals import unwinding_here
from spindle.knobs.persist import persisted
from spindle.knobs.restore import Restoration
from spindle.knobs.restore import restore as restored
from spindle.library.arguments import public


@public
def restore() -> Restoration:
    """Restore every setting that Spindle changed and did not put back: after a kill, a power loss or a reboot.

    Settings that somebody else has changed since are left alone; `complete` is true if all others are restored.
    """
    with unwinding_here():
        return restored(persisted=persisted())
