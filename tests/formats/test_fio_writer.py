"""fio's JSON of Spindle's runs: the structure is that of fio, the figures are those of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle import formats
from spindle.formats.fio_writer import LIKE, MISSING
from spindle.report.terminal.progress import watching
from spindle.result.document import Unreadable
from spindle.result.record import ImportedRecord, RunRecord
from spindle.run.order import Order, carry_out
from spindle.run.targets import parse
from spindle.stats.metric import values
from tests.documents import structure

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="module")
def run() -> RunRecord:
    """A random mix on a modelled drive, as in the sample of fio."""
    overrides = (("seconds", "3"), ("write_fraction", "0.3"), ("fsync_fraction", "0.1"), ("workers", "4"))
    with watching(quiet=True) as watch:
        found = carry_out(Order("randomio", parse("one-sata"), overrides), watch)
    assert isinstance(found, RunRecord)
    return found


PER_RUN = ("/disk_util", "options", "/percentile/")
"""Keys that follow from what was asked, and from where it ran."""


def test_the_structure_of_shared_keys_is_that_of_fio(run: RunRecord) -> None:
    theirs = structure(json.loads((SAMPLES / "fio-randrw.json").read_text()))
    ours = structure(json.loads(formats.fio_json.write(run)))
    shared = set(theirs) & set(ours)
    assert {key: ours[key] for key in shared} == {key: theirs[key] for key in shared}
    missing = {key for key in set(theirs) - set(ours) if not any(part in key for part in PER_RUN)}
    assert {key.split("/")[2] for key in missing} == set(MISSING)
    assert {"/jobs[]/read/clat_ns/percentile/99.000000", "/jobs[]/latency_us/1000", "/jobs[]/usr_cpu"} <= shared
    assert {"/jobs[]/job options/rw", "/jobs[]/job options/iodepth", "/jobs[]/job options/bs"} <= shared
    assert set(ours) - set(theirs) <= {
        "/jobs[]/job_start",
        *(key for key in ours if "options" in key or "/sync/" in key or "/percentile/" in key),
    }


def test_a_written_file_is_read_with_the_same_figures(run: RunRecord) -> None:
    [back] = formats.read_bytes(formats.fio_json.write(run), "f.json")
    assert isinstance(back, ImportedRecord)
    ours, theirs = values(run), values(back)
    shared = [name for name in ours if name in theirs and "/" not in name]
    assert {"iops", "read.iops", "write.bytes_per_s", "read.mean_ns", "read.p99_ns", "fsync.mean_ns"} <= set(shared)
    for name in shared:
        # Each operation is rounded by itself, so a total is off by twice as much.
        of_all = not name.startswith(("read.", "write.", "fsync."))
        assert theirs[name] == pytest.approx(ours[name], abs=1.02 if of_all else 0.51), name
    assert (back.source.tool, back.source.version) == ("spindle", run.tool.version)
    assert back.started == run.started


def test_shares_of_latencies_are_of_all_requests(run: RunRecord) -> None:
    [job] = json.loads(formats.fio_json.write(run))["jobs"]
    shares = [share for name in ("latency_ns", "latency_us", "latency_ms") for share in job[name].values()]
    assert sum(shares) == pytest.approx(100.0)


def test_runs_are_groups_of_one_document(run: RunRecord) -> None:
    document = json.loads(formats.fio_json.write([run, replace(run, id="20260101T000000Z-aaaaaa")]))
    assert [job["groupid"] for job in document["jobs"]] == [0, 1]
    assert document["fio version"].startswith(LIKE)


def test_an_imported_record_has_too_little_data_for_fios_json() -> None:
    with pytest.raises(Unreadable, match="imported from fio; only Spindle's own runs"):
        formats.fio_json.write(formats.read(SAMPLES / "fio-randrw.json"))


@pytest.mark.promise(21)
def test_percentiles_are_the_seventeen_that_fio_writes(run: RunRecord) -> None:
    [theirs] = json.loads((SAMPLES / "fio-randrw.json").read_text())["jobs"]
    [ours] = json.loads(formats.fio_json.write(run))["jobs"]
    assert list(ours["read"]["clat_ns"]["percentile"]) == list(theirs["read"]["clat_ns"]["percentile"])
    assert len(ours["sync"]["lat_ns"]["percentile"]) == 17
