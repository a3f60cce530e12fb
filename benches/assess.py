"""Assessments of modelled machines of known ability: the answer must be right, and the margin within 10 %.

python benches/assess.py [--machines N] [--only PURPOSE]

The ability of each machine is the largest multiple of a reference need at which a run of an hour (modelled time) keeps
every bound, found by bisection to within 0.5 % with two seeds. Each machine is then assessed for three needs: 10 %
more than it can (it has 0.9 of what is needed), 5 % less (just enough), and half (twice enough).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

import spindle
from spindle.assess.margin import Multiples
from spindle.assess.need import Need, need_of
from spindle.run import openloop
from spindle.run.bounds import latencies_of
from spindle.run.resolve import ResolvedWorkload
from spindle.run.targets.modelled import MachineTarget
from spindle.run.watch import SilentWatch

LONG_S = 3600.0
FINE = 1.005
SEEDS = (101, 102)
SHARES = {"too slow by 10 %": 0.9, "just enough": 1.05, "twice enough": 2.0}
ANSWERS = {"too slow by 10 %": "no", "just enough": "yes", "twice enough": "yes"}
NEAR = 0.10
WHOLE = ("streams", "mailboxes")
"""Numbers that count things."""


@dataclass(frozen=True)
class Case:
    """One machine with a purpose."""

    name: str
    machine: str
    purpose: str
    given: dict[str, object]
    """The reference need."""
    scaled: str
    """The number that makes a need larger."""
    also: tuple[str, ...] = ()
    """Numbers that grow with it."""


def plain(service: str, rate: str = "500 MB/s", flush: str = "1ms", more: str = "") -> str:
    """A machine whose drive has a plain service time."""
    return (
        f"[host]\nkernel = '6.1'\n[[drive]]\nservice = '{service}'\ntransfer_rate = '{rate}'\nflush = '{flush}'\n"
        f"capacity = '200GiB'\nrotational = false\n{more}"
    )


def disks(model: str, count: int = 1, level: str = "") -> str:
    """A machine with disks of the catalogue."""
    array = f"[array]\nlevel = '{level}'\n" if level else ""
    return f"[host]\nkernel = '6.1'\n{array}[[drive]]\nmodel = '{model}'\ncount = {count}\n"


SAS, SATA, LARGE = "ST3600057SS", "HDS725050KLA360", "ST18000NM000J"
RELAXED = {"commit_p99": "60ms", "read_p99": "80ms"}
CASES = [
    Case("1 ms server", plain("1ms"), "postgres", {}, "tps"),
    Case("0.3 ms server, slow flush", plain("300us", flush="3ms"), "postgres", {}, "tps"),
    Case("8 servers of 2 ms", plain("2ms", more="servers = 8"), "postgres", {"read_p99": "12ms"}, "tps"),
    Case("6 SAS disks, RAID10", disks(SAS, 6, "raid10"), "postgres", RELAXED, "tps"),
    Case("1 ms server", plain("1ms"), "mysql", {"commit_p99": "30ms"}, "tps"),
    Case("4 servers of 0.5 ms", plain("500us", more="servers = 4"), "mysql", {}, "tps"),
    Case("8 SAS disks, RAID10", disks(SAS, 8, "raid10"), "mysql", {"commit_p99": "120ms", "read_p99": "80ms"}, "tps"),
    Case("1 ms server", plain("1ms"), "vm-host", {}, "rate"),
    Case("0.2 ms server, 100 MB/s", plain("200us", "100 MB/s"), "vm-host", {"read_p99": "5ms"}, "rate"),
    Case(
        "4 SATA disks, RAID10",
        disks(SATA, 4, "raid10"),
        "vm-host",
        {"read_p99": "90ms", "write_p99": "120ms"},
        "rate",
    ),
    Case("6 SAS disks, RAID6", disks(SAS, 6, "raid6"), "vm-host", {"read_p99": "80ms", "write_p99": "200ms"}, "rate"),
    Case("2 ms server", plain("2ms"), "mail", {}, "mailboxes"),
    Case("SAS disk", disks(SAS), "mail", {"write_p99": "150ms", "read_p99": "150ms"}, "mailboxes"),
    Case("4 SAS disks, RAID10", disks(SAS, 4, "raid10"), "mail", {}, "mailboxes"),
    Case("1 ms server, 300 MB/s", plain("1ms", "300 MB/s"), "backup", {}, "rate", ("read_rate",)),
    Case("large SATA disk", disks(LARGE), "backup", {}, "rate", ("read_rate",)),
    Case("6 SATA disks, RAID5", disks(SATA, 6, "raid5"), "backup", {"read_rate": 0}, "rate"),
    Case("1 ms server, 300 MB/s", plain("1ms", "300 MB/s"), "video", {}, "streams"),
    Case("4 SAS disks, RAID10", disks(SAS, 4, "raid10"), "video", {}, "streams"),
    Case("large SATA disk", disks(LARGE), "video", {"bit_rate": "5Mbit/s"}, "streams"),
]


def main() -> int:
    """Print a row for each machine and need. Exit status 1: an answer is wrong, or a margin is off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=len(CASES), help="only the first N")
    parser.add_argument("--only", help="only this purpose")
    asked = parser.parse_args()
    cases = [each for each in CASES if asked.only in (None, each.purpose)][: asked.machines]
    wrong, errors = 0, []
    print(f"| machine | purpose | ability | {' | '.join(SHARES)} | s |")
    print(f"|---|---|---|{'---|' * len(SHARES)}---|")
    for case in cases:
        begun = time.monotonic()
        ability = ability_of(case)
        known = f"{need_of(case.purpose, case.given).amounts[case.scaled] * ability:.4g} {case.scaled}"
        cells = []
        for cell, is_right, error in assessed(case, ability):
            cells.append(cell)
            wrong += not is_right
            errors.append(abs(error))
        row = [case.name, case.purpose, known, *cells, f"{time.monotonic() - begun:.0f}"]
        print(f"| {' | '.join(row)} |", flush=True)
    off = sum(error > NEAR for error in errors)
    print(
        f"\n{len(errors) - wrong} of {len(errors)} answers are right; {len(errors) - off} of {len(errors)} margins are "
        f"within 10 %, {100 * fmean(errors):.1f} % off in the mean"
    )
    return int(wrong > 0 or off > 0)


