"""docs/reference/campaign.md is true."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from spindle.campaign.execution import made_ready
from spindle.campaign.source import TOP, preset_names, read_plan
from tests.program import Ended

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/campaign.md").read_text()
TOML = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_plan_on_the_page_can_be_run() -> None:
    found = made_ready(read_plan(TOML[0], "elevators.toml", "elevators"))
    assert f"{len(found.prepared)} cells, {found.schedule.least} to {found.schedule.most} trials" in PAGE


def test_the_levels_on_the_page_are_levels() -> None:
    chunk = "\n[factors.chunk]\nsets = 'machine.array.chunk'\nvalues = ['64KiB']\n"
    workload = "workload = 'sdd-read'\ntarget = 'four-sata-md'\n"
    assert len(made_ready(read_plan(workload + TOML[1] + chunk, "page.toml", "page")).prepared) == 2


def test_every_key_and_every_preset_is_on_the_page() -> None:
    for key in TOP:
        assert f"`{key}`" in PAGE or f"[{key}" in PAGE or key == "about", key
    for name in preset_names():
        assert f"| `{name}` |" in PAGE


def test_the_modelled_figures_on_the_page_are_those_of_the_model(invoke: Callable[..., Ended]) -> None:
    wanted = "array=one-drive,raid10-f2,raid10-n2,raid5"
    done = invoke("run", "md-matrix", "--set", wanted, "--set", "direction=read", "--json")
    cells = json.loads(done.out)["cells"]
    for array, words in (("raid10-f2", "far (f2)"), ("raid10-n2", "near (n2)"), ("raid5", "raid5")):
        row = [f"{cell['multiple']:.2f}" for cell in cells if cell["cell"]["array"] == array]
        assert f"| {words}, modelled | {' | '.join(row)} |" in PAGE
