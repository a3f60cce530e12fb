"""A target that is not there: the advice names only what the verb has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.host.paths import target_path
from tests.program import Ended


@pytest.mark.promise(26)
@pytest.mark.parametrize(
    "line",
    [
        ("quick", "/nonexistent"),
        ("run", "randomio", "/nonexistent"),
        ("durability", "/nonexistent", "--journal", "j"),
        ("inspect", "/nonexistent"),
        ("doctor", "/nonexistent"),
        ("monitor", "/nonexistent", "--count", "1"),
        ("knobs", "list", "/nonexistent"),
    ],
)
def test_the_advice_for_a_missing_target_names_only_options_of_the_verb(
    invoke: Callable[..., Ended], here: object, line: tuple[str, ...]
) -> None:
    done = invoke(*line)
    assert done.status in (1, 2)
    help_of_verb = invoke(*[word for word in line if word in ("knobs", "list")] or line[:1], "--help").out
    for verb, option in re.findall(r"(?:`spindle (\w+) )?(--[a-z-]+)", done.complaint):
        assert option in (invoke(verb, "--help").out if verb else help_of_verb), done.complaint


def free_loop() -> str:
    """A loop device with nothing behind it: whatever is asked of it, nothing happens."""
    for place in sorted(Path("/sys/class/block").glob("loop*"), reverse=True):  # the last: losetup takes the first
        if (place / "size").read_text().strip() == "0" and Path("/dev", place.name).is_block_device():
            return place.name
    pytest.skip("no loop device is free")


@pytest.mark.promise(30)
@pytest.mark.parametrize(
    "line",
    [
        ("run", "seeker", "NAME", "--seconds", "1"),
        ("run", "seeker", "NAME", "--seconds", "1", "--erase", "NAME"),
        ("run", "seeker", "NAME:NAME", "--seconds", "1"),
        ("quick", "NAME"),
        ("inspect", "NAME"),
        ("doctor", "NAME"),
        ("durability", "NAME", "--erase", "NAME", "--yes", "--journal", "j"),
        ("fio", "--name=x", "--rw=randread", "--target", "NAME"),
        ("campaign", "run", "p.toml", "--dry-run"),
    ],
)
def test_a_bare_name_of_a_device_means_the_device_in_every_verb(
    invoke: Callable[..., Ended], here: Path, line: tuple[str, ...]
) -> None:
    def done(name: str) -> tuple[int, str, str]:
        plan = f'name = "p"\ntarget = "{name}"\nworkload = "randomio"\n[factors]\nsize = ["4KiB", "8KiB"]\n'
        (here / "p.toml").write_text(plan)
        ended = invoke(*(word.replace("NAME", name) for word in line))
        return ended.status, ended.out, ended.err

    name = free_loop()
    bare, full = done(name), done(f"/dev/{name}")
    assert bare == full
    assert "does not exist" not in bare[2]
    assert "--help" not in bare[2]


@pytest.mark.promise(30)
def test_a_file_here_goes_before_a_device_of_its_name(here: Path) -> None:
    name = free_loop()
    assert target_path(name) == f"/dev/{name}"
    assert target_path(f"{name}:{name}") == f"/dev/{name}:/dev/{name}"
    assert target_path(f"./{name}") == f"./{name}"
    (here / name).touch()
    assert target_path(name) == name
    assert [target_path(text) for text in ("null:1GiB", ".", "no-such-device")] == [
        "null:1GiB",
        ".",
        "no-such-device",
    ]
