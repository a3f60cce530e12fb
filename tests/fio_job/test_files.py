"""Reading job files: sections, includes, variables, numbers, and errors in a file."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from spindle import _core
from spindle.formats.fio_job import JobFileRefused, convert, convert_text, toml_of
from spindle.formats.fio_job.numbers import InvalidValue, Scale, arithmetic, microseconds, whole

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize(
    ("text", "value"),
    [("(1+2*3)", 7), ("((1+2)*3)", 9), ("(2^3^2)", 512), ("(7/2)", 3), ("(7/2*2)", 7), ("(9%4)", 1), ("(-3+4k)", 4093)],
)
def test_arithmetic_is_exact_and_the_fraction_is_dropped(text: str, value: int) -> None:
    assert arithmetic(text, Scale()) == value


@pytest.mark.parametrize(
    "text", ["(1/0)", "(1+", "(2^64)", "(2^63)", "(1q)", "()", "(" * 100, "(1)1", "1.5m", "4 4", ""]
)
def test_a_wrong_number_is_an_error_of_one_line(text: str) -> None:
    with pytest.raises(InvalidValue) as error:
        whole(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10**7), ("10ms", 10**4), ("2M", 120 * 10**6), ("1d", 86400 * 10**6), ("3usec", 3), ("(3)", 3)],
)
def test_times_count_in_seconds_and_in_microseconds_in_an_expression(text: str, value: int) -> None:
    assert microseconds(text) == value


def test_keywords_are_replaced_and_can_be_used_in_arithmetic() -> None:
    conversion = convert_text("[a]\nfilename=/x\ndirect=1\nbs=2*$pagesize\nsize=1m\n", "job.fio")
    assert conversion.jobs[0].job.sizes[0].low == 2 * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no job in it"),
        ("bs=4k\n[a]\n", "outside of a [section]"),
        ("[a\n", "a section is written [name]"),
        ("[a]\ninclude nowhere.inc\n", "no such file"),
    ],
)
def test_a_file_that_is_not_a_job_file_is_refused_with_the_position(text: str, complaint: str) -> None:
    with pytest.raises(JobFileRefused, match=r"job\.fio:[0-9]+: error: ") as error:
        convert_text(text, "job.fio")
    assert complaint in str(error.value)


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\ninclude loop.inc\n")
    (tmp_path / "loop.inc").write_text("include loop.inc\n")
    with pytest.raises(JobFileRefused, match="nest deeper"):
        convert(str(job))


def mutated(text: str, chance: random.Random) -> str:
    """A text with a few bytes changed, doubled, dropped or copied from elsewhere."""
    chars = list(text)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(chars) + 1)
        other = chance.randrange(len(chars) + 1)
        match chance.randrange(5):
            case 0:
                chars[place:place] = chance.choice("[]=(){}$%,:;#-+*/^\\\0\x1b\u2028é9kKmMi\n")
            case 1:
                del chars[place : place + chance.randrange(1, 8)]
            case 2:
                chars[place:place] = chars[other : other + 12]
            case 3:
                chars[place:place] = chance.choice(
                    ["999999999999999999999", "(((((", "${HOME}", "$ncpus", "include ", "%"]
                )
            case _:
                chars[place : place + 1] = chr(chance.randrange(32, 127))
    return "".join(chars)


def test_a_thousand_mutated_files_are_converted_or_refused_never_anything_else() -> None:
    chance = random.Random(20)
    files = sorted(CORPUS.glob("*.fio"))
    refused = 0
    for number in range(1000):
        text = mutated(files[number % len(files)].read_text(), chance)
        try:
            conversion = convert_text(text, str(CORPUS / "job.fio"))
        except JobFileRefused as error:
            lines = [str(finding) for finding in error.findings]
            refused += 1
        else:
            lines = [str(finding) for finding in conversion.findings]
            refused += conversion.refused
            if not conversion.refused:
                _core.Workload.parse(toml_of(conversion), "job.fio", "job")
        assert all("job.fio" in line or ".inc" in line for line in lines), text
    assert 100 < refused < 950


def test_a_wrong_value_is_reported_once_and_hides_no_other() -> None:
    text = "[a]\nfilename=/dev/x\ndirect=1\nrw=sideways\nsize=8*4k\nioengine=net\nnumjobs=100000\n"
    found = [(each.place.line, each.option) for each in convert_text(text, "job.fio").findings]
    assert found == [(4, "rw"), (5, "size"), (6, "ioengine"), (7, "numjobs")]
