"""docs/reference/monitor.md names every column with its unit, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from spindle.monitor import CGROUP, DISK, HOST

PAGE = (Path(__file__).parents[2] / "docs/reference/monitor.md").read_text()


def rows(heading: str) -> dict[str, str]:
    """Column -> unit."""
    section = re.split(r"^## ", PAGE.split(f"## {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    found = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            found.update(dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), cells[1]))
    return found


def test_every_column_of_a_device_is_on_the_page_with_its_unit_in_order() -> None:
    assert list(rows("Columns of a device").items()) == [(column.name, column.unit) for column in DISK]


def test_every_column_of_the_machine_is_on_the_page_with_its_unit() -> None:
    assert rows("Columns of the machine") == {column.name: column.unit for column in HOST}


def test_every_column_of_a_group_is_on_the_page() -> None:
    section = PAGE.split("## Control groups\n", 1)[1]
    assert all(f"`{column.name}`" in section for column in CGROUP)
