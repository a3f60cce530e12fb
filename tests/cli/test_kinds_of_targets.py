"""One parser says what a target's name means; each kind says what makes no sense on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.run.resolve import resolve
from spindle.run.targets import KINDS, MachineTarget, NullTarget, PathTarget, parse, refusal
from spindle.run.watch import SilentWatch
from tests.program import Ended


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("null:1GiB", NullTarget),
        ("six-sata-f2", MachineTarget),
        ("some/machine.toml", MachineTarget),
        ("t.bin", PathTarget),
        ("/dev/sdb", PathTarget),
        ("/dev/sdb:/dev/sdc", PathTarget),
        (".", PathTarget),
    ],
)
def test_a_name_is_of_one_kind(here: Path, name: str, kind: type) -> None:
    assert type(parse(name)) is kind
    assert next(one for one in KINDS if one.parse(name) is not None) is kind


def test_a_file_here_goes_before_a_machine_of_the_catalogue(here: Path) -> None:
    (here / "six-sata-f2").touch()
    assert isinstance(parse("six-sata-f2"), PathTarget)


def test_several_paths_are_one_target(here: Path) -> None:
    several = parse("a:b\\:c").several
    assert several is not None
    assert several.paths == ["a", "b:c"]
    (here / "a:b").touch()
    assert parse("a:b").several is None


@pytest.mark.parametrize("name", ["null:1MiB", "one-sata"])
def test_a_target_that_is_not_on_this_machine_opens_without_a_place(name: str) -> None:
    target = parse(name)
    assert target.place is None
    load = resolve("randomio", [("seconds", "0.2")])
    with target.open(load, SilentWatch()) as opened:
        assert opened.place == name
        record = opened.measure(load).record
    assert record.target.asked == name
    assert record.target.traits.is_modelled == target.is_modelled
    assert record.settings.before == {}


RUN = {
    "create": ("--create", "1MiB"),
    "keep": ("--keep",),
    "erase": ("--erase", "/dev/null"),
    "iopoll": ("--iopoll",),
    "sqpoll": ("--sqpoll",),
    "cpus": ("--cpus", "0"),
    "engine": ("--engine", "pread"),
    "log": ("--log", "log.csv"),
    "verify": ("--verify",),
    "verify_state": ("--verify-state", "state"),
    "drop_caches": ("--drop-caches",),
    "sync": ("--sync", "machine"),
    "wait_idle": ("--wait-idle", "1"),
    "quiet_machine": ("--quiet-machine",),
    "precondition": ("--precondition",),
    "trace": ("--trace", "trace.csv"),
    "status_interval": ("--status-interval", "1"),
}
"""Options of `run` by the keys of refusals."""
PLANS = {"setup", "teardown", "filesystem", "load.command"}


@pytest.mark.parametrize("name", ["null:1GiB", "one-sata", "t.bin", "a:b"])
def test_run_refuses_each_option_that_makes_no_sense_on_a_target(
    invoke: Callable[..., Ended], here: Path, name: str
) -> None:
    refusals = parse(name).refusals
    assert set(refusals) <= set(RUN) | PLANS
    for key in set(refusals) - PLANS:
        done = invoke("run", "randomio", name, "--write-fraction", "0", *RUN[key])
        assert (done.status, done.complaint) == (2, f"spindle: {RUN[key][0]}: {refusals[key]}"), key


def test_plans_refuse_the_same(invoke: Callable[..., Ended], here: Path) -> None:
    for name, line in (("one-sata", 'setup = [["true"]]'), ("null:1GiB", 'create = "1MiB"')):
        (here / "p.toml").write_text(f'workload = "randomio"\ntarget = "{name}"\n{line}\n')
        key = line.partition(" ")[0]
        done = invoke("campaign", "run", "p.toml", "--dry-run")
        refused = refusal(parse(name), [key])
        assert refused is not None
        assert done.status == 2
        assert f": {key}: {refused[1]}" in done.complaint
