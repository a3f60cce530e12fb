"""Numbers of the write-ups' machines and loads that no source states, with their ranges."""

from __future__ import annotations

from msgspec import Struct


class Assumed(Struct, frozen=True):
    """A key of a machine or workload file whose value is assumed."""

    part: str
    """A part of the machine, or a load: `host of 2004`."""
    key: str
    value: str
    """As it is in the file."""
    least: str
    most: str
    lines: tuple[tuple[str, str], ...] = ()
    """A value and its line of the file, where that is not the key and the value."""

    @property
    def plain(self) -> str:
        """The value without quotes."""
        return self.value.strip("'")

    @property
    def line(self) -> str:
        """The line of the file."""
        return self._line_of(self.value)

    def at(self, text: str, end: str) -> str:
        """Return the text of a file with another value; without the key it stays as it is."""
        return text.replace(f"\n{self.line}\n", f"\n{self._line_of(end)}\n")

    def _line_of(self, value: str) -> str:
        return dict(self.lines).get(value, f"{self.key} = {value}")


def plain(*numbers: Assumed) -> dict[str, str]:
    """Return the values of numbers by their keys, as a `Host` takes them."""
    return {of.key: of.plain for of in numbers}


def _text(part: str, key: str, value: str, least: str, most: str) -> Assumed:
    return Assumed(part, key, repr(value), repr(least), repr(most))


COPY_2004 = _text("host of 2004", "copy_rate", "1 GB/s", "500 MB/s", "2 GB/s")
"""Two Xeons of 2.4 GHz; copies from and to memory."""
COPY_2008_MD = _text("host of 2008, 1 GHz", "copy_rate", "1 GB/s", "500 MB/s", "2 GB/s")
COPY_2008 = _text("host of 2008", "copy_rate", "2 GB/s", "1 GB/s", "4 GB/s")
KERNEL_2008 = _text("host of 2008", "kernel", "2.6.24", "2.6.18", "2.6.24")
"""The text names none, and the machine ran both. For random loads it is no question: reads of RAID5 took 54 ms beside
writes of 823 ms, so they did not go through the stripe cache, as they do until 2.6.19."""
MEMORY_2008 = _text("host of 2008", "memory", "4GiB", "256MiB", "8GiB")
"""The text cuts it to 256 MB for the random loads, and names none for the streams."""
COPY_2011 = _text("host of 2011", "copy_rate", "5 GB/s", "3 GB/s", "8 GB/s")
ASK_PAGE_2004 = _text("host of 2004", "ask_page", "3us", "1500ns", "6us")
SEND_PAGE_2004 = _text("host of 2004", "send_page", "3us", "1500ns", "6us")
ASK_PAGE_2008_MD = _text("host of 2008, 1 GHz", "ask_page", "5us", "2500ns", "10us")
SEND_PAGE_2008_MD = _text("host of 2008, 1 GHz", "send_page", "5us", "2500ns", "10us")
STRIPE_PAGE_2008_MD = _text("host of 2008, 1 GHz", "stripe_page", "2us", "1us", "4us")
"""Parity of a page takes one or two; a copy takes 4 us, but copies of written pages are the writer's."""
ASK_PAGE_2008 = _text("host of 2008", "ask_page", "2us", "1us", "4us")
SEND_PAGE_2008 = _text("host of 2008", "send_page", "2us", "1us", "4us")
STRIPE_PAGE_2008 = _text("host of 2008", "stripe_page", "1us", "500ns", "2us")
ASSUMED_2008 = (COPY_2008, ASK_PAGE_2008, SEND_PAGE_2008, STRIPE_PAGE_2008)
"""The host with the 3ware controller."""
SEND_PAGE_2011 = _text("host of 2011", "send_page", "700ns", "350ns", "1400ns")
READ_PAGE_2004 = _text("host of 2004", "read_page", "4us", "2us", "8us")
WRITE_PAGE_2004_PLAIN = _text("host of 2004", "write_page", "6us", "3us", "12us")
WRITE_PAGE_2004_EXT3 = _text("host of 2004, ext3", "write_page", "10us", "6us", "16us")
"""ext3 begins and ends a handle of its journal for each page that is written, and notes the page in the transaction
(`ext3_prepare_write`, `journal_dirty_data`); kjournald takes it out again: 1 us each."""
ALLOCATE_PAGE_2004_EXT3 = _text("host of 2004, ext3", "allocate_page", "8us", "4us", "16us")
"""A page of a new file gets its block there, too (`ext3_new_block`): bitmap, group, inode and block of numbers are each
got from the journal and given back to it."""
READ_PAGE_2011 = _text("host of 2011", "read_page", "0.7us", "0.35us", "1.4us")
WRITE_PAGE_2011 = _text("host of 2011", "write_page", "1.5us", "0.75us", "3us")
BATTERY = Assumed("9650SE-16ML", "battery", "true", "false", "true")
"""The write cache was on; whether there was a battery is not said. Without one, a barrier empties the cache."""
DESTAGE_ORDER = Assumed("controllers with a cache", "destage_order", "'age'", "'address'", "'age'")
"""The order in which cached writes leave is in none of the maker's texts. By age none stays for long."""
KERNEL_2011 = _text("host of 2011", "kernel", "2.6.32", "2.6.32", "2.6.38")
"""The text names none. mdadm makes chunks of 512 KiB since 3.1.1 of 2009."""
MEMORY_2011 = _text("host of 2011", "memory", "4GiB", "4GiB", "32GiB")
"""The text names no memory; the file is larger than any memory of that year."""
SYNCED_2011 = Assumed(
    "bonnie++ of 2011",
    "fsync",
    "each update",
    "the end",
    "each update",
    lines=(("each update", "fsync_fraction = '100%'"), ("the end", "fsync_fraction = 0")),
)
"""Seekers may sync each block that they rewrite (`-b`); the options are not known. A seek took up to 100 ms, as
only one with an fsync of its own does: without them the longest takes 23 ms in the model."""


_NEVER_SYNCED = ("raid0", "linear")


def synced(level: str) -> dict[str, str | int]:
    """Return the keys of md's array whose first sync is over; `first_sync` replaces their line."""
    return {} if level in _NEVER_SYNCED else {"synced": True}


def first_sync(level: str, members: int) -> tuple[Assumed, ...]:
    """Return whether the first sync of md's array was over when it was measured, where the text does not say.

    RAID0 and linear have none. mdadm makes a RAID5 degraded and has its last member rebuilt (mdadm(8), CREATE MODE);
    other levels are compared, as by a check.
    """
    if level in _NEVER_SYNCED:
        return ()
    running = f"rebuild = {members - 1}" if level in ("raid4", "raid5") else "check = true"
    lines = (("over", "synced = true"), ("running", running))
    return (Assumed("md's array", "first sync", "over", "over", "running", lines),)
