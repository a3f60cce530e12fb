"""The inventory. One struct for each kind of part; `unknown` has the reason for each field without a value.

A field that is None and not in `unknown` does not apply (a whole disk has no partition number). Names and units of
queue settings are the kernel's; other sizes are in bytes, and their names say so. The parts are listed side by side and
refer to those below and above by id: drives have many partitions, arrays many drives.
"""

from __future__ import annotations

from typing import Any

import msgspec

from spindle.base.plain import as_json

FORMAT = 1


class Part(msgspec.Struct, kw_only=True):
    """A part with values that may be unknown."""

    unknown: dict[str, str] = {}


class Queue(Part, kw_only=True):
    """A block device's queue (Documentation/ABI/stable/sysfs-block), in the kernel's names and units."""

    scheduler: str | None = None
    schedulers: list[str] = []
    """All that can be chosen."""
    iosched: dict[str, str] = {}
    """Parameters of the current scheduler."""
    nr_requests: int | None = None
    read_ahead_kb: int | None = None
    max_sectors_kb: int | None = None
    max_hw_sectors_kb: int | None = None
    max_segments: int | None = None
    rotational: int | None = None
    write_cache: str | None = None
    """The kernel's view: with 'write back' it sends flushes."""
    fua: int | None = None
    wbt_lat_usec: int | None = None
    nomerges: int | None = None
    rq_affinity: int | None = None
    add_random: int | None = None
    iostats: int | None = None
    io_poll: int | None = None
    io_poll_delay: int | None = None
    io_timeout: int | None = None
    zoned: str | None = None
    nr_zones: int | None = None
    chunk_sectors: int | None = None
    logical_block_size: int | None = None
    physical_block_size: int | None = None
    minimum_io_size: int | None = None
    optimal_io_size: int | None = None
    discard_granularity: int | None = None
    discard_max_bytes: int | None = None
    write_zeroes_max_bytes: int | None = None
    write_zeroes_unmap_max_bytes: int | None = None
    """Linux 6.17 and later."""
    stable_writes: int | None = None
    dax: int | None = None
    hardware_queues: int | None = None
    tags: int | None = None
    """Size of each hardware queue in requests (mq/0/nr_tags)."""


class Partition(Part, kw_only=True):
    """Position of a partition."""

    number: int | None = None
    start_sector: int | None = None
    """In units of 512 bytes, whatever the disk's sector size."""
    start_bytes: int | None = None
    aligned_to_bytes: int | None = None
    """Largest power of two that divides the start: 32256 bytes (sector 63) gives 512."""
    table: str | None = None
    """gpt, dos."""


class MdMember(Part, kw_only=True):
    """A member of an md array."""

    device: str
    slot: int | None = None
    """None: a spare, faulty, or the journal."""
    state: list[str] = []
    """in_sync, faulty, spare, journal, write_mostly, blocked, want_replacement, replacement ..."""
    errors: int | None = None
    """Corrected read errors; with metadata 1.x kept over restarts (Documentation/admin-guide/md.rst)."""
    data_offset_sectors: int | None = None
    """Start of the data on the member, in sectors of 512 bytes."""
    size_bytes: int | None = None
    bad_blocks: int | None = None


class Md(Part, kw_only=True):
    """A software RAID array."""

    name: str | None = None
    uuid: str | None = None
    level: str | None = None
    layout: str | None = None
    """As mdadm names it: near=2, far=2, left-symmetric."""
    layout_number: int | None = None
    chunk_bytes: int | None = None
    raid_disks: int | None = None
    data_disks: int | None = None
    """Disks' worth of data in a stripe: the right value of `sw`."""
    stripe_bytes: int | None = None
    """chunk_bytes x data_disks."""
    degraded: int | None = None
    """Number of missing members."""
    array_state: str | None = None
    sync_action: str | None = None
    """idle, resync, recover, check, repair, reshape, frozen."""
    sync_done_sectors: int | None = None
    sync_total_sectors: int | None = None
    sync_speed_kb: int | None = None
    """kB/s."""
    sync_speed_min_kb: int | None = None
    sync_speed_max_kb: int | None = None
    mismatches: int | None = None
    metadata: str | None = None
    component_bytes: int | None = None
    consistency_policy: str | None = None
    """none, resync, bitmap, journal, ppl."""
    bitmap: str | None = None
    """none, internal, or a file."""
    bitmap_chunk_bytes: int | None = None
    stripe_cache_size: int | None = None
    """Pages per member (RAID4/5/6)."""
    group_thread_count: int | None = None
    members: list[MdMember] = []


class Area(msgspec.Struct, kw_only=True):
    """A range on a device below."""

    device: str
    offset_sectors: int | None = None


