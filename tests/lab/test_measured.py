"""Measured cases in the lab: `spindle validate kernel DIR --kernel`. They need its kernel (`make lab`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spindle.library.validation import validate_kernel
from spindle.validation.kernel import steps
from spindle.validation.kernel.cases import read_cases
from tests.program import spindle

pytestmark = pytest.mark.usefixtures("lab")
MEASURED = Path(__file__).parent.parent / "data/kernel61-lab"
SYNCED = MEASURED.with_name("kernel61-synced")
ALL = [case.name for case in read_cases(MEASURED)]
INTEL = steps.Linker(hidden=("LZCNT", "AVX512CD"), added=("x86-64-v4", "x86-64-v3"))


@pytest.mark.parametrize("case", ALL)
def test_a_measured_case_is_repeated(case: str) -> None:
    done = spindle("validate", "kernel", MEASURED, "--kernel", "--only", case, "--json")
    [compared] = json.loads(done.out)["compared"]
    assert compared["sizes_equal"]
    if compared["table"] == "requests.csv":
        assert compared["equal_traces"] == compared["traces"] > 0, compared
    else:
        assert compared["equal_orders"] == compared["orders"] > 0, compared
    assert done.status == 0


@pytest.mark.parametrize(
    "name",
    ["i-raid1-randwrite-bs4-d1-bitmap", "f-raid0-c512-ext4-append-fsync", "g-raid6-c512-randwrite-bs64-d8-deg1"],
)
def test_a_cpu_of_a_lower_level_gives_the_same_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the dynamic linker looks for libraries in fewer folders of itself. One reading of the clock more or less in
    mdadm, dd or mkfs.ext4 would change two of the cases."""
    lower = steps.Linker(hidden=("AVX512F", *INTEL.hidden), added=INTEL.added)
    monkeypatch.setattr(steps, "_linker", lambda: lower)
    [compared] = validate_kernel(MEASURED, kernel="default", only=[name]).compared
    assert compared.traces
    assert compared.equal_traces == compared.traces


@pytest.mark.parametrize("name", ["r-raid6-c512-check-bs1024", "r-raid1-rebuild-limit20000-bs1024"])
def test_a_check_and_a_rebuild_have_the_measured_requests_and_time(name: str) -> None:
    [compared] = validate_kernel(SYNCED, kernel="default", only=[name]).compared
    assert compared.sizes_equal
    assert compared.requests_error == 0
    assert abs(compared.time_error) < 1e-4


LEGACY = """
Legacy HWCAP subdirectories under library search path directories:
  {} (AT_PLATFORM; supported, searched)
  tls (supported, searched)
  avx512_1{}
  x86_64 (supported, searched)
"""
LEVELS = """
Subdirectories of glibc-hwcaps directories, in priority order:
  x86-64-v4{}
  x86-64-v3{}
  x86-64-v2 (supported, searched)
"""
SEARCHED = " (supported, searched)"


@pytest.mark.parametrize(
    ("said", "needed"),
    [
        (LEVELS.format(SEARCHED, SEARCHED) + LEGACY.format("x86_64", ""), steps.Linker()),
        (LEVELS.format("", SEARCHED) + LEGACY.format("x86_64", ""), steps.Linker(added=("x86-64-v4",))),
        (LEVELS.format("", "") + LEGACY.format("x86_64", ""), steps.Linker(added=("x86-64-v4", "x86-64-v3"))),
        (LEVELS.format(SEARCHED, SEARCHED) + LEGACY.format("haswell", SEARCHED), INTEL),
        (LEVELS.format("", SEARCHED) + LEGACY.format("haswell", ""), INTEL),
        (LEVELS.format(SEARCHED, SEARCHED), steps.Linker()),
        ("", steps.Linker()),
    ],
    ids=["AMD v4", "AMD v3", "AMD v2", "Intel v4", "Intel v3", "glibc 2.37", "no linker"],
)
def test_the_dynamic_linker_of_any_cpu_is_led_to_the_same_folders(said: str, needed: steps.Linker) -> None:
    assert steps.linker_of(said) == needed


def test_a_case_that_differs_is_listed_and_misses_the_goal(tmp_path: Path) -> None:
    [case] = [case for case in ALL if "randread" in case and case.startswith("el-single")]
    text = (MEASURED / "elevators.csv").read_text()
    [row] = [line for line in text.splitlines() if line.startswith(case + ",")]
    changed = row[:-33] + "0" * 16 + row[-17:]
    (tmp_path / "elevators.csv").write_text(text.replace(row, changed))
    done = spindle("validate", "kernel", tmp_path, "--kernel", "--only", case)
    assert done.status == 1
    assert "none, mq-deadline, kyber: same order: 0 of 1 (goal 100%: missed)" in done.out


def test_patterns_that_fit_no_case_are_one_clear_line() -> None:
    done = spindle("validate", "kernel", MEASURED, "--only", "walk-*")
    assert done.status != 0
    assert "no case is named walk-*" in done.complaint
