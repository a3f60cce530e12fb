"""Job files written after fio's HOWTO, each with what it means: JSON beside it, as in a resolved workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spindle import _core
from spindle.formats.fio_job import Conversion, convert, toml_of

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.fio"))


def expected_of(file: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(file.with_suffix(".json").read_text())
    return expected


def converted(file: Path) -> Conversion:
    return convert(str(file), environment=expected_of(file).get("environment", {}))


def holds(found: Any, expected: Any, place: str) -> None:
    """What is expected is there; what is not mentioned may be anything."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            holds(found[key], value, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, value in enumerate(expected):
            holds(found[number], value, f"{place}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected), place
    else:
        assert found == expected, place


def test_the_corpus_has_at_least_forty_files() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_job_file_means_what_the_howto_says(file: Path) -> None:
    expected, conversion = expected_of(file), converted(file)
    said = sorted([finding.level.value, finding.option] for finding in conversion.findings)
    assert said == sorted(expected["says"])
    assert conversion.refused == any(level == "error" for level, _ in said)
    if conversion.refused:
        return
    specs = [
        json.loads(_core.Workload.parse(toml_of(conversion, phase), file.name, "job").to_json())
        for phase in conversion.phases
    ]
    holds(specs, expected["phases"], "phases")
    if "target" in expected:
        assert conversion.phases[0].target == expected["target"]
    if "engine" in expected:
        assert conversion.phases[0].engine == expected["engine"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_line_names_a_place_in_the_file(file: Path) -> None:
    for finding in converted(file).findings:
        text = Path(finding.place.file).read_text().splitlines()
        assert 1 <= finding.place.line <= len(text)
        assert "\n" not in str(finding)
        assert finding.text