class Segment(msgspec.Struct, kw_only=True):
    """A line of a device-mapper table."""

    start_sector: int
    sectors: int
    target: str
    """linear, striped, multipath, crypt, raid, thin ..."""
    stripes: int | None = None
    chunk_bytes: int | None = None
    areas: list[Area] = []
    options: list[str] = []
    """Optional words of crypt, cache, thin-pool and multipath: allow_discards, writeback, queue_if_no_path ..."""
    groups: list[PathGroup] = []
    """Path groups of multipath."""


class PathGroup(msgspec.Struct, kw_only=True):
    """Paths of multipath that are used together."""

    selector: str
    """round-robin, service-time, queue-length ..."""
    devices: list[str] = []


class DmRaid(msgspec.Struct, kw_only=True):
    """State of a dm-raid target (LVM's raid1, raid5 ...), from `dmsetup status`."""

    health: str
    """A letter for each member: A in sync, a alive but not in sync, D dead, - missing."""
    sync_action: str
    """The same words as md's."""


class Dm(Part, kw_only=True):
    """A device-mapper device."""

    name: str | None = None
    uuid: str | None = None
    owner: str | None = None
    """Its creator: LVM, mpath, CRYPT, part1 ..."""
    volume_group: str | None = None
    logical_volume: str | None = None
    segments: list[Segment] = []
    raid: DmRaid | None = None
    paths: list[DmPath] = []
    queueing: str | None = None
    """Multipath without any path left, in multipathd's words: on (for ever), off (fail), `12 chk` (tries left)."""


class DmPath(msgspec.Struct, kw_only=True):
    """One path of dm-multipath to a drive."""

    device: str
    active: bool
    failures: int | None = None
    group: int
    group_state: str
    """active, enabled, disabled."""


class Loop(Part, kw_only=True):
    """A loop device."""

    file: str | None = None
    deleted: bool = False
    offset_bytes: int | None = None
    size_limit_bytes: int | None = None
    direct_io: bool | None = None


class Bcache(Part, kw_only=True):
    """A cached device of bcache."""

    cache_mode: str | None = None
    state: str | None = None
    dirty: str | None = None
    sequential_cutoff: str | None = None
    writeback_percent: int | None = None
    caches: list[str] = []
    """Cache devices."""


class Smart(Part, kw_only=True):
    """Health that the drive reports."""

    healthy: bool | None = None
    temperature_celsius: int | None = None
    power_on_hours: int | None = None
    reallocated: int | None = None
    pending: int | None = None
    uncorrectable: int | None = None
    crc_errors: int | None = None
    """Errors on the cable, not on the medium."""
    grown_defects: int | None = None
    media_errors: int | None = None
    critical_warning: int | None = None
    spare_percent: int | None = None
    used_percent: int | None = None
    """Percent of the endurance that its maker guarantees; may exceed 100."""
    load_cycles: int | None = None
    """Number of times that the heads were parked."""
    logged_errors: int | None = None
    self_test_running: bool | None = None
    failing: list[str] = []
    """Attributes at or below their threshold now."""
    failed_before: list[str] = []


class NvmePath(Part, kw_only=True):
    """One path of native NVMe multipath to a namespace."""

    name: str
    controller: str | None = None
    """The NVMe controller: nvme0."""
    pci: str | None = None
    transport: str | None = None
    address: str | None = None
    state: str | None = None
    ana_state: str | None = None


class Drive(Part, kw_only=True):
    """A drive, or a device that a RAID controller, a hypervisor or a network presents as one."""

    vendor: str | None = None
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    wwid: str | None = None
    transport: str | None = None
    """sata, sas, nvme, virtio, usb, fc, iscsi, mmc, raid (a unit of a RAID controller)."""
    rotation_rpm: int | None = None
    """0: does not rotate."""
    write_cache_enabled: bool | None = None
    """The drive's own volatile cache; for a RAID unit the controller's report."""
    write_cache_type: str | None = None
    """The SCSI disk driver's words: write back, write through, none."""
    queue_depth: int | None = None
    queue_type: str | None = None
    ncq_supported: bool | None = None
    ncq_depth: int | None = None
    """Size of the drive's queue; `queue_depth` is the part in use."""
    link_gbps: float | None = None
    link_max_gbps: float | None = None
    port_max_gbps: float | None = None
    """Speed that the port on the controller's side supports."""
    link_power_policy: str | None = None
    """SATA: max_performance, med_power_with_dipm, min_power ..."""
    apm_level: int | None = None
    """ATA: 1 (parks and spins down at once) to 254 (never); 0: off; None: the drive has none."""
    recording: str | None = None
    """Shingled: device-managed, host-aware, host-managed; None: not reported."""
    discards: bool | None = None
    """True if the drive accepts TRIM."""
    access_state: str | None = None
    """SCSI ALUA: active/optimized, active/non-optimized, standby, unavailable ..."""
    state: str | None = None
    scsi_address: str | None = None
    port: str | None = None
    """Port of the drive: ata1, port-0:3."""
    expander: str | None = None
    uplink_lanes: int | None = None
    """Lanes of the port that connects the expander to the layer above."""
    slot: int | None = None
    controller: str | None = None
    numa_node: int | None = None
    io_errors: int | None = None
    io_timeouts: int | None = None
    command_timeout_seconds: int | None = None
    error_recovery_deciseconds: int | None = None
    """SCT ERC for reads; 0: off."""
    error_recovery_supported: bool | None = None
    multipath_policy: str | None = None
    paths: list[NvmePath] = []
    smart: Smart | None = None


