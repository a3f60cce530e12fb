"""fio's `--output-format`: Spindle's output for a job, compared with that of fio."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from spindle import formats
from spindle.formats.fio_bins import BUCKETS, bucket_of, value_of
from spindle.formats.fio_output import OutputFormats, parse
from spindle.result.record import ImportedRecord
from tests.program import spindle

pytestmark = pytest.mark.promise(21)

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
TO_CSV = shutil.which("fio_jsonplus_clat2csv")
"""fio's own reader of json+."""

JOB = """
[global]
filename=data
size=1m
ioengine=libaio
[reads]
rw=randread
bs=8k
numjobs=2
group_reporting
description=two readers
percentile_list=50:99
[mix]
rw=randrw
bs=4k
new_group
fsync=8
"""
UNKNOWN = {"cpu": 5, "depths": 7}
"""Fields of a terse line that Spindle leaves empty where several jobs ran together."""


def by_fio(folder: Path, *words: str) -> str:
    """Output of fio, run in a separate folder, because it leaves its files."""
    theirs = folder / "fio"
    theirs.mkdir(exist_ok=True)
    shutil.copy(folder / "job.fio", theirs)
    return subprocess.run(["fio", *words], cwd=theirs, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a job file."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.fio").write_text(JOB)
    return folder


def test_format_names_are_those_of_fio_and_are_combined_with_commas() -> None:
    assert parse("json") == parse("fio-json") == OutputFormats(json=True)
    assert parse("json+") == OutputFormats(json=True, bins=True)
    assert parse("terse,json") == parse("json,terse") == OutputFormats(terse=True, json=True)
    assert parse("normal") == OutputFormats(normal=True)
    with pytest.raises(ValueError, match="xml"):
        parse("json,xml")


def kind_of(field: str) -> str:
    """The form of a field; for a percentile, its rank too."""
    shapes = {"count": r"\d+", "real": r"\d+\.\d{6}", "part": r"\d+\.\d{6}%", "share": r"\d+\.\d{1,2}%"}
    for name, shape in shapes.items():
        if re.fullmatch(shape, field):
            return name
    return re.sub(r"=\d+$", "=", field)


@needs_fio
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_terse_lines_are_fio_s_field_for_field(job: Path, version: int) -> None:
    words = ["job.fio", "--output-format=terse", f"--terse-version={version}"]
    theirs = by_fio(job, *words).splitlines()
    ours = spindle("fio", *words, "-q", cwd=job).out.splitlines()
    assert len(ours) == len(theirs) == (3 if version == 2 else 2)
    empty = 0
    for line, model in zip(ours, theirs, strict=True):
        for at, (field, wanted) in enumerate(zip_longest(line.split(";"), model.split(";"))):
            if field.startswith("fio-"):
                assert wanted == "fio-3.33"
            elif field:
                assert kind_of(field) == kind_of(wanted), f"field {at} of {line}"
            empty += not field and bool(wanted)
    assert empty == 2 * sum(UNKNOWN.values())


@needs_fio
def test_amounts_and_ranks_of_a_terse_line_are_fio_s(job: Path) -> None:
    lines = [
        text.splitlines()[0].split(";")
        for text in (spindle("fio", "job.fio", "--minimal", "-q", cwd=job).out, by_fio(job, "job.fio", "--minimal"))
    ]
    ours, theirs = lines
    assert ours[2:6] == theirs[2:6] == ["reads", "0", "0", "2048"]
    assert [field.partition("=")[0] for field in ours[17:37]] == [field.partition("=")[0] for field in theirs[17:37]]
    assert ours[-1] == theirs[-1] == "two readers"


def test_a_terse_line_is_read_back_with_the_figures_of_the_json(job: Path) -> None:
    ended = spindle("fio", "job.fio", "--output-format=json,terse", "-q", cwd=job)
    lines, _, document = ended.out.partition("{\n")
    [terse] = formats.read_bytes(lines.encode(), "terse")
    [whole] = formats.read_bytes(f"{{\n{document}".encode(), "json")
    assert isinstance(terse, ImportedRecord)
    assert isinstance(whole, ImportedRecord)
    assert (terse.source.tool, terse.source.version) == (whole.source.tool, whole.source.version)
    assert terse.source.tool == "spindle"
    for one, other in zip(terse.streams, whole.streams, strict=True):
        assert list(one.operations) == [name for name in other.operations if name != "fsync"]
        for name, op in one.operations.items():
            assert op.iops == pytest.approx(other.operations[name].iops, abs=1)
            means = [each.completion.mean_ns for each in (op, other.operations[name]) if each.completion]
            assert means == [pytest.approx(means[0], abs=1)] * 2


