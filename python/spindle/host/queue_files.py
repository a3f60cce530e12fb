"""The files of a block device's `queue/` that this program knows (Documentation/ABI/stable/sysfs-block).

The one list of their names: what is recorded with a run (`settings`), what `inspect` shows and what can be turned
(`knobs.catalogue`) is taken from it.
"""

from __future__ import annotations

TEXTS = ("scheduler", "write_cache", "zoned")
"""Those that hold words."""

NUMBERS = (
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "max_hw_sectors_kb",
    "max_segments",
    "rotational",
    "fua",
    "wbt_lat_usec",
    "nomerges",
    "rq_affinity",
    "add_random",
    "iostats",
    "iostats_passthrough",
    "io_poll",
    "io_poll_delay",
    "io_timeout",
    "nr_zones",
    "chunk_sectors",
    "logical_block_size",
    "physical_block_size",
    "minimum_io_size",
    "optimal_io_size",
    "discard_granularity",
    "discard_max_bytes",
    "write_zeroes_max_bytes",
    "write_zeroes_unmap_max_bytes",
    "stable_writes",
    "dax",
    "async_depth",
)
"""Those that hold a whole number."""

NAMES = (*TEXTS, *NUMBERS)


def path_of(name: str) -> str:
    """Relative to the device's folder. Raises ValueError on a name that is not in the list."""
    NAMES.index(name)
    return f"queue/{name}"
