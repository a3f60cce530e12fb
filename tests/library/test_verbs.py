"""Functions that verbs print: a conversion, a schema, the test for a regression, settings put back."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

import spindle


def test_a_job_file_becomes_a_workload_with_its_differences(here: Path) -> None:
    Path("j.fio").write_text("[a]\nrw=randread\nsize=1m\nnice=3\n[b]\nrw=read\nsize=1m\n")
    converted = spindle.convert("j.fio", "null:1GiB", section="a")
    Path("w.toml").write_text(converted.to_toml())
    assert spindle.run("w.toml", "null:1GiB").workload == "w"
    assert [job["name"] for job in converted.to_dict()["jobs"]] == ["a"]
    assert not any(finding.is_error for finding in converted.remarks)


def test_a_job_file_that_cannot_be_run_has_its_reasons(here: Path) -> None:
    Path("j.fio").write_text("[a]\nrw=read\nsize=1m\nioengine=foo\n")
    converted = spindle.convert("j.fio")
    assert [finding.option for finding in converted.findings if finding.is_error] == ["ioengine"]
    with pytest.raises(spindle.Error, match="ioengine: `foo` is not supported"):
        converted.to_toml()


def test_a_result_fits_its_schema() -> None:
    result = spindle.run("seeker", "one-sata", seconds=1)
    jsonschema.validate(result.to_dict(), spindle.schema("result"))
    jsonschema.validate(spindle.inspect("/").to_dict(), spindle.schema("inspect"))


def test_a_slower_machine_is_a_regression(tmp_path: Path) -> None:
    with spindle.open_store(tmp_path / "s.db") as store:
        for seed in range(4):
            for machine, tag in (("six-sata-f2", "six"), ("one-sata", "one")):
                spindle.run("seeker", machine, seconds=2, seed=seed, workers=8, store=store, tags=[tag])
        lost = spindle.check("tag:one", baseline="six", store=store, metrics="iops", across_time=True)
        same = spindle.check("tag:six", baseline="tag:six", store=store, metrics="iops", across_time=True)
    assert lost
    assert lost.outcome == lost.to_dict()["outcome"] == "lost"
    assert lost.worst.metric == "iops"
    assert "lost more than" in str(lost)
    assert not same


def test_nothing_is_restored_where_nothing_was_left_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert spindle.restore().to_dict()["items"] == []
