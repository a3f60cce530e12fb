"""Healthy stacks of any shape, as captured trees: md arrays of any level, chunk and number of drives, of SAS, SATA or
NVMe drives, whole or partitioned, with XFS or ext4 made for them. Tests plant one fault at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spindle.doctor import Finding, diagnose
from spindle.doctor.finding import Diagnosis
from spindle.doctor.rule import Workload
from spindle.inspect import inspect_stack
from tests.inspect import trees
from tests.inspect.trees import Layout

Planted = set[tuple[str, str]]
"""(rule, object)."""


@dataclass(frozen=True)
class Shape:
    """The description of a stack."""

    level: str = "raid5"
    disks: int = 4
    chunk: int = 512 << 10
    near: int = 2
    far: int = 1
    drive: str = "sata"
    partitions: bool = True
    table: bool = False
    """A partition on the array itself."""
    volume: bool = False
    """An LVM volume on the array."""
    fs: str = "xfs"
    kernel: str = "6.1.0-28-amd64"
    drive_sectors: int = 1953525168

    @property
    def data_disks(self) -> int:
        spare = {"raid5": 1, "raid6": 2, "raid0": 0, "raid1": self.disks - 1}
        return self.disks // self.near if self.level == "raid10" else self.disks - spare[self.level]

    @property
    def stripe(self) -> int:
        return self.chunk * self.data_disks

    @property
    def striped(self) -> bool:
        return self.level != "raid1"

    @property
    def names(self) -> list[str]:
        if self.drive == "nvme":
            return [f"nvme{at}n1" for at in range(self.disks)]
        return [f"sd{chr(ord('a') + at)}" for at in range(self.disks)]

    @property
    def members(self) -> list[str]:
        part = "p1" if self.drive == "nvme" else "1"
        return [name + part for name in self.names] if self.partitions else self.names

    @property
    def array(self) -> str:
        return "sys/devices/virtual/block/md0"

    @property
    def top(self) -> str:
        """Name of the device with the file system."""
        return "dm-0" if self.volume else "md0p1" if self.table else "md0"

    def folder(self, at: int) -> str:
        if self.drive == "nvme":
            return f"sys/devices/pci0000:00/0000:00:{at + 1:02x}.0/0000:{at + 1:02x}:00.0/nvme/nvme{at}/nvme{at}n1"
        if self.drive == "sas":
            pci = "sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0"
            return f"{pci}/host0/port-0:{at}/end_device-0:{at}/target0:0:{at}/0:0:{at}:0/block/{self.names[at]}"
        pci = f"sys/devices/pci0000:00/0000:00:1f.2/ata{at + 1}"
        return f"{pci}/host{at}/target{at}:0:0/{at}:0:0:0/block/{self.names[at]}"


def healthy(shape: Shape) -> Layout:
    """A stack of this shape without any fault."""
    lines = ["[]", "use machine", f"proc/sys/kernel/osrelease={shape.kernel}"]
    for at, name in enumerate(shape.names):
        lines += _drive(shape, at, name)
        if shape.partitions:
            lines += _partition(shape, at)
    lines += _array(shape)
    if shape.table:
        lines += [
            f"device {shape.array}/md0p1",
            "dev=259:200\npartition=1\nstart=4194304\nsize=1000000\nalignment_offset=0\nro=0",
        ]
    if shape.volume:
        lines += _volume(shape)
    lines += _file_system(shape)
    return laid("\n".join(lines))


def laid(text: str) -> Layout:
    """A tree from text in the language of trees.py."""
    definitions: dict[str, list[str]] = {}
    for shared in sorted(trees.FIXTURES.glob("_*.tree")):
        trees._take_definitions(shared.read_text().splitlines(), definitions)
    layout = Layout()
    trees._fill(layout, trees._expand(text.splitlines(), definitions))
    return layout


def _drive(shape: Shape, at: int, name: str) -> list[str]:
    dev = f"8:{at * 16}"
    queue = "use queue physical=4096 minimum=4096 optimal=0 max=1280 hw=32767 ra=128 rot={} cache=write~back"
    if shape.drive == "sas":
        used = (
            f"use sas-drive bus=0000:00 slot=0000:00:02.0 pci=0000:03:00.0 host=0 n={at} d={name} dev={dev} "
            f"wwn={at:04x} serialhex={0x3130 + at:04x} serial={at:04x} ra=128 nr=256"
        )
        return [used, f"[{shape.folder(at)}]", f"size={shape.drive_sectors}", "[]"]
    if shape.drive == "sata":
        used = (
            f"use sata-drive p={at + 1} h={at} d={name} dev={dev} size={shape.drive_sectors} spd=6.0~Gbps "
            f"model=WDC~WD10EZEX-08W rev=1A01 qd=32 wwn1=5951 wwn2=b{at:03x} s1=5357 s2=3331 s3=3030 s4=3030 f1=534e "
            "f2=3034 f3=2020 f4=2020 m1=5344 m2=3130 m3=3030 m4=4e58 w75=001f w76=850e w82=306b w85=3069 w217=1c20"
        )
        return [used, queue.format(1), "use deadline nr=64", "[]"]
    place = shape.folder(at)
    return [
        f"[{place.rsplit('/', 3)[0]}]",
        "use pci driver=nvme vendor=0x144d id=0xa808 node=0 cpus=0-3 speed=8.0~GT/s width=4",
        f"[{place.rsplit('/', 1)[0]}]",
        f"model=Some NVMe\nserial=S{at}\ntransport=pcie\nstate=live\nnuma_node=0",
        f"device {place}",
        f"device -> ../../nvme{at}",
        f"dev=259:{at * 8}\nsize={shape.drive_sectors}\nwwid=eui.{at:016x}",
        queue.format(0),
        "use none nr=1023",
        "mq/0/nr_tags=1023",
        "[]",
    ]


def _partition(shape: Shape, at: int) -> list[str]:
    minor = f"259:{100 + at}"
    return [
        f"device {shape.folder(at)}/{shape.members[at]}",
        f"dev={minor}\npartition=1\nstart=2048\nsize={shape.drive_sectors - 4096}\nalignment_offset=0\nro=0",
        "[]",
    ]


def _array(shape: Shape) -> list[str]:
    layout = {"raid10": shape.near | shape.far << 8, "raid5": 2, "raid6": 2}.get(shape.level, 0)
    component = (shape.drive_sectors - 300000) // 2 // 512 * 512
    size = component * 2 * (shape.data_disks if shape.far == 1 else shape.disks // 2)
    ahead = max(128, 2 * shape.stripe // 1024) if shape.striped else 128
    rotating = int(shape.drive != "nvme")
    best = f"minimum={shape.chunk} optimal={shape.stripe}" if shape.striped else "minimum=4096 optimal=0"
    lines = [
        f"device {shape.array}",
        f"dev=9:0\nsize={size}",
        f"use queue physical=4096 {best} max=1280 hw=32767 ra={ahead} rot={rotating} cache=write~back",
        "queue/scheduler=none\nqueue/nr_requests=128",
        f"md/level={shape.level}\nmd/layout={layout}\nmd/chunk_size={shape.chunk if shape.striped else 0}",
        f"md/raid_disks={shape.disks}\nmd/array_state=clean\nmd/component_size={component}\nmd/metadata_version=1.2",
    ]
    if shape.level != "raid0":
        lines += [
            "md/degraded=0\nmd/sync_action=idle\nmd/sync_completed=none\nmd/sync_speed=none\nmd/mismatch_cnt=0",
            "md/sync_speed_min=1000 (system)\nmd/sync_speed_max=200000 (system)\nmd/consistency_policy=bitmap",
            "md/bitmap/location=+8\nmd/bitmap/chunksize=67108864",
        ]
    if shape.level in ("raid5", "raid6"):
        lines += ["md/stripe_cache_size=4096\nmd/group_thread_cnt=0"]
    for slot, member in enumerate(shape.members):
        lines += [
            f"slaves/{member} -> /sys/class/block/{member}",
            f"md/dev-{member}/slot={slot}\nmd/dev-{member}/state=in_sync\nmd/dev-{member}/errors=0",
            f"md/dev-{member}/offset=264192\nmd/dev-{member}/size={component}",
            f"md/dev-{member}/bad_blocks <<END",
            "END",
            f"holder {member} md0",
        ]
    return "\n".join([*lines, "[]"]).splitlines()


def _volume(shape: Shape) -> list[str]:
    best = f"minimum={shape.chunk} optimal={shape.stripe}" if shape.striped else "minimum=4096 optimal=0"
    ahead = max(128, 2 * shape.stripe // 1024) if shape.striped else 128
    return [
        "device sys/devices/virtual/block/dm-0",
        "dev=253:0",
        "size=1000000000",
        "dm/name=vg0-data",
        "dm/uuid=LVM-0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5PaB3xYz",
        f"slaves/{'md0p1' if shape.table else 'md0'} -> /sys/class/block/{'md0p1' if shape.table else 'md0'}",
        f"use queue physical=4096 {best} max=1280 hw=32767 ra={ahead} rot=1 cache=write~back",
        "queue/scheduler=none",
        "queue/nr_requests=128",
        f"holder {'md0p1' if shape.table else 'md0'} dm-0",
        "[]",
        f"tools/dmsetup-table/dm-0=0 1000000000 linear {'259:200' if shape.table else '9:0'} 4194304",
    ]


def _file_system(shape: Shape) -> list[str]:
    number = {"md0": "9:0", "dm-0": "253:0", "md0p1": "259:200"}[shape.top]
    unit, width = (shape.chunk, shape.stripe) if shape.striped else (0, 0)
    words = f",sunit={unit // 512},swidth={width // 512}" if unit and shape.fs == "xfs" else ""
    return [
        "[]",
        "proc/self/mountinfo <<END",
        f"21 1 {number} / /data rw,relatime - {shape.fs} /dev/{shape.top} rw{words}",
        "END",
        *geometry(shape, unit, width),
    ]


def geometry(shape: Shape, unit: int, width: int) -> list[str]:
    """Lines that the file system's tool prints for this geometry."""
    if shape.fs == "xfs":
        return [
            "tools/xfs_info/%2Fdata <<END",
            "meta-data=/dev/md0               isize=512    agcount=32, agsize=32043136 blks",
            "data     =                       bsize=4096   blocks=1025377920, imaxpct=5",
            f"         =                       sunit={unit // 4096}    swidth={width // 4096} blks",
            "log      =internal log           bsize=4096   blocks=500736, version=2",
            "END",
        ]
    stride = [f"RAID stride:              {unit // 4096}", f"RAID stripe width:        {width // 4096}"] if unit else []
    return [
        f"tools/dumpe2fs/{shape.top} <<END",
        "Filesystem features:      has_journal extent 64bit",
        "Block size:               4096",
        *stride,
        "END",
    ]


def add(layout: Layout, text: str) -> Layout:
    """Add lines; they replace existing ones."""
    trees._fill(layout, text.splitlines())
    return layout


def found_on(layout: Layout, workload: Workload | None = None) -> Planted:
    """(rule, object) of all findings."""
    return {(finding.rule, finding.object) for finding in diagnosis(layout, workload).findings}


def diagnosis(layout: Layout, workload: Workload | None = None) -> Diagnosis:
    """The whole diagnosis."""
    return diagnose(inspect_stack(None, layout.held()), workload=workload)


def finding(layout: Layout, rule: str, workload: Workload | None = None) -> Finding:
    """The one finding of a rule."""
    (one,) = [found for found in diagnosis(layout, workload).findings if found.rule == rule]
    return one


__all__ = ["Planted", "Shape", "add", "diagnosis", "finding", "found_on", "geometry", "healthy", "laid", "replace"]
