"""The result of a run, as Python and notebooks see it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from spindle.base import units
from spindle.base.suggestions import meant
from spindle.library.arguments import public
from spindle.library.figures import NoName, Operation
from spindle.library.outputs import output_of
from spindle.library.table import Table, html_table
from spindle.result import document
from spindle.result.figures_properties import OPERATIONS
from spindle.result.record import ImportedRecord, Level, PhasesRecord, Record, RunRecord, Verdict
from spindle.stats.metric import values

if TYPE_CHECKING:
    from spindle.library.plot import Plot

_HEADS = ("", "IOPS", "MB/s", "mean", "p50", "p99", "p99.9", "max")
_LATENCIES = ("mean_ns", "p50_ns", "p99_ns", "p99.9_ns", "max_ns")


class Result:
    """A record with its figures as attributes. A notebook shows it as a table.

    A search, phases, a sweep and a quick look are made of several runs: `runs` has each as a `Result` of its own.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        """All that is known, as `spindle schema result` describes it."""

    @property
    def id(self) -> str:
        """Its identity: in the store too."""
        return self.record.id

    @property
    def kind(self) -> str:
        """`run`, `knee`, `target`, `curve`, `quick`, `phases` or `imported`."""
        return str(self.record.__struct_config__.tag)

    @property
    def level(self) -> Level:
        """The worst verdict: `ok`, `warn` or `invalid`."""
        return self.record.level

    @property
    def verdicts(self) -> list[Verdict]:
        """All verdicts, those of its runs included."""
        runs = [] if isinstance(self.record, RunRecord) else self.record.runs
        return [*self.record.verdicts, *(verdict for run in runs for verdict in run.verdicts)]

    @property
    def runs(self) -> list[Result]:
        """Its runs; a single run is the only one of its own."""
        return [self] if isinstance(self.record, RunRecord) else [Result(run) for run in self.record.runs]

    @property
    def workload(self) -> str:
        """Name of the workload."""
        match self.record:
            case ImportedRecord():
                return self.record.workload or ""
            case RunRecord():
                return self.record.workload.name
            case _:
                return self.record.runs[0].workload.name if self.record.runs else ""

    @property
    def target(self) -> str:
        """Name of the target, as it was given."""
        match self.record:
            case ImportedRecord():
                return self.record.target or ""
            case RunRecord():
                return self.record.target.asked
            case _:
                return self.record.runs[0].target.asked if self.record.runs else ""

    @cached_property
    def metrics(self) -> Mapping[str, float]:
        """Every metric by its name: latencies in ns, rates in 1/s and B/s. `spindle metrics` explains them."""
        return values(self.record)

    def __getitem__(self, metric: str) -> float:
        """One metric: `result["read.p99_ns"]`. Raises `spindle.Error`, with the nearest name."""
        if metric not in self.metrics:
            raise NoName(f"{metric}: {meant(metric, self.metrics, '`metrics` has those of this result')}")
        return self.metrics[metric]

    @property
    def iops(self) -> float:
        """Operations a second, fsyncs apart."""
        return self.operation("").iops

    @property
    def bytes_per_s(self) -> float:
        """Throughput, bytes a second."""
        return self.operation("").bytes_per_s

    @property
    def latency(self) -> Operation:
        """The figures of all operations together, fsyncs apart."""
        return self.operation("")

    @property
    def read(self) -> Operation:
        """The figures of reads."""
        return self.operation("read")

    @property
    def write(self) -> Operation:
        """The figures of writes."""
        return self.operation("write")

    @property
    def fsync(self) -> Operation:
        """The figures of fsyncs."""
        return self.operation("fsync")

    def operation(self, name: str) -> Operation:
        """The figures of any operation, of one stream or phase if it is named: `trim`, `log/write`, `phase1/read`."""
        return Operation(name, self.metrics)

    @property
    def operations(self) -> list[str]:
        """Names of the operations that have figures."""
        return [
            name.removesuffix(".iops")
            for name in self.metrics
            if name.rpartition("/")[2].removesuffix(".iops") in OPERATIONS
        ]

    @property
    def intervals(self) -> Table:
        """The run second by second: a row for each interval and stream.

        Columns: `start_s`, `seconds`, `stream`, `read_iops`, `write_iops` (1/s), `read_bytes_per_s`,
        `write_bytes_per_s` (B/s), `read_mean_ns`, `write_mean_ns`, `max_ns`. Results of several runs have none.
        """
        if not isinstance(self.record, RunRecord):
            return Table({})
        names = [stream.name for stream in self.record.figures.streams]
        rows = [
            _row(interval.start_ns, interval.length_ns, name, stream)
            for interval in self.record.figures.series
            for name, stream in zip(names, interval.streams, strict=True)
        ]
        return Table({head: [row[head] for row in rows] for head in rows[0]} if rows else {})

    def to_dict(self) -> dict[str, Any]:
        """The record as the command line prints it as JSON."""
        found: dict[str, Any] = msgspec.json.decode(self.to_json())
        return found

    def to_json(self) -> bytes:
        """The record as the command line prints it as JSON."""
        return document.encode(self.record)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the record (JSON) to a file that `spindle.read` and `spindle show` read. `force`: replace any file."""
        output_of(path, "result", "`path=`", force=force).save(self.to_json())

    def report(self, path: str | os.PathLike[str], *, title: str | None = None, force: bool = False) -> None:
        """Write a report; the ending of the name is its format: .html, .md, .csv, .txt, .json, .png or .svg."""
        from spindle.library.report import report

        report(self, path=path, title=title, force=force)

    def plot(self) -> Plot:
        """The charts of a report of it."""
        from spindle.library.report import plot

        return plot(self)

    def __str__(self) -> str:
        from spindle.report.terminal.page import page
        from spindle.report.terminal.style import Style

        return "\n".join(page(self.record, Style()))

    def __repr__(self) -> str:
        return f"<Result {self.id}: {self.workload} on {self.target}, {self.level}>"

    def _repr_html_(self) -> str:
        rows = [self._figures_of(name) for name in self.operations]
        heading = (
            f"<p><b>{escape(self.workload)}</b> on {escape(self.target)}: {self.level} <small>{self.id}</small></p>"
        )
        table = html_table(_HEADS, rows) if rows else html_table(("metric", "value"), list(self.metrics.items()))
        return f"<div>{heading}{table}{self._warnings()}</div>"

    def _figures_of(self, name: str) -> list[str]:
        moved = self.metrics.get(f"{name}.bytes_per_s")
        latencies = [self.metrics.get(f"{name}.{latency}") for latency in _LATENCIES]
        return [
            name,
            units.count(self.metrics[f"{name}.iops"]),
            "" if moved is None else units.mb_per_s(moved),
            *("" if ns is None else units.duration(ns) for ns in latencies),
        ]

    def _warnings(self) -> str:
        bad = [verdict for verdict in self.verdicts if verdict.level is not Level.OK]
        lines = "".join(
            f"<li>{verdict.level}: <b>{verdict.check}</b>: {escape(f'{verdict.evidence} {verdict.advice}')}</li>"
            for verdict in sorted(bad, key=lambda verdict: -verdict.level.rank)
        )
        return f"<ul>{lines}</ul>" if lines else ""


def _row(start_ns: int, length_ns: int, name: str, stream: Any) -> dict[str, Any]:
    seconds = length_ns / 1e9
    return {
        "start_s": start_ns / 1e9,
        "seconds": seconds,
        "stream": name,
        "read_iops": stream.reads / seconds,
        "write_iops": stream.writes / seconds,
        "read_bytes_per_s": stream.read_bytes / seconds,
        "write_bytes_per_s": stream.write_bytes / seconds,
        "read_mean_ns": stream.read_latency_ns / stream.reads if stream.reads else None,
        "write_mean_ns": stream.write_latency_ns / stream.writes if stream.writes else None,
        "max_ns": stream.max_latency_ns,
    }


@public
def read(path: str | os.PathLike[str]) -> Result:
    """Read a result that `save` or `spindle run` wrote to a file. Raises `spindle.Error`."""
    return Result(document.read(Path(path)))


def read_all(path: str | os.PathLike[str], format: str | None = None) -> list[Result]:
    """Every result in a file (- is the standard input), of another tool too. `format`: of the file; None: by its
    content. Raises `spindle.Error`."""
    from spindle import formats

    return [Result(record) for record in formats.read(Path(path), format)]


class Sweep(Table):
    """One run for each combination of the values of workload keys: a table with a row for each run.

    Columns: the keys that were varied (numbers as numbers, all else as text), `phase` if the workload has phases,
    `iops`, `bytes_per_s`, `mean_ns`, `p50_ns`, `p99_ns`, `p99.9_ns`, `max_ns`, `level`, `run`.
    """

    def __init__(self, record: PhasesRecord) -> None:
        self.result = Result(record)
        """The same as one result."""
        self._varied = [variation.key for variation in record.varied]
        super().__init__(_columns(record, self._varied))

    @property
    def record(self) -> PhasesRecord:
        """The record of the sweep, with that of each run."""
        assert isinstance(self.result.record, PhasesRecord)
        return self.result.record

    @property
    def results(self) -> list[Result]:
        """The result of each row."""
        return self.result.runs

    @property
    def level(self) -> Level:
        """The worst verdict of all runs."""
        return self.result.level

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """All verdicts, those of its runs included."""
        return self.result.verdicts

    def to_dict(self) -> dict[str, Any]:
        """The record as the command line prints it as JSON."""
        return self.result.to_dict()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the record (JSON) to a file. `force`: replace any file."""
        self.result.save(path, force=force)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None, force: bool = False) -> None:
        """Write a report, as `Result.report`."""
        self.result.report(path, title=title, force=force)

    def plot(self, metric: str = "iops") -> Plot:
        """Draw a column over the first varied key; the other keys are curves."""
        from spindle.library.sweep_chart import sweep_chart

        return sweep_chart(self, self._varied, metric)

    def __repr__(self) -> str:
        return f"<Sweep of {len(self)} runs over {', '.join(self._varied)}: {self.level}>"


_SWEPT = ("iops", "bytes_per_s", "mean_ns", "p50_ns", "p99_ns", "p99.9_ns", "max_ns")


def _columns(record: PhasesRecord, varied: Sequence[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {key: _numbers([phase.varied.get(key) for phase in record.phases]) for key in varied}
    if record.workload.phases:
        found["phase"] = [phase.name for phase in record.phases]
    metrics = [values(run) for run in record.runs]
    found |= {name: [each.get(name) for each in metrics] for name in _SWEPT}
    return {**found, "level": [str(run.level) for run in record.runs], "run": [run.id for run in record.runs]}


def _numbers(texts: Sequence[str | None]) -> list[Any]:
    """Numbers, if all are; else the texts."""
    for kind in (int, float):
        try:
            return [None if text is None else kind(text) for text in texts]
        except ValueError:
            continue
    return list(texts)
