"""A chart states the rule by which it leaves cases out, no outlier squashes it, only comparable cases share an axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spindle.base.numbers import as_change, share_of
from spindle.report.charts import parts
from spindle.report.document.build import build
from spindle.report.document.entry import Entry
from spindle.report.document.model import Chart, Document, Paragraph, Sheet
from spindle.stats.compare import compare
from spindle.stats.trial import Side, trial_of
from tests.report.subjects import asked, campaign, entry, noisy, of_kind, on_names, randomio, scaled

pytestmark = pytest.mark.promise(16)


def chart(document: Document, key: str) -> Chart:
    return next(chart for chart in document.charts() if chart.key == key)


def sheets(document: Document) -> list[Sheet]:
    return [block for section in document.sections for block in section.blocks if isinstance(block, Sheet)]


def text(document: Document) -> str:
    return "\n".join(
        block.text for section in document.sections for block in section.blocks if isinstance(block, Paragraph)
    )


def panels(drawn: Chart) -> list[dict[str, Any]]:
    return list(drawn.specification.get("vconcat", [drawn.specification]))


def rows_of(panel: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(value["case"] for value in panel["data"]["values"]))


def axis_titles(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "axis" in part and isinstance(part.get("title"), str):
            yield part["title"]
        for inner in part.values():
            yield from axis_titles(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from axis_titles(inner)


def scale_of(panel: dict[str, Any], mark: str) -> dict[str, Any]:
    layer = next(layer for layer in panel["layer"] if isinstance(layer["mark"], dict) and layer["mark"]["type"] == mark)
    scale: dict[str, Any] = layer["encoding"]["x"]["scale"]
    return scale


def file_and_device() -> list[Entry]:
    """A buffered file 580 times as fast as a device."""
    runs = [randomio(seed=seed) for seed in (1, 2, 3)]
    files = [of_kind(asked(scaled(run, 580), "randomio", direct=False), "file", "t.bin") for run in runs]
    devices = [of_kind(asked(run, "randomio", direct=True), "device", "/dev/loop0") for run in runs]
    return [entry(record, f"{at}.json") for at, record in enumerate([*files, *devices])]


def test_with_too_many_cases_the_highest_and_the_lowest_are_drawn_and_the_caption_says_so() -> None:
    drawn = chart(build(campaign(74)), "runs")
    (panel,) = panels(drawn)
    rates = {row[0]: float(row[3]) for row in drawn.sheet.rows}
    assert len(rates) == 74
    ordered = sorted(rates, key=lambda label: -rates[label])
    shown = dict(zip(rates, parts.shortened(list(rates), 50), strict=True))
    assert rows_of(panel) == [shown[label] for label in [*ordered[:20], *ordered[-20:]]]
    assert "(34 between)" in panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert "40 of 74 cases are drawn" in drawn.says
    assert "the 20 with the highest and the 20 with the lowest throughput" in drawn.says
    assert "table has all" in drawn.says


def test_with_too_many_runs_the_heat_map_shows_the_slowest_and_its_table_has_all() -> None:
    drawn = chart(build(campaign(30)), "heatmap")
    assert "40 of 60 runs are drawn, those whose slowest cell is longest" in drawn.says
    assert len(drawn.sheet.rows) == 60
    slowest = sorted((float(row[3]) for row in drawn.sheet.rows), reverse=True)
    shown = {value["row"] for value in drawn.specification["data"]["values"]}
    assert len(shown) == 40
    cells = {row[0]: float(row[3]) for row in drawn.sheet.rows}
    assert min(cells[name] for name in shown) >= slowest[40]


def test_many_cases_are_described_by_the_factors_that_explain_them() -> None:
    assert "explains" in text(build(campaign(74)))


def test_one_wide_interval_does_not_squash_the_others_and_its_end_is_written() -> None:
    drawn = chart(build(noisy((1.05, 1.0, 0.2))), "runs")
    (panel,) = panels(drawn)
    cut = [value for value in panel["data"]["values"] if "beyond_high" in value]
    assert {value["case"].split()[-1] for value in cut} <= {"1)", "2)", "kyber"}
    assert cut
    assert "arrow marks an interval that extends beyond the axis" in drawn.says
    highs = {row[6] for row in drawn.sheet.rows}
    assert {value["beyond_high"] for value in cut} <= highs
    high = scale_of(panel, "point")["domain"][1]
    assert high <= 2 * max(value["rate"] for value in panel["data"]["values"])
    assert all(value["high"] <= high for value in panel["data"]["values"] if "high" in value)
    assert any(layer["mark"].get("shape") == "triangle-right" for layer in panel["layer"])


def test_a_wide_effect_is_clipped_with_its_end_in_words() -> None:
    drawn = chart(build(noisy((8, 1.3, 0.3))), "effects")
    values = [value for panel in panels(drawn) for value in panel["data"]["values"]]
    cut = [value for value in values if "beyond_high" in value]
    assert cut
    assert all(value["beyond_high"].startswith(("x ", "+")) for value in cut)
    assert "arrow" in drawn.says


def test_nothing_is_clipped_if_all_intervals_are_similar() -> None:
    drawn = chart(build(campaign(8, trials=3)), "runs")
    assert "arrow" not in drawn.says
    assert all(
        "beyond_high" not in value and "beyond_low" not in value
        for panel in panels(drawn)
        for value in panel["data"]["values"]
    )


@pytest.mark.parametrize("log", [False, True])
def test_an_axis_covers_every_point_and_the_usual_interval(log: bool) -> None:
    narrow = [parts.Interval(10 + at, 9 + at, 11 + at) for at in range(5)]
    points = [each.estimate for each in narrow]
    assert parts.limits(points, narrow, log=log) == pytest.approx((9, 15))
    low, high = parts.limits(points, [*narrow, parts.Interval(12, 0.001, 9000)], log=log)
    assert 4 < low < 9
    assert 15 < high < 30


def test_figures_that_differ_much_have_a_logarithmic_axis_with_ticks() -> None:
    drawn = chart(
        build([entry(randomio(name), name) for name in ("one-nvme", "six-sata-f2", "six-sata-raid5")]), "runs"
    )
    scale = scale_of(panels(drawn)[0], "point")
    assert scale["type"] == "log"
    ticks = panels(drawn)[0]["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert len([tick for tick in ticks if scale["domain"][0] <= tick <= scale["domain"][1]]) >= 2
    assert "logarithmic" in drawn.says


def test_cases_that_cannot_be_compared_share_no_axis_of_throughput() -> None:
    document = build(file_and_device())
    drawn = panels(chart(document, "runs"))
    assert [panel["title"]["text"] for panel in drawn] == ["block device, direct", "file, buffered"]
    assert [rows_of(panel) for panel in drawn] == [["/dev/loop0"], ["t.bin"]]
    seconds = [chart for chart in document.charts() if chart.key.startswith("seconds")]
    assert [chart.title for chart in seconds] == [
        "Second by second: block device, direct",
        "Second by second: file, buffered",
    ]


def test_operations_on_names_are_operations_in_tables_and_on_axes() -> None:
    records = [on_names(randomio(seed=seed), name) for name in ("create", "stat") for seed in (1, 2)]
    document = build([entry(record, f"{at}.json") for at, record in enumerate(records)])
    (table,) = [sheet for sheet in sheets(document) if sheet.title.startswith("Operations on names")]
    assert [row[1] for row in table.rows] == ["create", "stat"]
    heads = [column.head for column in table.columns]
    assert "operations/s" in heads
    assert "MB/s" not in heads
    titles = [title for drawn in document.charts() for title in axis_titles(drawn.specification)]
    assert "Throughput (operations/s)" in titles
    assert not [title for title in titles if "IOPS" in title]
    assert not [sheet for sheet in sheets(document) if any("IOPS" in column.head for column in sheet.columns)]


def test_the_table_and_the_chart_give_the_same_mean() -> None:
    records = [scaled(asked(randomio(), "a"), factor) for factor in (1, 100)]
    document = build([entry(record, f"{at}.json") for at, record in enumerate(records)])
    table = next(sheet for sheet in sheets(document) if sheet.title.startswith("Figures of each case"))
    assert "geometric means" in table.title
    at = [column.head for column in table.columns].index("IOPS")
    whole = sum(float(row[at]) for row in table.rows)
    assert whole == pytest.approx(float(chart(document, "runs").sheet.rows[0][3]), rel=0.01)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.12, "12 %"),
        (8.9, "890 %"),
        (9.0, "x 10"),
        (580.58, "x 582"),
        (58057.0, "x 58 100"),
        (-0.998, "-99.8 %"),
        (1e9, "x over 1 000 000"),
    ],
)
def test_large_changes_are_multiples(share: float, words: str) -> None:
    assert as_change(share) == words


def test_sentences_say_how_many_times() -> None:
    slow, fast = (
        Side(name, [trial_of(scaled(randomio(seed=seed), factor), place=seed) for seed in (1, 2, 3)])
        for name, factor in (("slow", 1), ("fast", 580))
    )
    words = next(each.words for each in compare([slow, fast]).findings if "times as fast" in each.words)
    assert "fast is 580 times as fast as slow" in words
    assert words.count("x ") == 2  # the interval
    assert share_of(0.58) == "58 % of"
    assert share_of(580) == "580 times"


def test_no_interval_ends_before_a_knee_beyond_the_sweep() -> None:
    entries = [entry(randomio(workers=workers, seed=seed), f"{workers}") for workers in (4, 16, 64) for seed in (1, 2)]
    said = text(build(entries))
    assert "or beyond." in said


def test_sizes_of_different_targets_have_units() -> None:
    one, two = (Side(name, [trial_of(randomio(name))]) for name in ("six-sata-f2", "six-sata-raid5"))
    assert "size 1.36 TiB against 2.27 TiB" in " ".join(compare([one, two]).likeness.words)
