"""Power cuts in virtual time: the writers of a durability test run in the lab, whose power is cut at a chosen
nanosecond; after another boot on the same drives the target is checked there.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from spindle import _core
from spindle.lab import initramfs
from spindle.lab.assembly import FOLDER, Setup, in_order
from spindle.lab.errors import LabError
from spindle.lab.janitor import passing_folder
from spindle.lab.load import find_agent
from spindle.lab.machine import ERRORS, TERMINAL, Boot, running
from spindle.lab.report import BootReport
from spindle.result.durability import Cut
from spindle.result.journal import Header, Pattern, Plan, SyncKind, findings_from_json, journal_from_json
from spindle.result.record import utc_now
from spindle.result.tested import TestDetails, TestedTarget

_HEADER, _JOURNAL = "lab/header", "lab/journal"
"""Files in the lab."""
_UPTIME_S = 0.01
"""Resolution of /proc/uptime."""
_TIME_LIMIT_S = 3600.0
"""Virtual time after which a boot is given up: a target that never gets ready."""


@dataclass(frozen=True)
class Place:
    """The target in the lab, and the commands of the shell that lead to it."""

    make: Sequence[str]
    """Make array and file system."""
    again: Sequence[str]
    """Find them again after the cut."""
    path: str
    file_bytes: int | None
    """Size of the test file; None: the path is a device."""


def place_of(setup: Setup, size_bytes: int) -> Place:
    """A machine's array, file system and test file of this size."""
    if setup.filesystem is None:
        return Place(setup.script(), setup.again(), f"/dev/{setup.device}", None)
    return Place(setup.script(), setup.again(), f"{FOLDER}/spindle.bin", size_bytes)


@dataclass(frozen=True)
class CutOptions:
    """Options of a series of cuts."""

    machine: _core.Machine
    place: Place
    size_bytes: int
    """Part of the target that is written."""
    cuts: int = 20
    seed: int = 1
    pattern: Pattern = "mixed"
    sync: SyncKind = "fsync"
    workers: int = 4
    block_bytes: int = 4096
    batch: int = 4
    direct: bool = True
    window_s: float = 0.2
    """The cut comes within this virtual time after the first write."""
    lying: tuple[str, ...] = ()
    """Drives (`vda`) that ignore flushes from the first write on."""
    memory_mib: int = 512


def cut_often(order: CutOptions) -> Iterator[Cut]:
    """Cut by cut. Raises LabMissing or LabError."""
    begin_ns = _first_write_ns(order)
    for number in range(order.cuts):
        yield _cut(order, number, begin_ns)


def _first_write_ns(order: CutOptions) -> int:
    """Virtual time at which writing begins, from a boot in which it ends after the window."""
    header = _header(order, random.Random(f"{order.seed} first"))
    commands = _writers(order, ["--seconds", f"{order.window_s:g}"])
    _, out, said = _boot(order, [*commands, "cut -d' ' -f1 /proc/uptime >&4"], {_HEADER: header})
    with tempfile.TemporaryFile() as file:
        file.write(out)
        try:
            journal = journal_from_json(_core.durability_journal(file.fileno()))
            return round((float(said) + _UPTIME_S) * 1e9) - journal.last_ns
        except (_core.ConfigError, ValueError):
            raise LabError(f"in the lab: {said}") from None


def _cut(order: CutOptions, number: int, begin_ns: int) -> Cut:
    draw = random.Random(f"{order.seed} {number}")
    header = _header(order, draw)
    at_ns = begin_ns + round(draw.uniform(0.05, 1) * order.window_s * 1e9)
    faults = [f"{drive} at {begin_ns}ns: ignores flushes" for drive in order.lying]
    faults.append(f"at {at_ns}ns: power cut, seed {draw.randrange(1 << 32)}")
    with passing_folder() as janitor:
        disks = janitor.folder
        report, journal, said = _boot(order, _writers(order, []), {_HEADER: header}, faults, disks)
        if not report.lost_power:
            raise LabError(f"in the lab: the writers ended before the power was cut: {said}")
        check = [*order.place.again, f"spindle-agent check --journal /{_JOURNAL} --target {order.place.path} >&3"]
        _, found, said = _boot(order, check, {_JOURNAL: journal}, disks=disks)
    findings = findings_from_json(found) if found else None
    return Cut(at_ns=at_ns, findings=findings, said=None if findings else said)


def _header(order: CutOptions, draw: random.Random) -> bytes:
    place = order.place
    return msgspec.json.encode(
        Header(
            run=f"{draw.getrandbits(64):016x}",
            plan=Plan(
                seed=draw.getrandbits(32),
                workers=order.workers,
                pattern=order.pattern,
                block_bytes=order.block_bytes,
                batch=order.batch,
                sync=order.sync,
                region_blocks=order.size_bytes // order.block_bytes // order.workers,
            ),
            about=TestDetails(
                version=_core.__version__,
                started=utc_now(),
                host="lab",
                boot="",
                target=TestedTarget(
                    path=place.path,
                    kind="device" if place.file_bytes is None else "file",
                    size_bytes=order.size_bytes,
                    direct=order.direct,
                ),
            ),
        )
    )


def _writers(order: CutOptions, options: Sequence[str]) -> list[str]:
    """Commands that make the target and write; the journal is their output."""
    place = order.place
    words = ["spindle-agent", "durability", "--header", f"/{_HEADER}", "--target", place.path, *options]
    words += [] if order.direct else ["--buffered"]
    if place.file_bytes is None:
        words += ["--erase", place.path, "--erase-content", "--erase-stacked"]
    else:
        words += ["--create", str(place.file_bytes)]
    return [*place.make, f"{' '.join(words)} >&3"]


def _boot(
    order: CutOptions,
    commands: Sequence[str],
    files: Mapping[str, bytes],
    faults: Sequence[str] = (),
    disks: Path | None = None,
) -> tuple[BootReport, bytes, str]:
    """Boot and carry out commands: the report, what they wrote to descriptor 3, the last line of their errors or
    written to descriptor 4.
    """
    archive = initramfs.for_script(f"exec 3>&1 4>&2\n{in_order(commands)}", files, [str(find_agent())])
    boot = Boot(order.machine, archive, order.memory_mib, faults=tuple(faults), disks=disks, time_limit_s=_TIME_LIMIT_S)
    out: dict[int, bytearray] = {TERMINAL: bytearray(), ERRORS: bytearray()}
    with running(boot) as lab:
        for port, data in lab.output():
            out[port] += data
        report = lab.end()
    said = out[ERRORS].decode(errors="replace").strip().splitlines() or ["no message"]
    return report, bytes(out[TERMINAL]), said[-1]
