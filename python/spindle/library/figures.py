"""The figures of a result as attributes: `result.read.p99`."""

from __future__ import annotations

from collections.abc import Mapping

from spindle.base import units
from spindle.base.errors import SpindleError
from spindle.stats.names import PERCENTILES


class NoFigure(SpindleError, AttributeError):
    """The result does not have this figure."""

    exit_code = 2


class NoName(SpindleError, KeyError):
    """There is no metric or column of this name."""

    exit_code = 2
    __str__ = Exception.__str__  # `KeyError` puts its text in quotation marks


class Duration(float):
    """Nanoseconds, shown in the unit that fits: `4.12 ms`. It is a number like any other."""

    __slots__ = ()

    @property
    def us(self) -> float:
        """Microseconds."""
        return self / 1e3

    @property
    def ms(self) -> float:
        """Milliseconds."""
        return self / 1e6

    @property
    def s(self) -> float:
        """Seconds."""
        return self / 1e9

    def __repr__(self) -> str:
        return units.duration(self)

    __str__ = __repr__


class Operation:
    """The figures of one kind of operation (`read`, `write`, `fsync` ...) of a result, or of all together.

    Latencies are `Duration`s in ns, each over every request of the measured time. Percentiles over several streams come
    from their histograms taken together. A figure that was not measured raises `NoFigure`.
    """

    def __init__(self, name: str, metrics: Mapping[str, float]) -> None:
        self.name = name
        """`read`, `log/write`; empty: all operations together."""
        self._metrics = metrics

    @property
    def iops(self) -> float:
        """Completed a second."""
        return self._figure("iops")

    @property
    def bytes_per_s(self) -> float:
        """Bytes moved a second."""
        return self._figure("bytes_per_s")

    @property
    def mean(self) -> Duration:
        """Mean latency, ns."""
        return Duration(self._figure("mean_ns"))

    @property
    def sdev(self) -> Duration:
        """Standard deviation of the latency, ns."""
        return Duration(self._figure("sdev_ns"))

    @property
    def max(self) -> Duration:
        """Longest latency, ns."""
        return Duration(self._figure("max_ns"))

    @property
    def p50(self) -> Duration:
        """Median latency, ns."""
        return self.percentile(50)

    @property
    def p90(self) -> Duration:
        """90 % of the requests took at most this, ns."""
        return self.percentile(90)

    @property
    def p95(self) -> Duration:
        """95 % of the requests took at most this, ns."""
        return self.percentile(95)

    @property
    def p99(self) -> Duration:
        """99 % of the requests took at most this, ns."""
        return self.percentile(99)

    @property
    def p99_9(self) -> Duration:
        """99.9 % of the requests took at most this, ns."""
        return self.percentile(99.9)

    @property
    def p99_99(self) -> Duration:
        """99.99 % of the requests took at most this, ns."""
        return self.percentile(99.99)

    def percentile(self, percent: float) -> Duration:
        """Latency that `percent` % of the requests did not exceed, ns; `percent` is one of `PERCENTILES`."""
        if percent not in PERCENTILES:
            raise NoFigure(f"p{percent:g}: not a recorded percentile; give {', '.join(map(str, PERCENTILES))}")
        return Duration(self._figure(f"p{percent:g}_ns"))

    def _figure(self, name: str) -> float:
        full = self._full(name)
        if full not in self._metrics:
            raise NoFigure(f"{full}: the result does not have it; `metrics` has those that it has")
        return self._metrics[full]

    def _full(self, name: str) -> str:
        if not self.name:
            return name
        stream, slash, operation = self.name.rpartition("/")
        return f"{stream}{slash}{operation}{'.' if operation else ''}{name}"

    def __repr__(self) -> str:
        found = {name: self._metrics.get(self._full(f"{name}_ns")) for name in ("mean", "p50", "p99", "max")}
        parts = [f"{name} {units.duration(ns)}" for name, ns in found.items() if ns is not None]
        iops = self._metrics.get(self._full("iops"))
        parts[:0] = [f"{units.count(iops)} IOPS"] if iops is not None else []
        return f"<{self.name or 'all operations'}: {', '.join(parts)}>"
