"""The commands that set an array up, each with its reason. They are printed; nothing is executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from spindle.reliability.drives import DriveSet

from .alternatives import Alternative

FileSystem = Literal["xfs", "ext4", "none"]
STRIPE_CACHE = 4096
"""Rows of 4 KiB on each drive: a chunk of up to 2 MiB of each drive fits eight times."""
_MEMBERS = re.compile(r"(?: /dev/(?:sd|vd|disk)\S*)+$")
_COUNT = re.compile(r"--raid-devices=(\d+)")


class Step(Struct, frozen=True):
    """A command and its reason."""

    reason: str
    command: str


def steps(array: Alternative, drives: DriveSet, devices: Sequence[str] | None, file_system: FileSystem) -> list[Step]:
    """Return the steps. `devices`: names of the drives; None: names to be replaced are printed."""
    return list(_steps(array, drives, list(devices or placeholders(drives.count)), file_system))


def placeholders(count: int) -> list[str]:
    """Return names that no system has, for the reader to replace."""
    return [f"/dev/disk/by-id/DRIVE-{number}" for number in range(1, count + 1)]


def _steps(array: Alternative, drives: DriveSet, devices: list[str], file_system: FileSystem) -> Iterator[Step]:
    yield Step("Stop at the first command that fails.", "set -eu")
    yield Step("The drives; names of by-id stay the same when cables move.", f"DRIVES={shlex.quote(' '.join(devices))}")
    yield Step(
        "Stop if a drive is missing, or carries a file system, a partition table or a member of an array.",
        'for drive in $DRIVES; do found=$(wipefs --no-act --noheadings "$drive") && test -z "$found" || '
        '{ echo "$drive is missing or not empty: wipefs $drive" >&2; exit 1; }; done',
    )
    if not drives.is_flash:
        yield Step(
            "A drive gives up on a bad sector after 7 s; without this it may take longer than the kernel waits, and be "
            "thrown out.",
            'for drive in $DRIVES; do smartctl -l scterc,70,70 "$drive" || true; done',
        )
    yield from _creation(array, devices)
    sharing = " | sed 's/$/ spare-group=pool/'" if array.groups > 1 and array.spares else ""
    yield Step(
        "The array is assembled at boot under the same name"
        + (", and `mdadm --monitor` moves the spare to the group that needs it." if sharing else "."),
        f"mdadm --detail --scan{sharing} >> /etc/mdadm/mdadm.conf",
    )
    if array.level in ("raid5", "raid6"):
        yield Step(
            f"The stripe cache has room for whole stripes ({STRIPE_CACHE * 4 >> 10} MiB of memory for each drive).",
            f"echo {STRIPE_CACHE} > /sys/block/md0/md/stripe_cache_size",
        )
    yield from _filing(array, file_system)
    yield Step(
        "A monthly scrub finds unreadable sectors while there is redundancy (Debian's mdadm does it already).",
        "echo '0 3 1 * * root for md in /sys/block/md*/md/sync_action; do echo check > $md; done' "
        "> /etc/cron.d/md-scrub",
    )
    yield Step("A failed drive is reported by mail; this sends a test.", "mdadm --monitor --scan --oneshot --test")


def _creation(array: Alternative, devices: list[str]) -> Iterator[Step]:
    """Yield the commands of mdadm with the drives' own names; spares go to the first array."""
    members, spares = devices[: len(devices) - array.spares], devices[len(devices) - array.spares :]
    for command in array.layout_report.mdadm:
        found, count = _MEMBERS.search(command), _COUNT.search(command)
        if found is None or count is None:
            yield Step("The groups become one device.", command)
            continue
        taken, members = members[: int(count[1])], members[int(count[1]) :]
        options = command[: found.start()]
        if spares:
            options = options.replace("--raid-devices", f"--spare-devices={len(spares)} --raid-devices", 1)
        yield Step(_why(array, len(spares)), " ".join([options, *taken, *spares]))
        spares = []


def _why(array: Alternative, spares: int) -> str:
    chunk = f", chunk {array.chunk >> 10} KiB" if array.chunk else ""
    spare = f", {spares} hot spare{'s' if spares > 1 else ''}: its rebuild begins at once" if spares else ""
    drives = "any drive" if array.survives == 1 else f"any {array.survives} drives"
    return f"{array.name}: {drives} may fail{chunk}{spare}."


def _filing(array: Alternative, file_system: FileSystem) -> Iterator[Step]:
    report = array.layout_report
    made = {"xfs": report.mkfs_xfs or "mkfs.xfs /dev/md0", "ext4": report.mkfs_ext4 or "mkfs.ext4 /dev/md0"}
    if file_system == "none":
        return
    geometry = {
        "xfs": "su is the chunk, sw the number of drives with data",
        "ext4": "stride is the chunk, stripe-width a whole stripe, in blocks of 4 KiB",
    }[file_system]
    if not array.chunk:
        geometry = "a mirror has no stripes, so there is no geometry to give"
    yield Step(f"The file system knows the array: {geometry}.", made[file_system])
    yield Step(
        "Reads do not write access times.",
        f'echo "UUID=$(blkid -s UUID -o value /dev/md0) /srv {file_system} noatime 0 0" >> /etc/fstab && mount /srv',
    )
