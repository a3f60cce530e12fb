"""docs/reference/store.md is true: its query answers what it says, and its tables are the tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spindle.store import PlannedTrial, Recording, Sample, Store, schema
from tests.store.made import record

PAGE = (Path(__file__).parents[2] / "docs/reference/store.md").read_text()
HEADS = [
    "scheduler",
    "r/s",
    "rMB/s",
    "await",
    "w/s",
    "wMB/s",
    "%util",
    "svctm",
    "rrqm/s",
    "wrqm/s",
    "avgrq-sz",
    "avgqu-sz",
]


def query_of_the_page() -> str:
    found = re.search(r"<!-- query -->\n```sql\n(.*?)```", PAGE, re.S)
    assert found is not None
    return found[1]


def test_the_averages_per_scheduler_are_those_of_the_samples(store: Store) -> None:
    """Four slots of two seconds; reads take 2 ms under one scheduler and 4 ms under the other, writes the double."""
    cells = [{"scheduler": name} for name in ("none", "bfq", "bfq", "none")]
    store.campaigns.create(
        "sched-shootout",
        plan="",
        seed=1,
        trials=[PlannedTrial(block=at // 2, cell=cell) for at, cell in enumerate(cells)],
    )
    with store.campaigns.hold("sched-shootout") as held:
        while trial := held.next():
            wait = {"none": 2.0, "bfq": 4.0}[trial.cell["scheduler"]]
            samples = [
                Sample(
                    device=device,
                    start_ns=second * 10**9,
                    seconds=1.0,
                    iostat={
                        "r/s": 100.0 + 20 * second,
                        "rMB/s": 1.0,
                        "r_await": wait,
                        "w/s": 100.0 + 20 * second,
                        "wkB/s": 3072.0,
                        "w_await": 2 * wait,
                        "rrqm/s": 1.0,
                        "wrqm/s": 5.0,
                        "aqu-sz": wait,
                        "%util": 50.0,
                    },
                )
                for device in ("loop0", "below")
                for second in range(2)
            ]
            recording = Recording(started="2026-01-01T00:00:00Z", interval_s=1, about="load", samples=samples)
            held.finish(trial, record(trial.number), recording)
    columns, rows = store.query(query_of_the_page())
    assert columns == HEADS
    svctm = (10 * 50 / 200 + 10 * 50 / 240) / 2
    sectors = (2048 * 4 / 200 + 2048 * 4 / 240) / 2
    expected = {"none": 3.0, "bfq": 6.0}
    assert [row[0] for row in rows] == ["none", "bfq"]  # the shorter wait first
    for row in rows:
        wait = expected[str(row[0])]
        wanted = [110, 1, wait, 110, 3, 50, svctm, 1, 5, sectors, wait / 1.5]
        assert [float(str(value)) for value in row[1:]] == pytest.approx(wanted)


def test_the_other_questions_of_the_page_are_answered(store: Store) -> None:
    store.add(record(1))
    more = PAGE.split("More questions:\n")[1].split("\n## ")[0]
    questions = re.findall(r"```sql\n(.*?)```", more, re.S)
    statements = [one for text in questions for one in text.split(";") if one.strip()]
    assert len(statements) == 3
    for statement in statements:
        assert store.query(statement)[0]


def test_every_table_and_view_is_on_the_page(store: Store) -> None:
    listed = set(re.findall(r"^\| (`[^|]*) \|", PAGE.split("## Tables")[1].split("## What")[0], re.M))
    names = {name for cell in listed for name in re.findall(r"`(\w+)`", cell)}
    assert names == set(store.table_names()) - {"alembic_version"}
    assert set(schema.metadata.tables) <= names
