"""The commands of a report ask for exactly what was run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subjects import machine, modelled, randomio

from program import Ended
from spindle import _core
from spindle.report.recipe import recipe_of, toml
from spindle.result.document import read
from spindle.result.record import RunRecord
from spindle.result.workload import Workload
from spindle.run.resolve import resolve, resolve_text


@pytest.mark.parametrize("name", _core.preset_names())
def test_a_workload_written_out_resolves_to_itself(name: str) -> None:
    spec = resolve(name).spec
    assert resolve_text(toml(spec), "written.toml", name).spec == spec


def takes_its_example(key: dict[str, Any]) -> Workload | None:
    """A workload with the key set to the example of its help; None: that needs other keys as well."""
    try:
        return resolve("saturate", [(key["name"], key["example"])]).spec
    except _core.ConfigError:
        return None


@pytest.mark.promise(26)
def test_no_key_is_lost_when_a_workload_is_written_out() -> None:
    usual = resolve("saturate").spec
    keys = [key for key in json.loads(_core.workload_keys()) if key["option"]]
    specs = {key["name"]: spec for key in keys if (spec := takes_its_example(key)) not in (None, usual)}
    assert {"verify", "verify_fatal", "size", "osync", "priority"} <= set(specs)
    for name, spec in specs.items():
        assert spec is not None
        assert resolve_text(toml(spec), "written.toml", spec.name).spec == spec, name


PATTERNS = st.sampled_from(
    [
        [("pattern", "sequential")],
        [("pattern", "zipf"), ("zipf_theta", "1.3")],
        [("pattern", "hot-set"), ("hot_space", "7%"), ("hot_access", "0.93")],
        [("pattern", "strided"), ("stride", "3MiB")],
        [("pattern", "runs"), ("run_length", "33")],
    ]
)
SIZES = st.sampled_from(
    ["512", "12KiB", "4KiB-64KiB:step=4KiB", "4KiB:70,64KiB:30", "log-normal:mean=26KiB,max=512KiB"]
)
LOOPS = st.sampled_from(
    [
        [],
        [("rate", "750 IOPS"), ("spacing", "poisson")],
        [("rate_limit", "10 MB/s"), ("think", "15ms"), ("think_spread", "exponential")],
        [("rate_limit", "33 IOPS")],
    ]
)
ENDS = st.sampled_from([[("seconds", "90")], [("bytes", "3GiB")], [("requests", "777")], [("until_steady", "true")]])
OTHERS = st.lists(
    st.sampled_from(
        [
            ("write_fraction", "0.25"),
            ("fsync_every", "7"),
            ("dsync", "true"),
            ("end_fsync", "true"),
            ("direct", "false"),
            ("region", "10%-35%"),
            ("region", "1GiB-3GiB"),
            ("align", "4KiB"),
            ("priority", "best-effort:3"),
            ("priority", "idle"),
            ("content", "compressible:30%"),
            ("ramp", "1500ms"),
            ("start_delay", "250us"),
            ("stop_after", "30"),
            ("stop_bytes", "1GiB"),
            ("workers", "5"),
            ("depth", "9"),
        ]
    ),
    unique_by=lambda pair: pair[0],
)


@given(PATTERNS, SIZES, LOOPS, ENDS, OTHERS)
@settings(max_examples=150, deadline=None)
def test_any_workload_written_out_resolves_to_itself(
    pattern: list[tuple[str, str]],
    size: str,
    loop: list[tuple[str, str]],
    end: list[tuple[str, str]],
    others: list[tuple[str, str]],
) -> None:
    spec = resolve("saturate", [*pattern, ("size", size), *loop, *end, *others]).spec
    assert resolve_text(toml(spec), "written.toml", spec.name).spec == spec


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
    assert read(Path("again.json")) == record


def test_machines_and_workloads_that_are_no_ones_are_given_as_files(
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


def test_a_sweep_is_repeated_as_a_sweep() -> None:
    recipe = recipe_of(modelled("oltp", "one-sata", ("seconds", "2"), find_knee=True))
    assert recipe is not None
    assert recipe.command == "spindle run oltp one-sata --seconds 2s --find-knee"
