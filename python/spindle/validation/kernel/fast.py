"""The simulator as a runner of measured cases."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from spindle import _core
from spindle.base.errors import NotModelled
from spindle.result.figures import Stream
from spindle.run.simulate import SimulatedRun, read_figures
from spindle.validation.kernel.cases import ELEVATORS, Case, Load
from spindle.validation.kernel.runner import CaseFigures, LoadFigures, MemberFigures
from spindle.validation.kernel.steps import CHECK, CLOCK_READING_NS, DRIVES, REBUILT, STRIPES, SYNCS
from spindle.validation.kernel.trace import Request, member_figures

PIECE_S = 1.0
COPY_RATE = "900000 GB/s"
"""The processors of the measured machine cost no time."""
TICK_NS = 4_000_000
_MARKED_AFTER_TICK_NS = {"": 1_415_327, "stripe cache": 1_724_831, "1 removed": 1_664_261, "2 removed": 1_910_124}
"""From a timer tick to the begin of the measurement, read off the lab, whose ticks come at multiples of 4 ms: what was
done with the array before moves it.
"""
_DD_BEGINS_NS = 25_280
_LOADS_BEGIN_NS = {1: 3_280, 2: 5_816}
"""From the begin of the measurement to that of dd, and of so many loads, read off the lab: what they read of the clock
before their first request comes on top of it.
"""
_ELEVATORS_MARKED_AFTER_TICK_NS = {
    ("single", 1): 690_213,
    ("single", 2): 697_125,
    ("raid10n2", 1): 1_420_447,
    ("raid10n2", 2): 1_427_103,
}
"""The same as the first where elevators were measured, by level and number of loads."""
_BFQ_MARKS_LATER_NS = {"single": 1_024, "raid10n2": 989}
"""bfq reads the clock for the kernel's own requests before."""
_FILES_MARKED_AFTER_TICK_NS = {
    ("single", "ext4"): (2_338_392, 1_352_557),
    ("raid0", "ext4"): (1_252_632, 2_178_246),
    ("raid1", "ext4"): (3_199_886, 3_025_861),
    ("raid10n2", "ext4"): (121_620, 1_618_121),
    ("raid10f2", "ext4"): (868_652, 2_629_513),
    ("raid10o2", "ext4"): (164_388, 1_924_649),
    ("raid4", "ext4"): (2_111_858, 2_939_400),
    ("raid5", "ext4"): (1_114_762, 2_890_024),
    ("raid6", "ext4"): (3_334_546, 2_313_384),
    ("single", "xfs"): (272_454, 2_449_135),
    ("raid0", "xfs"): (1_685_086, 938_858),
    ("raid1", "xfs"): (631_324, 2_828_979),
    ("raid10n2", "xfs"): (3_713_217, 175_937),
    ("raid10f2", "xfs"): (503_713, 1_762_713),
    ("raid10o2", "xfs"): (503_457, 1_763_865),
    ("raid4", "xfs"): (785_827, 5_306),
    ("raid5", "xfs"): (407_106, 2_377_722),
    ("raid6", "xfs"): (2_818_145, 403_554),
}
"""The same with a file system, whose mkfs and mount take a time of their own: where the load makes its file, and where
it reads one. Others, which were not measured, are taken to be as without.
"""
_FILE_IS_MADE_NS = {"ext4": 25_536, "xfs": 25_280}
"""From the begin of the measurement to that of dd, with what making its file reads of the clock."""
_SECOND_STARTS_NS = 1_256
"""Time that the shell's other process takes before its first request, when the first one sleeps."""
_REBUILDS_MARKED_AFTER_TICK_NS = {"raid1": 2_990_500, "": 7_203_800}
_REBUILD_BEGINS_NS = {"raid1": 1_925_528, "raid10": 1_927_064, "": 1_926_296}
"""The same where a member is rebuilt, from a tick whose number is a multiple of 8, and to the begin of md's thread."""
_CHECKS_MARKED_AFTER_TICK_NS = {"raid1": 21_210_269, "raid10": 25_420_447, "": 25_415_327, "stripe cache": 25_724_831}
_CHECK_BEGINS_NS = {"raid1": 5_816, "": 5_560}
"""The same for a check, whose thread begins at once."""
_MDADM_READS = {8: 3}
"""Sectors -> reads with which mdadm looks for old arrays at the end of the drive that it adds."""
_BETWEEN_LOADS_NS = 7_936
"""From the end of a load to the begin of the next one, which the shell starts."""
_REBUILT_BY_S = 100
"""A rebuild is over by then. A load without requests ends the run."""
_LETTERS = {"read": "R", "write": "W", "flush": "F"}


