"""Everything under a target (or on the machine), joined to one inventory."""

from __future__ import annotations

import os
import posixpath
import re
import stat

from spindle.host.devices import SECTOR, DevNumber
from spindle.host.errors import TargetError, WrongTarget, not_found
from spindle.host.mounts import Mount, mount_of, parse_mountinfo, unescape
from spindle.host.settings import VM

from .controller import Interrupts, controller_of, join_host
from .dm import dm_of
from .drive import drive_of
from .filesystem import btrfs_devices, file_system_of
from .hwraid import hardware_raid
from .machine_settings import machine_settings
from .md import md_of
from .model import Bcache, Controller, Device, FileSystem, Inventory, Loop, Partition, Pool
from .nodes import Nodes, component, up_to
from .pool import pools_of
from .queue import queue_of, read_only
from .reading import Reading, value
from .tree import LONG, ReadError, Tree, natural
from .udev import Udev

_MOST_DEEP = 64


def inspect_stack(target: str | None, tree: Tree) -> Inventory:
    """Inspect the stack below a mount point, a file or a device, or all stacks. Raises `TargetError`."""
    return _Gatherer(tree).inventory(target)


class _Gatherer:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.nodes = Nodes(tree)
        self.udev = Udev(tree)
        self.interrupts = Interrupts(tree)
        self.mounts = _mounts(tree)
        self.unknown: dict[str, str] = {}
        self.pools: dict[str, Pool] = {pool.id: pool for pool in self._pools()}
        self.groups = self._group(self.mounts)
        self.carries: dict[str, list[str]] = {}
        for identity, (_, devices) in self.groups.items():
            for device in devices:
                self.carries.setdefault(device, []).append(identity)
        for pool in self.pools.values():
            for device in pool.below:
                self.carries.setdefault(device, []).append(pool.id)
        self.pools_seen: dict[str, Pool] = {}
        self.devices: dict[str, Device] = {}
        self.file_systems: dict[str, FileSystem] = {}
        self.controllers: dict[str, Controller] = {}

    def inventory(self, target: str | None) -> Inventory:
        if not self.nodes.folders:
            raise TargetError(f"{'this machine' if self.tree.live else 'the capture'} has no sys/class/block: no stack")
        tops = self._everything() if target is None else [self._find(target)]
        for top in tops:
            self._visit(top, 0)
        self._raid_controllers()
        found = Inventory(origin="live" if self.tree.live else "capture", tops=tops, unknown=self.unknown)
        # A path need not be text; JSON must be.
        found.target = None if target is None else target.encode(errors="replace").decode()
        read = Reading(self.tree, found.unknown)
        found.kernel = read.text("kernel", "proc/sys/kernel/osrelease")
        found.cpus = read.text("cpus", "sys/devices/system/cpu/online")
        found.numa_nodes = read.text("numa_nodes", "sys/devices/system/node/online")
        memory = re.search(r"^MemTotal:\s+([0-9]{1,15}) kB$", read.table("proc/meminfo") or "", re.M)
        found.memory_bytes = int(memory[1]) * 1024 if memory else None
        if memory is None:
            read.lack("memory_bytes", "proc/meminfo does not report it")
        found.vm = self._settings("proc/sys/vm", VM)
        machine_settings(found, self.tree, self._part_of)
        found.raid_speed_limits = self._settings("proc/sys/dev/raid", ("speed_limit_min", "speed_limit_max"))
        found.beside = [self._device(name) for name in self._beside()]
        found.file_systems = list(self.file_systems.values())
        found.pools = list(self.pools_seen.values())
        found.devices = list(self.devices.values())
        found.controllers = sorted(self.controllers.values(), key=lambda controller: controller.id)
        return found

    def _settings(self, folder: str, names: tuple[str, ...]) -> dict[str, str]:
        known = {name: value(self.tree, f"{folder}/{name}") for name in names}
        return {name: text for name, text in known.items() if text is not None}

    def _pools(self) -> list[Pool]:
        """Pools, which are read only if there are signs of ZFS."""
        loaded = self.tree.resolve("sys/module/zfs") is not None or any(m.fs_type == "zfs" for m in self.mounts)
        return pools_of(self.tree, self._named, self.unknown) if loaded else []

    def _part_of(self, path: str) -> str | None:
        """The device of a path under /dev, or the file system of a file."""
        return self._named(path) or self._under_loop(path)

    # --- where to begin ------------------------------------------------------------------------------------------

    def _group(self, mounts: list[Mount]) -> dict[str, tuple[list[Mount], list[str]]]:
        """The mounts of each file system on block devices, by its id; and the devices' names."""
        by_devices: dict[tuple[str, ...], list[Mount]] = {}
        for mount in mounts:
            devices = self._devices_of(mount)
            if devices:
                by_devices.setdefault(tuple(devices), []).append(mount)
        groups = {}
        for names, same in by_devices.items():
            same.sort(key=lambda mount: mount.root != "/")  # a bind mount of a part of it comes second
            groups[f"fs:{same[0].point}"] = (same, list(names))
        return groups

    def _devices_of(self, mount: Mount) -> list[str]:
        if mount.fs_type == "zfs":
            pool = f"zpool:{mount.source.partition('/')[0]}"
            return [pool] if pool in self.pools else []
        named = [name for part in re.split(r":(?=/)", mount.source) if (name := self._named(part)) is not None]
        first = self.nodes.by_number(mount.dev) if mount.dev.major else None
        if mount.fs_type == "btrfs":
            for uuid in self.tree.names("sys/fs/btrfs"):
                members = [name for name in btrfs_devices(uuid, self.tree) if name in self.nodes]
                if set(named) & set(members):
                    return members
        found = [first] if first else named
        for option in mount.super_options.split(","):
            key, _, path = option.partition("=")
            if key in ("logdev", "rtdev", "journal_path") and (name := self._named(path)) is not None:
                found.append(name)
        return list(dict.fromkeys(found))

    def _named(self, path: str) -> str | None:
        """The device of a path under /dev: by the kernel's name, dm's name, or a link that udev made."""
        if not path.startswith("/dev/"):
            return None
        name = path.removeprefix("/dev/")
        if name.replace("/", "!") in self.nodes:
            return name.replace("/", "!")
        for other in self.nodes.folders:
            if other.startswith("dm-") and f"mapper/{value(self.tree, self.nodes.folder(other) + '/dm/name')}" == name:
                return other
        for dev, other in self.nodes.numbers.items():
            if name in self.udev.links(dev):
                return other
        if self.tree.live:
            try:
                status = os.stat(path)
            except (OSError, ValueError):
                return None
            return self.nodes.by_number(DevNumber.of(status.st_rdev)) if stat.S_ISBLK(status.st_mode) else None
        return None

    def _everything(self) -> list[str]:
        used = {name for _, devices in self.groups.values() for name in devices}
        tops = sorted(self.groups, key=lambda identity: (identity.count("/"), identity))
        tops += [pool for pool in self.pools if pool not in used]
        used |= {name for pool in self.pools.values() for name in pool.below}
        for name in sorted(self.nodes.folders, key=natural):
            covered = name in used or self.nodes.above(name) or self.nodes.kind(name) in ("path", "ram")
            if not covered and self.nodes.in_use(name):
                tops.append(name)
        return tops

    def _find(self, target: str) -> str:
        if target in self.nodes and not (self.tree.live and os.path.lexists(target)):
            return target
        if not target:
            raise WrongTarget("an empty name is not a target; give a mount point, a file or a block device")
        return self._find_here(target) if self.tree.live else self._find_captured(target)

    def _find_here(self, target: str) -> str:
        try:
            status = os.stat(target)
        except (OSError, ValueError) as error:
            raise not_found(target, error, "; give a mount point, a file or a block device") from None
        if stat.S_ISBLK(status.st_mode):
            name = self.nodes.by_number(DevNumber.of(status.st_rdev))
            if name is None:
                raise TargetError(f"{target}: sysfs knows no device {DevNumber.of(status.st_rdev)}")
            return name
        if stat.S_ISCHR(status.st_mode):
            raise WrongTarget(f"{target}: a character device; give a block device, a mount point or a file")
        try:
            mount = mount_of(target)
        except OSError:
            mount = None
        return self._on(target, mount)

    def _find_captured(self, target: str) -> str:
        if (name := self._named(target)) is not None:
            return name
        if target.startswith("/dev/") or not target.startswith("/"):
            raise WrongTarget(
                f"{target}: the capture has no such device; `spindle inspect` with `root=CAPTURE` alone lists all"
            )
        return self._on(target, self._covering(target))

    def _covering(self, path: str) -> Mount | None:
        """The mount of a path: the longest mount point that is a prefix; the last of equal ones hides the others."""
        path = posixpath.normpath(path)
        fitting = [
            mount for mount in self.mounts if path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        ]
        return max(reversed(fitting), key=lambda mount: len(mount.point), default=None)

    def _on(self, target: str, mount: Mount | None, depth: int = 0) -> str:
        if mount is None:
            raise WrongTarget(f"{target}: its device is not known; give a block device")
        if mount.fs_type == "overlay" and depth < _MOST_DEEP:  # it writes to its upper folder
            upper = re.search(r"(?:^|,)upperdir=([^,]*)", mount.super_options)
            if upper and (below := self._covering(upper[1])) is not None and below != mount:
                return self._on(target, below, depth + 1)
        devices = self._devices_of(mount)
        for identity, (_, others) in self.groups.items():
            if devices and devices == others:
                return identity
        raise WrongTarget(f"{target}: is on {mount.fs_type}, which is on no block device seen here; give a device")

    # --- one part after the other ---------------------------------------------------------------------------------

    def _visit(self, identity: str, depth: int) -> None:
        if {identity} & {*self.devices, *self.file_systems, *self.pools_seen} or depth > _MOST_DEEP:
            return
        if identity in self.groups:
            mounts, devices = self.groups[identity]
            found = file_system_of(mounts, devices, self.tree)
            self.file_systems[identity] = found
            below = found.below
        elif identity in self.pools:
            self.pools_seen[identity] = self.pools[identity]
            below = self.pools[identity].below
        else:
            device = self._device(identity)
            self.devices[identity] = device
            below = device.below
        for under in below:
            self._visit(under, depth + 1)

    def _beside(self) -> list[str]:
        """Parts on the devices found that are not under the target."""
        found: dict[str, None] = {}
        pending = list(self.devices)
        while pending:
            for above in self.nodes.above(pending.pop()):
                if above not in self.devices and above not in found:
                    found[above] = None
                    pending.append(above)
        return sorted(found, key=natural)

    def _device(self, name: str) -> Device:
        folder, kind = self.nodes.folder(name), self.nodes.kind(name)
        device = Device(id=name, kind=kind, path="/dev/" + name.replace("!", "/"))
        read = Reading(self.tree, device.unknown)
        device.number = read.text("number", f"{folder}/dev")
        sectors = read.number("size_bytes", f"{folder}/size")
        device.size_bytes = None if sectors is None else sectors * SECTOR
        device.read_only = read_only(folder, self.tree)
        device.alignment_offset_bytes = read.number("alignment_offset_bytes", f"{folder}/alignment_offset")
        known = self.udev.of(name, device.number)
        device.content = known.get("ID_FS_TYPE")
        device.content_uuid = known.get("ID_FS_UUID")
        if not known:
            read.lack("content", self.udev.why)
        device.below = self.nodes.below(name)
        device.above = [*self.nodes.above(name), *self.carries.get(name, [])]
        device.queue = queue_of(folder, kind in ("md", "dm", "bcache", "zram"), self.tree)
        self._by_kind(device, folder, read, known)
        return device

    def _by_kind(self, device: Device, folder: str, read: Reading, known: dict[str, str]) -> None:
        match device.kind:
            case "partition":
                device.partition = self._partition(device, folder, known)
            case "md":
                device.md = md_of(device.id, folder, self.tree)
                device.label = device.md.name
            case "dm":
                device.dm = dm_of(device.id, folder, self.tree, self.nodes)
                device.label = device.dm.name
            case "loop":
                device.loop = self._loop(device, folder)
            case "bcache":
                device.bcache = self._bcache(device, folder)
            case "disk":
                self._drive(device, folder, known)

    def _partition(self, device: Device, folder: str, known: dict[str, str]) -> Partition:
        part = Partition()
        read = Reading(self.tree, part.unknown)
        part.number = read.number("number", f"{folder}/partition")
        part.start_sector = read.number("start_sector", f"{folder}/start")
        if part.start_sector is not None and part.start_sector > 0:
            part.start_bytes = part.start_sector * SECTOR
            part.aligned_to_bytes = part.start_bytes & -part.start_bytes
        disk = self.nodes.whole(device.id)
        number_of_disk = value(self.tree, f"{self.nodes.folder(disk)}/dev")
        part.table = known.get("ID_PART_ENTRY_SCHEME") or self.udev.of(disk, number_of_disk).get("ID_PART_TABLE_TYPE")
        if part.table is None:
            read.lack("table", self.udev.why)
        return part

    def _loop(self, device: Device, folder: str) -> Loop | None:
        file = self.nodes.loop_file(device.id)
        if file is None:
            return None
        loop = Loop(file=file.removesuffix(" (deleted)"), deleted=file.endswith(" (deleted)"))
        read = Reading(self.tree, loop.unknown)
        loop.offset_bytes = read.number("offset_bytes", f"{folder}/loop/offset")
        loop.size_limit_bytes = read.number("size_limit_bytes", f"{folder}/loop/sizelimit")
        loop.direct_io = read.flag("direct_io", f"{folder}/loop/dio")
        under = None if loop.deleted else self._under_loop(loop.file or "")
        if under is None:
            what = "it is deleted" if loop.deleted else "no mount or device seen here has it"
            device.unknown["below"] = f"{loop.file}: the device of the file is not known: {what}"
        device.below = [under] if under else []
        return loop

    def _under_loop(self, file: str) -> str | None:
        if (name := self._named(file)) is not None:
            return name
        try:
            return self._on(file, self._covering(file))
        except TargetError:
            return None

    def _bcache(self, device: Device, folder: str) -> Bcache:
        found = Bcache()
        read = Reading(self.tree, found.unknown)
        place = f"{folder}/bcache"
        found.state = read.text("state", f"{place}/state")
        mode = read.text("cache_mode", f"{place}/cache_mode")
        chosen = re.search(r"\[([^\]]+)\]", mode or "")
        found.cache_mode = chosen[1] if chosen else mode
        found.dirty = read.text("dirty", f"{place}/dirty_data")
        found.sequential_cutoff = read.text("sequential_cutoff", f"{place}/sequential_cutoff")
        found.writeback_percent = read.number("writeback_percent", f"{place}/writeback_percent")
        for name in self.tree.names(f"{place}/cache"):  # a link to the set in sys/fs/bcache
            cache = self.tree.resolve(f"{place}/cache/{name}") if re.fullmatch(r"cache\d+", name) else None
            if cache is not None:
                found.caches.append(posixpath.basename(posixpath.dirname(cache)))
        if not found.caches and found.state != "no cache":
            read.lack("caches", f"{place}/cache: names no cache device")
        return found

    def _drive(self, device: Device, folder: str, known: dict[str, str]) -> None:
        drive = drive_of(device.id, folder, self.tree, self.nodes, known)
        device.drive = drive
        place = self.tree.resolve(f"{folder}/device") or folder
        if drive.controller is not None:
            self._controller(drive.controller, place, device.id)
        subsystem = posixpath.dirname(folder)
        for path in drive.paths:
            way = self.tree.resolve(f"{subsystem}/{path.controller}")
            if path.pci is not None and way is not None:
                self._controller(path.pci, way, device.id)

    def _controller(self, address: str, folder: str, drive: str) -> None:
        if address not in self.controllers:
            self.controllers[address] = controller_of(address, folder, self.tree, self.udev, self.interrupts)
        controller = self.controllers[address]
        if (host := component(folder, r"host\d+")) is not None:
            join_host(controller, host, up_to(folder, host), self.tree)
        if drive not in controller.drives:
            controller.drives.append(drive)

    def _raid_controllers(self) -> None:
        counts: dict[str, int] = {}
        for controller in sorted(self.controllers.values(), key=lambda found: found.scsi_hosts or [found.id]):
            index = counts.get(controller.driver or "", 0)
            counts[controller.driver or ""] = index + 1
            controller.raid = hardware_raid(controller, index, self.tree)


def _mounts(tree: Tree) -> list[Mount]:
    for path in ("proc/self/mountinfo", "proc/1/mountinfo"):
        try:
            return parse_mountinfo(tree.read(path, LONG).decode(errors="replace"))
        except ReadError:
            continue
    try:
        return _older_mounts(tree.read("proc/mounts", LONG).decode(errors="replace"))
    except ReadError:
        return []


def _older_mounts(text: str) -> list[Mount]:
    """Parse /proc/mounts, all that kernels before 2.6.26 have: no numbers, and the options of both kinds in one
    list."""
    found = []
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) >= 4:
            source, point, kind, options = fields[:4]
            found.append(Mount(0, DevNumber(0, 0), "/", unescape(point), options, kind, unescape(source), options))
    return found
