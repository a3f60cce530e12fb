"""Power cuts in the lab for the command line: options of a durability test, and the cuts as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spindle import _core
from spindle.host.signals import unwinding
from spindle.lab.assembly import setup_of
from spindle.library.options import bytes_of, within
from spindle.library.shown import Printable
from spindle.result.durability import Cut
from spindle.result.journal import Pattern, SyncKind
from spindle.run.durability.cuts import CutOptions, cut_often, place_of
from spindle.run.simulate import machine_text

if TYPE_CHECKING:
    from spindle.report.terminal.style import Style

DEFAULT_BYTES = 2 << 20
"""Default part of the target that is written: so small that a cut finds most of its blocks written."""
MOST_CUTS = 100_000


class PowerCuts(Printable):
    """Cuts of one machine."""

    def __init__(self, machine: str, cuts: Sequence[Cut]) -> None:
        self.machine = machine
        self.cuts = cuts

    @property
    def sound(self) -> bool:
        """True if everything acknowledged was there after each cut, and the order was kept."""
        return all(cut.verdict == "kept" for cut in self.cuts)

    @property
    def summary(self) -> str:
        """The verdicts and how often each came."""
        verdicts = Counter(cut.verdict for cut in self.cuts)
        return ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common())

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.durability import cuts_page

        return list(cuts_page(self.machine, self.cuts, self.summary, style))

    def _data(self) -> object:
        return {"kind": "durability-cuts", "machine": self.machine, "cuts": self.cuts}


def power_cuts(
    machine: str,
    cuts: int,
    seed: int,
    lying: Sequence[str],
    *,
    sync: SyncKind,
    pattern: Pattern,
    workers: int,
    block: str | int,
    batch: int,
    size: str | int | None,
    buffered: bool,
    window_s: float | None,
) -> PowerCuts:
    """Cut the power of a machine, a file or a name of the catalogue. Raises `spindle.Error`."""
    within(cuts, "`cuts=`", 1, MOST_CUTS)
    parsed = _core.Machine.parse(machine_text(machine), machine)
    size_bytes = DEFAULT_BYTES if size is None else bytes_of(size, "`size=`")
    order = CutOptions(
        parsed,
        place_of(setup_of(parsed), size_bytes),
        size_bytes,
        cuts=cuts,
        seed=seed,
        pattern=pattern,
        sync=sync,
        workers=workers,
        block_bytes=bytes_of(block, "`block=`"),
        batch=batch,
        direct=not buffered,
        window_s=window_s or CutOptions.window_s,
        lying=tuple(lying),
    )
    with unwinding():
        return PowerCuts(machine, list(cut_often(order)))