class SimulatorRunner:
    """`spindle-sim` on the machine and the load of the case."""

    name = "simulator"
    jobs = 2
    is_exact = False

    def figures(self, case: Case) -> CaseFigures:
        """See `Runner`."""
        if case.operation in SYNCS:
            return _synchronised(case)
        if not case.loads:
            raise NotModelled(case.operation)
        starts_ns = [0] * len(case.loads)
        if case.one_after_another:
            _, alone = _simulated(case, case.loads[:1], [0])
            starts_ns[1] = alone.run.elapsed_ns + _BETWEEN_LOADS_NS
        trace, simulated = _simulated(case, case.loads, starts_ns)
        run = simulated.run
        streams = run.streams if case.measured.loads else []
        loads = [_load(load, stream) for load, stream in zip(case.loads, streams, strict=bool(streams))]
        elapsed_ns = run.elapsed_ns
        if any(load.is_buffered for load in case.loads):
            # When the last process closes a device, the kernel waits for the pages that are still being read.
            elapsed_ns = max(elapsed_ns, _last_completion_ns(trace))
        return CaseFigures(elapsed_ns=elapsed_ns, members=list(_members(case, trace)), loads=loads)


def _simulated(case: Case, loads: Sequence[Load], starts_ns: Sequence[int]) -> tuple[str, SimulatedRun]:
    """The trace and the figures of loads, each with the time of its begin, on the machine of a case."""
    machine = _core.Machine.parse(machine_text(case), case.name)
    workload = _core.Workload.parse(workload_text(loads, starts_ns), case.name, case.name)
    places = [load.offsets() for load in loads]
    simulation = _core.Simulation(
        machine,
        workload,
        trace=True,
        places=places,
        one_call_each=True,
        begin=(_first_tick_ns(case), 0 if case.one_after_another else _SECOND_STARTS_NS, bool(case.file_system)),
    )
    trace = b"".join(iter_pieces(simulation)).decode()
    return trace, read_figures(simulation.figures())


def _synchronised(case: Case) -> CaseFigures:
    """The rebuild of a member, or a check, without a load: from the command that begins it."""
    machine = _core.Machine.parse(machine_text(case), case.name)
    load = f"seconds = {_REBUILT_BY_S}\ndirect = true\nstart_delay = '{_REBUILT_BY_S - 1}s'\n"
    workload = _core.Workload.parse(load, case.name, case.name)
    marked_ns, begins_ns = _sync_begins(case)
    tick_ns = -marked_ns - begins_ns
    simulation = _core.Simulation(machine, workload, trace=True, begin=(tick_ns % (8 * TICK_NS), 0, False))
    trace = b"".join(iter_pieces(simulation)).decode()
    of = read_figures(simulation.figures()).rebuild
    if of is None or of.finished_ns is None:
        raise NotModelled(f"the {case.operation} takes over {_REBUILT_BY_S} s")
    members = list(_members(case, trace, before_ns=of.finished_ns + TICK_NS))
    elapsed_ns = begins_ns + of.finished_ns
    if case.operation == CHECK:
        return CaseFigures(elapsed_ns=elapsed_ns, members=members, loads=[])
    added = DRIVES.index(REBUILT)
    reads, sectors = sum(_MDADM_READS.values()), sum(size * count for size, count in _MDADM_READS.items())
    members[added] = replace(members[added], reads=reads, read_sizes=_MDADM_READS, read_sectors=sectors)
    return CaseFigures(elapsed_ns=elapsed_ns, members=members, loads=[])


def _sync_begins(case: Case) -> tuple[int, int]:
    """From a tick to the begin of the measurement, and to that of md's thread for a rebuild or a check."""
    level = "raid10" if case.level.startswith("raid10") else case.level
    if case.operation != CHECK:
        marked, begins = _REBUILDS_MARKED_AFTER_TICK_NS, _REBUILD_BEGINS_NS
        return marked.get(level, marked[""]), begins.get(level, begins[""])
    marked = _CHECKS_MARKED_AFTER_TICK_NS
    done = "stripe cache" if case.stripe_cache != STRIPES else ""
    return marked.get(level, marked[done]), _CHECK_BEGINS_NS.get(level, _CHECK_BEGINS_NS[""])


def iter_pieces(simulation: _core.Simulation) -> Iterator[bytes]:
    """Yield the trace of a run until its end."""
    while (piece := simulation.trace_piece(PIECE_S)) is not None:
        yield piece


def _last_completion_ns(trace: str) -> int:
    return max((int(line["finish_ns"]) for line in csv.DictReader(trace.splitlines())), default=0)


def _load(load: Load, stream: Stream) -> LoadFigures:
    of = stream.write if load.write else stream.read
    if of is None:
        raise NotModelled("the load did nothing")
    return LoadFigures(of.requests, stream.measured_ns, round(of.latency.mean_ns), of.latency.max_ns)


