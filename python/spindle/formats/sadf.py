"""`sadf -j FILE -- -d`: sar's device statistics, and its CPU shares where they are in the file as well."""

from __future__ import annotations

from typing import Any

from spindle.result.imported import Moment

from .found import Repetition
from .iostat_json import CPU, disks_of, hosts_of
from .numbers import amount, number
from .series import device_of, in_our_units
from .text import Text, documents


def looks(text: Text) -> bool:
    """True for sysstat's JSON with sar's names."""
    return '"sysstat"' in text.head and ('"disk-device"' in text.head or '"file-date"' in text.head)


def read(text: Text) -> list[Repetition]:
    """Return one for each host."""
    return [_host(text, line, host) for line, document in documents(text) for host in hosts_of(text, line, document)]


def _host(text: Text, line: int, host: dict[str, Any]) -> Repetition:
    devices: dict[str, list[Moment]] = {}
    machine = []
    started = None
    for part in host["statistics"]:
        disks = disks_of(text, line, part, "disk-device")
        stamp = part.get("timestamp")
        stamp = stamp if isinstance(stamp, dict) else {}
        at = f"{stamp.get('date', '')}T{stamp.get('time', '')}{'Z' if stamp.get('utc') == 1 else ''}"[:40]
        seconds = amount(stamp.get("interval"))
        if disks and started is None and at.endswith("Z") and len(at) == 20:
            started = at
        for name, columns in disks:
            devices.setdefault(name, []).append(Moment(at=at, seconds=seconds, values=in_our_units(columns)))
        loads = part.get("cpu-load")
        for load in loads if isinstance(loads, list) else []:
            if isinstance(load, dict) and load.get("cpu") in ("all", "-1", -1):
                values = {f"%{name}": share for name in CPU if (share := number(load.get(name))) is not None}
                machine.append(Moment(at=at, seconds=seconds, values=values))
    if not devices:
        text.fail(line, "it has no devices; make it with `sadf -j FILE -- -d`")
    return Repetition(
        tool="sar",
        reported=started,
        host=str(host["nodename"]) if "nodename" in host else None,
        settings={"kernel": str(host["release"])} if "release" in host else {},
        devices=[device_of(name, moments, 0) for name, moments in devices.items()],
        machine=machine,
    )