class Device(Part, kw_only=True):
    """A block device."""

    id: str
    kind: str
    """disk, partition, md, dm, loop, bcache, zram ..."""
    path: str
    label: str | None = None
    number: str | None = None
    size_bytes: int | None = None
    read_only: bool | None = None
    alignment_offset_bytes: int | None = None
    """Distance of its start from a natural boundary of the device below; -1: the layers below disagree."""
    content: str | None = None
    """Content: xfs, linux_raid_member, LVM2_member."""
    content_uuid: str | None = None
    below: list[str] = []
    above: list[str] = []
    queue: Queue | None = None
    partition: Partition | None = None
    md: Md | None = None
    dm: Dm | None = None
    loop: Loop | None = None
    bcache: Bcache | None = None
    drive: Drive | None = None


class FileSystem(Part, kw_only=True):
    """A mounted file system."""

    id: str
    """fs: and its mount point."""
    mount_point: str
    also_mounted: list[str] = []
    type: str
    source: str
    options: list[str] = []
    """Options of the mount."""
    super_options: list[str] = []
    """Options of the file system."""
    atime: str | None = None
    """relatime, noatime, strictatime (every read writes)."""
    barriers: bool | None = None
    """True if it asks the device to flush."""
    uuid: str | None = None
    label: str | None = None
    size_bytes: int | None = None
    available_bytes: int | None = None
    block_bytes: int | None = None
    stripe_unit_bytes: int | None = None
    """XFS su, ext4 stride. 0: made without one."""
    stripe_width_bytes: int | None = None
    """XFS su x sw, ext4 stripe-width. 0: made without one."""
    geometry_source: str | None = None
    stride_blocks: int | None = None
    """ext4's stored value."""
    stripe_width_blocks: int | None = None
    mount_stripe_blocks: int | None = None
    """ext4's mount option, which overrides the stored value."""
    sunit_blocks: int | None = None
    """XFS, in its blocks as xfs_info prints it (mkfs and mount use sectors of 512 bytes)."""
    swidth_blocks: int | None = None
    allocation_groups: int | None = None
    allocation_group_blocks: int | None = None
    sector_bytes: int | None = None
    log_stripe_unit_bytes: int | None = None
    log_device: str | None = None
    journal: str | None = None
    """ext4's data mode: ordered, writeback, journal; None: not known, or without a journal."""
    features: list[str] = []
    exclusive_operation: str | None = None
    """btrfs: none, balance, device replace ...; only one runs at a time."""
    profiles: dict[str, str] = {}
    """btrfs: data, metadata, system -> single, raid1 ..."""
    errors: int | None = None
    """Errors counted by the file system itself."""
    below: list[str] = []


class Irq(msgspec.Struct, kw_only=True):
    """An interrupt of a controller."""

    number: int
    name: str | None = None
    cpus: str | None = None
    """CPUs that may serve it, as the kernel writes lists: 0-3,8."""
    count: int | None = None
    """Count since the machine started."""
    busiest_cpu: int | None = None


class RaidUnit(Part, kw_only=True):
    """A unit that a RAID controller presents as a drive."""

    name: str
    level: str | None = None
    state: str | None = None
    chunk_bytes: int | None = None
    size: str | None = None
    write_back: bool | None = None
    cache: str | None = None
    """The tool's own letters: RWBD, RiW."""


class RaidDrive(Part, kw_only=True):
    """A drive that only a RAID controller sees."""

    name: str
    state: str | None = None
    model: str | None = None
    serial: str | None = None
    size: str | None = None
    medium: str | None = None
    interface: str | None = None
    unit: str | None = None
    smart: Smart | None = None


class HardwareRaid(Part, kw_only=True):
    """Drives and units behind a RAID controller, as its tool reports them."""

    tool: str | None = None
    units: list[RaidUnit] = []
    drives: list[RaidDrive] = []
    battery: str | None = None
    """The tool's word: OK, Optimal, Failed, absent."""
    battery_ok: bool | None = None


