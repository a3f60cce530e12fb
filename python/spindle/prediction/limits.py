"""Limits of a prediction: what it leaves out, from the machine and the workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from spindle import _core
from spindle.base.words import listed
from spindle.result.workload import Workload
from spindle.run.simulate import MachineDescription

PAGE_CACHE_RULES = "6.1"
"""Kernel whose page cache the simulator has."""


def limits(machine: _core.Machine, described: MachineDescription, spec: Workload) -> Iterator[str]:
    """Yield a sentence for each."""
    yield from _assumed(machine)
    if "fresh" in described.flash_states and any(stream.writes for stream in spec.all_streams):
        yield 'flash drives are fresh: one in long use writes slower (`state = "used"` in the machine file)'
    if any(not stream.direct for stream in spec.all_streams) and described.kernel != PAGE_CACHE_RULES:
        yield f"the page cache follows the rules of Linux {PAGE_CACHE_RULES}, not those of {described.kernel}"
    if "server" in described.drives:
        yield "a service time knows no cache, no moving head and no other order than that of arrival"
        if any(stream.writes for stream in spec.all_streams):
            yield "a service time is the same for reads and writes: if it was measured, it was with reads"


def _assumed(machine: _core.Machine) -> Iterator[str]:
    assumed = machine.assumed()
    for part, count in Counter(part for part, _ in assumed).items():
        keys = listed([key for name, key in assumed if name == part], "and")
        yield f"{count} numbers of {part} are assumed and have no range, so the band leaves them out: {keys}"
