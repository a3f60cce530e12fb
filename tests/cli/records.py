"""Records made by hand, so that a rule or a table can be tested with exactly the figures it is about."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from spindle.result.figures import Cpu, EndedByTime, Figures, Generator, Interval, Latency, Op, Stream, StreamInterval
from spindle.result.record import DeviceCounters, MachineActivity, RunRecord, Settings, Tool
from spindle.result.target import Target
from spindle.run.resolve import resolve

MIB = 1 << 20


def latency(mean_ms: float = 1.0, **changes: Any) -> Latency:
    mean = mean_ms * 1e6
    found = Latency(
        min_ns=int(mean / 4),
        mean_ns=mean,
        max_ns=int(mean * 8),
        sdev_ns=mean / 2,
        percentiles=[
            (p, int(mean * (0.5 + p / 50))) for p in (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
        ],
        histogram="HISTF",
    )
    return replace(found, **changes)


def op(iops: float, seconds: float = 60.0, size: int = 4096, mean_ms: float = 1.0, **changes: Any) -> Op:
    requests = round(iops * seconds)
    found = Op(
        requests=requests,
        bytes=requests * size,
        iops=iops,
        bytes_per_s=iops * size,
        latency=latency(mean_ms),
        service=None,
    )
    return replace(found, **changes)


def stream(read: Op | None, write: Op | None = None, seconds: float = 60.0, **changes: Any) -> Stream:
    ops = [found for found in (read, write) if found is not None]
    found = Stream(
        name="main",
        measured_ns=round(seconds * 1e9),
        total_bytes=sum(each.bytes for each in ops),
        total_read_bytes=read.bytes if read else 0,
        total_write_bytes=write.bytes if write else 0,
        read=read,
        write=write,
        trim=None,
        zero=None,
        fsync=None,
        mean_outstanding=sum(each.iops * each.latency.mean_ns / 1e9 for each in ops),
        max_lag_ns=0,
        errors=[],
    )
    return replace(found, **changes)


def series(rates: list[float], interval_s: float = 1.0) -> list[Interval]:
    """Bytes read per second in each interval."""
    return [
        Interval(
            start_ns=round(at * interval_s * 1e9),
            length_ns=round(interval_s * 1e9),
            streams=[
                StreamInterval(
                    reads=round(rate * interval_s / 4096),
                    writes=0,
                    read_bytes=round(rate * interval_s),
                    write_bytes=0,
                    read_latency_ns=10**9,
                    write_latency_ns=0,
                    max_latency_ns=5 * 10**6,
                )
            ],
        )
        for at, rate in enumerate(rates)
    ]


def figures(*streams: Stream, seconds: float = 60.0, **changes: Any) -> Figures:
    found = Figures(
        measured_ns=round(seconds * 1e9),
        elapsed_ns=round(seconds * 1e9),
        ended_by=EndedByTime(),
        streams=list(streams),
        series=series([sum(each.bytes_per_s for each in streams)] * round(seconds)),
        interval_ns=10**9,
        cpu=Cpu(user_ns=10**9, system_ns=2 * 10**9, voluntary_switches=10, involuntary_switches=1),
        generator=Generator(
            engine="io_uring",
            reason="faster in the calibration",
            features=["defer_taskrun"],
            timestamps="request",
            ceiling_iops=500_000.0,
            calibration=[("io_uring", 500_000.0), ("pread", 300_000.0)],
            busiest_worker=0.1,
        ),
    )
    return replace(found, **changes)


def counters(read: float = 0, write: float = 0, seconds: float = 60.0, **changes: Any) -> DeviceCounters:
    found = DeviceCounters(
        name="sda",
        role="target",
        seconds=seconds,
        delta={"read_bytes": read, "write_bytes": write, "reads": read / 4096, "writes": write / 4096},
        iostat={"%util": 99.0, "aqu-sz": 16.0},
    )
    return replace(found, **changes)


def record(
    found: Figures,
    devices: list[DeviceCounters] | None = None,
    preset: str = "randomio",
    overrides: list[tuple[str, str]] | None = None,
    **changes: Any,
) -> RunRecord:
    """A run on a disk that did exactly what the load requested, unless a parameter says otherwise."""
    spec = resolve(preset, overrides or []).spec
    own = counters(found.total_read_bytes, found.total_write_bytes, found.measured_s)
    made = RunRecord(
        id="20260101T000000Z-abcdef",
        started="2026-01-01T00:00:00Z",
        tool=Tool(version="0.1.0"),
        workload=spec,
        target=Target(
            asked="/dev/sda", kind="device", size_bytes=10**12, detail={"queue_depth": 32, "file_system": None}
        ),
        seed=spec.seed,
        figures=found,
        devices=[own] if devices is None else devices,
        settings=Settings(before={"sda.scheduler": "none"}, after={"sda.scheduler": "none"}, changed=[]),
        environment={},
        preflight={"findings": []},
        activity=MachineActivity(),
        verdicts=[],
    )
    return replace(made, **changes)


def quiet_read(iops: float = 16_000.0, seconds: float = 60.0, mean_ms: float = 1.0) -> RunRecord:
    """A run with nothing to complain about: 16 outstanding random reads for a minute."""
    return record(
        figures(stream(op(iops, seconds, mean_ms=mean_ms), seconds=seconds), seconds=seconds),
        overrides=[("write_fraction", "0"), ("fsync_fraction", "0")],
    )