def test_several_formats_come_in_fio_s_order(job: Path) -> None:
    out = spindle("fio", "job.fio", "--output-format=normal,json,terse", "-q", cwd=job).out
    places = [out.index("3;fio-"), out.index('"fio version"'), out.index("p99")]
    assert places == sorted(places)
    both = spindle("fio", "job.fio", "--append-terse", "-q", cwd=job).out
    assert both.index("3;fio-") < both.index("p99")


def timed(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All latencies with samples."""
    parts = [job[name] for job in document["jobs"] for name in ("read", "write", "sync")]
    return [each for part in parts for each in (part.get("clat_ns"), part["lat_ns"]) if each and "percentile" in each]


def test_bins_of_json_plus_are_fio_s_and_contain_every_request(job: Path) -> None:
    found = timed(json.loads(spindle("fio", "job.fio", "--output-format=json+", "-q", cwd=job).out))
    assert len(found) == 4
    for each in found:
        assert sum(each["bins"].values()) == each["N"]
        names = [int(name) for name in each["bins"]]
        assert names == sorted(names) == [value_of(bucket_of(name)) for name in names]
        assert value_of(bucket_of(each["min"])) == names[0]
        assert value_of(bucket_of(each["max"])) == names[-1]
    plain = timed(json.loads(spindle("fio", "job.fio", "--output-format=json", "-q", cwd=job).out))
    assert not any("bins" in each for each in plain)


@needs_fio
def test_json_plus_has_bins_where_fio_s_has_them(job: Path) -> None:
    def places(text: str) -> list[tuple[str, str, str]]:
        return [
            (job["jobname"], part, name)
            for job in json.loads(text[text.index("{\n") :])["jobs"]
            for part in ("read", "write", "trim", "sync")
            for name, value in job[part].items()
            if isinstance(value, dict) and "bins" in value
        ]

    words = ["job.fio", "--output-format=json+"]
    assert places(spindle("fio", *words, "-q", cwd=job).out) == places(by_fio(job, *words))


@pytest.mark.skipif(TO_CSV is None, reason="fio_jsonplus_clat2csv is not installed")
def test_fio_s_own_tool_turns_json_plus_into_csv(job: Path) -> None:
    words = ["--name=a", "--rw=randrw", "--size=1m", "--filename=data", "--output-format=json+", "--output=plus.json"]
    assert spindle("fio", *words, "-q", cwd=job).status in (0, 1)
    subprocess.run([str(TO_CSV), "plus.json", "plus.csv"], cwd=job, capture_output=True, timeout=60, check=True)
    rows = [line.split(", ") for line in (job / "plus_job0.csv").read_text().splitlines()]
    head = rows[0]
    counts = [int(row[head.index("read_clat_ns_count")] or 0) for row in rows[1:]]
    document = json.loads((job / "plus.json").read_text())
    assert sum(counts) == document["jobs"][0]["read"]["total_ios"]


def plat_val_to_idx(value: int) -> int:
    """fio's function of this name, step by step."""
    bits, per_group, all_of_them = 6, 64, 29 * 64
    msb = value.bit_length() - 1 if value else 0
    if msb <= bits:
        return value
    error_bits = msb - bits
    base = (error_bits + 1) << bits
    offset = (per_group - 1) & (value >> error_bits)
    return min(base + offset, all_of_them - 1)


def test_buckets_are_those_of_fio_s_own_function() -> None:
    values = [
        *range(5000),
        *(each + more for each in (1 << power for power in range(12, 45)) for more in (-1, 0, 1, 77)),
    ]
    assert [bucket_of(value) for value in values] == [plat_val_to_idx(value) for value in values]
    assert [bucket_of(value_of(bucket)) for bucket in range(BUCKETS)] == list(range(BUCKETS))


def test_run_and_show_take_fio_s_names_and_spindle_s_own_json_is_another_option(tmp_path: Path) -> None:
    run = ["run", "randomio", "one-sata", "--seconds", "1", "-q", "--output", "r.json"]
    terse = spindle(*run, "--output-format", "terse", cwd=tmp_path).out
    assert terse.startswith("3;fio-3.33-spindle-")
    assert spindle("show", "r.json", "--output-format", "terse", cwd=tmp_path).out == terse
    assert "normal, terse, json, json+" in spindle("show", "r.json", "--output-format", "xml", cwd=tmp_path).complaint
    both = spindle("show", "r.json", "--json", "--output-format", "json", cwd=tmp_path)
    assert (both.status, "exclude each other" in both.complaint) == (2, True)
