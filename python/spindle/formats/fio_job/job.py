"""A section's options as typed values. What cannot be read or is not carried over becomes a finding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from .finding import Finding, Level, Place
from .numbers import NOTHING, Amount, Scale, Wrong, amount, microseconds, natural, span, whole
from .options import Fate, nearest, option_of
from .source import Section, Setting

T = TypeVar("T")

DIRECTIONS = ("read", "write", "trim")
MIXED = {"rw": "readwrite", "randrw": "readwrite", "readwrite": "readwrite"}
KINDS = ("read", "write", "trim", "randread", "randwrite", "randtrim", *MIXED)

Weighted = tuple[tuple[int, int], ...]
"""(bytes, weight)."""


@dataclass(frozen=True)
class Sizes:
    """Request sizes of one direction: fixed (low = high), a range, or a list with weights."""

    low: int = 4096
    high: int = 4096
    split: Weighted = ()

    @property
    def smallest(self) -> int:
        return min((size for size, _ in self.split), default=self.low)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One section, typed. Sizes in bytes, times in microseconds."""

    name: str
    place: Place
    about: str = ""
    filename: str | None = None
    kind: str = "read"
    """One of `KINDS`."""
    skip_bytes: int = 0
    """Gap behind each sequential request."""
    sizes: tuple[Sizes, Sizes, Sizes] = (Sizes(), Sizes(), Sizes())
    """Of reads, writes, trims."""
    align: int = 0
    size: Amount = NOTHING
    """Zero bytes: not given."""
    io_size: Amount = NOTHING
    filesize: int = 0
    offset: Amount = NOTHING
    offset_increment: Amount = NOTHING
    number_ios: int = 0
    loops: int = 1
    numjobs: int = 1
    runtime_us: int = 0
    time_based: bool = False
    ramp_us: int = 0
    delay_us: int = 0
    depth: int = 1
    engine: str = "psync"
    direct: bool = False
    invalidate: bool = True
    overwrite: bool = False
    sync: str = "none"
    """none, sync or dsync."""
    fsync: int = 0
    fdatasync: int = 0
    end_fsync: bool = False
    write_percent: int = 50
    """Share of writes in mixed kinds."""
    theta: float | None = None
    """Of the zipf distribution; None: uniform."""
    random_map: bool = True
    rates: tuple[int, int, int] = (0, 0, 0)
    """Bytes per second of reads, writes, trims; 0: no bound."""
    rates_iops: tuple[int, int, int] = (0, 0, 0)
    poisson: bool = False
    think_us: int = 0
    prio: int = 0
    prioclass: int = 0
    seed: int | None = None
    zeroes: bool = False
    compress_percent: int = 0
    stonewall: bool = False
    exitall: bool = False

    @property
    def random(self) -> bool:
        return self.kind.startswith("rand")

    @property
    def mixed(self) -> bool:
        return self.kind in MIXED

    @property
    def direction(self) -> int:
        """Index into `DIRECTIONS`; of a mixed job, that of the reads."""
        return _direction(self.kind)

    @property
    def writes(self) -> bool:
        return self.mixed or self.kind.endswith("write")


@dataclass
class TypedJob:
    """A job, where its options stand, and what there is to say about them."""

    job: Job
    places: dict[str, Place]
    """Of each option that was given."""
    findings: list[Finding] = field(default_factory=list)

    def say(self, level: Level, option: str, text: str) -> None:
        refused = {finding.option for finding in self.findings if finding.level is Level.ERROR}
        if option in refused or ("rw" in refused and level is not Level.ERROR):
            return  # what only follows from a value that could not be taken
        self.findings.append(Finding(level, self.places.get(option, self.job.place), option, text))


def typed(section: Section) -> TypedJob:
    """The job of a section with the globals above it."""
    return _Typing(section).result()


