"""The content of a report in each format, and refused reports."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from collections.abc import Callable
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spindle.report.document.build import build
from spindle.report.document.entry import Entry
from spindle.report.document.model import Chart, Document, Paragraph, Section, Sheet
from spindle.report.render.html import html
from spindle.report.render.markdown import markdown
from spindle.report.render.table import table
from spindle.result.document import decode, encode
from spindle.result.imported import PartialLatency, PartialOp, PartialStream, Source
from spindle.result.record import DeviceCounters, ImportedRecord, Level, RunRecord, Sample, Tool, Verdict
from spindle.store import PlannedTrial, open_store
from tests.cli.records import quiet_read
from tests.program import Ended
from tests.report.subjects import entry, matrix, modelled, randomio, saved

HOSTILE = "<script>alert(1)</script>\"'&|`\n# [x](javascript:1)"


def everything(document: Document) -> str:
    """Paragraphs and cells."""
    from spindle.report.render.text import text
    from spindle.report.terminal.style import Style

    return "\n".join(text(document, Style()))


def invalid(record: RunRecord) -> RunRecord:
    verdict = Verdict(check="cache-share", level=Level.INVALID, evidence="99 % came from a cache", advice="--direct")
    return replace(record, verdicts=[verdict])


def run(**options: Any) -> RunRecord:
    record = randomio(**options)
    assert isinstance(record, RunRecord)
    return record


def test_the_report_of_one_run_has_sentences_figures_charts_and_a_command() -> None:
    document = build([entry(run())])
    assert [section.key for section in document.sections] == [
        "summary",
        "figures",
        "latency",
        "time",
        "verdicts",
        "settings",
        "repeat",
    ]
    text = everything(document)
    assert f"randomio on six-sata-f2: {run().figures.iops:.0f} IOPS" in text
    assert "spindle run randomio six-sata-f2 --seconds 8s --size 64KiB" in text
    assert "too-short" in text


def test_the_same_records_give_the_same_bytes() -> None:
    entries = [entry(run(seed=seed), f"{seed}.json") for seed in (1, 2)]
    assert html(build(entries)) == html(build(entries))


def test_charts_appear_only_where_there_is_data_for_them() -> None:
    keys = {chart.key for chart in build([entry(run())]).charts()}
    assert keys == {"percentiles-read", "percentiles-write", "seconds", "heatmap"}
    only = replace(run(), figures=replace(run().figures, series=[]))
    assert {chart.key for chart in build([entry(only)]).charts()} == {"percentiles-read", "percentiles-write"}


def test_few_runs_show_the_distribution_over_time_and_many_a_row_each() -> None:
    def heat(entries: list[Entry]) -> Chart:
        return next(chart for chart in build(entries).charts() if chart.key == "heatmap")

    one = heat([entry(run())])
    shares = one.specification["layer"][0]["data"]["values"]
    assert {cell["from"] for cell in shares} == {float(second) for second in range(8)}
    rows = {row[1]: [float(cell) for cell in row[2:5]] for row in one.sheet.rows}
    assert set(rows) == {"median", "99th percentile"}
    read, write = run().figures.streams[0].read, run().figures.streams[0].write
    assert read is not None
    assert write is not None
    medians = sorted(op.latency.percentile(50.0) or 0 for op in (read, write))
    assert medians[0] / 1.25e6 <= rows["median"][1] <= medians[1] * 1.25e-6
    assert rows["median"][2] < rows["99th percentile"][0]

    several = heat([entry(run(seed=seed), f"{seed}.json") for seed in range(1, 7)])
    assert "99th percentile of reads and writes" in several.says
    assert len(several.sheet.rows) == 6


def test_records_whose_intervals_have_no_distribution_show_means() -> None:
    record = run()
    bare = [
        replace(interval, streams=[replace(stream, latency_counts=[]) for stream in interval.streams])
        for interval in record.figures.series
    ]
    old = json.loads(encode(replace(record, figures=replace(record.figures, series=bare))))
    for interval in old["figures"]["series"]:
        for stream in interval["streams"]:
            del stream["latency_counts"]
    loaded = decode(json.dumps(old).encode(), "old.json")
    chart = next(chart for chart in build([entry(loaded)]).charts() if chart.key == "heatmap")
    assert [row[0] for row in chart.sheet.rows] == ["reads, mean", "writes, mean", "slowest"]


def mean_iops(entries: list[Entry]) -> float:
    return statistics.geometric_mean(
        entry.record.figures.iops for entry in entries if isinstance(entry.record, RunRecord)
    )


def test_trials_of_a_case_are_summarised_and_cases_are_named_by_their_differences() -> None:
    entries = [
        entry(run(target=target, seed=seed), f"{target}{seed}")
        for target in ("six-sata-f2", "six-sata-raid5")
        for seed in (1, 2, 3)
    ]
    rows = json.loads(_json(entries))["sections"][1]["blocks"][0]["rows"]
    assert [row[0] for row in rows] == ["six-sata-f2", "", "six-sata-raid5", ""]
    assert {row[2] for row in rows} == {"3"}
    slower = 1 - mean_iops(entries[3:]) / mean_iops(entries[:3])
    assert f"six-sata-raid5 is {slower:.0%} slower than six-sata-f2".replace("%", " %") in everything(build(entries))


def test_things_that_changed_at_once_are_named() -> None:
    both = [entry(run(target="six-sata-f2")), entry(run(target="six-sata-raid5", workers=48), "b.json")]
    assert "Several things changed at once: with target also outstanding, workers" in everything(build(both))
    one = [entry(run(target="six-sata-f2")), entry(run(target="six-sata-raid5"), "b.json")]
    assert "Several things changed" not in everything(build(one))


def test_the_effects_of_factors_are_separated_with_intervals() -> None:
    entries = [
        entry(run(target=target, workers=workers, seed=seed), f"{target}{workers}{seed}")
        for target in ("six-sata-f2", "six-sata-raid5")
        for workers in (8, 32)
        for seed in (1, 2)
    ]
    document = build(entries)
    chart = next(chart for chart in document.charts() if chart.key == "effects")
    rows = {(row[0], row[1]): [float(cell) for cell in row[2:6]] for row in chart.sheet.rows}
    assert set(rows) == {
        ("target", "six-sata-f2"),
        ("target", "six-sata-raid5"),
        ("outstanding", "8"),
        ("outstanding", "32"),
    }
    # They are printed with one digit behind the point, so an end may be the value itself.
    assert all(trials == 4 and low <= change <= high and low < high for trials, change, low, high in rows.values())
    assert rows["outstanding", "32"][1] > 0 > rows["outstanding", "8"][1]
    means = [mean_iops(entries[first : first + 2]) for first in range(0, 8, 2)]
    assert f"Throughput of 4 cases: from {min(means):.0f} IOPS to {max(means):.0f} IOPS." in everything(document)


def test_runs_that_differ_in_concurrency_alone_make_a_curve_with_its_knee() -> None:
    entries = [entry(run(workers=workers), f"{workers}") for workers in (1, 4, 16, 64, 128)]
    document = build(entries)
    chart = next(chart for chart in document.charts() if chart.key == "threads")
    assert [row[1] for row in chart.sheet.rows] == ["1", "4", "16", "64", "128"]
    assert [row[6] for row in chart.sheet.rows].count("knee") == 1
    assert "The knee is at" in chart.says


def test_chunk_curves_are_multiples_of_one_drive_with_theory_and_published_points(tmp_path: Path) -> None:
    document = build(matrix(tmp_path))
    chart = next(chart for chart in document.charts() if chart.key == "chunks")
    assert "as multiples of one drive" in chart.title
    rows = {(row[0], row[1], row[2]): row[3:6] for row in chart.sheet.rows}
    assert rows["reads", "raid10 f2", "64"][1:] == ["4.00", "3.01"]
    assert rows["writes", "raid10 n2", "256"][1:] == ["2.00", "1.82"]
    assert rows["reads", "raid5 left-symmetric", "1024"][1:] == ["3.00", "3.44"]
    for (direction, array, _), (measured, theory, _) in rows.items():
        assert 0.5 < float(measured) / float(theory) < 1.6, (direction, array)


def test_without_a_single_drive_speeds_are_absolute_and_the_report_says_so(tmp_path: Path) -> None:
    entries = [each for each in matrix(tmp_path) if "one.toml" not in each.record.target.asked]  # type: ignore[union-attr]
    chart = next(chart for chart in build(entries).charts() if chart.key == "chunks")
    assert "add one to see multiples" in chart.says
    assert "MB/s" in json.dumps(chart.specification)


def test_measured_and_modelled_runs_of_the_same_load_are_shown_together() -> None:
    model = run()
    target = replace(model.target, asked="/dev/md0", kind="device", detail={})
    real = replace(model, id="20260101T000000Z-abcdef", target=target, started="2026-01-01T00:00:00Z")
    document = build([entry(model), entry(real, "b.json")])
    chart = next(chart for chart in document.charts() if chart.key == "predicted")
    assert chart.sheet.rows[0][4] == "100 %"
    assert "2026-01-01" in document.about


def test_the_devices_own_counters_are_below_the_series() -> None:
    columns = {"r/s": 500.0, "w/s": 20.0, "rMB/s": 30.0, "wMB/s": 1.0, "aqu-sz": 7.0}
    record = run()
    samples = [Sample(at_s=at + 1.0, seconds=1.0, devices={"md0": columns}) for at in range(8)]
    with_them = replace(record, activity=replace(record.activity, samples=samples))
    without, chart = (
        next(chart for chart in build([entry(each)]).charts() if chart.key == "seconds") for each in (record, with_them)
    )
    assert len(without.specification["vconcat"]) == 2
    assert len(chart.specification["vconcat"]) == 4
    device = chart.specification["vconcat"][2]["data"]["values"]
    assert [value["rate"] for value in device] == [520.0] * len(device)
    assert "what the devices themselves counted" in chart.says


def test_an_invalid_figure_is_never_shown_without_its_verdict() -> None:
    good, bad = run(seed=1), invalid(run(seed=2, target="six-sata-raid5"))
    document = build([entry(good), entry(bad, "bad.json")])
    assert document.level is Level.INVALID
    first = document.sections[0].blocks[0]
    assert "1 of 2 records have an invalid verdict (cache-share)" in first.text  # type: ignore[union-attr]
    for chart in document.charts():
        heads = [column.head for column in chart.sheet.columns]
        assert heads[-1] == "verdict", chart.key
        assert any(row[-1] is Level.INVALID for row in chart.sheet.rows), chart.key
        named = re.search("invalid", chart.says, re.IGNORECASE)
        assert named, chart.key
    assert "Most throughput" not in everything(document)


def foreign(name: str = "randread") -> ImportedRecord:
    """A record of a tool with few figures."""
    op = PartialOp(iops=123.0, latency=PartialLatency(mean_ns=4.5e6))
    return ImportedRecord(
        id="20260101T000000Z-aaaaaa",
        started=None,
        tool=Tool(version="0.1.0"),
        source=Source(format="fio-json", tool="fio", version="fio-3.33", file="old.json", sha256="0" * 64),
        target="/dev/sdx",
        workload=name,
        streams=[PartialStream(name="a", operations={"read": op})],
        verdicts=[Verdict(check="imported", level=Level.WARN, evidence="conditions unknown")],
    )


def test_figures_of_other_tools_are_shown_and_unknown_ones_are_empty() -> None:
    document = build([entry(foreign()), entry(run(), "b.json")])
    section = next(section for section in document.sections if section.key == "imported")
    rows = section.blocks[0].rows  # type: ignore[union-attr]
    assert [str(cell) for cell in rows[0]] == ["a", "read", "123", "4.50", "warn"]
    text = everything(build([entry(foreign())]))
    assert "fio's randread on /dev/sdx (fio-3.33), from old.json" in text
    assert "conditions unknown" in text
    assert "1 records do not say how they were made" not in text
    lines = list(csv.DictReader(io.StringIO(table([entry(foreign())]).decode())))
    assert (lines[0]["iops"], lines[0]["mean_ns"], lines[0]["bytes"]) == ("123.0", "4500000.0", "")
    assert b"<script" not in html(build([entry(foreign("<script>"))]))


def test_a_campaign_is_described_by_its_factors_and_repeated_by_its_plan(
    invoke: Callable[..., Ended], tmp_path: Path
) -> None:
    where = str(tmp_path / "store.sqlite")
    cells = [{"array": target} for target in ("six-sata-f2", "six-sata-raid5")]
    trials = [PlannedTrial(block=block, cell=cell) for block in (1, 2, 3, 4) for cell in cells]
    with open_store(where) as store:
        store.campaigns.create("arrays", plan="workload = 'randomio'\n", seed=1, trials=trials)
        with store.campaigns.hold("arrays") as held:
            while trial := held.next():
                held.finish(trial, run(target=trial.cell["array"], seed=trial.block or 0))
    ended = invoke("report", "campaign:arrays", "--store", where)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("arrays\n8 runs")
    assert "six-sata-raid5 is" in ended.out
    assert "spindle campaign run arrays.toml" in ended.out
    assert "workload = 'randomio'" in ended.out
    part = invoke("report", "campaign:arrays/array=six-sata-f2", "--store", where, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(part)))
    assert {row["factor.array"] for row in rows} == {"six-sata-f2"}
    assert "no factor" in invoke("report", "campaign:arrays/level=1", "--store", where).complaint


def test_the_matrix_of_2008_as_a_campaign_is_drawn_with_its_published_points(
    invoke: Callable[..., Ended], tmp_path: Path
) -> None:
    where = str(tmp_path / "store.sqlite")
    sets = ("--set", "chunk=64KiB,1MiB", "--set", "array=one-drive,raid10-f2,raid5", "--set", "options.seconds=8")
    assert invoke("campaign", "run", "md-matrix", "--store", where, *sets).status == 0
    document = json.loads(invoke("report", "campaign:md-matrix", "--store", where, "--json").out)
    blocks = [block for section in document["sections"] for block in section["blocks"]]
    chart = next(block for block in blocks if block.get("key") == "chunks")
    rows = {(row[0], row[1], row[2]): row[3:6] for row in chart["sheet"]["rows"]}
    assert len(rows) == 8
    modelled_at, theory, published = (float(cell) for cell in rows["reads", "raid10 f2", "1024"])
    assert (theory, published) == (4.0, 3.76)
    assert 3.3 < modelled_at < 4.0
    assert "measured in 2008" in chart["says"]
    assert any("spindle campaign run md-matrix.toml" in block.get("text", "") for block in blocks)


def observed(scheduler: str, trial: int) -> RunRecord:
    """A record of `campaign --load`: the load of another program, with figures of the device only."""
    base = run()
    reads = {"none": 500.0, "bfq": 400.0, "kyber": 495.0}[scheduler] + trial
    iostat = {
        "r/s": reads,
        "w/s": 50.0,
        "rMB/s": reads / 64,
        "wMB/s": 3.0,
        "r_await": 2.0,
        "aqu-sz": 4.0,
        "%util": 90.0,
    }
    seconds = 30.0
    delta = {
        "reads": reads * seconds,
        "writes": 50.0 * seconds,
        "read_bytes": reads * seconds * 16384,
        "write_bytes": 50.0 * seconds * 65536,
    }
    samples = [Sample(at_s=at + 1.0, seconds=1.0, devices={"sda": iostat}) for at in range(30)]
    return replace(
        base,
        id=f"20260101T00{trial:02d}00Z-{scheduler.encode().hex()[:6]}",
        workload=replace(base.workload, name="mysqld", streams=[]),
        figures=replace(base.figures, streams=[], series=[]),
        devices=[DeviceCounters(name="sda", role="target", seconds=seconds, delta=delta, iostat=iostat)],
        target=replace(base.target, asked="/dev/sda", kind="device", detail={}),
        activity=replace(base.activity, samples=samples),
        verdicts=[],
    )


def test_the_load_of_another_program_has_the_figures_of_the_devices_counters() -> None:
    entries = [
        entry(observed(scheduler, trial), f"{scheduler}{trial}", cell={"scheduler": scheduler}, block=trial)
        for trial in (1, 2, 3, 4)
        for scheduler in ("none", "bfq", "kyber")
    ]
    document = build(entries)
    assert {chart.key for chart in document.charts()} == {"runs", "seconds"}
    text = everything(document)
    assert "Throughput of 3 cases: from 452 IOPS to 552 IOPS." in text
    assert "r/s of the device: scheduler none is the best" in text
    sheet = document.sections[1].blocks[0]
    assert isinstance(sheet, Sheet)
    assert [row[:3] for row in sheet.rows] == [
        ["scheduler bfq", "4", "402"],
        ["scheduler kyber", "4", "498"],
        ["scheduler none", "4", "502"],
    ]
    seconds = next(chart for chart in document.charts() if chart.key == "seconds")
    assert len(seconds.specification["vconcat"]) == 2
    assert seconds.says.startswith("What the devices themselves counted.")
    assert html(document)


def test_damaged_records_still_make_a_report() -> None:
    """Records that the schema allows, but no run gives: no work, unknown values, negative times, empty streams."""
    record = run()
    interval = record.figures.series[0]
    nothing = replace(interval, streams=[])
    negative = replace(
        interval, streams=[replace(each, read_latency_ns=-5, max_latency_ns=-1) for each in interval.streams]
    )
    for bad in (
        replace(record, figures=replace(record.figures, series=[nothing] * 8)),
        replace(record, figures=replace(record.figures, series=[negative] * 8)),
        replace(record, figures=replace(record.figures, streams=[])),
        replace(record, workload=replace(record.workload, streams=[])),
        replace(record, verdicts=[], devices=[], environment={"kernel": 7}, target=replace(record.target, detail={})),
    ):
        document = build([entry(bad), entry(run(seed=2), "b.json")])
        assert html(document).startswith(b"<!doctype html>")
        assert markdown(document).startswith(b"# ")


def test_names_from_records_are_text_and_never_markup() -> None:
    record = run()
    bad = replace(
        record,
        workload=replace(record.workload, name=HOSTILE),
        target=replace(record.target, asked=HOSTILE, detail={**record.target.detail, "about": HOSTILE}),
        environment={"cpu": {"model": HOSTILE, "online": 2}},
        settings=replace(record.settings, before={HOSTILE: HOSTILE}),
        verdicts=[Verdict(check=HOSTILE, level=Level.WARN, evidence=HOSTILE, advice=HOSTILE)],
    )
    entries = [entry(bad, HOSTILE, tags=(HOSTILE,), cell={HOSTILE: HOSTILE}), entry(run(seed=2), "b.json")]
    page = html(build(entries, HOSTILE)).decode()
    assert "<script" not in page
    assert escape("<script>alert(1)</script>") in page
    found = Tags()
    found.feed(page)
    assert not found.names & {"script", "img", "iframe", "object", "foreignobject", "image", "use", "base", "form"}
    assert not any(name.startswith("on") for name in found.attributes)
    assert all(link.startswith(("#", "data:,")) for link in found.links), found.links
    text = markdown(build(entries, HOSTILE)).decode()
    outside = re.sub(r"(?s)(`{3,}).*?\1", "", text)
    assert "<script" not in outside.replace("\\<script", "")
    assert "](javascript" not in outside.replace("\\]", "")


class Tags(HTMLParser):
    """Elements, attributes and links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")}


