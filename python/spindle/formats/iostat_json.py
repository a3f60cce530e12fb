"""`iostat -o JSON`."""

from __future__ import annotations

from typing import Any

from spindle.result.imported import Moment

from .found import Repetition
from .numbers import number
from .series import device_of, in_our_units, since_boot
from .text import Text, documents

CPU = ("user", "nice", "system", "iowait", "steal", "idle")


def looks(text: Text) -> bool:
    """True for sysstat's JSON with iostat's names."""
    return '"sysstat"' in text.head and '"disk_device"' in text.head


def read(text: Text) -> list[Repetition]:
    """Return one for each host."""
    return [_host(text, line, host) for line, document in documents(text) for host in hosts_of(text, line, document)]


def hosts_of(text: Text, line: int, document: Any) -> list[dict[str, Any]]:
    """Return the hosts of sysstat's outer frame."""
    frame = document.get("sysstat") if isinstance(document, dict) else None
    hosts = frame.get("hosts") if isinstance(frame, dict) else None
    if not isinstance(hosts, list) or not all(
        isinstance(host, dict) and isinstance(host.get("statistics"), list) for host in hosts
    ):
        text.fail(line, "no `sysstat`, `hosts`, `statistics` in it")
    return hosts


def disks_of(text: Text, line: int, part: Any, named: str) -> list[tuple[str, dict[str, float]]]:
    """Return (name, columns) of each device of an interval."""
    disks = part.get("disk", []) if isinstance(part, dict) else None
    if not isinstance(disks, list) or not all(isinstance(disk, dict) and named in disk for disk in disks):
        text.fail(line, f"`disk` is not a list of devices with `{named}`")
    return [
        (str(disk[named])[:200], {name: found for name, value in disk.items() if (found := number(value)) is not None})
        for disk in disks
    ]


def _host(text: Text, line: int, host: dict[str, Any]) -> Repetition:
    devices: dict[str, list[Moment]] = {}
    machine = []
    parts = host["statistics"]
    for part in parts:
        disks = disks_of(text, line, part, "disk_device")
        at = str(part["timestamp"])[:40] if "timestamp" in part else None
        shares = part.get("avg-cpu")
        if isinstance(shares, dict):
            values = {f"%{name}": share for name in CPU if (share := number(shares.get(name))) is not None}
            machine.append(Moment(at=at, values=values))
        for name, columns in disks:
            devices.setdefault(name, []).append(Moment(at=at, values=in_our_units(columns)))
    skipped = 1 if len(parts) > 1 else 0
    return Repetition(
        tool="iostat",
        host=str(host["nodename"]) if "nodename" in host else None,
        settings={"kernel": str(host["release"])} if "release" in host else {},
        devices=[
            device_of(name, moments, skipped if len(moments) == len(parts) else 0) for name, moments in devices.items()
        ],
        machine=machine,
        verdicts=[since_boot(len(parts))],
    )
