"""Every command in README and docs exists and runs; if its output is the same each time, it is that of the page."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import click
import pytest

from tests.pages import PAGES, ROOT, Command, File, inline, steps
from tests.workbench import PATH, Workbench

# Long runs are made shorter if their figures differ each time anyway.
SHORTER = [
    (r"--create (\d+GiB|\d+MiB|auto)", "--create 64MiB"),
    (r"--seconds \d+", "--seconds 1"),
    (r"--filesize (1GiB|\d{2,}MiB)", "--filesize 4MiB"),
    (r"filesize=64MiB,256MiB", "filesize=1MiB,2MiB"),
]
# Scripts run whole, but for a minute on the reader's own disk.
SHORTER_SCRIPTS = [
    (r"((?: t\.bin| /srv/data) .*--seconds) \d+", r"\1 5"),
    (r"t\.bin --create 1GiB", "t.bin --create 64MiB"),
]


def option_names(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def misspelt(line: str) -> list[str]:
    """Verbs and options of a command line that the program does not have."""
    from spindle.cli.main import spindle

    words = re.split(r"[\s\[\]|]+", re.split(r"[<>;&]| -- ", line)[0])
    command: click.Command = spindle
    context = click.Context(spindle)
    for word in words[1:]:
        if not isinstance(command, click.Group):
            break
        if not re.fullmatch(r"[a-z-]+", word) or word.startswith("-"):
            continue
        found = command.get_command(context, word)
        if found is None:
            return [word]
        command = found
    known = option_names(command) if command.name != "fio" else None
    used = {word.split("=")[0] for word in words if re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word)}
    return sorted(used - known) if known is not None else []


@pytest.mark.promise(25)
@pytest.mark.parametrize("page", PAGES)
def test_verbs_and_options_on_a_page_exist(page: str) -> None:
    commands = [*inline(page), *(step for step in steps(page) if isinstance(step, Command))]
    lines = [line for command in commands for line in command.line.split("\n") if line.startswith("spindle ")]
    made_here = set(re.findall(r"cli/verbs/(\w+)\.py, new", (ROOT / page).read_text()))  # a recipe for a verb
    assert {line: wrong for line in lines if (wrong := set(misspelt(line)) - made_here)} == {}


class Reader:
    """Runs the commands of a page in a separate folder, with a device, a file system and a store."""

    def __init__(self, folder: Path, bench: Workbench) -> None:
        self.folder = folder
        self._bench = bench
        self._names: dict[str, str] = {}
        commands = folder / "bin"
        commands.mkdir()
        (commands / "spindle").write_text(f'#!/bin/sh\nexec {sys.executable} -m spindle.cli "$@"\n')
        (commands / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        for command in commands.iterdir():
            command.chmod(0o755)
        (folder / "here").mkdir()
        for place in ("catalogue", "examples", "tests"):
            (folder / "here" / place).symlink_to(ROOT / place)
        self._environment = {
            **os.environ,
            "PATH": f"{commands}:{PATH}",
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_STATE_HOME": str(folder / "state"),
            "COLUMNS": "200",
        }

    def _in_place(self, text: str) -> str:
        """The reader's devices and folders, replaced by those of the test."""
        for name in ("/dev/loop0", "/dev/sdx"):
            if name in text and name not in self._names:
                self._names[name] = self._bench.loop(size=256 << 20)
        for name in ("/mnt/disk", "/srv/data", "/data"):
            if re.search(rf"{name}\b", text) and name not in self._names:
                self._names[name] = str(self.folder / name.replace("/", "_"))
                Path(self._names[name]).mkdir()
        for name, ours in self._names.items():
            text = re.sub(rf"(?<![\w.]){name}\b", ours, text)
            text = re.sub(rf"\b{Path(name).name}\b(?=/queue|  )", Path(ours).name, text)
        return text

    def put(self, file: File) -> None:
        (self.folder / "here" / file.name).write_text(self._in_place(file.text))

    def type(self, command: Command) -> tuple[int, str]:
        """Exit status and output of a command."""
        line = command.line
        if not command.is_exact:
            for pattern, shorter in SHORTER_SCRIPTS if command.how == "run: script" else SHORTER:
                line = re.sub(pattern, shorter, line)
        line = self._in_place(line)
        if command.how.startswith("run: with "):
            line = f"{line} {command.how.removeprefix('run: with ')}"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder / "here",
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, self._as_on_the_page(done.stdout)

    def _as_on_the_page(self, text: str) -> str:
        for name, ours in self._names.items():
            text = text.replace(ours, name)
        return text


