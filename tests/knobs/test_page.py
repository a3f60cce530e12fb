"""docs/reference/knobs.md is correct: its table is the catalogue, its tests exist; and the catalogue is consistent."""

from __future__ import annotations

import fnmatch
import os
import re
from pathlib import Path

import pytest

from spindle.host import settings
from spindle.host.devices import HERE
from spindle.knobs.catalogue import KNOBS, Knob, Scope, knob
from spindle.knobs.errors import KnobUsage
from spindle.knobs.files import Files
from spindle.knobs.places import named
from tests.workbench import Workbench

TESTS = Path(__file__).resolve().parent
PAGE = (TESTS.parent.parent / "docs/reference/knobs.md").read_text()


def row(one: Knob) -> str:
    where = " or ".join(f"`{one.folder}{path}`" for path in one.where)
    about = one.about + (f" ({', '.join(one.schedulers)})" if one.schedulers else "")
    return f"| `{one.id}` | {where} | {one.values.range} | {one.unit or '-'} | {one.since} | {about} |"


def test_the_table_on_the_page_is_the_catalogue() -> None:
    listed = [line for line in PAGE.splitlines() if re.match(r"\| `[^`]+` \| `/(sys|proc)/", line)]
    assert listed == [row(one) for one in KNOBS]


def test_every_test_named_on_the_page_exists() -> None:
    source = "\n".join(path.read_text() for path in TESTS.glob("test_*.py"))
    names = {name.removeprefix("test_") for name in re.findall(r"^def (\w+)\(", source, re.M)}
    named_there = re.findall(
        r"`([a-z0-9_]+_[a-z0-9_]+_[a-z0-9_]+(?:\.\.\.)?)`", PAGE.split("## Guarantees")[1].split("\n## ")[0]
    )
    assert len(named_there) > 25
    for name in named_there:
        assert fnmatch.filter(names, name.replace("...", "*")), f"the page names {name}, which does not exist"


def test_no_knob_is_there_twice() -> None:
    assert len({one.id for one in KNOBS}) == len(KNOBS)


def test_side_effects_of_a_knob_name_knobs_of_the_catalogue() -> None:
    for one in KNOBS:
        for other in (*one.moves, *one.disturbs, *([one.zero_of] if one.zero_of else [])):
            assert any(two.scope is one.scope and fnmatch.fnmatch(two.name, other) for two in KNOBS), other


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("scheduler", "scheduler"),
        ("queue/scheduler", "scheduler"),
        ("read_expire", "iosched/read_expire"),
        ("iosched.read_expire", "iosched/read_expire"),
        ("md/stripe_cache_size", "stripe_cache_size"),
        ("device/queue_depth", "queue_depth"),
        ("swappiness", "vm.swappiness"),
        ("governor", "cpu.governor"),
        ("smp_affinity_list", "irq.smp_affinity_list"),
    ],
)
def test_a_knob_is_found_by_the_names_people_use(asked: str, found: str) -> None:
    assert knob(asked).id == found


def test_every_read_only_setting_is_named_as_such() -> None:
    for name in settings.QUEUE:
        try:
            knob(name)
        except KnobUsage as error:
            assert "can only be read" in str(error)  # noqa: PT017
    with pytest.raises(KnobUsage, match="can only be read"):
        knob("zoned")


def test_every_writable_queue_file_of_this_kernel_is_in_the_catalogue(bench: Workbench) -> None:
    place = named(bench.loop(), HERE)
    has = {path.name for one in KNOBS if (path := place.path(one)) is not None}
    for path in (place.folder / "queue").iterdir():
        if path.is_file() and path.stat().st_mode & 0o222:
            assert path.name in has, path


def test_every_value_of_this_machine_is_one_that_the_catalogue_takes() -> None:
    """Current values can be written back: parsed, they are the same."""
    if os.geteuid() != 0 or not Path("/proc/sys/vm").is_dir():
        pytest.skip("needs root")
    seen = 0
    for target in ("vm", *sorted(os.listdir("/sys/block"))):
        place = named(target, HERE)
        for one in place.knobs(Files()):
            value = place.value(one, Files())
            if value is not None and not (value == "0" and one.zero_of):
                assert one.values.parse(value) == value, (place.address(one), value)
                seen += 1
    assert seen > len([one for one in KNOBS if one.scope is Scope.VM]) // 2
