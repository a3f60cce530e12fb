"""The purposes that storage is assessed for: the preset of each, and the numbers by which a user states a need.

The preset has the sizes and rates of the load at the default numbers; another number scales the rates of its streams.
docs/reference/assess.md gives the source of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MS = 1_000_000
S = 1000 * MS
ASSUMED = "assumed"
"""No project states a number."""
ETCD = "etcd's limit for the p99 of a sync of its log"
JETSTRESS = "the limit of Exchange Jetstress for reads of a database, which is a mean there"


LIMITS = {"commit_p99": "p99 of a commit", "read_p99": "p99 of reads", "write_p99": "p99 of writes"}
"""Names of the bounds on latency, in words."""


@dataclass(frozen=True)
class Amount:
    """A number of a need that sets the rate of streams, or the number of their clients."""

    key: str
    default: float
    words: str
    """`transactions a second`."""
    source: str
    """Where the default comes from."""
    kind: Literal["number", "bytes", "bits"] = "number"
    """`bytes`: bytes a second; `bits`: bits a second."""
    is_whole: bool = False
    may_be_none: bool = False
    """True if 0 is allowed: the streams that it scales are left out."""


@dataclass(frozen=True)
class LatencyLimit:
    """A bound on the p99 of an operation of some streams."""

    key: str
    streams: tuple[str, ...]
    operation: Literal["read", "write"]
    default_ns: int
    source: str
    in_turn: int = 1
    """Requests that a user waits for one after another: each may take this part of the limit."""

    @property
    def words(self) -> str:
        """`p99 of reads`."""
        return LIMITS[self.key]


@dataclass(frozen=True)
class Purpose:
    """One purpose."""

    name: str
    about: str
    preset: str
    headline: str
    """The number that grows with the multiples of a need."""
    amounts: tuple[Amount, ...]
    scales: Mapping[str, tuple[str, ...]]
    """Stream -> the numbers that its rate is proportional to."""
    limits: tuple[LatencyLimit, ...] = ()
    clients: Mapping[str, str] = field(default_factory=dict)
    """Stream -> the number of its workers. A multiple of the need has as many times the clients."""
    workers: Mapping[str, str] = field(default_factory=dict)
    """Stream -> the number of its workers, which share the stream's rate, whatever the multiple of the need."""
    in_a_period: bool = False
    """True if each request must be done before the worker's next one is due."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Stream -> its requests, in words."""

    def number(self, key: str) -> Amount | LatencyLimit:
        """The number, or the limit, of this name. Raises KeyError."""
        every: dict[str, Amount | LatencyLimit] = {each.key: each for each in self.amounts}
        return (every | {each.key: each for each in self.limits})[key]

    @property
    def keys(self) -> list[str]:
        """Names of all numbers and limits."""
        return [*(each.key for each in self.amounts), *(each.key for each in self.limits)]


POSTGRES = Purpose(
    name="postgres",
    about="PostgreSQL: commits, page reads and checkpoints",
    preset="postgres",
    headline="tps",
    amounts=(
        Amount("tps", 100, "transactions a second", ASSUMED),
        Amount(
            "reads",
            2,
            "pages read by each",
            "pgbench's script: index leaf and page of one random row",
            may_be_none=True,
        ),
    ),
    scales={"log": ("tps",), "reads": ("tps", "reads"), "checkpoint": ("tps",)},
    limits=(
        LatencyLimit("commit_p99", ("log",), "write", 10 * MS, ETCD),
        LatencyLimit("read_p99", ("reads",), "read", 20 * MS, JETSTRESS),
    ),
    roles={"log": "durable log writes", "reads": "random reads", "checkpoint": "random writes"},
)

MYSQL = Purpose(
    name="mysql",
    about="MySQL (InnoDB): redo log, binary log, page reads, doublewrite and page cleaner",
    preset="mysql",
    headline="tps",
    amounts=(
        Amount("tps", 100, "transactions a second", ASSUMED),
        Amount(
            "reads",
            1.7,
            "pages read by each",
            "sysbench's oltp_read_write: 17 places, one in ten read",
            may_be_none=True,
        ),
    ),
    scales={
        "redo": ("tps",),
        "binlog": ("tps",),
        "reads": ("tps", "reads"),
        "doublewrite": ("tps",),
        "pages": ("tps",),
    },
    limits=(
        LatencyLimit("commit_p99", ("redo", "binlog"), "write", 10 * MS, ETCD, in_turn=2),
        LatencyLimit("read_p99", ("reads",), "read", 20 * MS, JETSTRESS),
    ),
    roles={
        "redo": "durable writes of the redo log",
        "binlog": "durable writes of the binary log",
        "reads": "random reads",
        "doublewrite": "durable writes of the doublewrite files",
        "pages": "random writes",
    },
)

