"""`--help` fits a terminal of 80 columns; `help` shows the pages, which ship with the package; shells complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from spindle.cli.main import COMPLETE, VERBS, spindle
from spindle.cli.options.groups import COMMON, RUN
from spindle.cli.verbs import predict, run
from spindle.report.terminal import pages
from tests.program import Invoke

ROOT = Path(__file__).resolve().parents[2]


def help_page(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "spindle.cli", *words],
        env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.promise(30)
@pytest.mark.parametrize("words", [["--help"], ["run", "--help-all"], *([verb, "--help"] for verb in VERBS)], ids=str)
def test_no_line_of_a_help_page_is_wider_than_80_columns(words: list[str]) -> None:
    assert [line for line in help_page(*words).splitlines() if len(line) > 80] == []


def test_a_verb_has_one_line_in_the_list_of_verbs() -> None:
    assert {line.split()[0] for line in help_page("--help").splitlines() if re.match(r"  [a-z]+ {2,}\S", line)} == set(
        VERBS
    )


def groups() -> dict[str, list[str]]:
    context = click.Context(run.command, info_name="run")
    return {title: [option.opts[-1] for option in found] for title, found in run.command.grouped(context).items()}


def test_each_option_of_run_is_in_one_group() -> None:
    found = [option for group in groups().values() for option in group]
    assert len(found) == len(set(found)) == sum(isinstance(each, click.Option) for each in run.command.params) + 1
    of_predict = {each.opts[-1] for each in predict.command.params if isinstance(each, click.Option)}
    assert set(found) | of_predict >= COMMON
    assert set(RUN) <= set(found)


@pytest.mark.parametrize(
    ("option", "title"),
    [
        ("--erase-signature", "Device safety"),
        ("--zipf-theta", "Pattern: where the next request goes"),
        ("--steady-drift", "End of the run"),
        ("--depth", "Load: concurrency and rate"),
        ("--drop-caches", "Before the measurement"),
    ],
)
def test_an_option_is_in_the_expected_group(option: str, title: str) -> None:
    assert option in groups()[title]


def test_the_short_help_of_run_is_at_most_half_of_the_whole() -> None:
    short, whole = help_page("run", "--help"), help_page("run", "--help-all")
    assert len(short.splitlines()) * 2 < len(whole.splitlines())
    assert "--help-all" in short
    assert "--zipf-theta" in whole
    assert "--zipf-theta" not in short


def test_each_page_is_in_the_index() -> None:
    listed = {name for found in pages.topics().values() for name in found}
    kept = ("verbs", "doctor", "contributing", "questions")  # lists of their own
    assert listed == {name for name, path in pages.paths().items() if path.parent.name not in kept} - {"index"} | {
        "doctor",
        "questions",
        "verbs",
        "words",
    }


@pytest.mark.parametrize("topic", ["workload", "doctor", "scheduler", "measurement", "index"])
def test_help_shows_the_page(topic: str, invoke: Invoke) -> None:
    shown = invoke("help", topic)
    assert shown.status == 0
    assert shown.out.startswith("# ")
    assert "<!--" not in shown.out


def test_help_on_a_terminal_is_as_wide_as_it() -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", pages.rendered(pages.paths()["phases"], 80))
    assert "# Phases" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_an_unknown_topic_has_the_nearest_name(invoke: Invoke) -> None:
    shown = invoke("help", "measuremnt")
    assert (shown.status, shown.out) == (2, "")
    assert shown.err == "spindle: no page `measuremnt`; did you mean `measurement`?\n"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("spindle r", {"run", "report", "restore"}),
        ("spindle run --steady-m", {"--steady-metric"}),
        ("spindle run --pattern z", {"zipf", "zoned"}),
        ("spindle store l", {"ls"}),
        ("spindle help measure", {"measurement"}),
        ("spindle rnu --si", set()),
    ],
)
def test_a_shell_completes(line: str, offered: set[str]) -> None:
    asked = {COMPLETE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "spindle.cli"], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert {each.split(",")[1] for each in done.stdout.split()} == offered
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_the_program(shell: str, invoke: Invoke) -> None:
    shown = invoke("completion", shell)
    assert f"{COMPLETE}={shell}_complete" in shown.out
    assert shown.status == 0


def test_bash_takes_the_script(tmp_path: Path) -> None:
    (tmp_path / "spindle.bash").write_text(help_page("completion", "bash"))
    typed = "source ./spindle.bash; complete -p spindle; COMP_WORDS=(spindle knobs li); COMP_CWORD=2; "
    typed += "_spindle_completion spindle; echo ${COMPREPLY[@]}"
    (tmp_path / "spindle").write_text(f'#!/bin/sh\nexec {sys.executable} -m spindle.cli "$@"\n')
    (tmp_path / "spindle").chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", typed], cwd=tmp_path, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "list"


def test_spindle_lists_its_verbs_without_importing_them() -> None:
    assert spindle.list_commands(click.Context(spindle)) == list(VERBS)


def test_the_build_copies_the_pages_into_the_package() -> None:
    copies, docs = ROOT / "python/spindle/pages", ROOT / "docs"
    assert {path.relative_to(copies) for path in copies.rglob("*.md")} == {
        path.relative_to(docs) for path in docs.rglob("*.md")
    }
