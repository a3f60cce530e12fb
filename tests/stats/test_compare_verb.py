"""`spindle compare` on files and stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from spindle.cli.exits import Exit
from spindle.result.document import encode, read
from spindle.result.record import Level, RunRecord, Verdict
from spindle.store import PlannedTrial, open_store
from tests.program import Ended
from tests.stats.campaign import run

SIDES = (("old", 1000.0, 1), ("new", 1100.0, 2))
MACHINE = Path(__file__).resolve().parents[2] / "catalogue/machines/one-sata.toml"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store.db"
    monkeypatch.setenv("SPINDLE_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def filled(store: Path, **tags: Sequence[RunRecord]) -> None:
    with open_store(store) as opened:
        for tag, records in tags.items():
            opened.add_all(list(records), tags=[tag])


def noisy(mean: float, count: int, turn: int, noise: float = 0.02, **changes: Any) -> list[RunRecord]:
    """Runs of one side; those of turns 1 and 2 took turns."""
    draw = np.random.default_rng(turn)
    numbers = [2 * n + turn % 2 for n in range(count)]
    return [run(mean * float(np.exp(noise * draw.normal())), number=n, **changes) for n in numbers]


def campaign(store: Path, blocks: int = 4) -> None:
    """bfq is 20 % slower than none and kyber."""
    draw = np.random.default_rng(3)
    cells = [{"scheduler": name, "depth": depth} for name in ("none", "bfq", "kyber") for depth in ("1", "8")]
    plan = [PlannedTrial(block=b, cell=cells[at], detail={}) for b in range(blocks) for at in draw.permutation(6)]
    with open_store(store) as opened:
        opened.campaigns.create("shootout", plan="", seed=1, trials=plan)
        with opened.campaigns.hold("shootout") as held:
            number = 0
            while trial := held.next():
                speed = (
                    1000 * (0.8 if trial.cell["scheduler"] == "bfq" else 1) * (2 if trial.cell["depth"] == "8" else 1)
                )
                held.finish(trial, run(speed * float(np.exp(0.02 * draw.normal() + 0.02 * trial.block)), number=number))
                number += 1


def test_two_tags_are_compared_in_a_table_and_in_words(store: Path, invoke: Callable[..., Ended]) -> None:
    filled(store, old=noisy(1000, 6, 1), new=noisy(1200, 6, 2))
    ended = invoke("compare", "tag:old", "tag:new", "--metric", "iops")
    assert ended.status == Exit.FINE
    assert ended.err == ""
    lines = ended.out.splitlines()
    assert lines[0] == "tag:new (6 runs) against tag:old (6 runs); geometric means, 95 % confidence"
    assert any(line.startswith("iops ") and "o" in line for line in lines)
    assert any("IOPS: tag:new is " in line and "% faster than tag:old (95 % interval" in line for line in lines)


@pytest.mark.promise(10)
def test_tags_one_after_the_other_are_not_compared_unless_the_machine_is_taken_to_be_the_same(
    store: Path, invoke: Callable[..., Ended]
) -> None:
    filled(store, old=noisy(1000, 6, 1, day=1), new=noisy(1700, 6, 2, day=2))
    words = " ".join(invoke("compare", "tag:old", "tag:new", "--metric", "iops").out.split())
    assert "% above tag:old; they ran one after the other, so that time and alternative cannot be separated." in words
    assert "let them take turns" in words
    trusted = invoke("compare", "tag:old", "tag:new", "--metric", "iops", "--across-time").out
    assert "faster than tag:old (95 % interval" in trusted


def test_json_has_every_number_and_the_words(store: Path, invoke: Callable[..., Ended]) -> None:
    filled(store, old=noisy(1000, 6, 1), new=noisy(1200, 6, 2))
    found = json.loads(invoke("compare", "tag:old", "tag:new", "--json", "--metric", "iops").out)
    finding = found["comparison"]["findings"][0]
    assert finding["outcome"] == "better"
    assert finding["difference"]["low"] < 0.2 < finding["difference"]["high"]
    assert finding["difference"]["confidence"] == 0.95
    assert finding["planning"]["needed"] >= 2
    assert "faster" in finding["words"]


def test_files_are_compared_without_a_store(here: Path, invoke: Callable[..., Ended]) -> None:
    for name, rate in (("a", 1000.0), ("b", 1100.0)):
        (here / f"{name}.json").write_bytes(encode(run(rate)))
    ended = invoke("compare", "a.json", "b.json")
    assert ended.status == Exit.FINE
    assert "b.json (1 run) against a.json (1 run)" in ended.out
    assert "nothing is claimed beyond these two runs" in ended.out


def test_a_campaign_alone_names_its_best_and_its_factors(store: Path, invoke: Callable[..., Ended]) -> None:
    campaign(store)
    ended = invoke("compare", "campaign:shootout", "--metric", "iops")
    assert ended.status == Exit.FINE
    starred = [line.split()[1] for line in ended.out.splitlines() if line.startswith("*")]
    assert set(starred) == {"depth=8,scheduler=none", "depth=8,scheduler=kyber"}
    assert "IOPS: the best is one of " in ended.out
    factors = {line.split()[0]: line for line in ended.out.splitlines() if " %  <0.0001  " in line}
    assert set(factors) == {"scheduler", "depth"}
    assert "none found" in ended.out

    by = json.loads(invoke("compare", "campaign:shootout", "--by", "scheduler", "--metric", "iops", "--json").out)
    assert [place["trials"] for place in by["rankings"][0]["places"]] == [8, 8, 8]


def test_slices_of_a_campaign_are_compared_block_by_block(store: Path, invoke: Callable[..., Ended]) -> None:
    campaign(store)
    ended = invoke(
        "compare", "campaign:shootout/scheduler=bfq", "campaign:shootout/scheduler=none", "--metric", "iops", "--json"
    )
    difference = json.loads(ended.out)["comparison"]["findings"][0]["difference"]
    assert (difference["a"], difference["b"]) == ("scheduler=bfq", "scheduler=none")
    assert difference["basis"] == "blocks"
    assert difference["low"] < 0.25 < difference["high"]
    assert difference["high"] - difference["low"] < 0.12  # few blocks must be surer: 0.1 without that


def test_invalid_runs_are_left_out_unless_asked_for(store: Path, invoke: Callable[..., Ended]) -> None:
    cached = [run(9000.0, number=9, invalid=True)]
    filled(store, old=noisy(1000, 4, 1), new=[*noisy(1000, 4, 2), *cached], bad=cached)
    out = invoke("compare", "tag:old", "tag:new").out
    assert "1 of 5 runs of tag:new left out: their verdict is invalid" in out
    assert "tag:new (5 runs)" in invoke("compare", "tag:old", "tag:new", "--with-invalid").out
    refused = invoke("compare", "tag:old", "tag:bad")
    assert refused.status == Exit.FAILED
    assert "tag:bad: all of its 1 runs have the verdict invalid" in refused.complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["tag:old"], "tag:old: there is only one alternative; name another to compare it with"),
        (["tag:old", "tag:none"], "tag:none: nothing has this tag"),
        (["tag:old", "tag:new", "--metric", "iop"], "--metric iop: no run has it; near to it are iops"),
        (["tag:old", "tag:new", "--confidence", "200%"], "is not a share above 50% and below 100%"),
        (["tag:old", "tag:new", "--by", "x"], "--by: separates the trials of one campaign"),
        (["tag:old", "--by", "x"], "--by x: tag:old has no such factor; its runs are not from a campaign"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(
    store: Path, invoke: Callable[..., Ended], arguments: list[str], complaint: str
) -> None:
    filled(store, old=noisy(1000, 2, 1), new=noisy(1000, 2, 2))
    ended = invoke("compare", *arguments)
    assert ended.status == Exit.USAGE
    assert complaint in ended.complaint


def test_whole_distributions_are_compared_with_bands(here: Path, invoke: Callable[..., Ended]) -> None:
    """A modelled drive under half the load: reads wait less, at every percentile but the least."""
    with open_store(here / "s.db") as store:
        for tag, workers in (("many", "16"), ("again", "16"), ("few", "8")):
            for seed in range(4):
                number = {"many": 100, "again": 200, "few": 300}[tag] + seed
                name = f"{tag}{seed}.json"
                options = ["--workers", workers, "--seconds", "10", "--seed", str(number), "--output", name]
                invoke("run", "randomio", str(MACHINE), *options, "-q")
                store.add(read(here / name), tags=[tag])
    options = ["--percentiles", "--json", "--store", "s.db"]
    curves = json.loads(invoke("compare", "tag:many", "tag:few", *options).out)["curves"]
    reads = next(each for each in curves if each["operation"] == "read")
    middle = next(point for point in reads["points"] if point["percentile"] == 50)
    assert middle["high"] < -0.3
    assert "tag:few is lower by" in reads["words"]
    alike = json.loads(invoke("compare", "tag:many", "tag:again", *options).out)["curves"]
    reads = next(each for each in alike if each["operation"] == "read")
    assert all(point["low"] <= 0 <= point["high"] for point in reads["points"])


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_a_page_fits_its_terminal(width: int) -> None:
    from spindle.report.terminal.compare import page
    from spindle.report.terminal.style import Style
    from spindle.stats.study import study
    from spindle.stats.trial import Side, trial_of

    made = [Side(f"tag:{label}", [trial_of(each) for each in noisy(mean, 5, day)]) for label, mean, day in SIDES]
    lines = page(study(made[:2]), Style(width=width))
    assert max(len(line) for line in lines) <= width
    assert "tag:new is" in " ".join(line.strip() for line in lines)
    assert any("needs" in line for line in lines), "what more trials bring is said in every width"


def test_a_run_on_both_sides_is_said(store: Path, invoke: Callable[..., Ended]) -> None:
    filled(store, old=noisy(1000, 3, 1))
    assert "3 runs are both in tag:old and in tag:old" in invoke("compare", "tag:old", "tag:old").out


def test_a_campaign_of_one_trial_each_ranks_nothing_and_says_so(store: Path, invoke: Callable[..., Ended]) -> None:
    campaign(store, blocks=1)
    ended = invoke("compare", "campaign:shootout", "--metric", "iops")
    assert ended.status == Exit.FINE
    assert "One trial of each alternative does not show how much trials scatter" in ended.out


PLAN = """
target = "one-sata"
workload = "randomio"
[factors.scheduler]
sets = "knobs.scheduler"
values = ["noop", "deadline", "cfq"]
"""


@pytest.mark.promise(13)
def test_the_baseline_of_a_campaign_is_the_plans_first_level_and_troubled_trials_are_counted(
    store: Path, invoke: Callable[..., Ended]
) -> None:
    cells = [{"scheduler": name} for name in ("cfq", "deadline", "noop")]  # in which they ran
    detail = {"plan": "elevators", "source": "elevators.toml", "assignments": [], "sources": {}}
    with open_store(store) as opened:
        plan = [PlannedTrial(block=block, cell=cell, detail={}) for block in range(1, 5) for cell in cells]
        opened.campaigns.create("elevators", plan=PLAN, seed=1, trials=plan, detail=detail)
        with opened.campaigns.hold("elevators") as held:
            number = 0
            while trial := held.next():
                number += 1
                if trial.number == 1 and trial.attempts == 1:
                    held.reject(trial, "failed", "the disk was busy", again=True)
                elif trial.number == 12:
                    held.reject(trial, "failed", "the disk went away", again=False)
                else:
                    held.finish(trial, run(100.0 + number, number=number))
    found = json.loads(invoke("compare", "campaign:elevators", "--metric", "iops", "--json").out)["comparison"]
    assert found["sides"] == ["scheduler=noop", "scheduler=deadline", "scheduler=cfq"]
    words = " ".join(invoke("compare", "campaign:elevators", "--metric", "iops").out.split())
    assert "campaign:elevators: 11 trials done, 1 given up, 1 made again." in words


@pytest.mark.promise(13)
def test_runs_with_warnings_are_counted(store: Path, invoke: Callable[..., Ended]) -> None:
    warned = [
        replace(each, verdicts=[Verdict(check="busy", level=Level.WARN, evidence="load")]) for each in noisy(1, 2, 2)
    ]
    filled(store, old=noisy(1000, 4, 1), new=[*noisy(1200, 4, 2)[2:], *warned])
    assert "tag:new: 4 trials done, 2 with warnings." in " ".join(invoke("compare", "tag:old", "tag:new").out.split())
