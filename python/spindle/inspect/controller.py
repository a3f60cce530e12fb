"""Controllers of drives: PCI device, SCSI hosts, interrupts and their CPUs."""

from __future__ import annotations

import re

from .model import Controller, Irq
from .nodes import component, up_to
from .reading import Reading, value
from .tree import LONG, ReadError, Tree, plain
from .udev import Udev

_MOST_IRQS = 4096


class Interrupts:
    """/proc/interrupts, read once: number -> name and count for each CPU."""

    def __init__(self, tree: Tree) -> None:
        try:
            text = tree.read("proc/interrupts", LONG).decode(errors="replace")
        except ReadError:
            text = ""
        lines = text.splitlines()
        self._cpus = [int(found) for found in re.findall(r"\bCPU([0-9]{1,5})\b", lines[0])] if lines else []
        self._rows: dict[int, tuple[list[int], str]] = {}
        for line in lines[1:]:
            found = re.match(r"\s*([0-9]{1,9}):((?:\s+[0-9]{1,18})*)\s*(.*)", line)
            if found:
                counts = [int(count) for count in found[2].split()][: len(self._cpus)]
                self._rows[int(found[1])] = (counts, plain(found[3]).split(" ")[-1])

    def of(self, number: int, tree: Tree) -> Irq:
        """One interrupt."""
        counts, name = self._rows.get(number, ([], ""))
        place = f"proc/irq/{number}"
        cpus = value(tree, f"{place}/effective_affinity_list") or value(tree, f"{place}/smp_affinity_list")
        busiest = self._cpus[counts.index(max(counts))] if counts and max(counts) > 0 else None
        return Irq(
            number=number,
            name=name or None,
            cpus=cpus,
            count=sum(counts) if counts else None,
            busiest_cpu=busiest,
        )


def cpu_list(text: str | None) -> set[int]:
    """Parse '0-3,8' as the kernel writes it; empty if it is not a list."""
    found: set[int] = set()
    for part in (text or "").split(","):
        match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part.strip())
        if match:
            found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def driver_of(place: str, tree: Tree) -> str | None:
    """The driver bound to a device."""
    linked = tree.points_to(f"{place}/driver")
    if linked is not None:
        return plain(linked)
    try:
        text = tree.read(f"{place}/uevent").decode(errors="replace")
    except ReadError:
        return None
    found = re.search(r"^DRIVER=([\w-]{1,64})$", text, re.M)
    return found[1] if found else None


def controller_of(address: str, folder: str, tree: Tree, udev: Udev, interrupts: Interrupts) -> Controller:
    """`folder`: of a device attached to the controller; the controller's own is on the path."""
    place = up_to(folder, address)
    controller = Controller(id=address)
    read = Reading(tree, controller.unknown)
    controller.driver = driver_of(place, tree)
    vendor, device = read.text("pci_id", f"{place}/vendor"), read.text("pci_id", f"{place}/device")
    if vendor and device:
        controller.pci_id = f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}"
    controller.numa_node = read.number("numa_node", f"{place}/numa_node")
    controller.local_cpus = read.text("local_cpus", f"{place}/local_cpulist")
    _link(controller, read, place)
    _irqs(controller, read, place, interrupts)
    known = udev.entry(f"+pci:{address}")
    controller.name = known.get("ID_MODEL_FROM_DATABASE")
    if (host := component(folder, r"host\d+")) is not None:
        join_host(controller, host, up_to(folder, host), tree)
    if controller.driver is None:
        read.lack("driver", f"{place}/driver: not there")
    if controller.name is None:
        read.lack("name", "neither udev nor its driver names it")
    return controller


def join_host(controller: Controller, host: str, folder: str, tree: Tree) -> None:
    """Add a SCSI host: SATA controllers have one for each port."""
    if host in controller.scsi_hosts:
        return
    controller.scsi_hosts.append(host)
    place = f"{folder}/scsi_host/{host}"
    _fibre_channel(controller, f"{folder}/fc_host/{host}", tree)
    read = Reading(tree, {})
    if len(controller.scsi_hosts) > 1:
        return
    controller.can_queue = read.number("", f"{place}/can_queue")
    controller.hardware_queues = read.number("", f"{place}/nr_hw_queues")
    controller.firmware = read.text("", f"{place}/version_fw", f"{place}/firmware_revision")
    controller.name = read.text("", f"{place}/board_name") or controller.name
    controller.driver = controller.driver or value(tree, f"{place}/proc_name")


def _fibre_channel(controller: Controller, place: str, tree: Tree) -> None:
    """Parse '16 Gbit', and the supported speeds '4 Gbit, 8 Gbit, 16 Gbit' (drivers/scsi/scsi_transport_fc.c)."""
    if tree.resolve(place) is None:
        return
    read = Reading(tree, controller.unknown)
    now, can = read.text("fc_gbps", f"{place}/speed"), read.text("fc_max_gbps", f"{place}/supported_speeds")
    speeds = [float(found) for found in re.findall(r"\b([0-9]{1,3}) Gbit", now or "")]
    most = [float(found) for found in re.findall(r"\b([0-9]{1,3}) Gbit", can or "")]
    controller.fc_gbps, controller.fc_max_gbps = speeds[0] if speeds else None, max(most, default=None)
    for field, text in (("fc_gbps", now), ("fc_max_gbps", can)):
        if getattr(controller, field) is None and text is not None:
            read.lack(field, f"{place}: {text[:40]!r} is not a speed")


def _link(controller: Controller, read: Reading, place: str) -> None:
    if read.tree.resolve(f"{place}/current_link_speed") is None:  # not every device is PCI Express
        return
    controller.link_speed = read.text("link_speed", f"{place}/current_link_speed")
    controller.link_max_speed = read.text("link_max_speed", f"{place}/max_link_speed")
    controller.link_width = read.number("link_width", f"{place}/current_link_width")
    controller.link_max_width = read.number("link_max_width", f"{place}/max_link_width")
    states = [name for name in read.tree.names(f"{place}/link") if name.endswith("_aspm")]  # since Linux 5.5
    if not states:
        read.lack("link_power_states", f"{place}/link: not there")
    for name in states:
        if value(read.tree, f"{place}/link/{name}") == "1":
            controller.link_power_states.append(name.removesuffix("_aspm"))


def _irqs(controller: Controller, read: Reading, place: str, interrupts: Interrupts) -> None:
    numbers = [int(name) for name in read.tree.names(f"{place}/msi_irqs") if re.fullmatch(r"[0-9]{1,9}", name)]
    if not numbers:
        single = read.number("irqs", f"{place}/irq")
        numbers = [single] if single else []
    controller.irqs = [interrupts.of(number, read.tree) for number in numbers[:_MOST_IRQS]]
    spread = {cpu for irq in controller.irqs for cpu in cpu_list(irq.cpus)}
    controller.irq_cpus = len(spread) or None
    if not spread:
        read.lack("irq_cpus", "proc/irq shows no CPUs for any of its interrupts")