def replace_in(page: str, shown: tuple[str, ...], printed: list[str]) -> None:
    text = (ROOT / page).read_text()
    (ROOT / page).write_text(text.replace("\n".join(shown), "\n".join(printed)))


@pytest.fixture
def reader(tmp_path: Path, bench: Workbench) -> Reader:
    return Reader(tmp_path, bench)


def missing(shown: tuple[str, ...], printed: list[str]) -> list[str]:
    """Lines of the page that the program does not print in that order."""
    rest = iter([undated(line) for line in printed])
    return [
        line for line in shown if line.strip() and line != "..." and not any(undated(line) == other for other in rest)
    ]


def as_printed_now(shown: tuple[str, ...], printed: list[str]) -> list[str]:
    """The shown output as the program prints it now. Each part between `...` goes from the line that is most alike to
    its first one to the line that is most alike to its last one."""
    found: list[str] = []
    at = 0
    for left_out, lines in groupby(shown, lambda line: line == "..."):
        part = list(lines)
        if not left_out and any(part):
            texts = [line for line in part if line]
            first = max(range(at, len(printed)), key=lambda number: alike(texts[0], printed[number]))
            last = max(range(first, len(printed)), key=lambda number: alike(texts[-1], printed[number]))
            blanks = len(part) - len("\n".join(part).rstrip("\n").split("\n"))
            part = ["" for _ in range(part.index(texts[0]))] + printed[first : last + 1] + [""] * blanks
            at = last + 1
        found += part
    return found


def alike(one: str, other: str) -> float:
    """1 if two lines have the same words; figures count little."""
    words = difflib.SequenceMatcher(None, re.sub(r"\d+", "0", one), re.sub(r"\d+", "0", other), autojunk=False).ratio()
    return words + difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() / 100


def undated(line: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", line)


@pytest.mark.promise(25)
@pytest.mark.parametrize("page", [page for page in PAGES if any(isinstance(s, File) or s.is_run for s in steps(page))])
def test_commands_on_a_page_work_as_shown(page: str, reader: Reader, request: pytest.FixtureRequest) -> None:
    for step in steps(page):
        if isinstance(step, File):
            reader.put(step)
        elif step.is_run:
            status, printed = reader.type(step)
            said = f"{step.line}\n{printed}"
            assert status in step.status, said
            assert "Traceback" not in printed, said
            lines = [line.rstrip() for line in printed.splitlines()]
            if step.is_exact and missing(step.shown, lines):
                assert request.config.getoption("--update-pages"), said
                replace_in(page, step.shown, as_printed_now(step.shown, lines))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("spindle run x.toml t.bin --secnds 3", ["--secnds"]),
        ("spindle store lss", ["lss"]),
        ("spindle rnu x y", ["rnu"]),
        ("spindle run x.toml t.bin --seconds=3 [--create SIZE]", []),
    ],
)
def test_a_misspelt_verb_or_option_is_found(line: str, wrong: list[str]) -> None:
    assert misspelt(line) == wrong


@pytest.mark.promise(27)
def test_the_picture_of_the_knee_shows_the_output_of_its_command(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The README names the command of the picture; the run is modelled, so its figures are the same each time."""
    shown = "docs/images/knee.svg"
    command = re.search(rf"`tools/terminal-picture {shown} spindle ([^`]+)`", (ROOT / "README.md").read_text())
    assert command is not None
    drawn = tmp_path / "knee.svg"
    arguments = [sys.executable, str(ROOT / "tools/terminal-picture"), str(drawn), "spindle", *command[1].split()]
    path = f"{Path(sys.executable).parent}{os.pathsep}{PATH}"
    subprocess.run(arguments, check=True, env={**os.environ, "PATH": path}, timeout=120, capture_output=True)
    if request.config.getoption("--update-pages"):
        (ROOT / shown).write_text(drawn.read_text())
    assert drawn.read_text() == (ROOT / shown).read_text()
