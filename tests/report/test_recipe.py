"""The commands of a report repeat exactly the run."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, assume, given, settings
from msgspec.structs import replace

from spindle import _core
from spindle.cli.options.keys import key_options, overrides_of, set_option
from spindle.report.document.recipe import Recipe, recipe_of, toml
from spindle.result.document import read
from spindle.result.record import PhasesRecord, Record, RunRecord, WorkloadRequest
from spindle.run.resolve import ResolvedWorkload, resolve, resolve_text
from tests.program import Ended
from tests.report import drawn
from tests.report.subjects import machine, modelled, randomio


@pytest.mark.parametrize("name", _core.preset_names())
def test_a_workload_written_out_resolves_to_itself(name: str) -> None:
    spec = resolve(name).spec
    assert resolve_text(toml(spec), "written.toml", name).spec == spec


@click.command()
@click.argument("workload")
@click.argument("target")
@key_options
@set_option
def run(workload: str, target: str, assignments: tuple[tuple[str, str], ...], **values: Any) -> Any:
    """The workload options of a `spindle run` command."""
    return workload, [*overrides_of(values), *assignments]


def asked_by(recipe: Recipe) -> ResolvedWorkload:
    """The workload of a recipe."""
    workload, overrides = run.main(shlex.split(recipe.command)[2:], standalone_mode=False)
    overrides.append(("seed", str(recipe.seed)))
    files = dict(recipe.files)
    return resolve_text(files[workload], workload, "file", overrides) if files else resolve(workload, overrides)


def requests(workload: ResolvedWorkload) -> Iterator[Any]:
    """The first requests of every stream, or why there are none."""
    for load in workload.phases or [workload]:
        for number in range(len(load.spec.streams)):
            try:
                yield load.core.requests(number, 0, 1 << 30, 512, 60)
            except _core.ConfigError as error:
                yield str(error)


@pytest.mark.promise(26)
@given(drawn.workloads())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_the_recipe_of_any_record_gives_the_same_requests(workload: ResolvedWorkload | None) -> None:
    assume(workload is not None)
    assert workload is not None
    run = randomio()
    assert isinstance(run, RunRecord)
    spec = workload.spec
    run = replace(run, seed=spec.seed, workload=spec)
    record: Record = run
    if spec.phases:
        whole = {name: getattr(run, name) for name in ("id", "started", "tool", "target", "verdicts")}
        record = PhasesRecord(**whole, workload=spec, phases=[], runs=[run])
    for request in (None, workload.request):  # older records do not have one
        recipe = recipe_of(replace(record, request=request))
        assert recipe is not None
        again = asked_by(recipe)
        assert replace(again.spec, name=spec.name) == spec
        assert list(requests(again)) == list(requests(workload))


@pytest.mark.promise(26)
def test_no_key_is_lost_when_a_workload_is_written_out() -> None:
    usual = resolve("saturate").spec
    written: set[str] = set()
    for name in drawn.OPTIONS:
        with contextlib.suppress(_core.ConfigError):  # it needs other keys too: see above
            spec = resolve("saturate", [(name, drawn.KEYS[name]["example"])]).spec
            assert resolve_text(toml(spec), "written.toml", spec.name).spec == spec, name
            written |= {name} if spec != usual else set()
    assert {"verify", "verify_fatal", "size", "osync", "priority"} <= written


def test_the_command_of_a_modelled_run_gives_the_same_record(
    invoke: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record = randomio("six-sata-f2", workers=7)
    recipe = recipe_of(record)
    assert recipe is not None
    assert recipe.files == ()
    assert recipe.command == "spindle run randomio six-sata-f2 --seconds 8s --size 64KiB --workers 7"
    assert invoke(*shlex.split(recipe.command)[1:], "-q", "-o", "again.json").status == 0
    again = read(Path("again.json"))
    assert isinstance(again, RunRecord)
    assert replace(again, request=record.request) == record  # the options are written in another way


def test_unnamed_machines_and_workloads_are_given_as_files(
    invoke: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workload = tmp_path / "night.toml"
    workload.write_text("seconds = 2\nsize = '8KiB'\n[[stream]]\nname = 'a'\n[[stream]]\nname = 'b'\ndepth = 3\n")
    record = modelled(str(workload), machine(tmp_path, "four", "raid0"))
    recipe = recipe_of(record)
    assert isinstance(record, RunRecord)
    assert recipe is not None
    assert recipe.command == "spindle run night.toml four-machine.toml"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    for name, text in recipe.files:
        Path(name).write_text(text)
    assert invoke(*shlex.split(recipe.command)[1:], "-q", "-o", "again.json").status == 0
    again = read(Path("again.json"))
    assert isinstance(again, RunRecord)
    assert again.figures == record.figures
    assert again.id == record.id


def test_a_workload_file_is_repeated_unchanged(tmp_path: Path) -> None:
    workload = tmp_path / "night.toml"
    text = "# Backup at night.\nseconds = 1\n[[stream]]\nname = 'a'\n[[stream]]\nname = 'b'\ndepth = 3\n"
    workload.write_text(text)
    record = modelled(str(workload), "one-sata", ("size", "8KiB"), ("seed", "7"))
    assert isinstance(record, RunRecord)
    assert record.request == WorkloadRequest(source=str(workload), toml=text, options=[("size", "8KiB"), ("seed", "7")])
    recipe = recipe_of(record)
    assert recipe == Recipe("spindle run night.toml one-sata --size 8KiB", (("night.toml", text),), seed=7)


def test_a_request_that_differs_from_the_run_is_not_repeated(tmp_path: Path) -> None:
    workload = tmp_path / "night.toml"
    workload.write_text("seconds = 1\n[[stream]]\nname = 'a'\n")
    record = modelled(str(workload), "one-sata")
    assert isinstance(record, RunRecord)
    assert record.request is not None
    other = replace(record, request=replace(record.request, toml=record.request.toml + "depth = 5\n"))
    recipe = recipe_of(other)
    assert recipe is not None
    assert recipe.files == (("night.toml", toml(record.workload)),)


def test_a_sweep_is_repeated_as_a_sweep() -> None:
    recipe = recipe_of(modelled("oltp", "one-sata", ("seconds", "2"), find_knee=True))
    assert recipe is not None
    assert recipe.command == "spindle run oltp one-sata --seconds 2s --find-knee"