class _Typing:
    def __init__(self, section: Section) -> None:
        self.section = section
        self.findings: list[Finding] = []
        self.given: dict[str, Setting] = {}
        for setting in section.settings:
            self._take(setting)
        self.scale = Scale()
        self.scale = Scale(int(self.get("kb_base", "1024", _one_of("1000", "1024"))))

    def _take(self, setting: Setting) -> None:
        option = option_of(setting.name)
        if option is None:
            self._say(Level.ERROR, setting, setting.name[:40], f"fio has no such option{nearest(setting.name)}")
            return
        value = setting.value
        if value is None and not option.bare:
            self._say(Level.ERROR, setting, option.name, "needs a value")
        elif option.fate is Fate.TAKEN:
            # The later one wins, and of several that say the same thing only the last is looked at.
            for other in _SAME.get(option.name, ()):
                self.given.pop(other, None)
            self.given.pop(option.name, None)
            self.given[option.name] = setting
        elif (value if value is not None else "1") not in option.neutral:
            self._say(Level(option.fate.value), setting, option.name, option.text)

    def _say(self, level: Level, setting: Setting, option: str, text: str) -> None:
        self.findings.append(Finding(level, setting.place, option, text))

    def get(self, name: str, default: T, read: Callable[[str], T]) -> T:
        setting = self.given.get(name)
        if setting is None:
            return default
        try:
            return read(setting.value if setting.value is not None else "1")
        except Wrong as error:
            self._say(Level.ERROR, setting, name, str(error))
            return default

    def result(self) -> TypedJob:
        kind, skip = self.get("rw", ("read", 0), self._kind)
        name = self.get("name", self.section.name, str)
        job = Job(
            name=name or self.section.name,
            place=self.section.place,
            about=self.get("description", "", str),
            filename=self._filename(),
            kind=kind,
            skip_bytes=skip,
            sizes=self._sizes(),
            align=self.get("ba", 0, lambda text: self._three(text)[_direction(kind)]),
            size=self.get("size", NOTHING, self._amount),
            io_size=self.get("io_size", NOTHING, self._amount),
            filesize=self.get("filesize", 0, self._size),
            offset=self.get("offset", NOTHING, self._amount),
            offset_increment=self.get("offset_increment", NOTHING, self._amount),
            number_ios=self.get("number_ios", 0, self._size),
            loops=self.get("loops", 1, _within(1, 1 << 31)),
            numjobs=self.get("numjobs", 1, _within(1, 65536)),
            runtime_us=self.get("runtime", 0, _time),
            time_based=self.get("time_based", False, _truth),
            ramp_us=self.get("ramp_time", 0, _time),
            delay_us=self.get("startdelay", 0, _time),
            depth=self.get("iodepth", 1, _within(1, 65536)),
            engine=self.get("ioengine", "psync", str),
            direct=self._direct(),
            overwrite=self.get("overwrite", False, _truth),
            invalidate=self.get("invalidate", True, _truth),
            sync=self.get("sync", "none", _sync),
            fsync=self.get("fsync", 0, _within(0, 1 << 31)),
            fdatasync=self.get("fdatasync", 0, _within(0, 1 << 31)),
            end_fsync=self.get("end_fsync", False, _truth),
            write_percent=self._write_percent(),
            theta=self.get("random_distribution", None, _theta),
            random_map=not self.get("norandommap", False, _truth),
            rates=self.get("rate", (0, 0, 0), self._three),
            rates_iops=self.get("rate_iops", (0, 0, 0), self._three),
            poisson=self.get("rate_process", "linear", _one_of("linear", "poisson")) == "poisson",
            think_us=self.get("thinktime", 0, lambda text: _positive(microseconds(text, 1))),
            prio=self.get("prio", 0, _within(0, 7)),
            prioclass=self.get("prioclass", 0, _within(0, 3)),
            seed=self.get("randseed", None, _seed),
            zeroes=self.get("zero_buffers", False, _truth),
            compress_percent=self.get("buffer_compress_percentage", 0, _within(0, 100)),
            stonewall=self.get("stonewall", False, _truth),
            exitall=self.get("exitall", False, _truth),
        )
        self.get("thinktime_blocks", 1, _only_one("a pause follows each request"))
        if "filename" not in self.given:
            self.get("nrfiles", 1, _only_one("one file or device is the target; name it with filename"))
        self._check_mixed(job)
        places = {option: setting.place for option, setting in self.given.items()}
        return TypedJob(job, places, self.findings)

    def _check_mixed(self, job: Job) -> None:
        if job.mixed and job.sizes[0] != job.sizes[1]:
            where = next(name for name in ("bssplit", "bsrange", "bs") if name in self.given)
            text = "reads and writes of one job have the same sizes; use two jobs"
            self._say(Level.ERROR, self.given[where], where, text)

    def _direct(self) -> bool:
        return self.get("direct", False, _truth) or not self.get("buffered", True, _truth)

    def _filename(self) -> str | None:
        name = self.get("filename", None, _one_file)
        directory = self.get("directory", "", lambda text: _one_file(text) or "")
        if name is None or not directory:
            return name
        return f"{directory.rstrip('/')}/{name}"

    def _kind(self, text: str) -> tuple[str, int]:
        kind, colon, behind = text.strip().partition(":")
        if kind in ("trimwrite", "randtrimwrite"):
            raise Wrong("a trim of the same blocks before each write is not made")
        if kind not in KINDS:
            raise Wrong(f"`{kind[:40]}` is none of {', '.join(KINDS)}")
        if not colon:
            return kind, 0
        if kind.startswith("rand"):
            raise Wrong("runs of a fixed length are not made; the native pattern `runs` has a mean length")
        return kind, _positive(whole(behind, self.scale))

    def _size(self, text: str) -> int:
        return natural(text, self.scale)

    def _amount(self, text: str) -> Amount:
        return amount(text, self.scale)

    def _each(self, text: str, read: Callable[[str], T]) -> list[T | None]:
        """`8k,32k,` for reads, writes and trims; None: the default. What does not end in a comma holds for the rest."""
        parts = text.split(",")
        if len(parts) > 3:
            raise Wrong(f"`{text[:40]}`: more than three values; they are for reads, writes and trims")
        found = [read(part) if part.strip() else None for part in parts]
        return found + [found[-1]] * (3 - len(found))

    def _three(self, text: str) -> tuple[int, int, int]:
        read, write, trim = (value or 0 for value in self._each(text, self._size))
        return read, write, trim

    def _sizes(self) -> tuple[Sizes, Sizes, Sizes]:
        """bs, bsrange and bssplit in the order they stand: each replaces what was said before."""
        sizes = [Sizes(), Sizes(), Sizes()]
        readers: dict[str, Callable[[str], list[Sizes | None]]] = {
            "bs": lambda text: self._each(text, self._block),
            "bsrange": lambda text: self._each(text, self._range),
            "bssplit": lambda text: self._each(text, self._split),
        }
        for name in [name for name in self.given if name in readers]:
            none: list[Sizes | None] = [None, None, None]
            found = self.get(name, none, readers[name])
            sizes = [new or old for new, old in zip(found, sizes, strict=True)]
        return sizes[0], sizes[1], sizes[2]

    def _block(self, text: str) -> Sizes:
        size = _request(self._size(text))
        return Sizes(size, size)

    def _range(self, text: str) -> Sizes:
        low, high = span(text, self.scale)
        return Sizes(_request(low), _request(high))

    def _split(self, text: str) -> Sizes:
        entries: list[tuple[int, int | None]] = []
        for part in text.split(":"):
            size, _, percent = part.partition("/")
            weight = natural(percent) if percent.strip() else None
            entries.append((_request(self._size(size)), weight))
        if len(entries) > 64:
            raise Wrong("more than 64 sizes")
        told = sum(weight for _, weight in entries if weight is not None)
        blank = sum(weight is None for _, weight in entries)
        if told > 100 or (told < 100 and not blank):
            raise Wrong(f"the percentages add up to {told}, not to 100")
        # In units of 1/blank percent, so that the rest is shared evenly and stays whole.
        unit = blank or 1
        split = tuple((size, (100 - told) if weight is None else weight * unit) for size, weight in entries)
        split = tuple((size, weight) for size, weight in split if weight)
        return Sizes(split[0][0], split[0][0]) if len(split) == 1 else Sizes(split=split)

    def _write_percent(self) -> int:
        reads = self.get("rwmixread", 50, _within(0, 100))
        writes = self.get("rwmixwrite", 50, _within(0, 100))
        return writes if "rwmixwrite" in self.given else 100 - reads


