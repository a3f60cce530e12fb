"""A scheduler that does not suit the device. See docs/doctor."""

from __future__ import annotations

from ...inspect.model import Device, Drive, Queue
from ..finding import Finding, Phase, Severity, Step, knob
from ..rule import Case, Rule, Told
from ..stack import STORAGE, kernel_version, rotates

SORTING = ("mq-deadline", "deadline", "bfq", "cfq", "anticipatory")
"""Those that order requests by their place. noop and none take them as they come, kyber too."""
IDLING = ("bfq", "cfq", "anticipatory")
"""Those that keep a device waiting for one process's next request."""
PLAIN = ("none", "noop")
BFQ_REQUEST_US = 1.9
"""Time under one lock for a request (Documentation/block/bfq-iosched.rst, on a Core i7-2760QM)."""
ZONE_PLUGGING = (6, 10)
"""Since this kernel the block layer itself keeps writes to a zone in order."""


def _check(case: Case) -> Told:
    for device, drive in case.stack.drives():
        queue = device.queue
        if queue is None or queue.scheduler is None:
            continue
        now = queue.scheduler
        if queue.zoned == "host-managed" and now not in ("mq-deadline", "deadline"):
            version = kernel_version(case.stack.inventory)
            if version is not None and version < ZONE_PLUGGING:
                yield _zoned(device, queue, version)
        elif now in IDLING and _idles(queue) and (drive.transport == "nvme" or drive.transport in STORAGE):
            yield _flash(device, queue) if drive.transport == "nvme" else _storage(device, drive, queue)
        elif now == "bfq" and drive.transport == "nvme":
            yield _flash(device, queue)
        elif now not in SORTING and rotates(device) and drive.transport in ("sata", "sas"):
            yield _unsorted(device, drive, queue)


def _idles(queue: Queue) -> bool:
    return queue.iosched.get("slice_idle") != "0" and queue.iosched.get("antic_expire") != "0"


def _steps(device: Device, queue: Queue, wanted: tuple[str, ...]) -> list[Step]:
    for name in wanted:
        if name in queue.schedulers:
            return knob(device.id, scheduler=name)
    load = Step(
        phase=Phase.TUNE, about="the kernel offers none that suits; load it", commands=[f"modprobe {wanted[0]}"]
    )
    return [load, *knob(device.id, scheduler=wanted[0])]


def _found(device: Device, queue: Queue, summary: str, evidence: str, why: str, effect: str) -> Finding:
    offered = f"; offered: {', '.join(queue.schedulers)}" if queue.schedulers else ""
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=summary,
        evidence=f"scheduler {queue.scheduler}{evidence}{offered}",
        why=why,
        effect=effect,
    )


def _unsorted(device: Device, drive: Drive, queue: Queue) -> Finding:
    depth = drive.queue_depth
    found = _found(
        device,
        queue,
        f"nothing sorts the requests of {device.id}, which turns",
        f", {drive.rotation_rpm} rpm" if drive.rotation_rpm else ", rotational",
        "A head that takes requests as they come crosses the platters for each. A sorting scheduler shortens the seeks "
        "and merges neighbours, and keeps reads ahead of floods of writes.",
        f"The drive itself sorts no more than the {depth} it holds of {queue.nr_requests} waiting; with mq-deadline "
        "all of them are in order."
        if depth and queue.nr_requests
        else "With mq-deadline all waiting requests are in order.",
    )
    found.numbers = {"queue_depth": float(depth or 0), "nr_requests": float(queue.nr_requests or 0)}
    found.steps = _steps(device, queue, ("mq-deadline", "deadline", "bfq", "cfq"))
    return found


def _flash(device: Device, queue: Queue) -> Finding:
    found = _found(
        device,
        queue,
        f"{queue.scheduler} holds back {device.id}, an NVMe drive",
        f", {queue.hardware_queues} hardware queues" if queue.hardware_queues else "",
        f"{queue.scheduler} takes one lock for every request of every CPU, and may idle for a process's next one. NVMe "
        "has a queue for each CPU so that none waits for another.",
        f"{BFQ_REQUEST_US} µs a request under one lock: at most {1000 / BFQ_REQUEST_US:.0f} 000 IOPS whatever the "
        "drive can do, and less where it idles.",
    )
    found.numbers = {"iops_limit": 1e6 / BFQ_REQUEST_US}
    found.steps = _steps(device, queue, ("none", "mq-deadline"))
    return found


def _storage(device: Device, drive: Drive, queue: Queue) -> Finding:
    idle = queue.iosched.get("slice_idle") or queue.iosched.get("antic_expire")
    what = "a unit of a RAID controller" if drive.transport == "raid" else "a LUN of a storage array"
    found = _found(
        device,
        queue,
        f"{queue.scheduler} idles on {device.id}, {what}",
        f", idles {idle} ms for a process's next request" if idle else "",
        f"{queue.scheduler} keeps a device waiting for the next request of one process, which spares a single head a "
        "seek. Behind this device stand many heads, and a controller that sorts for each.",
        f"Up to {idle} ms in which all drives behind it stand still, each time a process pauses."
        if idle
        else "All drives behind it stand still each time a process pauses.",
    )
    found.numbers = {"idle_ms": float(idle)} if idle and idle.isascii() and idle.isdigit() and len(idle) < 10 else {}
    found.steps = _steps(device, queue, ("mq-deadline", "deadline", "noop", "none"))
    return found


def _zoned(device: Device, queue: Queue, version: tuple[int, int]) -> Finding:
    found = _found(
        device,
        queue,
        f"nothing keeps the writes of {device.id} in order, and its zones demand it",
        f", zoned host-managed, kernel {version[0]}.{version[1]}",
        "A zone of a host-managed drive takes writes at its write pointer only. Before Linux 6.10 mq-deadline alone "
        "held back all but one write of a zone.",
        "Writes overtake each other and fail with an unaligned write error.",
    )
    found.severity = Severity.CRITICAL
    found.steps = _steps(device, queue, ("mq-deadline", "deadline"))
    return found


RULE = Rule("scheduler", "The I/O scheduler suits what is below it.", _check, ("queue.scheduler",))