def assessed(case: Case, ability: float) -> Iterator[tuple[str, bool, float]]:
    """The assessments of a machine: answer and margin, if the answer is right, and the relative error of the margin."""
    reference = need_of(case.purpose, case.given)
    size = reference.amounts[case.scaled]
    others = {key: reference.amounts[key] for key in case.also}
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(case.machine)
        file.flush()
        for name, share in SHARES.items():
            wanted = size * ability / share
            wanted = float(round(wanted)) if case.scaled in WHOLE else wanted
            given = {**case.given, case.scaled: wanted, **{key: value * wanted / size for key, value in others.items()}}
            found = spindle.assess(file.name, case.purpose, **given)  # type: ignore[arg-type]
            margin = found.margin.value or found.margin.least or 0.0
            is_right = found.answer == ANSWERS[name]
            yield (
                f"{found.answer}{'' if is_right else ' (wrong)'}, {margin:.2f}",
                is_right,
                margin / (size * ability / wanted) - 1,
            )


def ability_of(case: Case) -> float:
    """The largest multiple of the reference need within all bounds, by long runs."""
    need = replace(need_of(case.purpose, case.given), seconds=LONG_S)
    low, high = 0.0, 1.0
    while meets(case, need, high):
        low, high = high, 2 * high
    if low == 0.0:
        low = high / 2
        while not meets(case, need, low):
            low, high = low / 2, low
    while high / low > FINE:
        middle = (low * high) ** 0.5
        if need.clients(middle) is not None and need.clients(middle) in (need.clients(low), need.clients(high)):
            break
        low, high = (middle, high) if meets(case, need, middle) else (low, middle)
    return low if need.clients(low) is not None else (low * high) ** 0.5


def meets(case: Case, need: Need, multiple: float) -> bool:
    """True if long runs keep every bound and serve all requests."""
    axis = Multiples(need)
    with MachineTarget(case.name, case.machine).open(axis.at(multiple), SilentWatch()) as opened:
        for seed in SEEDS:
            step = axis.at(multiple).with_overrides(
                [("seed", str(seed)), ("seconds", f"{length_of(axis, multiple):g}")]
            )
            record = opened.measure(step).record
            if openloop.behind(record):
                return False
            for bound in need.bounds:
                at = spindle._core.histogram_percentiles(
                    [latency.histogram for _, latency in latencies_of(bound, record)], [99.0]
                )[0]
                if at > bound.limit_ns:
                    return False
    return True


def length_of(axis: Multiples, multiple: float) -> float:
    """An hour, or as long as 100 000 requests take."""
    load: ResolvedWorkload = axis.at(multiple)
    rate = sum(stream.arrival.rate_iops for stream in load.spec.streams)  # type: ignore[union-attr]
    return min(LONG_S, 1e5 / rate)


if __name__ == "__main__":
    sys.exit(main())
