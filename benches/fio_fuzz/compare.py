"""Compares two traces of the same job file request by request, as far as its jobs leave nothing to chance.

What is drawn at random is compared by tests that a thousand job files pass by chance: `UNLIKELY`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scipy import stats

from spindle.formats.fio_job import Conversion
from spindle.formats.fio_job.job import Job, Sizes
from spindle.formats.fio_job.numbers import NOTHING

from .clones import by_job
from .observe import Clone, Event, ToolTrace

UNLIKELY = 1e-7
MOVES = ("read", "write", "trim")
SIGMAS = 5.5
"""A count that is drawn is farther from another one once in `UNLIKELY`."""
FEW = 24
"""Requests below which a share is not compared."""


@dataclass(frozen=True)
class Difference:
    """Something that is not the same."""

    phase: int
    what: str
    """requests, bytes, sizes, mix, places, order, range, syncs, durability, priority, figures, time, files"""
    text: str
    kind: str = ""
    """read, write or trim; empty: all of them."""
    fewer: str = ""
    """fio or Spindle, if it is an amount."""
    job: int | None = None
    """Its place in the phase; None: jobs that cannot be distinguished."""

    def __str__(self) -> str:
        return f"phase {self.phase + 1}: {self.what}: {self.text}"


def differences(conversion: Conversion, fio: ToolTrace, spindle: ToolTrace) -> list[Difference]:
    """All differences."""
    if len(spindle.phases) != len(fio.phases):
        return [Difference(0, "phases", f"{len(fio.phases)} in fio, {len(spindle.phases)} in Spindle")]
    found: list[Difference] = []
    exitall = any(each.job.exitall for each in conversion.jobs)  # of one job: all have it
    for number, (phase, theirs, ours) in enumerate(zip(conversion.phases, fio.phases, spindle.phases, strict=True)):
        raced = exitall and len(theirs) > 1
        for of in by_job(phase, theirs, ours, fio.figures):
            flushed = any(each.job.trims_first for each in phase.jobs)
            same = _Phase(number, of.jobs, of.fio, of.spindle, raced, flushed).result()
            found += [replace(each, job=of.index, text=of.named(each.text, len(phase.jobs))) for each in same]
        found += _figures(number, ours, spindle)
    return found


class _Phase:
    """Jobs that run at the same time, together."""

    def __init__(
        self,
        number: int,
        jobs: Sequence[Job],
        fio: Sequence[Clone],
        spindle: Sequence[Clone],
        raced: bool,
        flushed: bool,
    ) -> None:
        """`raced`: the clone that is done first ends the others (exitall). `flushed`: a job beside it leaves pages that
        direct requests of others write out.
        """
        self.number, self.jobs = number, jobs
        self.fio, self.spindle = fio, spindle
        self.theirs = _merged(fio)
        self.ours = _merged(spindle)
        self.timed = raced or any(job.runtime_us for job in jobs)
        """True if chance decides how many requests are made."""
        self.mixed = any(job.mixed for job in jobs)
        self.varied = any(sizes.split or sizes.low != sizes.high for job in jobs for sizes in _used(job)) or (
            self.mixed and any(job.mixed and job.sizes[0] != job.sizes[1] for job in jobs)
        )
        self.raced = raced
        self.random = any(job.random for job in jobs)
        self.checked = any(job.verify != "0" and job.writes for job in jobs)
        self.flushed = flushed
        self.scattered = any(job.service[0] == "random" and max(job.nrfiles, len(job.filenames)) > 1 for job in jobs)
        """True if chance decides the next file."""
        self.cached = any(job.trims_first for job in jobs)
        """fio opens such files without O_DIRECT: its writes are the page cache's."""
        self.drawn = self.checked and self.mixed
        """How many are compared is left to chance: the writes of a mix."""
        self.rounds = max(map(_rounds, jobs))
        self.found: list[Difference] = []

    def result(self) -> list[Difference]:
        kinds = self._kinds()
        theirs = [event for event in self.theirs if event.kind in kinds]
        ours = [event for event in self.ours if event.kind in kinds]
        if bool(theirs) != bool(ours) and not (self.raced or self.drawn):
            self._say("requests", len(theirs), len(ours))
            return self.found
        self._amounts(theirs, ours)
        self._mix(theirs, ours)
        for kind in kinds:
            self._of_kind(
                kind, [event for event in theirs if event.kind == kind], [event for event in ours if event.kind == kind]
            )
        self._files(theirs, ours)
        self._syncs()
        self._time(theirs, ours)
        self._priorities()
        return self.found

    def _kinds(self) -> tuple[str, ...]:
        """Requests that are compared: without those that fio makes to check what it has written."""
        whole = not any(_is_split(event) for event in (*self.theirs, *self.ours))
        if self.cached:
            return ("trim",) if len(self.jobs) == 1 and whole else ()
        if self.flushed:
            return () if self.mixed else tuple(kind for kind in ("read", "trim") if kind != "trim" or whole)
        kinds = ("write", "trim") if self.checked else MOVES
        return tuple(kind for kind in kinds if kind != "trim" or whole)

    def _say(self, what: str, theirs: object, ours: object, more: str = "") -> None:
        kind = next((kind for kind in MOVES if more.startswith(kind)), "")
        fewer = ""
        if isinstance(theirs, int) and isinstance(ours, int):
            fewer = "fio" if theirs < ours else "Spindle"
        self.found.append(Difference(self.number, what, f"{more}{theirs} in fio, {ours} in Spindle", kind, fewer))

    def _amounts(self, theirs: list[Event], ours: list[Event]) -> None:
        if self.timed:
            return
        if self.drawn:
            if abs(len(theirs) - len(ours)) > SIGMAS * math.sqrt(self.rounds * (len(theirs) + len(ours) + 1)):
                self._say("requests", len(theirs), len(ours))
            return
        clones = sum(job.numjobs * job.loops for job in self.jobs)
        if not self.varied:
            if len(theirs) != len(ours):
                self._say("requests", len(theirs), len(ours))
            return
        largest = max(max((s for s, _ in z.split), default=z.high) for job in self.jobs for z in _used(job))
        moved = [sum(event.length for event in events) for events in (theirs, ours)]
        if not all(job.number_ios for job in self.jobs):
            if abs(moved[0] - moved[1]) > largest * clones:
                self._say("bytes", moved[0], moved[1])
        elif len(theirs) != len(ours):
            # The one that made fewer was ended by its bytes, so it moved as many as the other at least.
            fewer = 0 if len(theirs) < len(ours) else 1
            lacks = moved[1 - fewer] - moved[fewer]
            if not self._by_bytes() or (clones == 1 and lacks > largest * max(1, *(job.nrfiles for job in self.jobs))):
                self._say("requests", len(theirs), len(ours))

    def _by_bytes(self) -> bool:
        """True if the bytes may end a job before its number of requests does."""
        return any(
            job.number_ios and (job.size != NOTHING or job.io_size.bytes or job.filesizes[1]) for job in self.jobs
        )

    def _mix(self, theirs: list[Event], ours: list[Event]) -> None:
        for kind in MOVES:
            counts = [sum(event.kind == kind for event in events) for events in (theirs, ours)]
            if not self.mixed:
                if not self.raced and bool(counts[0]) != bool(counts[1]):
                    self._say("mix", counts[0], counts[1], f"{kind}: ")
                continue
            if min(len(theirs), len(ours)) >= FEW and self._shares_differ(counts[0], len(theirs), counts[1], len(ours)):
                self._say("mix", f"{counts[0]} of {len(theirs)}", f"{counts[1]} of {len(ours)}", f"{kind}: ")

    def _shares_differ(self, a: int, of_a: int, b: int, of_b: int) -> bool:
        """True if the shares of one round differ: fio draws the same numbers in each round, so one is compared."""
        return _shares_differ(a // self.rounds, of_a // self.rounds, b // self.rounds, of_b // self.rounds)

    def _of_kind(self, kind: str, theirs: list[Event], ours: list[Event]) -> None:
        if not theirs or not ours:
            return
        self._sizes(kind, theirs, ours)
        self._durability(kind, theirs, ours)
        exact = not (self.timed or self.random or self.mixed or self.varied or self.scattered)
        if exact:
            same = Counter(map(_place, theirs)) == Counter(map(_place, ours))
            if not same:
                self._say("places", _places(theirs, ours), _places(ours, theirs), f"{kind}: ")
            elif self._in_order(theirs) != self._in_order(ours):
                self._say("order", [e.offset for e in theirs][:6], [e.offset for e in ours][:6], f"{kind}: ")
            return
        self._where(kind, theirs, ours)

    def _in_order(self, events: list[Event]) -> list[tuple[int, int]]:
        """Nothing, where requests pass each other."""
        one_by_one = len(self.fio) == len(self.spindle) == 1 and self.jobs[0].depth == 1
        return [_place(event) for event in events] if one_by_one else []

    def _sizes(self, kind: str, theirs: list[Event], ours: list[Event]) -> None:
        counts = [Counter(event.length for event in events) for events in (theirs, ours)]
        if not self.varied:
            if set(counts[0]) != set(counts[1]):
                self._say("sizes", sorted(counts[0]), sorted(counts[1]), f"{kind}: ")
            return
        if self.timed and len(self.jobs) > 1:
            return  # the speeds of the jobs decide; each is compared by itself
        sizes = sorted(set(counts[0]) | set(counts[1]))
        if _histograms_differ(*[[count[size] // self.rounds for size in sizes] for count in counts]):
            self._say("sizes", dict(sorted(counts[0].items())), dict(sorted(counts[1].items())), f"{kind}: ")

    def _durability(self, kind: str, theirs: list[Event], ours: list[Event]) -> None:
        shares = [sum(event.durable for event in events) / len(events) for events in (theirs, ours)]
        if len(self.jobs) == 1 and shares[0] != shares[1]:
            self._say("durability", shares[0], shares[1], f"{kind}: ")

    def _where(self, kind: str, theirs: list[Event], ours: list[Event]) -> None:
        """Places of which at least some are left to chance."""
        pairs = [(min(e.offset for e in events), max(e.offset + e.length for e in events)) for events in (theirs, ours)]
        span = max(pair[1] for pair in pairs) - min(pair[0] for pair in pairs)
        popular = any(job.distribution.kind not in ("random",) for job in self.jobs)
        few = min(len(theirs), len(ours))
        largest = max(event.length for event in (*theirs, *ours))
        # With n requests anywhere in it, the outermost is farther than this from the end once in 1e7.
        reach = span * (1 - UNLIKELY ** (1 / max(few, 1))) + 2 * largest if self.random else 0.0
        if not self.random and (self.timed or self.mixed or self.varied):
            reach = span if self.timed else 4 * largest + 0.5 * span * self.mixed
        if not (popular or self.scattered) and (
            abs(pairs[0][0] - pairs[1][0]) > reach or abs(pairs[0][1] - pairs[1][1]) > reach
        ):
            self._say("range", pairs[0], pairs[1], f"{kind}: ")
        grids = [math.gcd(*(event.offset for event in events)) for events in (theirs, ours)]
        distinct = [len({event.offset for event in events}) for events in (theirs, ours)]
        # In order, places are sums of sizes: those of a size that is seldom drawn decide what they are multiples of.
        on_grid = self.random or not self.varied
        if on_grid and min(distinct) >= 32 and grids[0] != grids[1] and len(self.jobs) == 1:
            self._say("places", grids[0], grids[1], f"{kind}: multiples of ")
        if few >= FEW:
            self._chances(kind, theirs, ours, popular)

    def _chances(self, kind: str, theirs: list[Event], ours: list[Event], popular: bool) -> None:
        again = [_again(events) for events in (theirs, ours)]
        if not popular and not self.timed and self._shares_differ(again[0], len(theirs), again[1], len(ours)):
            self._say("places", f"{again[0]} of {len(theirs)}", f"{again[1]} of {len(ours)}", f"{kind}: places again: ")
        on = [_continues(self.fio, kind), _continues(self.spindle, kind)]
        if _alone(self.jobs) and self._shares_differ(on[0], len(theirs), on[1], len(ours)):
            text = f"{kind}: behind the one before: "
            self._say("order", f"{on[0]} of {len(theirs)}", f"{on[1]} of {len(ours)}", text)
        jumps = all(job.percent_random == (100, 100, 100) and job.run_length == 1 for job in self.jobs)
        if self.random and not popular and jumps:
            places = [[event.offset for event in events][:: self.rounds] for events in (theirs, ours)]
            if stats.ks_2samp(*places, method="asymp").pvalue < UNLIKELY:
                self._say("places", _quartiles(theirs), _quartiles(ours), f"{kind}: quartiles of the offsets: ")

    def _files(self, theirs: list[Event], ours: list[Event]) -> None:
        counts = [Counter(event.file for event in events) for events in (theirs, ours)]
        if self.raced:
            return  # a clone whose delay is drawn may be ended before its first request
        if len(counts[0]) == len(counts[1]) == 1 or (self.drawn and min(len(theirs), len(ours)) < FEW):
            return  # as many as requests in all; of a few writes of a mix a file may get none
        if self.timed:
            if len(counts[0]) != len(counts[1]) and min(sum(counts[0].values()), sum(counts[1].values())) > 100:
                self._say("files", len(counts[0]), len(counts[1]), "number used: ")
            return
        if len(counts[0]) != len(counts[1]) and not self.scattered:
            self._say("files", len(counts[0]), len(counts[1]), "number used: ")
        elif not (self.varied or self.scattered or self.mixed):
            each = [sorted(count.values()) for count in counts]
            if each[0] != each[1]:
                self._say("files", each[0], each[1], "requests to each: ")

    def _syncs(self) -> None:
        if self.cached or self.flushed:
            return
        counts = [sum(map(_syncs, clones)) for clones in (self.fio, self.spindle)]
        writes = [sum(event.kind == "write" for event in events) for events in (self.theirs, self.ours)]
        if writes[0] == writes[1] and not (self.timed or self.mixed or self.varied):
            if counts[0] != counts[1]:
                self._say("syncs", counts[0], counts[1])
            return
        if self.drawn and min(writes) < FEW:
            return
        # Those at the end come once, however many writes there were.
        by_writes = any(job.fsync or job.fdatasync for job in self.jobs)
        expected = counts[0] / max(writes[0], 1) * writes[1] if by_writes else counts[0]
        ends = sum(job.numjobs * job.loops for job in self.jobs)
        if abs(expected - counts[1]) > 0.15 * max(expected, counts[1]) + 2 * ends:
            self._say("syncs", f"{counts[0]} with {writes[0]} writes", f"{counts[1]} with {writes[1]}")

    def _priorities(self) -> None:
        """fio opens files of trims before writes without O_DIRECT: a thread of the kernel writes them."""
        if self.cached or self.flushed or self.raced:
            return
        theirs, ours = (set().union(*(clone.priorities for clone in clones)) for clones in (self.fio, self.spindle))
        if theirs and ours and theirs != ours:  # reads of what nobody wrote reach no device
            self._say("priority", sorted(theirs), sorted(ours))

    def _time(self, theirs: list[Event], ours: list[Event]) -> None:
        paced = any(any(job.rates) or any(job.rates_iops) or job.think_us for job in self.jobs)
        if not paced or len(theirs) < 8 or len(ours) < 8:
            return
        lengths = [_length(events) for events in (theirs, ours)]
        if max(lengths) > 0.1 and max(lengths) > 2 * min(lengths) + 0.05:
            self._say("time", f"{lengths[0]:.3f} s", f"{lengths[1]:.3f} s")


def _syncs(clone: Clone) -> int:
    """Behind the first request: what comes before it belongs to the making of a file."""
    requests = itertools.dropwhile(lambda event: event.kind == "sync", clone.events)
    return sum(event.kind == "sync" for event in requests)


def _rounds(job: Job) -> int:
    """How often fio begins anew, with the same seeds."""
    if job.runtime_us and job.time_based:
        return 8
    return max(job.loops, -(-job.io_size.bytes // job.size.bytes) if job.size.bytes else 1)


STALLS = 3


def _length(events: list[Event]) -> float:
    """Seconds. The longest gaps count as the longest of the others: other programs of the machine make some of them."""
    gaps = sorted(later.at - earlier.at for earlier, later in itertools.pairwise(events))
    return sum(gaps[:-STALLS]) + STALLS * gaps[-STALLS - 1]


def _is_split(event: Event) -> bool:
    """A discard that is not aligned: the kernel may make two of it."""
    return event.kind == "trim" and bool((event.offset | event.length) % 4096)


def _merged(clones: Iterable[Clone]) -> list[Event]:
    return sorted((event for clone in clones for event in clone.events), key=lambda event: event.at)


def _used(job: Job) -> Sequence[Sizes]:
    if job.mixed:
        return job.sizes[:2]
    return job.sizes[1:] if job.trims_first else (job.sizes[job.direction],)


def _place(event: Event) -> tuple[int, int]:
    return event.offset, event.length


def _places(of: list[Event], without: list[Event]) -> str:
    extra = Counter(map(_place, of)) - Counter(map(_place, without))
    shown = ", ".join(f"{length}@{offset}" for offset, length in sorted(extra)[:4])
    return f"{len(of)} requests, {sum(extra.values())} of them its own ({shown})"


def _again(events: list[Event]) -> int:
    """Requests to places that were asked for before."""
    return len(events) - len({(event.file, event.offset) for event in events})


def _continues(clones: Iterable[Clone], kind: str) -> int:
    """Requests that begin where the one before of this kind and file ends."""
    found = 0
    for clone in clones:
        ends: dict[int, int] = {}
        for event in clone.events:
            if event.kind == kind:
                found += ends.get(event.file) == event.offset
                ends[event.file] = event.offset + event.length
    return found


def _alone(jobs: Sequence[Job]) -> bool:
    return len(jobs) == 1 and jobs[0].depth == 1 and jobs[0].numjobs == 1


def _quartiles(events: list[Event]) -> list[int]:
    offsets = sorted(event.offset for event in events)
    return [offsets[len(offsets) * part // 4] for part in (1, 2, 3)]


def _shares_differ(a: int, of_a: int, b: int, of_b: int) -> bool:
    """Fisher's exact test."""
    if of_a == 0 or of_b == 0:
        return False
    return bool(stats.fisher_exact([[a, max(of_a - a, 0)], [b, max(of_b - b, 0)]]).pvalue < UNLIKELY)


def _histograms_differ(a: list[int], b: list[int]) -> bool:
    """Chi-square of homogeneity; rare values together."""
    pairs = sorted(zip(a, b, strict=True), key=sum)
    rare = [0, 0]
    kept = []
    for one, other in pairs:
        if one + other < 12:
            rare = [rare[0] + one, rare[1] + other]
        else:
            kept.append([one, other])
    if sum(rare) >= 12:
        kept.append(rare)
    table = [row for row in kept if sum(row)]
    if len(table) < 2 or not sum(row[0] for row in table) or not sum(row[1] for row in table):
        return False
    return bool(stats.chi2_contingency(table, correction=False).pvalue < UNLIKELY)


def _figures(number: int, clones: list[Clone], seen: ToolTrace) -> list[Difference]:
    """Differences between Spindle's figures and the kernel's trace."""
    runs = seen.figures.get("runs") or [seen.figures]
    if number >= len(runs):
        return []
    streams = runs[number]["figures"]["streams"]
    workload = runs[number]["workload"]
    if workload.get("ramp_ns"):
        return []
    # The last ones of a timed run end after it, and are not counted.
    late = (
        sum(s["workers"] * s["depth"] for s in workload["streams"])
        if any(s["end"].get("time_ns") for s in [workload, *workload["streams"]] if s.get("end"))
        else 0
    )
    found = []
    counts = Counter(event.kind for clone in clones for event in clone.events)
    for name in MOVES:
        said = sum(stream[name]["requests"] for stream in streams if stream.get(name))
        if name == "trim" and any(_is_split(event) for clone in clones for event in clone.events):
            continue
        if not said <= counts[name] <= said + late:
            found.append(Difference(number, "figures", f"{name}: Spindle says {said}, the kernel saw {counts[name]}"))
    return found
