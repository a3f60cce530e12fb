"""Preparation of a run: options, refusals, the record."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spindle import conditions
from spindle.conditions import ConditionFinding, IdleCheck
from spindle.result.document import decode
from spindle.result.record import Level, RunRecord
from tests.program import Invoke

BAD = ConditionFinding("swap", "warn", "the machine is swapping: 40 pages/s", {"pages_per_s": 40.0})
WORSE = ConditionFinding("array_sync", "invalid", "md0 is busy with its check", {"done": 0.5})
FINE = ConditionFinding("swap", "ok", "no swap in use")

Machine = list[list[ConditionFinding]]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The findings of each check in turn; the last ones stay."""
    answers: Machine = []

    def check(_devices: object) -> IdleCheck:
        return IdleCheck(0.0, answers.pop(0) if len(answers) > 1 else answers[0], {}, ["heat of CPUs: not counted"])

    monkeypatch.setattr(conditions, "idle_check", check)
    return answers


def run(invoke: Any, *options: str) -> Any:
    return invoke("run", "randomio", "t.bin", "--create", "16MiB", "--seconds", "0.2", "--quiet", *options)


def record_of(ended: Any) -> RunRecord:
    found = decode(ended.out.encode(), "stdout")
    assert isinstance(found, RunRecord)
    return found


def test_a_machine_that_is_not_quiet_is_refused_with_a_line_for_each_condition(
    invoke: Invoke, here: Path, machine: Machine
) -> None:
    machine.append([BAD, WORSE])
    ended = run(invoke, "--strict")
    assert ended.status == 1
    assert ended.out == ""
    first, second, last = ended.err.splitlines()
    assert first.startswith("spindle: the machine is swapping: 40 pages/s; free memory")
    assert second.startswith("spindle: md0 is busy with its check; wait until it is done")
    assert last.startswith("spindle: not measured: 2 conditions are bad")
    assert not (here / "t.bin").exists()


def test_a_busy_machine_is_refused_before_a_test_file_is_written(
    invoke: Invoke, here: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.append([BAD])
    monkeypatch.setattr("spindle.run.order.own_file", lambda *_: pytest.fail("a file is made"))
    assert run(invoke, "--strict").status == 1


def test_without_strict_a_busy_machine_is_measured_with_a_warning(invoke: Invoke, here: Path, machine: Machine) -> None:
    machine.append([BAD])
    ended = run(invoke, "--json")
    assert ended.status == 0 or "invalid" in ended.out
    verdict = next(one for one in record_of(ended).verdicts if one.check == "before-swap")
    assert verdict.level is Level.WARN
    assert verdict.numbers == {"pages_per_s": 40.0}


def test_wait_idle_waits_for_the_machine_to_become_quiet(invoke: Invoke, here: Path, machine: Machine) -> None:
    machine.extend([[BAD], [WORSE], [FINE]])
    ended = run(invoke, "--json", "--wait-idle", "60")
    found = record_of(ended)
    assert next(one for one in found.verdicts if one.check == "before-swap").level is Level.OK
    assert found.preparation.waited_s > 0


def test_a_machine_that_does_not_become_quiet_in_time_is_refused(invoke: Invoke, here: Path, machine: Machine) -> None:
    machine.append([BAD])
    ended = run(invoke, "--strict", "--wait-idle", "0.01")
    assert ended.status == 1
    assert "not measured: 1 condition is bad" in ended.err


def test_conditions_that_could_not_be_checked_are_reported(invoke: Invoke, here: Path, machine: Machine) -> None:
    machine.append([FINE])
    ended = run(invoke)
    assert "not checked: heat of CPUs: not counted" in ended.out


def test_quick_refuses_a_busy_machine_too(
    invoke: Invoke, here: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.append([BAD])
    (here / "mine.bin").write_bytes(bytes(1 << 20))
    ended = invoke("quick", "mine.bin", "--strict", "--quiet")
    assert ended.status == 1
    assert "not measured" in ended.err


def test_only_the_targets_file_systems_are_written_out_unless_all_are_asked_for(
    invoke: Invoke, here: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.append([FINE])
    calls: list[str] = []
    monkeypatch.setattr("spindle.run.preparation.os.sync", lambda: calls.append("machine"))
    found = record_of(run(invoke, "--json"))
    assert found.preparation.sync == "target"
    assert calls == []
    found = record_of(run(invoke, "--json", "--sync", "machine"))
    assert found.preparation.sync == "machine"
    assert calls != []


@pytest.mark.usefixtures("need_root")
def test_dropping_caches_is_done_and_recorded(invoke: Invoke, here: Path, machine: Machine) -> None:
    machine.append([FINE])
    if not os.access("/proc/sys/vm/drop_caches", os.W_OK):
        pytest.skip("/proc/sys is read-only here")
    other = here / "other"
    other.write_bytes(os.urandom(1 << 20))
    assert record_of(run(invoke, "--json", "--drop-caches")).preparation.dropped_caches
    assert not record_of(run(invoke, "--json")).preparation.dropped_caches


def test_a_user_who_may_not_drop_caches_is_refused_before_a_file_is_made(
    invoke: Invoke, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spindle.run.preparation.may_drop_caches", lambda: False)
    ended = run(invoke, "--drop-caches")
    assert ended.status == 1
    assert "--drop-caches: only root" in ended.complaint
    assert not (here / "t.bin").exists()


@pytest.mark.parametrize(
    "option", [["--drop-caches"], ["--sync", "machine"], ["--wait-idle", "5"], ["--quiet-machine"]]
)
def test_a_modelled_machine_has_nothing_to_prepare(invoke: Invoke, here: Path, option: list[str]) -> None:
    ended = invoke("run", "randomio", "six-sata-f2", "--seconds", "1", *option)
    assert ended.status == 2
    assert f"{option[0]}: a modelled machine does not have this" in ended.complaint


def test_samples_are_taken_during_the_load(invoke: Invoke, here: Path, machine: Machine) -> None:
    machine.append([FINE])
    found = record_of(invoke("run", "randomio", "t.bin", "--create", "16MiB", "--seconds", "1.5", "--quiet", "--json"))
    assert len(found.activity.samples) >= 1
    assert all(sample.seconds > 0 for sample in found.activity.samples)
    ends = [sample.at_s for sample in found.activity.samples]
    assert ends == sorted(ends)


def test_a_record_from_before_there_were_samples_is_still_read(invoke: Invoke, here: Path, machine: Machine) -> None:
    machine.append([FINE])
    old = json.loads(run(invoke, "--json").out)
    del old["preparation"]
    for name in ("samples", "jobs", "temperature_limits", "swapped_pages"):
        del old["activity"][name]
    found = decode(json.dumps(old).encode(), "old.json")
    assert isinstance(found, RunRecord)
    assert found.activity.samples == []
    assert found.preparation.changed_settings == []
