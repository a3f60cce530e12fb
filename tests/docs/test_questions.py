"""Pages of the open questions: figures of the answers are in the tables, charts are those of the experiments."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

FOLDER = ROOT / "docs/questions"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
NUMBER = re.compile(r"`(\d+(?:\.\d+)?)`")


def parts(page: str) -> tuple[str, str]:
    """The output of the experiment, and the answer."""
    text = (FOLDER / f"{page}.md").read_text()
    found = re.search(r"```\n\$ python examples/questions/\w+\.py\n(.*?)```", text, re.S)
    assert found, page
    return found[1], text.split("## Answer\n", 1)[1]


def unknown_numbers(output: str, answer: str) -> set[str]:
    """Numbers in back-quotes that the output does not have."""
    return set(NUMBER.findall(answer)) - set(re.findall(r"\d+(?:\.\d+)?", output))


def test_there_is_a_page_for_each_experiment_and_question() -> None:
    scripts = sorted(path.stem for path in (ROOT / "examples/questions").glob("*.py") if path.stem != "experiment")
    assert scripts == PAGES
    assert len(PAGES) == 10


@pytest.mark.parametrize("page", PAGES)
def test_figures_of_an_answer_are_in_the_table(page: str) -> None:
    output, answer = parts(page)
    assert len(NUMBER.findall(answer)) >= 3
    assert unknown_numbers(output, answer) == set()


def test_a_figure_that_is_not_in_the_table_is_found() -> None:
    assert unknown_numbers("64KiB  3.99", "It is `3.98`, not `3.99`.") == {"3.98"}


@pytest.mark.parametrize("page", PAGES)
def test_the_chart_is_that_of_the_experiment(page: str, tmp_path: Path) -> None:
    drawn = tmp_path / "chart.svg"
    script = ROOT / f"examples/questions/{page}.py"
    subprocess.run([sys.executable, script, "--chart", drawn], check=True, stdout=subprocess.DEVNULL)
    assert labels(drawn) == labels(ROOT / f"docs/images/questions/{page}.svg")


def labels(path: Path) -> list[str]:
    """Each mark's figures, as screen readers get them."""
    found = re.findall(r'aria-label="([^"]+)"', path.read_text())
    assert len(found) > 5
    return found
