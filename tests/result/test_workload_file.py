"""The JSON Schema of a workload file takes what the core takes."""

from __future__ import annotations

import tomllib

import jsonschema
import pytest

from spindle import _core
from spindle.result.workload_file import schema
from tests.program import Ended, Invoke

CHECK = jsonschema.Draft202012Validator(schema())


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", _core.preset_names())
def test_it_takes_presets_as_they_are_and_as_they_are_written_out(name: str) -> None:
    text = _core.preset_text(name)
    CHECK.validate(tomllib.loads(text))
    CHECK.validate(tomllib.loads(_core.Workload.parse(text, name, name).to_toml()))


@pytest.mark.parametrize(
    "text",
    [
        "sise = '4KiB'",
        "pattern = 'unifrom'",
        "workers = 0",
        "workers = 'many'",
        "direct = 'yes'",
        "write_fraction = 1.5",
        "zipf_theta = 11",
        "[[stream]]\nseconds = 5",
        "[[phase]]\nname = 'a'\nfill = false",
        "[[files]]\nsize = '4KiB'",
    ],
)
def test_it_refuses_what_the_core_refuses(text: str) -> None:
    assert list(CHECK.iter_errors(tomllib.loads(text)))
    with pytest.raises(_core.ConfigError):
        _core.Workload.parse(text, "f.toml", "f")


@pytest.mark.parametrize(
    "text", ["seconds = 'none'\nbytes = '1GiB'", "rate = 500", "stop_passes = 2.5", "think = 'none'"]
)
def test_it_takes_none_and_bare_numbers(text: str) -> None:
    CHECK.validate(tomllib.loads(text))
    _core.Workload.parse(text, "f.toml", "f")


def test_the_program_prints_it(invoke: Invoke) -> None:
    ended: Ended = invoke("schema", "workload-file")
    assert ended.status == 0
    assert '"spindle workload file"' in ended.out
