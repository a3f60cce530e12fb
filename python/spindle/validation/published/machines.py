"""The machines of the write-ups as machine files: what their texts say of them, and nothing fitted."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

SECTOR_63 = "32256"
"""Where partitions began before 2010."""
LAYOUTS = {"raid5": "left-symmetric", "raid6": "left-symmetric", "raid10": "n2"}
"""The layouts of arrays whose text names none."""


class Drives(Struct, frozen=True):
    """Equal drives."""

    model: str
    count: int
    queue_depth: int | None = None
    region: str | None = None


class Host(Struct, frozen=True):
    """A server: its kernel, memory and processor."""

    kernel: str
    memory: str
    copy_rate: str
    ask_page: str
    send_page: str
    stripe_page: str = "0s"
    """Hosts whose arrays have no parity need none."""
    cpu_per_request: str = "0s"


def machine(
    host: Host,
    drives: Sequence[Drives],
    *,
    array: dict[str, str | int] | None = None,
    queue: dict[str, str | int] | None = None,
    controller: str | None = None,
    controllers: int = 1,
    battery: bool = False,
    destage_order: str | None = None,
    partition: str | None = None,
    files: dict[str, str | int] | None = None,
) -> str:
    """Return a machine file. `destage_order` is for controllers with a cache."""
    adapter: dict[str, str | int] = {}
    if controller is not None:
        adapter = {"model": controller, "count": controllers, "battery": battery}
        if destage_order is not None:
            adapter["destage_order"] = destage_order
    tables: dict[str, dict[str, str | int]] = {
        "[host]": {
            "kernel": host.kernel,
            "memory": host.memory,
            "copy_rate": host.copy_rate,
            "ask_page": host.ask_page,
            "send_page": host.send_page,
            "stripe_page": host.stripe_page,
            "cpu_per_request": host.cpu_per_request,
        },
        "[queue]": queue or {},
        "[controller]": adapter,
        # One drive is no array, whatever its row calls it.
        "[array]": array if array and sum(of.count for of in drives) > 1 else {},
        "[partition]": {"start": partition} if partition is not None else {},
        "[files]": files or {},
    }
    lines = []
    for name, keys in tables.items():
        if keys:
            lines += [name, *(f"{key} = {_toml(value)}" for key, value in keys.items())]
    for of in drives:
        lines += ["[[drive]]", f"model = '{of.model}'", f"count = {of.count}"]
        lines += [f"queue_depth = {of.queue_depth}"] if of.queue_depth is not None else []
        lines += [f"region = '{of.region}'"] if of.region is not None else []
    return "\n".join(lines) + "\n"


def _toml(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def hardware(level: str, chunk_kib: int) -> dict[str, str | int]:
    """Return the keys of `[array]` for an array that the controller makes."""
    return {"type": "controller", **md(level, LAYOUTS.get(level, ""), chunk_kib)}


def md(level: str, layout: str, chunk_kib: int) -> dict[str, str | int]:
    """Return the keys of `[array]` for one of md's arrays."""
    keys: dict[str, str | int] = {"level": level}
    if layout:
        keys["layout"] = layout
    if chunk_kib and level != "raid1":
        keys["chunk"] = f"{chunk_kib}KiB"
    return keys
