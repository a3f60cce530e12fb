"""Exit status 1 comes with one line on stderr that says why, whatever the verb and the form of its output."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spindle import cli
from tests.program import spindle

pytestmark = pytest.mark.promise(21)

TESTS = Path(__file__).resolve().parents[1]
MAPS = TESTS / "data/md-maps"
SAMPLES = TESTS / "formats/samples"
RUN = ("run", "randomio", "one-sata", "--seconds", "1", "-q")
COMMANDS = {
    "run": (*RUN, "--strict"),
    "run in JSON": (*RUN, "--strict", "--json"),
    "run in fio's terse": (*RUN, "--strict", "--output-format", "terse"),
    "run that cannot start": ("run", "randomio", "empty.bin", "--write-fraction", "0", "-q"),
    "show": ("show", "bad.json"),
    "show strictly": ("show", "good.json", "--strict"),
    "show several": ("show", "two.csv", "--strict"),
    "show in a shape": ("show", "bad.json", "--shape", "fio"),
    "report": ("report", "bad.json"),
    "report of several": ("report", "bad.json", "worse.json", "-o", "r.md"),
    "report in a shape": ("report", "bad.json", "--shape", "fio"),
    "check": ("check", "--baseline", "good.json", "good.json", "--fail-unclear"),
    "check in JSON": ("check", "--baseline", "good.json", "good.json", "--fail-unclear", "--json"),
    "store show": ("store", "show", "tag:bad", "--store", "./s.db"),
    "store check": ("store", "check", "--store", "./broken.db"),
    "validate maps": ("validate", "maps", "maps"),
    "verify a state": ("verify", "--state", "state", "t.bin"),
    "verify after a crash": ("verify", "--after-crash", "journal", "d.bin"),
    "campaign show": ("campaign", "show", "plan", "--store", "./s.db"),
}
PLAN = """
target = "null:1GiB"
workload = "randomio"
setup = [["false"]]
[options]
seconds = 0.05
[trials]
count = 2
repeats = 1
"""
ITSELF = {"exits.py", "failure.py", "main.py"}
NAMES_EACH = {"knobs.py", "restore.py"}
"""Verbs that have a line for each setting that could not be put back."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with something bad for each command."""
    folder = tmp_path_factory.mktemp("bad")
    spindle(*RUN, "--output", "good.json", cwd=folder)
    bad = json.loads((folder / "good.json").read_text())
    bad["verdicts"].append({"check": "verify", "level": "invalid", "evidence": "1 block is wrong", "advice": "mend it"})
    for name in ("bad.json", "worse.json"):
        (folder / name).write_text(json.dumps(bad | {"id": f"{bad['id'][:-1]}{name[0] == 'w':d}"}))
    shutil.copy(SAMPLES / "bonnie-1.98.csv", folder / "two.csv")
    spindle("store", "import", "bad.json", "--tag", "bad", "--store", "./s.db", cwd=folder)
    shutil.copy(folder / "s.db", folder / "broken.db")
    with closing(sqlite3.connect(folder / "broken.db")) as connection, connection:
        connection.execute("UPDATE records SET added = '2020-01-01T00:00:00Z'")
    (folder / "empty.bin").touch()
    (folder / "maps").mkdir()
    text = (MAPS / "raid1_n2.csv").read_text()
    (folder / "maps/list.csv").write_text(text.replace("array_bytes=2162688", "array_bytes=2183168"))
    written = ("--create", "1MiB", "--keep", "--verify", "--write-fraction", "1", "--requests", "200")
    spindle("run", "randomio", "t.bin", *written, "--verify-state", "state", "-q", cwd=folder)
    journal = ("--journal", "journal", "--journal-on-target", "--seconds", "0.2", "-q")
    spindle("durability", "d.bin", "--create", "1MiB", *journal, cwd=folder)
    for name in ("t.bin", "d.bin"):
        (folder / name).write_bytes(bytes(1 << 20))
    (folder / "plan.toml").write_text(PLAN)
    spindle("campaign", "run", "plan.toml", "-q", "--store", "./s.db", cwd=folder)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_status_of_1_has_one_line_that_says_why(place: Path, name: str) -> None:
    ended = spindle(*COMMANDS[name], cwd=place)
    assert ended.status == 1, ended
    assert re.match(r"spindle: \S.{15,}", ended.complaint)


def test_the_line_names_what_is_wrong_and_what_to_do(place: Path) -> None:
    assert spindle("show", "bad.json", cwd=place).complaint == "spindle: one-sata: verify: 1 block is wrong; mend it"
    several = spindle("report", "bad.json", "worse.json", "-o", "r2.md", cwd=place).complaint
    assert several.endswith("mend it (2 of 2 results)")


def test_the_last_line_of_a_campaign_says_how_many_trials_were_given_up(place: Path) -> None:
    ended = spindle("campaign", "run", "plan.toml", "-q", "--store", "./other.db", cwd=place)
    *trials, last = ended.err.splitlines()
    assert (ended.status, last) == (1, "spindle: campaign plan: 2 of 2 trials were given up")
    assert all(line.startswith("spindle: trial ") for line in trials)


def test_no_verb_ends_with_1_past_the_function_that_says_why() -> None:
    folder = Path(cli.__file__).parent
    silent = [file.name for file in folder.glob("*.py") if "Exit.FAILED" in file.read_text()]
    assert set(silent) <= ITSELF | NAMES_EACH
