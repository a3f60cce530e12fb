"""Cases measured with the real kernel, repeated by the simulator (`spindle validate kernel`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.report.terminal.kernel_cases import kernel_page
from spindle.validation.kernel.cases import CasesError, Load, read_cases
from spindle.validation.kernel.compare import CaseComparison, SkippedCase, compare, repeated, report
from spindle.validation.kernel.fast import SimulatorRunner
from tests.program import spindle

MEASURED = Path(__file__).parent.parent / "data/kernel61"
TURNS = MEASURED.with_name("kernel61-turns")
FILES = MEASURED.with_name("kernel61-files")
STRIPES = MEASURED.with_name("kernel61-stripes")


def all_compared(folder: Path) -> list[CaseComparison]:
    """Each case of the folder, repeated by the simulator; none may be left out."""
    outcomes = [repeated(case, SimulatorRunner()) for case in read_cases(folder)]
    compared = [of for of in outcomes if isinstance(of, CaseComparison)]
    assert len(compared) == len(outcomes)
    return compared


def test_a_case_compared_with_itself_agrees() -> None:
    for case in read_cases(MEASURED):
        compared = compare(case, case.measured)
        assert compared.agrees
        assert compared.sizes_equal
        assert compared.orders == compared.equal_orders


def test_random_loads_go_where_the_measured_ones_went() -> None:
    load = Load(write=False, random=True, size_bytes=4096, depth=1, count=3)
    assert load.offsets() == [155574272, 13889536, 181604352]


def test_each_case_is_repeated() -> None:
    compared = all_compared(MEASURED)
    assert all(of.agrees for of in compared), [of.case for of in compared if not of.agrees]
    assert all(of.orders == of.equal_orders for of in compared)


def test_a_case_of_another_kind_is_left_with_a_reason(tmp_path: Path) -> None:
    text = (MEASURED / "requests.csv").read_text()
    (tmp_path / "requests.csv").write_text(text.replace(",append-fsync,", ",truncate,"))
    outcomes = {case.name: repeated(case, SimulatorRunner()) for case in read_cases(tmp_path)}
    skipped = {name for name, of in outcomes.items() if isinstance(of, SkippedCase)}
    assert skipped == {"f-single-ext4-append-fsync"}
    assert "1 cases: truncate" in "\n".join(kernel_page(report(tmp_path, SimulatorRunner())))


def test_new_files_get_the_requests_that_the_lab_has_seen() -> None:
    compared = all_compared(FILES)
    others = [of.case for of in compared if not (of.requests_agree and of.time_agrees)]
    assert not others


def test_rows_of_the_stripe_cache_become_the_lab_s_requests() -> None:
    compared = all_compared(STRIPES)
    others = [of.case for of in compared if not (of.sizes_equal and of.time_agrees)]
    assert not others


def test_cases_on_a_file_system_that_is_not_modelled_are_left_with_a_reason(tmp_path: Path) -> None:
    text = (FILES / "requests.csv").read_text()
    (tmp_path / "requests.csv").write_text(text.replace(",ext4,", ",btrfs,"))
    systems = [case.file_system for case in read_cases(tmp_path)]
    assert set(systems) == {"btrfs", "xfs"}
    done = spindle("validate", "kernel", tmp_path)
    assert f'{systems.count("btrfs")} cases: [filesystem] `type = "btrfs"` of the machine is not modelled' in done.out


def test_threads_take_turns_as_in_the_lab() -> None:
    compared = all_compared(TURNS)
    assert all(of.agrees for of in compared), [of.case for of in compared if not of.agrees]
    others = [of.case for of in compared if of.orders != of.equal_orders]
    assert not others


def test_the_page_counts_every_case() -> None:
    page = "\n".join(kernel_page(report(MEASURED, SimulatorRunner())))
    assert "time within 5 %: 12 of 12 (goal 95%: reached)" in page
    assert "not modelled" not in page


def test_the_verb_fails_when_a_goal_is_missed(tmp_path: Path) -> None:
    assert spindle("validate", "kernel", MEASURED).status == 0
    text = (MEASURED / "requests.csv").read_text()
    (tmp_path / "requests.csv").write_text(text.replace("219627776", "319627776"))
    done = spindle("validate", "kernel", tmp_path)
    assert done.status == 1
    assert "goals are missed" in done.complaint


def test_a_folder_without_tables_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(CasesError, match="neither"):
        read_cases(tmp_path)
    (tmp_path / "requests.csv").write_text("case,op\nx,randread\n")
    with pytest.raises(CasesError, match="case x"):
        read_cases(tmp_path)
    assert "case x" in spindle("validate", "kernel", tmp_path).complaint