def _direction(kind: str) -> int:
    return 0 if kind in MIXED else DIRECTIONS.index(kind.removeprefix("rand"))


_SAME = {"direct": ("buffered",), "buffered": ("direct",)}


def _truth(text: str) -> bool:
    if text not in ("0", "1"):
        raise Wrong(f"`{text[:40]}` is neither 0 nor 1")
    return text == "1"


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise Wrong(f"`{text[:40]}` is none of {', '.join(allowed)}")
        return text

    return read


def _within(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = whole(text)
        if not low <= value <= high:
            raise Wrong(f"`{text[:40]}` is outside {low} to {high}")
        return value

    return read


def _only_one(why: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if whole(text) not in (0, 1):
            raise Wrong(f"`{text[:40]}`: {why}")
        return 1

    return read


def _positive(value: int) -> int:
    if value < 0:
        raise Wrong("is negative")
    return value


def _time(text: str) -> int:
    if re.fullmatch(r"[0-9a-zA-Z]+[-:][0-9a-zA-Z]+", text):
        raise Wrong(f"`{text[:40]}`: a time drawn from a range is not the same for each run; give one")
    return _positive(microseconds(text))


def _request(size: int) -> int:
    if not 0 < size <= 1 << 30:
        raise Wrong(f"requests of {size} bytes; 1 byte to 1 GiB")
    return size


def _seed(text: str) -> int:
    return natural(text)


def _one_file(text: str) -> str | None:
    parts = re.split(r"(?<!\\):", text)
    if len(parts) > 1:
        raise Wrong("several files; one file or device is the target")
    return parts[0].replace("\\:", ":") or None


def _sync(text: str) -> str:
    return {"0": "none", "1": "sync"}.get(text) or _one_of("none", "sync", "dsync")(text)


def _theta(text: str) -> float | None:
    kind, _, behind = text.partition(":")
    if kind == "random":
        return None
    if kind != "zipf":
        raise Wrong(f"`{kind[:40]}` is not drawn here; there are random and zipf:THETA")
    if ":" in behind:
        raise Wrong("popular places are scattered; there is no centre")
    if not behind:
        return 1.1  # fio's default
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,12})?", behind) or not 0.01 <= float(behind) <= 10:
        raise Wrong(f"zipf:`{behind[:40]}` is outside 0.01 to 10")
    return float(behind)
