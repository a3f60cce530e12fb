"""A test file whose size nobody asked for: the rule where space and time permit, and a word where not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from spindle.conditions import IdleCheck
from spindle.conditions.sizing import SizeRule
from spindle.result.document import decode
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.rules import judge
from spindle.run import files
from tests.cli.records import quiet_read
from tests.program import Invoke

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second in which the machine is watched is not what is tested here."""
    monkeypatch.setattr("spindle.run.preparation.conditions.idle_check", lambda _devices: IdleCheck(0.0, [], {}))


@pytest.fixture
def rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose caches ask for 96 MiB, and files that need not be large for their seeks."""
    monkeypatch.setattr(files, "rule_at", lambda _place, _spec: SizeRule(True, 0, 0, 48 * MIB, []))
    monkeypatch.setattr(files, "FULL_FILE_BYTES", MIB)


def run(invoke: Any, *options: str) -> RunRecord:
    ended = invoke("run", "randomio", "t.bin", "--seconds", "0.2", "--quiet", "--json", *options)
    found = decode(ended.out.encode(), "stdout")
    assert isinstance(found, RunRecord)
    return found


def size_verdict(found: RunRecord) -> Verdict:
    return next(one for one in found.verdicts if one.check == "sample-size")


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("option", [["--create", "--quiet"], ["--create", "auto"], ["--create=auto"]])
def test_without_a_size_the_file_is_as_large_as_the_caches_need(invoke: Invoke, here: Path, option: list[str]) -> None:
    found = run(invoke, *option)
    assert found.target.size_bytes == 96 * MIB
    assert size_verdict(found).level is Level.OK
    assert not (here / "t.bin").exists()


@pytest.mark.usefixtures("rule")
def test_with_little_space_the_file_is_smaller_and_the_rule_is_reported(
    invoke: Invoke, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = SimpleNamespace(f_blocks=1000, f_bavail=150, f_frsize=MIB)
    monkeypatch.setattr("spindle.run.files.os.statvfs", lambda _path: space)
    found = run(invoke, "--create", "auto")
    assert found.target.size_bytes == 75 * MIB
    seen = size_verdict(found)
    assert seen.level is Level.WARN
    assert "the test file has 75 MiB, the caches ask for 96 MiB" in seen.evidence
    assert "to be safe 1.88 GiB (40 times): there is no room for more" in seen.evidence
    assert seen.numbers["wanted_bytes"] == 96 * MIB


@pytest.mark.usefixtures("rule")
def test_with_slow_writing_the_file_is_smaller_and_the_reason_is_reported(
    invoke: Invoke, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that runs ahead with every look makes any disk slow."""
    ticks = iter(range(0, 10**9, 100))
    monkeypatch.setattr("spindle.run.files.time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    monkeypatch.setattr("spindle.run.order.OF_A_RUN", files.Limits(free_share=0.5, seconds=150.0))
    found = run(invoke, "--create", "auto")
    assert 64 * MIB <= found.target.size_bytes < 96 * MIB
    assert "writing more would take too long" in size_verdict(found).evidence


@pytest.mark.usefixtures("rule")
def test_a_given_size_is_used_unchanged(invoke: Invoke, here: Path) -> None:
    found = run(invoke, "--create", "16MiB")
    assert found.target.size_bytes == 16 * MIB
    assert not [one for one in found.verdicts if one.check == "sample-size"]


def test_a_wrong_size_is_reported_with_the_allowed_forms(invoke: Invoke, here: Path) -> None:
    ended = invoke("run", "randomio", "t.bin", "--create", "much", "--quiet")
    assert ended.status == 2
    assert "or auto" in ended.complaint


def test_a_data_set_within_the_caches_of_drives_is_reported_even_if_their_size_is_unknown() -> None:
    found = quiet_read()

    def judged(assumed: list[str], used: int) -> list[Verdict]:
        detail = {"region_bytes": used, "size_rule": {"hidden_bytes": 512 * MIB, "assumed": assumed}}
        changed = replace(found, target=replace(found.target, detail={**found.target.detail, **detail}))
        return [one for one in judge(changed) if one.check == "working-set"]

    assert judged(["sda"], GIB) == []
    (seen,) = judged(["sda"], 100 * MIB)
    assert (
        "100 MiB are used, the caches of drives and controllers may hold 512 MiB (not reported by sda)" in seen.evidence
    )
    (seen,) = judged([], 100 * MIB)
    assert "hold 512 MiB" in seen.evidence
    assert "not reported" not in seen.evidence