class Controller(Part, kw_only=True):
    """A controller of drives."""

    id: str
    """Its PCI address."""
    driver: str | None = None
    name: str | None = None
    firmware: str | None = None
    pci_id: str | None = None
    """vendor:device, in hexadecimal."""
    numa_node: int | None = None
    """-1: the machine has no nodes or does not report them."""
    local_cpus: str | None = None
    link_speed: str | None = None
    link_max_speed: str | None = None
    link_width: int | None = None
    link_max_width: int | None = None
    link_power_states: list[str] = []
    """Enabled PCI Express ASPM states: l0s, l1, l1_1 ..."""
    fc_gbps: float | None = None
    fc_max_gbps: float | None = None
    scsi_hosts: list[str] = []
    can_queue: int | None = None
    hardware_queues: int | None = None
    irqs: list[Irq] = []
    irq_cpus: int | None = None
    """Number of CPUs that serve its interrupts together."""
    drives: list[str] = []
    raid: HardwareRaid | None = None


class PoolDevice(msgspec.Struct, kw_only=True):
    """A leaf of a ZFS pool."""

    path: str
    device: str | None = None
    state: str
    role: str = "data"
    """data, logs, cache, spares, special, dedup."""
    group: str | None = None
    """Its mirror or RAID-Z; None: a vdev of its own, without redundancy."""
    errors: int | None = None
    """Read, write and checksum errors."""


class Pool(Part, kw_only=True):
    """A ZFS pool."""

    id: str
    """zpool: and its name."""
    name: str
    state: str | None = None
    """ONLINE, DEGRADED, FAULTED, SUSPENDED ..."""
    status: str | None = None
    """Message of zpool status; None: none."""
    scan: str | None = None
    scanning: str | None = None
    """resilver or scrub, while one runs."""
    errors: str | None = None
    """None: no known data errors."""
    size_bytes: int | None = None
    free_bytes: int | None = None
    fragmentation_percent: int | None = None
    ashifts: list[int] = []
    """log2 of the smallest block of each top-level vdev."""
    members: list[PoolDevice] = []
    below: list[str] = []


class Swap(msgspec.Struct, kw_only=True):
    """A swap area in use (proc/swaps)."""

    path: str
    part: str | None = None
    """The device, or the file system of the file."""
    size_bytes: int
    used_bytes: int
    priority: int


class IdleState(msgspec.Struct, kw_only=True):
    """A sleep state of the CPUs (Documentation/admin-guide/pm/cpuidle.rst)."""

    name: str
    latency_us: int
    """Time to wake up."""
    disabled: bool


class Inventory(Part, kw_only=True):
    """Everything found under a target (or on the machine)."""

    format: int = FORMAT
    kind: str = "inventory"
    origin: str
    """live, or capture."""
    target: str | None = None
    kernel: str | None = None
    cpus: str | None = None
    memory_bytes: int | None = None
    numa_nodes: str | None = None
    vm: dict[str, str] = {}
    swaps: list[Swap] = []
    governors: dict[str, int] = {}
    """Governor of the CPUs' clock -> number of CPUs with it."""
    frequency_driver: str | None = None
    idle_states: list[IdleState] = []
    """Idle states of the first CPU."""
    link_power_policy: str | None = None
    """PCI Express ASPM of the machine: default, performance, powersave, powersupersave."""
    raid_speed_limits: dict[str, str] = {}
    tops: list[str] = []
    """Tops of the trees: file systems, or devices."""
    file_systems: list[FileSystem] = []
    pools: list[Pool] = []
    devices: list[Device] = []
    beside: list[Device] = []
    """Other parts on the drives (partitions, arrays, maps) that are not below a top."""
    controllers: list[Controller] = []

    def device(self, name: str) -> Device | None:
        """The device with this id."""
        return next((device for device in self.devices if device.id == name), None)

    def file_system(self, name: str) -> FileSystem | None:
        """The file system with this id."""
        return next((found for found in self.file_systems if found.id == name), None)

    def pool(self, name: str) -> Pool | None:
        """The pool with this id."""
        return next((pool for pool in self.pools if pool.id == name), None)

    def controller(self, name: str) -> Controller | None:
        """The controller with this id."""
        return next((found for found in self.controllers if found.id == name), None)

    def unknowns(self) -> int:
        """Number of unknown values over all parts."""
        return _unknowns(self)


def _unknowns(part: Any) -> int:
    if isinstance(part, list):
        return sum(_unknowns(item) for item in part)
    if not isinstance(part, msgspec.Struct):
        return 0
    own = len(part.unknown) if isinstance(part, Part) else 0
    return own + sum(_unknowns(getattr(part, name)) for name in part.__struct_fields__)


def encode(inventory: Inventory) -> bytes:
    """One JSON document, indented, with a newline at its end."""
    return as_json(inventory).encode() + b"\n"


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the JSON of `spindle inspect`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spindle inspect",
        **msgspec.json.schema(Inventory),
    }
