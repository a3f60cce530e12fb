"""Drives at the bottom of the stack, as the kernel, udev and smartctl report them.

Files of SCSI devices: Documentation/ABI/testing/sysfs-block-device and drivers/scsi/scsi_sysfs.c; of links and ports:
libata-transport.c, scsi_transport_sas.c; of NVMe: drivers/nvme/host/sysfs.c.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

from . import smart as health
from .controller import driver_of
from .identify import identity
from .model import Drive, NvmePath
from .nodes import Nodes, component, pci_of, up_to
from .reading import Reading, dig_text, raw, value
from .tree import Tree

_RAID_ONLY = {"3w-9xxx", "3w-sas", "3w-xxxx", "arcmsr", "cciss"}
_RAID_OR_NOT = {"megaraid_sas", "aacraid", "hpsa", "smartpqi"}
_FIRST_UNIT_CHANNEL = 2  # megaraid_sas: channels below it show drives as they are (MEGASAS_MAX_PD_CHANNELS)


def drive_of(name: str, folder: str, tree: Tree, nodes: Nodes, udev: dict[str, str]) -> Drive:
    """The drive behind a disk."""
    drive = Drive()
    read = Reading(tree, drive.unknown)
    device = tree.resolve(f"{folder}/device")
    drive.controller = pci_of(device or folder)
    if drive.controller is None and "/virtual/" not in folder:
        read.lack("controller", f"{folder}: its path names no PCI device")
    if name.startswith("nvme"):
        _nvme(drive, read, name, folder, device)
    elif re.search(r"/virtio\d+(/|$)", device or folder):
        _virtio(drive, read, folder)
    elif device is None:
        read.lack("transport", f"{folder}/device: not there")
    else:
        _scsi(drive, read, device, folder)
    zoned = value(tree, f"{folder}/queue/zoned")
    if zoned in ("host-aware", "host-managed"):
        drive.recording = zoned
    if drive.controller is not None:
        pci = up_to(device or folder, drive.controller)
        drive.numa_node = read.number("numa_node", f"{pci}/numa_node")
    _from_udev(drive, udev)
    if drive.transport == "virtio":
        for field in _HIDDEN_BY_HOSTS:
            read.lack(field, "a virtual disk: only its host sees the drives behind it")
    elif drive.transport != "raid":
        _from_smartctl(drive, read, name)
    if drive.transport == "usb":
        _behind_a_bridge(drive, read)
    _known_now(drive)
    return drive


# --- SCSI, which also shows SATA and SAS drives, USB sticks and units of RAID controllers ---------------------------


def _scsi(drive: Drive, read: Reading, device: str, folder: str) -> None:
    vendor = read.text("vendor", f"{device}/vendor")
    drive.vendor = None if vendor == "ATA" else vendor  # set by the SCSI layer, not by the maker
    drive.model = read.text("model", f"{device}/model", f"{device}/name")
    drive.firmware = read.text("firmware", f"{device}/rev", f"{device}/fwrev")
    drive.serial = _unit_serial(read, device)
    drive.wwid = read.text("wwid", f"{device}/wwid")
    drive.state = read.text("state", f"{device}/state")
    drive.queue_depth = read.number("queue_depth", f"{device}/queue_depth")
    drive.queue_type = value(read.tree, f"{device}/queue_type")
    drive.io_errors = read.number("io_errors", f"{device}/ioerr_cnt")
    drive.io_timeouts = read.number("io_timeouts", f"{device}/iotmo_cnt")
    drive.access_state = value(read.tree, f"{device}/access_state")
    drive.command_timeout_seconds = read.number("command_timeout_seconds", f"{device}/timeout")
    address = posixpath.basename(device)
    addresses = [address, *read.tree.names(f"{device}/scsi_disk")]  # a capture may lack the link with the address
    drive.scsi_address = next((found for found in addresses if re.fullmatch(r"\d+:\d+:\d+:\d+", found)), None)
    if drive.scsi_address is not None:
        drive.write_cache_type = read.text(
            "write_cache_type",
            f"{device}/scsi_disk/{drive.scsi_address}/cache_type",
            f"{device}/scsi_disk:{drive.scsi_address}/cache_type",
        )
    drive.transport = _scsi_transport(drive, read.tree, device, vendor)
    if drive.transport is None:
        read.lack("transport", f"{device}: no known transport")
    _rotation_page(drive, read.tree, device)
    if (port := component(device, r"ata\d+")) is not None:
        _ata(drive, read, device, port)
    elif component(device, r"end_device-[\d:]+") is not None:
        _sas(drive, read, device)


def _unit_serial(read: Reading, device: str) -> str | None:
    page = raw(read.tree, f"{device}/vpd_pg80")  # 4 bytes of header, then text (SPC-4 7.8.15)
    text = page[4:].decode("ascii", errors="replace").strip("\0 \n") if page else ""
    if text and text.isprintable() and "\ufffd" not in text:
        return text[:200]
    return read.text("serial", f"{device}/serial")


def _scsi_transport(drive: Drive, tree: Tree, device: str, vendor: str | None) -> str | None:
    host = component(device, r"host\d+")
    driver = value(tree, f"{up_to(device, host)}/scsi_host/{host}/proc_name") if host else None
    if driver is None and drive.controller is not None:
        driver = driver_of(up_to(device, drive.controller), tree)
    if driver in _RAID_ONLY or (driver in _RAID_OR_NOT and _is_unit(drive, driver)):
        return "raid"
    for pattern, name in ((r"usb\d+", "usb"), (r"rport-[\d:-]+", "fc"), (r"session\d+", "iscsi"), (r"mmc\d+", "mmc")):
        if component(device, pattern):
            return name
    if component(device, r"ata\d+"):
        return "sata"
    if component(device, r"end_device-[\d:]+") or driver in _RAID_OR_NOT:
        return "sata" if vendor == "ATA" else "sas"
    return None


def _is_unit(drive: Drive, driver: str | None) -> bool:
    channel = int(drive.scsi_address.split(":")[1]) if drive.scsi_address else 0
    if driver == "megaraid_sas":
        return channel >= _FIRST_UNIT_CHANNEL
    if driver == "aacraid":
        return channel == 0  # containers; passed-through drives have channels of their own
    return "LOGICAL VOLUME" in (drive.model or "").upper()


def _rotation_page(drive: Drive, tree: Tree, device: str) -> None:
    """Block Device Characteristics (SBC-3 6.5.2): bytes 4 and 5; 1 is 'does not rotate'."""
    page = raw(tree, f"{device}/vpd_pgb1")
    if page is not None and len(page) >= 6 and page[1] == 0xB1:
        turns = int.from_bytes(page[4:6], "big")
        if turns == 1:
            drive.rotation_rpm = 0
        elif 0x0401 <= turns <= 0xFFFE:
            drive.rotation_rpm = turns
        if len(page) >= 9:  # ZONED (SBC-4 6.6.3)
            drive.recording = {1: "host-aware", 2: "device-managed"}.get(page[8] >> 4 & 3)


def _ata(drive: Drive, read: Reading, device: str, port: str) -> None:
    drive.port = port
    number = port.removeprefix("ata")
    place = f"{up_to(device, port)}/link{number}"
    drive.port_max_gbps = _gigabits(Reading(read.tree, {}), "", f"{place}/ata_link/link{number}/hw_sata_spd_limit")
    if (host := component(device, r"host\d+")) is not None:
        policy = f"{up_to(device, host)}/scsi_host/{host}/link_power_management_policy"
        drive.link_power_policy = read.text("link_power_policy", policy)
    drive.link_gbps = _gigabits(read, "link_gbps", f"{place}/ata_link/link{number}/sata_spd")
    path = f"{place}/dev{number}.0/ata_device/dev{number}.0/id"
    words = read.table(path)
    found = identity(words) if words is not None else None
    if found is None:
        why = f"{path}: {'not there' if words is None else 'not the words of a drive'}"
        for field in ("ncq_supported", "ncq_depth", "write_cache_enabled", "rotation_rpm", "apm_level"):
            if getattr(drive, field) is None:
                read.lack(field, why)
        return
    drive.ncq_supported = found.ncq_supported
    drive.ncq_depth = found.ncq_depth if found.ncq_supported else None
    drive.write_cache_enabled = found.write_cache_enabled
    drive.link_max_gbps = found.link_max_gbps
    drive.apm_level = found.apm_level
    drive.error_recovery_supported = found.error_recovery_supported
    drive.recording = drive.recording or found.recording
    drive.discards = found.discards
    drive.model = _whole(drive.model, found.model)
    drive.rotation_rpm = found.rotation_rpm if found.rotation_rpm is not None else drive.rotation_rpm
    drive.serial = drive.serial or found.serial
    drive.firmware = found.firmware or drive.firmware  # the SCSI layer cuts it to four characters


def _sas(drive: Drive, read: Reading, device: str) -> None:
    drive.port = component(device, r"port-[\d:]+")
    drive.expander = component(device, r"expander-[\d:]+")
    if drive.expander is not None:
        above = posixpath.dirname(up_to(device, drive.expander))
        drive.uplink_lanes = len([name for name in read.tree.names(above) if re.fullmatch(r"phy-[\d:]+", name)]) or None
    end = component(device, r"end_device-[\d:]+")
    if end is not None:
        drive.slot = read.number("slot", f"{up_to(device, end)}/sas_device/{end}/bay_identifier")
    if drive.port is None:
        return
    port = up_to(device, drive.port)
    phy = next((name for name in read.tree.names(port) if re.fullmatch(r"phy-[\d:]+", name)), None)
    if phy is None:
        read.lack("link_gbps", f"{port}: no phy")
        return
    place = f"{port}/{phy}/sas_phy/{phy}"
    drive.link_gbps = _gigabits(read, "link_gbps", f"{place}/negotiated_linkrate")
    drive.link_max_gbps = _gigabits(read, "link_max_gbps", f"{place}/maximum_linkrate")
    # Speed that the phy supports; `maximum_linkrate` is a configured limit.
    drive.port_max_gbps = _gigabits(Reading(read.tree, {}), "", f"{place}/maximum_linkrate_hw")


def _gigabits(read: Reading, field: str, path: str) -> float | None:
    """Parse '6.0 Gbps', '12.0 Gbit'."""
    text = read.text(field, path)
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9])?) ?Gb(?:ps|it)", text or "")
    if text is not None and found is None:
        read.lack(field, f"{path}: {text[:40]!r} is not a speed")
    return float(found[1]) if found else None


# --- the others ----------------------------------------------------------------------------------------------------


def _virtio(drive: Drive, read: Reading, folder: str) -> None:
    drive.transport = "virtio"
    drive.serial = read.text("serial", f"{folder}/serial")
    drive.write_cache_type = read.text("write_cache_type", f"{folder}/cache_type")


def _nvme(drive: Drive, read: Reading, name: str, folder: str, device: str | None) -> None:
    drive.transport = "nvme"
    drive.rotation_rpm = 0
    # The head of a multipath namespace is in its subsystem's folder and has no controller of its own.
    place = posixpath.dirname(folder) if "/nvme-subsystem/" in folder else device or posixpath.dirname(folder)
    drive.model = read.text("model", f"{place}/model")
    drive.serial = read.text("serial", f"{place}/serial")
    drive.firmware = read.text("firmware", f"{place}/firmware_rev")
    drive.wwid = read.text("wwid", f"{folder}/wwid")
    if "/nvme-subsystem/" in folder:
        drive.multipath_policy = read.text("multipath_policy", f"{place}/iopolicy")
        drive.paths = _nvme_paths(read.tree, name, place)
        if not drive.paths:
            read.lack("paths", f"{place}: no controller with a path to {name}")
    else:
        drive.state = read.text("state", f"{place}/state")
        drive.numa_node = read.number("numa_node", f"{place}/numa_node")


def _nvme_paths(tree: Tree, name: str, subsystem: str) -> list[NvmePath]:
    found = re.fullmatch(r"nvme(\d+)n(\d+)", name)
    if found is None:
        return []
    paths = []
    for controller in (entry for entry in tree.names(subsystem) if re.fullmatch(r"nvme\d+", entry)):
        place = tree.resolve(f"{subsystem}/{controller}")
        if place is None:
            continue
        for way in (entry for entry in tree.names(place) if re.fullmatch(rf"nvme{found[1]}c\d+n{found[2]}", entry)):
            path = NvmePath(name=way, controller=controller, pci=pci_of(place))
            read = Reading(tree, path.unknown)
            path.transport = read.text("transport", f"{place}/transport")
            path.address = read.text("address", f"{place}/address")
            path.state = read.text("state", f"{place}/state")
            path.ana_state = read.text("ana_state", f"{place}/{way}/ana_state")
            paths.append(path)
    return paths


# --- other sources -------------------------------------------------------------------------------------------------


def _from_udev(drive: Drive, udev: dict[str, str]) -> None:
    drive.serial = drive.serial or udev.get("ID_SERIAL_SHORT")
    if drive.transport is None:
        bus = udev.get("ID_TRANSPORT") or udev.get("ID_BUS")
        drive.transport = {"ata": "sata", "sata": "sata", "sas": "sas", "usb": "usb", "fc": "fc", "iscsi": "iscsi"}.get(
            bus or ""
        )
    if drive.model is None and drive.transport != "virtio":
        drive.model = udev.get("ID_MODEL", "").replace("_", " ").strip() or None
    turns = udev.get("ID_ATA_ROTATION_RATE_RPM", "")
    if drive.rotation_rpm is None and re.fullmatch(r"[0-9]{1,5}", turns):
        drive.rotation_rpm = int(turns)
    enabled = udev.get("ID_ATA_WRITE_CACHE_ENABLED")
    if drive.write_cache_enabled is None and enabled in ("0", "1"):
        drive.write_cache_enabled = enabled == "1"


def _from_smartctl(drive: Drive, read: Reading, name: str) -> None:
    # NVMe keeps its health in the controller; asking the namespace gives the same.
    data: dict[str, Any] | None = read.json("smart", health.smart_tool(name, f"/dev/{name}"))
    if data is None:
        return
    drive.smart = health.smart_of(data, name)
    drive.serial = drive.serial or dig_text(data, "serial_number")
    drive.model = _whole(drive.model, dig_text(data, "model_name") or dig_text(data, "scsi_model_name"))
    drive.firmware = dig_text(data, "firmware_version") or drive.firmware
    if drive.rotation_rpm is None:
        drive.rotation_rpm = health.rotation(data)
    if drive.write_cache_enabled is None:
        drive.write_cache_enabled = health.write_cache(data)
    if drive.link_gbps is None:
        drive.link_gbps = health.gigabits(data, "current")
    if drive.link_max_gbps is None:
        drive.link_max_gbps = health.gigabits(data, "max")
    drive.error_recovery_deciseconds = health.recovery(data)
    if (supported := health.recovery_supported(data)) is not None:
        drive.error_recovery_supported = supported
    if drive.apm_level is None:
        drive.apm_level = health.apm(data)


def _whole(model: str | None, reported: str | None) -> str | None:
    """The full model name: the SCSI layer keeps only 16 characters (INQUIRY), another source may have the rest."""
    return reported if reported is not None and (model is None or reported.startswith(model)) else model


_HIDDEN_BY_HOSTS = ("smart", "model", "firmware", "rotation_rpm")
_HIDDEN_BY_BRIDGES = ("apm_level", "rotation_rpm", "write_cache_enabled", "error_recovery_deciseconds")


def _behind_a_bridge(drive: Drive, read: Reading) -> None:
    """Note values of a SATA drive's IDENTIFY that a USB bridge passes only to smartctl, if at all."""
    why = drive.smart.unknown.get("healthy") if drive.smart is not None else drive.unknown.get("smart")
    for field in _HIDDEN_BY_BRIDGES:
        if getattr(drive, field) is None:
            read.lack(field, why or "its USB bridge does not pass it through")


def _known_now(drive: Drive) -> None:
    """Remove reasons of values that another source provided."""
    if drive.write_cache_enabled is None and drive.write_cache_type is not None and drive.transport in ("sas", "sata"):
        drive.write_cache_enabled = drive.write_cache_type.startswith("write back")
    for field in list(drive.unknown):
        if getattr(drive, field, None) is not None:
            del drive.unknown[field]