def test_a_hundred_runs_fit_into_two_megabytes() -> None:
    """Runs that differ in every way. They last a minute: on a screen an hour looks the same."""
    base = [run(target=target, seconds=60) for target in ("six-sata-f2", "six-sata-raid10", "six-sata-raid5")]
    entries = [
        entry(
            replace(base[at % 3], id=f"20260101T{at:06d}Z-abcdef"),
            f"{at}.json",
            cell={"scheduler": ("none", "mq-deadline", "bfq", "kyber", "cfq")[at % 5], "depth": str(at // 5)},
        )
        for at in range(100)
    ]
    document = build(entries)
    assert len(html(document)) <= 2_000_000
    assert {"runs", "percentiles-read", "seconds", "heatmap"} <= {chart.key for chart in document.charts()}


def _json(entries: list) -> bytes:  # type: ignore[type-arg]
    import msgspec

    return msgspec.json.encode(build(entries))


def test_files_are_written_in_the_format_of_their_ending(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    names = saved(tmp_path, run(), modelled("oltp", "one-sata", ("seconds", "2"), find_knee=True))
    begins = {
        "a.html": b"<!doctype html>",
        "a.md": b"# ",
        "a.csv": b"run,started,",
        "a.png": b"\x89PNG",
        "a.svg": b"<svg",
        "a.txt": b"2 workloads on 2 targets\n",
        "a.json": b"{\n",
    }
    for name, start in begins.items():
        path = tmp_path / name
        ended = invoke("report", *names, "-o", str(path))
        assert (ended.status, ended.out, ended.err) == (0, "", ""), name
        assert path.read_bytes().startswith(start), name


def test_a_picture_explains_its_crosses(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    names = saved(tmp_path, run(seed=1), invalid(run(seed=2, target="six-sata-raid5")))
    path = tmp_path / "a.svg"
    assert invoke("report", *names, "-o", str(path)).status == 1
    assert "A red cross marks a run whose verdict is invalid" in path.read_text()


def test_csv_has_a_row_for_each_operation_of_each_run(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    names = saved(tmp_path, run(seed=1), run(seed=2))
    rows = list(csv.DictReader(io.StringIO(invoke("report", *names, "--format", "csv").out)))
    assert [row["op"] for row in rows] == ["read", "write", "fsync"] * 2
    read = run().figures.streams[0].read
    assert read is not None
    assert float(rows[0]["iops"]) == read.iops
    assert rows[0]["p99_ns"] == str(read.latency.percentile(99.0))
    assert rows[0]["verdict"] == "warn"


def test_code_in_a_paragraph_stays_code_in_markdown() -> None:
    words = Section("s", "s", [Paragraph("give `create=*`, or `keep=True` and a | b` *")])
    text = markdown(Document("t", "about", Level.OK, [words])).decode()
    assert "give `create=*`, or `keep=True` and a \\| b\\` \\*" in text


def test_rows_of_markdown_tables_have_as_many_cells_as_the_head() -> None:
    lines = markdown(build([entry(run(seed=seed), f"{seed}") for seed in (1, 2)])).decode().splitlines()
    tables = 0
    for before, line in pairwise(lines):
        if re.fullmatch(r"\|[-:|]+\|", line):
            assert before.count("|") == line.count("|")
            tables += 1
    assert tables >= 4


def test_a_report_of_an_invalid_figure_exits_with_1(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    names = saved(tmp_path, invalid(quiet_read()))
    assert invoke("report", *names).status == 1


def test_wrong_usage_of_report_is_one_line(
    invoke: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = saved(tmp_path, run())[0]
    (tmp_path / "broken.json").write_text("{")
    assert "SELECTION" in invoke("report").complaint
    assert "broken.json" in invoke("report", "broken.json").complaint
    assert "its ending is not a format" in invoke("report", name, "-o", "report.docx").complaint
    assert "no such folder" in invoke("report", name, "-o", "none/report.html").complaint
    null = modelled_without_anything_to_draw()
    assert "nothing to draw" in invoke("report", *saved(tmp_path, null), "-o", "a.png").complaint
    for arguments in (("report",), ("report", "broken.json"), ("report", name, "-o", "report.docx")):
        assert invoke(*arguments).status == 2


def modelled_without_anything_to_draw() -> RunRecord:
    record = run()
    streams = [replace(stream, read=None, write=None) for stream in record.figures.streams]
    return replace(record, figures=replace(record.figures, streams=streams, series=[]))
