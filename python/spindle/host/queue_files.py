"""The files of a block device's `queue/` that Spindle knows (Documentation/ABI/stable/sysfs-block).

The only list of their names: a run's record (`settings`), `inspect` and the knobs (`knobs.catalogue`) use it.
"""

from __future__ import annotations

TEXTS = ("scheduler", "write_cache", "zoned")
"""Files with words."""

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
"""Files with a whole number."""

NAMES = (*TEXTS, *NUMBERS)


def path_of(name: str) -> str:
    """Path relative to the device's folder. Raises ValueError for a name that is not in the list."""
    NAMES.index(name)
    return f"queue/{name}"
