"""Only comparable cases are compared, no undecided case is called best, and cases keep the given order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.report.charts import parts
from spindle.report.document.build import build
from spindle.report.document.entry import Entry
from spindle.report.document.model import Paragraph
from spindle.result.record import RunRecord
from spindle.result.workload import Workload, WorkloadStream
from spindle.run.resolve import resolve
from tests.program import Ended
from tests.report.subjects import asked, entry, of_kind, randomio, saved

pytestmark = pytest.mark.promise(16)


def run(**options: int | str) -> RunRecord:
    record = randomio(**options)  # type: ignore[arg-type]
    assert isinstance(record, RunRecord)
    return record


def summary(entries: list[Entry]) -> str:
    blocks = next(section for section in build(entries).sections if section.key == "summary").blocks
    return "\n".join(block.text for block in blocks if isinstance(block, Paragraph))


def test_a_buffered_file_is_not_compared_with_a_device() -> None:
    file = of_kind(asked(run(), "randomio", direct=False), "file", "t.bin")
    device = of_kind(asked(run(target="six-sata-raid5"), "randomio", direct=True), "device", "/dev/loop0")
    text = summary([entry(file, "a"), entry(device, "b")])
    assert "Not compared with each other" in text
    assert "file, buffered: t.bin" in text
    assert "block device, direct: /dev/loop0" in text
    assert "best" not in text
    assert "faster" not in text
    assert "slower" not in text


@pytest.mark.parametrize("wanted", [("create",), ("stat",), ("create", "stat")])
def test_operations_on_names_are_not_reads(wanted: tuple[str, ...]) -> None:
    phases: list[Workload] = [phase.spec for phase in resolve("metadata").phases]
    streams: dict[str, WorkloadStream] = {
        s.names.operation: s for load in phases for s in load.streams if s.names is not None
    }
    records = [replace(run(), workload=replace(run().workload, name=name, streams=[streams[name]])) for name in wanted]
    text = summary([entry(record, str(at)) for at, record in enumerate(records)])
    assert "reads" not in text
    assert all(name in text for name in wanted)
    if len(wanted) == 1:
        assert "operations/s" in text
        assert "IOPS" not in text


def test_discards_are_not_reads() -> None:
    mix = replace(run().workload.streams[0].mix, write=0.0, rewrite=0.0, trim=1.0)
    text = summary([entry(asked(run(), "trims", mix=mix), "a"), entry(run(), "b")])
    assert "random discards" in text


def test_requests_of_other_sizes_and_open_loops_are_not_compared() -> None:
    small = resolve("randomio", [("size", "4KiB")]).spec.streams[0].size
    text = summary([entry(asked(run(), "a", size=small), "a"), entry(run(), "b")])
    assert "Not compared with each other" in text
    arrival = resolve("randomio", [("rate", "100")]).spec.streams[0].arrival
    text = summary([entry(asked(run(), "a", arrival=arrival), "a"), entry(run(), "b")])
    assert "100 requests/s asked for" in text


def test_a_factor_of_a_plan_is_compared() -> None:
    small = resolve("randomio", [("size", "4KiB")]).spec.streams[0].size
    records = [asked(run(seed=1), "r", size=small), run(seed=1)]
    entries = [
        entry(record, str(at), cell={"size": ("4KiB", "64KiB")[at]}, campaign="c") for at, record in enumerate(records)
    ]
    assert "Not compared" not in summary(entries)


def test_only_a_case_that_differs_significantly_is_called_best_or_most() -> None:
    singles = [entry(run(target=name), name) for name in ("six-sata-f2", "six-sata-raid5", "six-sata-raid10")]
    text = summary(singles)
    assert "Throughput of 3 cases: from " in text
    assert "cannot be tested, none is called best" in text
    assert "Most" not in text
    assert "a factor of" not in text


@pytest.mark.parametrize("names", [("six-sata-raid5", "six-sata-f2"), ("six-sata-f2", "six-sata-raid5")])
def test_cases_come_in_the_order_in_which_they_were_named(
    names: tuple[str, str], invoke: Callable[..., Ended], tmp_path: Path
) -> None:
    files = saved(tmp_path, *(run(target=name) for name in names))
    text = invoke("report", *files, "--format", "md").out
    figures = text[text.index("## Figures") :]
    assert figures.index(names[0]) < figures.index(names[1])


def test_levels_of_a_plan_come_in_its_order_and_values_by_size() -> None:
    levels = {"scheduler": ["none", "bfq", "kyber"]}
    entries = [
        entry(run(seed=1), name, cell={"scheduler": name}, levels=levels, campaign="c")
        for name in ("kyber", "none", "bfq")
    ]
    rows = [row[0] for row in build(entries).sections[1].blocks[0].rows if row[0]]  # type: ignore[union-attr]
    assert [name.split()[-1] for name in rows] == ["none", "bfq", "kyber"]


@pytest.mark.parametrize("at", [0, 40, 90])
def test_labels_keep_the_part_that_differs(at: int) -> None:
    common = "workload-of-a-long-name on a target " + "x" * 60
    names = [f"{common[:at]} chunk {size} {common[at:]}" for size in (64, 128)]
    found = parts.shortened(names, 50)
    assert len(set(found)) == 2
    assert all(size in name for size, name in zip(("64", "128"), found, strict=True))


@pytest.mark.parametrize(("low", "high"), [(2.1, 4.3), (0.011, 0.019), (1.0, 5000.0), (97.0, 103.0)])
def test_a_logarithmic_axis_has_ticks_with_labels(low: float, high: float) -> None:
    domain = parts.log_scale([low, high])["domain"]
    assert len([tick for tick in parts.decades([low, high]) if domain[0] <= tick <= domain[1]]) >= 2
