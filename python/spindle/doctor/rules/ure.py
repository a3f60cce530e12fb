"""RAID5 with so much data that a rebuild will likely find an unreadable sector. See docs/reference/doctor."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spindle.base.commands import shell
from spindle.base.units import si_size
from spindle.inspect.model import Device, Drive

from ..arithmetic import unreadable_probability
from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, binary_size, rotates

DESKTOP, NEARLINE, ENTERPRISE = 1e-14, 1e-15, 1e-16
"""Unrecoverable errors per bit read, from data sheets: desktop SATA; SATA and SAS of 7200 rpm for servers; SAS of
10 000 rpm and more. For flash JESD218 requires 1e-15 for clients, 1e-16 for enterprises."""
SERVER_SATA = re.compile(
    r"^(?:ATA )?(?:ST\d+N[ME]|(?:HGST )?H[UDM][SH]\d|WU[HS]|WDC WU|MG\d|TOSHIBA MG|(?:WDC "
    r")?WD\d+(?:FYYZ|FYYS|FBYS|FBYX|FRYZ|"
    r"F[YB]YX|KFGX|KRYZ|VRYZ))",
    re.I,
)
"""Model names of SATA families whose data sheets specify 1e-15."""
LIKELY = 0.5
"""More likely than not."""
NOTICEABLE = 0.1
"""Enough with very large drives or very many: the rebuild takes long, and other drives may fail meanwhile."""
LARGE_BYTES = 3.9e12
"""4 TB: rebuilding takes 11 hours at 100 MB/s."""
MANY = 8
"""Number of drives above which RAID6 is usual practice."""


@dataclass(frozen=True)
class _Rebuild:
    """The data that a rebuild reads."""

    object: str
    drives: int
    drive_bytes: float
    rate: float
    kind: str
    path: str


def _check(case: RuleInput) -> Results:
    for read in (*_arrays(case.stack), *_units(case.stack)):
        bits = (read.drives - 1) * read.drive_bytes * 8
        chance = unreadable_probability(bits, read.rate)
        large = read.drive_bytes >= LARGE_BYTES or read.drives > MANY
        if chance >= LIKELY or (chance >= NOTICEABLE and large):
            yield _found(read, bits, chance)


def _arrays(stack: Stack) -> list[_Rebuild]:
    found = []
    for device, md in stack.arrays():
        if md.level not in ("raid4", "raid5") or not md.component_bytes or not md.raid_disks or md.raid_disks < 3:
            continue
        kinds = [_rate(*bottom) for bottom in stack.bottoms(device)]
        if kinds:
            rate, kind = max(kinds)
            found.append(_Rebuild(device.id, md.raid_disks, md.component_bytes, rate, kind, device.path))
    return found


def _units(stack: Stack) -> list[_Rebuild]:
    found = []
    for controller, raid in stack.raids():
        for unit in raid.units:
            group = unit.name.partition("/")[0]
            drives = [drive for drive in raid.drives if drive.unit in (unit.name, group)]
            sizes = [count for drive in drives if (count := binary_size(drive.size))]
            whole = binary_size(unit.size)
            if not re.fullmatch(r"RAID-?5", unit.level or "") or not sizes or whole is None:
                continue
            count = round(whole / min(sizes)) + 1  # data and one parity: tools may not list every drive
            kinds = [_rate_of(drive.model, drive.interface, None, drive.medium) for drive in drives]
            rate, kind = max(kinds)
            if 3 <= count < 1000:
                found.append(_Rebuild(f"{controller.id}/{unit.name}", count, min(sizes), rate, kind, unit.name))
    return found


def _rate(device: Device, drive: Drive) -> tuple[float, str]:
    medium = "SSD" if rotates(device) is False else None
    return _rate_of(drive.model, drive.transport, drive.rotation_rpm, medium)


def _rate_of(model: str | None, interface: str | None, rpm: int | None, medium: str | None) -> tuple[float, str]:
    kind = (interface or "").lower()
    if kind == "nvme" or (medium == "SSD" and kind == "sas"):
        return ENTERPRISE, "flash"
    if medium == "SSD":
        return NEARLINE, "SATA flash"
    if kind == "sas" and rpm is not None and rpm >= 10_000:
        return ENTERPRISE, f"SAS of {rpm} rpm"
    if kind == "sas":
        return NEARLINE, "SAS"
    if SERVER_SATA.match((model or "").strip()):
        return NEARLINE, "SATA for servers"
    return DESKTOP, "SATA" if kind == "sata" else "of an unknown kind"


def _found(read: _Rebuild, bits: float, chance: float) -> Finding:
    better = min(read.rate / 10, NEARLINE)
    return Finding(
        rule=RULE.name,
        object=read.object,
        severity=Severity.WARN,
        summary=f"a rebuild of {read.object} will likely find an unreadable sector"
        if chance >= LIKELY
        else f"a rebuild of {read.object} may well find an unreadable sector",
        evidence=f"RAID5 of {read.drives} drives ({read.kind}) of {si_size(round(read.drive_bytes))}: a rebuild reads "
        f"{si_size(round(bits / 8))}, {bits:.3g} bits, at one unreadable in {1 / read.rate:.0e}",
        why="When a drive fails, every bit of all others must be read to compute it, and RAID5 has no redundancy "
        "left to repair a sector that cannot be read then.",
        effect=f"P = 1 - (1 - {read.rate:.0e})^{bits:.3g} = {_percent(chance)}; drives with one in {1 / better:.0e}: "
        f"{_percent(unreadable_probability(bits, better))}. That is the data sheets' bound: most drives do better, and "
        "a regular check (scrub) finds such sectors while they can be repaired. RAID6 tolerates one in each stripe.",
        numbers={"drives": read.drives, "bits_read": bits, "error_rate_per_bit": read.rate, "probability": chance},
        steps=_steps(read),
    )


def _percent(chance: float) -> str:
    return f"{100 * chance:.0f} %" if chance >= 0.01 else f"{100 * chance:.2g} %"


def _steps(read: _Rebuild) -> list[Step]:
    if not read.path.startswith("/dev/"):
        about = f"change {read.object} to RAID6 with its controller's tool and one more drive"
        return [Step(phase=Phase.REBUILD, about=about, needs=[Needs.BACKUP, Needs.HARDWARE])]
    backup = f"--backup-file=/root/{read.object}.grow"
    return [
        Step(
            phase=Phase.PROTECT,
            act=StepEffect.READ_ALL,
            about=f"read all of {read.object} now, and every month: unreadable sectors are repaired while it can be",
            commands=[f"echo check > {shell(f'/sys/block/{read.object}/md/sync_action')}"],
        ),
        Step(
            phase=Phase.REBUILD,
            about=f"reshape {read.object} to RAID6 with one more drive (NEW): takes days, the array stays in use",
            commands=[
                shell("mdadm", read.path, "--add", "/dev/NEW"),
                shell("mdadm", "--grow", read.path, "--level=6", f"--raid-devices={read.drives + 1}", backup),
            ],
            needs=[Needs.BACKUP, Needs.HARDWARE],
        ),
    ]


RULE = Rule(
    "ure", "A RAID5 is small enough to be rebuilt without an unreadable sector.", _check, ("md.component_bytes",)
)
