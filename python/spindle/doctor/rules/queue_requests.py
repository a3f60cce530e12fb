"""nr_requests smaller than the device's queue. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Device, Drive, Queue

from ..finding import Finding, Severity, knob
from ..rule import Results, Rule, RuleInput
from ..stack import Stack

KERNEL_DEFAULT_REQUESTS = 128
"""BLKDEV_DEFAULT_RQ (include/linux/blkdev.h)."""
WITH_SCHEDULER = 2
"""A scheduler gets twice the smaller of tags and BLKDEV_DEFAULT_RQ (blk_mq_init_sched)."""
BELOW_IT = 2
"""To sort, a scheduler needs requests that are not yet in the device: the same number again."""


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        queue = device.queue
        if queue is None or queue.nr_requests is None:
            continue
        depth, words = _depth(case.stack, drive, queue)
        if depth is not None and queue.nr_requests < depth:
            yield _found(device, queue, queue.nr_requests, depth, words)


def _depth(stack: Stack, drive: Drive, queue: Queue) -> tuple[int | None, str]:
    if drive.queue_depth is not None:
        found = stack.inventory.controller(drive.controller) if drive.controller is not None else None
        limit = found.can_queue if found is not None else None
        if limit is not None and 0 < limit < drive.queue_depth:
            return limit, f"its controller accepts {limit} at once"
        return drive.queue_depth, f"it accepts {drive.queue_depth} at once"
    if queue.tags is None or drive.transport not in ("nvme", "virtio"):
        return None, ""
    if queue.scheduler in (None, "none"):
        return queue.tags, f"each of its queues holds {queue.tags}"
    usual = WITH_SCHEDULER * min(queue.tags, KERNEL_DEFAULT_REQUESTS)
    return usual, f"the kernel gives {queue.scheduler} {usual} over queues of {queue.tags}"


def _found(device: Device, queue: Queue, requests: int, depth: int, words: str) -> Finding:
    wanted = depth if queue.scheduler in (None, "none") else BELOW_IT * depth
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=f"{device.id} could take more requests than the kernel sends",
        evidence=f"nr_requests {requests}, and {words}",
        why="A process that finds no free request sleeps until there is one. Requests that the device could sort "
        "and serve in parallel wait in front of the queue, where nothing orders them.",
        effect=f"At most {requests} of {depth} requests can be in flight ({100 * requests / depth:.0f} %)"
        + (", for reads and writes each." if queue.scheduler in ("noop", "deadline", "cfq", "anticipatory") else "."),
        numbers={"nr_requests": requests, "depth": depth},
        steps=knob(device.id, nr_requests=wanted),
    )


RULE = Rule(
    "queue-requests",
    "The block layer queues at least as many requests as the device accepts.",
    _check,
    ("queue.nr_requests",),
)
