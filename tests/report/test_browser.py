"""A report in a real browser: nothing is missing, no request leaves it, every chart is complete."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from spindle.report.document.build import build
from spindle.report.document.entry import Entry
from spindle.report.render.html import html
from tests.report.subjects import asked, campaign, entry, matrix, modelled, noisy, of_kind, on_names, randomio, scaled

ARTEFACTS = Path(os.environ.get("SPINDLE_TEST_ARTEFACTS") or Path(__file__).parents[2] / "target/test-artefacts")
"""Here screenshots and the print are kept for people to look at."""


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """Records for every kind of chart."""
    found = [
        entry(modelled("oltp", "six-sata-raid10", ("seconds", "3"), find_knee=True), "knee.json"),
        *(
            entry(randomio(target, seed=seed), f"{target}-{seed}.json", cell={"array": target})
            for target in ("six-sata-f2", "six-sata-raid10", "six-sata-raid5")
            for seed in (1, 2, 3)
        ),
    ]
    return [*found, *matrix(tmp_path_factory.mktemp("machines"))]


@pytest.fixture(scope="module")
def page(browser: Any, entries: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The opened report; `said` has its messages on the console, `asked` its requests."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_bytes(html(build(entries, "Everything at once")))
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light")
    opened = context.new_page()
    opened.said, opened.asked = [], []
    opened.on("console", lambda message: opened.said.append(message.text))
    opened.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(file.as_uri())
    yield opened
    context.close()


def test_the_console_is_empty_and_the_file_sends_no_request(page: Any) -> None:
    assert page.said == []
    assert len(page.asked) == 1
    assert page.asked[0].startswith("file:")


def test_the_report_has_every_kind_of_chart(page: Any) -> None:
    found = {figure.get_attribute("id") for figure in page.query_selector_all("figure")}
    assert {"runs", "chunks", "threads", "percentiles-read", "percentiles-write", "seconds", "heatmap"} <= found


def test_every_chart_has_a_visible_title_axes_with_units_and_data(page: Any) -> None:
    figures = page.query_selector_all("figure")
    assert figures
    for figure in figures:
        key = figure.get_attribute("id")
        assert figure.query_selector("figcaption h3").is_visible(), key
        assert len(figure.query_selector("figcaption p").inner_text()) > 20, key
        titles = [each.text_content() for each in figure.query_selector_all(".role-axis-title text")]
        numeric = [title for title in titles if title]
        assert numeric, key
        assert all(title.endswith(")") and "(" in title for title in numeric), (key, numeric)
        marks = figure.query_selector_all(".role-mark path, .role-mark line, .role-mark rect")
        drawn = [mark for mark in marks if (box := mark.bounding_box()) and (box["width"] > 0 or box["height"] > 0)]
        assert len(drawn) >= 1, key
        assert figure.query_selector("svg").bounding_box()["height"] > 40, key


def test_every_chart_has_its_figures_in_a_table_that_the_keyboard_opens(page: Any) -> None:
    for figure in page.query_selector_all("figure"):
        summary = figure.query_selector("details > summary")
        summary.focus()
        page.keyboard.press("Enter")
        assert figure.query_selector("table").is_visible()
        assert len(figure.query_selector_all("tbody tr")) >= 1
        page.keyboard.press("Enter")


def test_charts_have_names_for_screen_readers(page: Any) -> None:
    for drawing in page.query_selector_all("svg.chart"):
        assert drawing.get_attribute("role") == "img"
        for attribute in ("aria-labelledby", "aria-describedby"):
            assert page.query_selector(f"#{drawing.get_attribute(attribute)}").inner_text().strip()


def test_headings_and_landmarks_have_an_order(page: Any) -> None:
    levels = [int(each.evaluate("e => e.tagName")[1]) for each in page.query_selector_all("h1, h2, h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.query_selector("main") is not None
    for link in page.query_selector_all("nav a"):
        assert page.query_selector(link.get_attribute("href")) is not None


def test_no_identity_is_used_twice(page: Any) -> None:
    names = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(names) == len(set(names))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_light_and_dark(page: Any, scheme: str) -> None:
    """WCAG AA: 4.5 to 1 for text of the page and of the charts; 3 to 1 for curves."""
    page.emulate_media(color_scheme=scheme)
    ground = _colour(page, "body", "background-color")
    for selector in ("p", "figcaption p", "td", "thead th", ".badge", "summary", "nav a", "code"):
        assert _contrast(_colour(page, selector, "color"), ground) >= 4.5, selector
    fills = page.eval_on_selector_all("svg.chart text", "all => [...new Set(all.map(e => getComputedStyle(e).fill))]")
    assert all(_contrast(_rgb(fill), ground) >= 4.5 for fill in fills)
    strokes = page.eval_on_selector_all(
        ".mark-line path", "all => [...new Set(all.map(e => getComputedStyle(e).stroke))]"
    )
    strong = [stroke for stroke in strokes if stroke != "none"]
    assert strong
    assert all(_contrast(_rgb(stroke), ground) >= 3 for stroke in strong)
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTEFACTS / f"report-{scheme}.png"), full_page=True)
    page.emulate_media(color_scheme="light")


def test_it_fits_a_telephone_and_prints(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    widest = "all => Math.max(...all.map(each => each.getBoundingClientRect().right))"
    assert page.eval_on_selector_all("caption", widest) <= 390
    page.set_viewport_size({"width": 1200, "height": 900})
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    (ARTEFACTS / "report.pdf").write_bytes(paper)
    page.emulate_media(media="print", color_scheme="dark")
    assert _colour(page, "body", "background-color") == (255, 255, 255)
    page.emulate_media(media="screen", color_scheme="light")


LETTERS = 9.5
"""Pixels: the least that is read without enlarging."""

_TEXTS = """() => [...document.querySelectorAll('svg.chart')].filter(e => e.getBoundingClientRect().width > 0)
  .flatMap(svg => [...svg.querySelectorAll('text')].map(text => {
    const box = text.getBoundingClientRect(), ground = svg.parentElement.getBoundingClientRect();
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return {text: text.textContent, size: parseFloat(getComputedStyle(text).fontSize) * scale,
      left: box.left - ground.left,
      right: ground.right - box.right, end: text.getAttribute('text-anchor') === 'end', top: box.top,
      bottom: box.bottom, x: Math.round(box.right), chart: svg.getAttribute('aria-labelledby')}
  }))"""


def _names() -> list[Entry]:
    records = [on_names(randomio(seed=seed), name, seed) for name in ("create", "stat", "unlink") for seed in (1, 2)]
    return [entry(record, f"{at}.json") for at, record in enumerate(records)]


def _machines() -> list[Entry]:
    names = ("one-nvme", "six-sata-f2", "six-sata-raid5")
    return [entry(randomio(name, workers=workers), f"{name}{workers}") for name in names for workers in (4, 48)]


SHAPES = {
    "two-runs": lambda: [entry(randomio(seed=seed), f"{seed}.json") for seed in (1, 2)],
    "thirty-runs": lambda: [
        entry(scaled(randomio(seed=1 + at % 3), 1 + at / 100), f"{at}.json", tags=(("before", "after")[at % 2],))
        for at in range(30)
    ],
    "seventy-four-cases": lambda: campaign(74),
    "file-and-device": lambda: [
        entry(of_kind(asked(scaled(randomio(), 580), "randomio", direct=False), "file", "t.bin"), "a.json"),
        entry(of_kind(randomio(), "device", "/dev/loop0"), "b.json"),
    ],
    "one-is-noisy": lambda: noisy((8, 1.3, 0.3)),
    "names": _names,
    "machines": _machines,
}


@pytest.mark.promise(16)
@pytest.mark.parametrize("width", [375, 1100])
@pytest.mark.parametrize("shape", SHAPES)
def test_all_letters_of_charts_are_large_enough_and_whole(browser: Any, shape: str, width: int, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_bytes(html(build(SHAPES[shape]())))
    context = browser.new_context(viewport={"width": width, "height": 812}, color_scheme="light")
    opened = context.new_page()
    opened.goto(file.as_uri())
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=str(ARTEFACTS / f"report-{shape}-{width}.png"), full_page=True)
    texts = opened.evaluate(_TEXTS)
    wide = opened.evaluate("document.documentElement.scrollWidth")
    charts, figures = (len(opened.query_selector_all(selector)) for selector in ("svg.chart:visible", "figure"))
    context.close()
    assert texts
    assert charts == figures
    assert wide <= width
    assert [each for each in texts if each["text"].strip() and each["size"] < LETTERS] == []
    assert [each for each in texts if each["left"] < -1 or each["right"] < -1] == []
    beside = sorted((each["chart"], each["x"], each["top"], each["bottom"]) for each in texts if each["end"])
    for (chart, x, _, bottom), (other, at, top, _) in pairwise(beside):
        assert (chart, x) != (other, at) or top >= bottom - 3


def _colour(page: Any, selector: str, name: str) -> tuple[int, ...]:
    return _rgb(page.eval_on_selector(selector, f"e => getComputedStyle(e).getPropertyValue('{name}')"))


def _rgb(text: str) -> tuple[int, ...]:
    return tuple(int(float(part)) for part in text.partition("(")[2].rstrip(")").split(",")[:3])


def _contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """As WCAG 2.2 defines it."""
    low, high = sorted(_luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: tuple[int, ...]) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
