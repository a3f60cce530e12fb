"""The table of options is complete, and docs/reference/fio-jobs.md agrees with it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from spindle.cli.failure import spelled
from spindle.formats.fio_job import Level, convert_text
from spindle.formats.fio_job.options import OPTIONS, Treatment, option_of

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/fio-jobs.md").read_text()
HEADINGS = {
    Treatment.TAKEN: "Carried over",
    Treatment.DIFFERS: "Carried out without it: differs",
    Treatment.NOTE: "Not needed: a note",
    Treatment.ERROR: "Refused",
}


def documented(heading: str) -> dict[str, str]:
    """Option or alias -> text."""
    section = re.split(r"^##", PAGE.split(f"### {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    rows = [line.strip("|").split("|", 1) for line in section.splitlines() if line.startswith("| `")]
    return {name: text.strip() for names, text in rows for name in re.findall(r"`([^`]+)`", names)}


@pytest.mark.parametrize("treatment", list(Treatment))
def test_the_page_lists_every_option_with_its_effect(treatment: Treatment) -> None:
    expected = {
        name: spelled(option.text)
        for option in OPTIONS.values()
        if option.treatment is treatment
        for name in (option.name, *option.aliases)
    }
    assert documented(HEADINGS[treatment]) == expected


def test_no_option_is_in_two_tables() -> None:
    names = [name for option in OPTIONS.values() for name in (option.name, *option.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "option", [each for each in OPTIONS.values() if each.treatment is not Treatment.TAKEN], ids=str
)
def test_an_option_that_is_not_carried_over_is_named(option: object) -> None:
    from spindle.formats.fio_job.options import Option

    assert isinstance(option, Option)
    engine = f"ioengine={option.engines[0]}\n" if option.engines else ""
    text = f"[a]\nfilename=/x\nsize=1m\ndirect=1\n{option.name}=17\n{engine}"
    said = [finding for finding in convert_text(text, "job.fio").findings if finding.option == option.name]
    assert [(finding.level, finding.place.line, finding.text) for finding in said] == [
        (Level(option.treatment.value), 5, option.text)
    ]


def test_every_option_that_fio_itself_lists_is_known() -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    listed = subprocess.run(["fio", "--cmdhelp=all"], capture_output=True, text=True, check=True).stdout
    names = [line.split(":")[0].strip() for line in listed.splitlines() if ":" in line]
    assert len(names) > 150
    assert [name for name in names if option_of(name) is None] == []


def test_every_option_of_fio_s_own_engines_is_known() -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    listed = subprocess.run(["fio", "--enghelp"], capture_output=True, text=True, check=True).stdout.split()[3:]
    assert {"io_uring", "libaio", "sync"} <= set(listed)
    unknown = set()
    for engine in listed:
        run = subprocess.run(["fio", f"--enghelp={engine}"], capture_output=True, text=True, check=False)
        names = [
            line.split(":")[0].strip() for line in run.stdout.splitlines() if re.match(r"\s*[a-z0-9_-]+\s*: ", line)
        ]
        unknown |= {name for name in names if option_of(name) is None}
    assert unknown == set()