VM_HOST = Purpose(
    name="vm-host",
    about="host of virtual machines: random requests of 4 to 64 KiB of many guests",
    preset="vm-host",
    headline="guests",
    amounts=(
        Amount("guests", 10, "guests", ASSUMED, is_whole=True),
        Amount("rate", 30, "requests a second of each", "Dell's measurement of an office user: 31.5"),
    ),
    scales={"guests": ("guests", "rate")},
    limits=(
        LatencyLimit("read_p99", ("guests",), "read", 20 * MS, JETSTRESS),
        LatencyLimit("write_p99", ("guests",), "write", 20 * MS, "that of the reads"),
    ),
    roles={"guests": "random reads and writes"},
)

MAIL = Purpose(
    name="mail",
    about="mail server: queue and mailboxes with a file for each message",
    preset="mail",
    headline="mailboxes",
    amounts=(
        Amount("mailboxes", 1000, "mailboxes", ASSUMED, is_whole=True),
        Amount("messages", 150, "messages a day for each", "a profile of Microsoft's guide to sizing Exchange"),
    ),
    scales=dict.fromkeys(("queue", "mailboxes", "journal", "readers"), ("mailboxes", "messages")),
    limits=(
        LatencyLimit("write_p99", ("queue", "mailboxes", "journal"), "write", 100 * MS, ASSUMED),
        LatencyLimit("read_p99", ("readers",), "read", 100 * MS, ASSUMED),
    ),
    roles={
        "queue": "durable writes of the queue",
        "mailboxes": "durable writes of the mailboxes",
        "journal": "durable writes of the journal",
        "readers": "random reads",
    },
)

BACKUP = Purpose(
    name="backup",
    about="backup server: streams written while another is read",
    preset="backup-server",
    headline="rate",
    amounts=(
        Amount("streams", 4, "backups at the same time", ASSUMED, is_whole=True),
        Amount("rate", 100e6, "written by all together", "a link of 1 Gbit/s, less headers", "bytes"),
        Amount("read_rate", 50e6, "read at the same time", ASSUMED, "bytes", may_be_none=True),
    ),
    scales={"backups": ("rate",), "copy": ("read_rate",)},
    limits=(
        LatencyLimit("write_p99", ("backups",), "write", S, ASSUMED),
        LatencyLimit("read_p99", ("copy",), "read", S, ASSUMED),
    ),
    workers={"backups": "streams"},
    roles={"backups": "sequential writes", "copy": "sequential reads"},
)

VIDEO = Purpose(
    name="video",
    about="video server: viewers and cameras, each at its bit rate",
    preset="video",
    headline="streams",
    amounts=(
        Amount("streams", 20, "viewers", ASSUMED, is_whole=True, may_be_none=True),
        Amount("recordings", 0, "cameras", ASSUMED, is_whole=True, may_be_none=True),
        Amount("bit_rate", 15e6, "bit rate of each", "Netflix's recommendation for 4K", "bits"),
    ),
    scales={"viewers": ("bit_rate",), "cameras": ("bit_rate",)},
    clients={"viewers": "streams", "cameras": "recordings"},
    in_a_period=True,
    roles={"viewers": "sequential reads of many streams", "cameras": "sequential writes of many streams"},
)

PURPOSES = {each.name: each for each in (POSTGRES, MYSQL, VM_HOST, MAIL, BACKUP, VIDEO)}


def every_key() -> list[str]:
    """Names of the numbers and limits of all purposes, the limits last."""
    amounts = [each.key for purpose in PURPOSES.values() for each in purpose.amounts]
    return list(dict.fromkeys([*amounts, *LIMITS]))


def default_text(each: Amount | LatencyLimit) -> str:
    """A default as a user writes it."""
    if isinstance(each, LatencyLimit):
        return f"{each.default_ns / S:g}s" if each.default_ns >= S else f"{each.default_ns / MS:g}ms"
    if each.kind == "bytes":
        return f"{each.default / 1e6:g}MB/s"
    if each.kind == "bits":
        return f"{each.default / 1e6:g}Mbit/s"
    return f"{each.default:g}"