def _first_tick_ns(case: Case) -> int:
    """Time of the first timer tick after the begin of the load: it decides when a thread pays for the processor."""
    if case.table == ELEVATORS and not case.loads[0].is_buffered:
        marked_ns = _ELEVATORS_MARKED_AFTER_TICK_NS[case.level, len(case.loads)]
        marked_ns += _BFQ_MARKS_LATER_NS[case.level] if case.scheduler == "bfq" else 0
        return TICK_NS - marked_ns - _LOADS_BEGIN_NS[len(case.loads)]
    done = "stripe cache" if case.stripe_cache != STRIPES else ""
    before = f"{case.degraded} removed" if case.degraded else done
    of_dd = any(load.is_buffered for load in case.loads)
    if marked := _FILES_MARKED_AFTER_TICK_NS.get((case.level, case.file_system)):
        made, read = marked
        if any(load.makes_file for load in case.loads):
            return TICK_NS - made - _FILE_IS_MADE_NS[case.file_system]
        return TICK_NS - read - _DD_BEGINS_NS
    return TICK_NS - _MARKED_AFTER_TICK_NS[before] - (_DD_BEGINS_NS if of_dd else _LOADS_BEGIN_NS[1])


def machine_text(case: Case) -> str:
    """Return the machine of a case as a machine file."""
    lines = ["[host]", f"memory = '{case.memory}iB'", f"copy_rate = '{COPY_RATE}'"]
    lines += [f"clock_reading = '{CLOCK_READING_NS}ns'"]
    lines += ["[queue]", f"scheduler = '{case.scheduler}'", f"max_request = '{case.max_request_kib}KiB'"]
    if case.read_ahead_kib not in ("", "default"):
        lines += [f"read_ahead = '{case.read_ahead_kib}KiB'"]
    if case.level != "single":
        level, _, layout = case.level.partition("raid10")
        lines += ["[array]", f"level = '{level or 'raid10'}'"]
        lines += [f"data_offset = {case.data_offset_sectors * 512}"]
        lines += [f"layout = '{layout}'"] if layout else []
        lines += [f"chunk = '{case.chunk_kib}KiB'"] if case.chunk_kib else []
        if level in ("raid4", "raid5", "raid6"):
            lines += [f"stripe_cache_size = {case.stripe_cache}"]
        lines += ["bitmap = 'internal'"] if case.bitmap else []
        if case.degraded:
            lines += [f"missing = {[1] if level == 'raid1' else [2, 3][: case.degraded]}"]
        if case.operation in SYNCS:
            lines += ["check = true" if case.operation == CHECK else f"rebuild = {DRIVES.index(REBUILT)}"]
            lines += [f"sync_speed_max = '{SYNCS[case.operation]}KiB/s'"]
    if case.file_system:
        lines += [
            "[filesystem]",
            f"type = '{case.file_system}'",
            f"size = {case.loads[0].size_bytes * case.loads[0].count}",
        ]
    capacity = case.drive_mib * 2**20
    lines += ["[[drive]]", f"count = {case.members}", f"queue_depth = {case.queue_depth}", f"capacity = {capacity}"]
    lines += ["service = '100us'", "transfer_rate = '200 MB/s'", "flush = '100us'"]
    lines += [] if case.rotational else ["rotational = false"]
    return "\n".join(lines) + "\n"


def workload_text(loads: Sequence[Load], starts_ns: Sequence[int]) -> str:
    """Return loads, each with the time of its begin, as a workload file."""
    lines = ["seconds = 'none'", f"requests = {sum(load.count for load in loads)}"]
    if any(load.makes_file for load in loads):
        lines += ["[[files]]", f"filesize = {loads[0].size_bytes * loads[0].count}", "fill = false"]
    for number, (load, start_ns) in enumerate(zip(loads, starts_ns, strict=True), 1):
        lines += ["[[stream]]", f"name = 'load{number}'", f"size = {load.size_bytes}", f"depth = {load.depth}"]
        lines += ["pattern = 'sequential'", f"write_fraction = {int(load.write)}", f"stop_requests = {load.count}"]
        lines += [f"start_delay = '{start_ns}ns'"] if start_ns else []
        lines += [f"priority = '{load.priority}'"] if load.priority else []
        if load.is_buffered:
            sync = "fsync_every = 1" if load.syncs else f"end_fsync = {str(load.write).lower()}"
            lines += ["direct = false", sync]
    return "\n".join(lines) + "\n"


def _members(case: Case, trace: str, before_ns: int = sys.maxsize) -> Iterator[MemberFigures]:
    drives: dict[str, list[Request]] = {}
    for line in csv.DictReader(trace.splitlines()):
        # A drive serves in the order of arrival, so the order of completion is the same.
        one = Request(int(line["arrive_ns"]), _LETTERS[line["op"]], int(line["lbn"]), int(line["blocks"]))
        drives.setdefault(line["drive"], []).append(one)
    for slot in range(case.members):
        requests = [one for one in drives.get(f"drive{slot}", []) if one.arrive_ns < before_ns]
        yield member_figures(case, slot, requests, has_times=False)
