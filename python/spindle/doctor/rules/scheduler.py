"""A scheduler that does not fit the device. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Device, Drive, Queue

from ..finding import Finding, Phase, Severity, Step, knob
from ..rule import Results, Rule, RuleInput
from ..stack import STORAGE, kernel_version, rotates

SORTING = ("mq-deadline", "deadline", "bfq", "cfq", "anticipatory")
"""Schedulers that sort requests by position. noop, none and kyber do not."""
IDLING = ("bfq", "cfq", "anticipatory")
"""Schedulers that keep a device waiting for one process's next request."""
BFQ_REQUEST_US = 1.9
"""Time under one lock per request (Documentation/block/bfq-iosched.rst, on a Core i7-2760QM)."""
ZONE_PLUGGING = (6, 10)
"""Since this kernel the block layer itself keeps writes to a zone in order."""


def _check(case: RuleInput) -> Results:
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
        phase=Phase.TUNE, about="the kernel offers no suitable one; load it", commands=[f"modprobe {wanted[0]}"]
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
        f"nothing sorts the requests of {device.id}, a rotating drive",
        f", {drive.rotation_rpm} rpm" if drive.rotation_rpm else ", rotational",
        "Without sorting, the head crosses the platters for each request. A sorting scheduler shortens the seeks, "
        "merges neighbours, and serves reads before floods of writes.",
        f"The drive itself sorts only the {depth} requests in its queue, of {queue.nr_requests} waiting; mq-deadline "
        "sorts all of them."
        if depth and queue.nr_requests
        else "mq-deadline sorts all waiting requests.",
    )
    found.numbers = {"queue_depth": float(depth or 0), "nr_requests": float(queue.nr_requests or 0)}
    found.steps = _steps(device, queue, ("mq-deadline", "deadline", "bfq", "cfq"))
    return found


def _flash(device: Device, queue: Queue) -> Finding:
    found = _found(
        device,
        queue,
        f"{queue.scheduler} slows down {device.id}, an NVMe drive",
        f", {queue.hardware_queues} hardware queues" if queue.hardware_queues else "",
        f"{queue.scheduler} takes one lock for every request of every CPU, and may idle for a process's next "
        "request. NVMe has a queue for each CPU so that none waits for another.",
        f"{BFQ_REQUEST_US} µs per request under one lock: at most {1000 / BFQ_REQUEST_US:.0f} 000 IOPS, whatever the "
        "drive could do, and less where it idles.",
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
        f"{queue.scheduler} keeps a device waiting for the next request of one process, which saves a seek of a single "
        "head. Behind this device are many heads, and a controller that sorts for each.",
        f"Up to {idle} ms in which all drives behind it are idle, each time a process pauses."
        if idle
        else "All drives behind it are idle each time a process pauses.",
    )
    found.numbers = {"idle_ms": float(idle)} if idle and idle.isascii() and idle.isdigit() and len(idle) < 10 else {}
    found.steps = _steps(device, queue, ("mq-deadline", "deadline", "noop", "none"))
    return found


def _zoned(device: Device, queue: Queue, version: tuple[int, int]) -> Finding:
    found = _found(
        device,
        queue,
        f"nothing keeps the writes of {device.id} in order, and its zones require it",
        f", zoned host-managed, kernel {version[0]}.{version[1]}",
        "A zone of a host-managed drive takes writes only at its write pointer. Before Linux 6.10 only mq-deadline "
        "kept the writes of a zone in order.",
        "Writes overtake each other and fail with an unaligned write error.",
    )
    found.severity = Severity.CRITICAL
    found.steps = _steps(device, queue, ("mq-deadline", "deadline"))
    return found


RULE = Rule("scheduler", "The I/O scheduler fits the device.", _check, ("queue.scheduler",))
