"""docs/reference/doctor has a page for each rule, with the thresholds of the code, and its source."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.doctor import RULES
from spindle.doctor.rule import Rule
from tests.program import Ended

PAGES = Path(__file__).resolve().parents[2] / "docs/reference/doctor"
SECTIONS = ("## Rule", "## Cost", "## Source")


def test_the_index_lists_every_page_and_no_other() -> None:
    index = (PAGES / "README.md").read_text()
    names = {rule.name for rule in RULES}
    assert {path.stem for path in PAGES.glob("*.md")} - {"README"} == names
    assert set(re.findall(r"\]\(([a-z0-9-]+)\.md\)", index)) == names
    for rule in RULES:
        assert rule.about in index, rule.name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_page_has_its_rule_its_cost_and_its_source(rule: Rule) -> None:
    text = (PAGES / f"{rule.name}.md").read_text()
    assert text.startswith(f"# {rule.name}\n\n{rule.about}\n")
    at = [text.index(f"\n{section}\n") for section in SECTIONS]
    assert at == sorted(at)
    for section in SECTIONS:
        assert len(text.split(f"\n{section}\n", 1)[1].split("\n## ")[0].strip()) > 40, section
    assert "\n[All rules](README.md)" in text


def test_each_limit_on_a_page_is_that_of_the_code() -> None:
    """A page names a limit as `NAME` = value; the module of its rule has it."""
    import importlib

    for rule in RULES:
        text = (PAGES / f"{rule.name}.md").read_text()
        module = importlib.import_module(f"spindle.doctor.rules.{_module(rule)}")
        named = re.findall(r"`([A-Z][A-Z_]+)`\s+=\s+(-?[\d.]+(?:e-?\d+)?)\b", text)
        for name, words in named:
            assert str(getattr(module, name)) == words.rstrip("."), f"{rule.name}: {name}"
        constants = {
            name
            for name, value in vars(module).items()
            if re.fullmatch(r"[A-Z][A-Z_]+", name)
            and isinstance(value, int | float)
            and name != "RULE"
            and _own(module, name)
        }
        assert constants <= {name for name, _ in named}, f"{rule.name}: {constants - {name for name, _ in named}}"


def _module(rule: Rule) -> str:
    return rule.name.replace("-", "_")


def _own(module: object, name: str) -> bool:
    source = Path(str(getattr(module, "__file__", ""))).read_text()
    return re.search(rf"^{name}\b.* = |^\w.*, {name}\b.* = ", source, re.M) is not None


def test_the_gain_on_the_page_of_ncq_is_that_of_the_model(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    from spindle.doctor.rules.ncq import MODELLED_GAIN

    rates = []
    for depth in (1, 31):
        machine = tmp_path / f"q{depth}.toml"
        machine.write_text(f'[host]\nkernel = "6.1"\n[[drive]]\nmodel = "HDS725050KLA360"\nqueue_depth = {depth}\n')
        load = ("--workers", "32", "--write-fraction", "0", "--size", "4KiB", "--seconds", "60")
        _, out, _ = invoke("run", "randomio", str(machine), *load, "--json")
        rates.append(json.loads(out)["figures"]["streams"][0]["total_read_bytes"])
    assert rates[1] / rates[0] == pytest.approx(MODELLED_GAIN, rel=0.03)
