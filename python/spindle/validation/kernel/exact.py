"""The lab as a runner of measured cases: the real kernel repeats them."""

from __future__ import annotations

import csv
import re

from msgspec.structs import replace

from spindle import _core
from spindle.lab import kernel, loads
from spindle.lab.errors import LabError
from spindle.lab.session import execute
from spindle.validation.kernel import steps
from spindle.validation.kernel.cases import REQUESTS, Case
from spindle.validation.kernel.runner import CaseFigures, LoadFigures
from spindle.validation.kernel.trace import Request, member_figures

_COMMAND = re.compile(r"^elapsed_ns (\d+)$", re.M)
_REQUESTS = re.compile(r"^requests \d+ elapsed_ns (\d+)", re.M)
_LOAD = re.compile(r"^requests (\d+) elapsed_ns (\d+) mean_ns (\d+) longest_ns (\d+)$", re.M)


class LabRunner:
    """The lab's kernel on the machine and the commands of the case, a boot for each."""

    is_exact = True

    def __init__(self, version: str | None = None, jobs: int = 1) -> None:
        """`version`: of the kernel (`lab.kernel.current`). Raises LabMissing."""
        self.name = f"lab (Linux {kernel.current(version=version).version})"
        self.jobs = jobs
        self._version = version
        self._programs = [str(loads.program()), "dd"]

    def figures(self, case: Case) -> CaseFigures:
        """See `Runner`. Raises LabError too."""
        text, trace = self._run(case)
        drives = _measured(trace)
        return CaseFigures(
            elapsed_ns=_elapsed_ns(case, text),
            members=[member_figures(case, slot, drives[slot], has_times=True) for slot in range(case.members)],
            loads=[LoadFigures(*map(int, found)) for found in _LOAD.findall(text)],
        )

    def _run(self, case: Case) -> tuple[str, str]:
        machine = _core.Machine.parse(steps.machine_text(case), case.name)
        out: dict[bool, bytearray] = {False: bytearray(), True: bytearray()}
        outcome = execute(
            machine,
            ["sh", "-c", steps.script(case)],
            lambda is_error, data: out[is_error].extend(data),
            memory_mib=steps.memory_mib(case),
            programs=self._programs,
            is_traced=True,
            version=self._version,
            clock_reading_ns=steps.CLOCK_READING_NS,
        )
        if outcome.status or outcome.trace is None:
            said = out[True].decode(errors="replace").strip().splitlines() or ["no message"]
            raise LabError(f"case {case.name}: {said[-1]}")
        return out[False].decode(errors="replace"), outcome.trace


def _elapsed_ns(case: Case, text: str) -> int:
    """Elapsed time: that of the load if it says one, else that of the command."""
    requests = _REQUESTS.search(text) if case.table == REQUESTS else None
    found = requests or _COMMAND.search(text)
    if found is None:
        raise LabError(f"case {case.name}: no elapsed time in {text!r}")
    return int(found[1])


def _measured(trace: str) -> list[list[Request]]:
    """The requests of each drive between the two reads of the marker; times count from the first."""
    drives: list[list[Request]] = [[] for _ in (*steps.DRIVES, steps.MARKER)]
    for line in csv.DictReader(trace.splitlines()):
        one = Request(int(line["arrive_ns"]), line["operation"], int(line["sector"]), int(line["sectors"]))
        drives[int(line["drive"])].append(one)
    # The kernel's own reads of the marker, of its partition table, are longer.
    marks = {one.sector: one.arrive_ns for one in drives.pop() if one.sectors == 1}
    begin, end = marks[0], marks[1]
    return [
        [replace(one, arrive_ns=one.arrive_ns - begin) for one in drive if begin <= one.arrive_ns <= end]
        for drive in drives
    ]
