"""Job files written after fio's HOWTO, each with its expected conversion as JSON, like a resolved workload."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spindle import _core
from spindle.formats.fio_job import Conversion, convert, toml_of
from spindle.formats.fio_job.options import option_of

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.fio"))


def expected_of(file: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(file.with_suffix(".json").read_text())
    return expected


def converted(file: Path) -> Conversion:
    return convert(str(file), environment=expected_of(file).get("environment", {}))


def holds(found: Any, expected: Any, place: str) -> None:
    """Check that the expected keys have their values; other keys may have any."""
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


PEOPLE_USE = """
rw bs bsrange bssplit size offset offset_increment io_size iodepth numjobs direct sync fsync fdatasync
end_fsync rwmixread random_distribution rate rate_iops rate_process thinktime thinktime_spin thinktime_blocks
thinktime_iotime runtime time_based ramp_time startdelay filename directory nrfiles filesize file_service_type
group_reporting new_group stonewall wait_for ioengine prio prioclass verify norandommap randseed
buffer_compress_percentage latency_target latency_window latency_percentile steadystate percentile_list
write_bw_log write_lat_log write_iops_log log_avg_msec loops number_ios
"""


def test_the_corpus_has_every_option_that_people_use() -> None:
    assert len(FILES) >= 40
    given = {option_of(found) for file in FILES for found in re.findall(r"^\s*([a-z_]+)", file.read_text(), flags=re.M)}
    assert [name for name in PEOPLE_USE.split() if option_of(name) not in given] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_job_file_means_what_the_howto_says(file: Path) -> None:
    expected, conversion = expected_of(file), converted(file)
    said = sorted([finding.level.value, finding.option] for finding in conversion.findings)
    assert said == sorted(expected["says"])
    assert conversion.refused == any(level == "error" for level, _ in said)
    if conversion.refused:
        return
    workload = _core.Workload.parse(toml_of(conversion), file.name, "job")
    specs = [json.loads(phase.to_json()) for phase in workload.phases() or [workload]]
    holds(specs, expected["phases"], "phases")
    for name in ("target", "engine", "cpus", "files"):
        if name in expected:
            holds(getattr(conversion, name), expected[name], name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_finding_names_a_line_of_the_file(file: Path) -> None:
    for finding in converted(file).findings:
        text = Path(finding.place.file).read_text().splitlines()
        assert 1 <= finding.place.line <= len(text)
        assert "\n" not in str(finding)
        assert finding.text
