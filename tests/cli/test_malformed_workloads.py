"""Any error in a workload file gives one line with the position, exit status 2 and no traceback."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spindle import _core
from spindle.cli.options.keys import keys
from spindle.run.errors import Usage
from spindle.run.resolve import resolve
from tests.program import Invoke

JUNK = [
    "0", "-1", "1e999", "nan", "true", '"', "'", "[", "]", "{", "}", "=", "#", "\n", "\x00", "\x7f", "\t", "é", "💾",
    "99999999999999999999", '"64KiBB"', '"-4KiB"', '"0%-200%"', '"idle:9"', "[[stream]]", "[stream]", "[[streams]]",
    '"1e400s"', '"realtime"', "1979-05-27", "0x", "0b2", "_", ".", "..", '"\\u0000"', '"\\q"', "[1, 2", "{a=1",
]  # fmt: skip


def mutants(count: int, seed: int) -> list[str]:
    """Presets with damage: characters and lines removed, doubled, swapped, replaced, values and keys changed."""
    rng = random.Random(seed)
    texts = [_core.preset_text(name) for name in _core.preset_names()]
    found: list[str] = []
    while len(found) < count:
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 4)):
            text = damaged(text, rng)
        found.append(text)
    return found


def damaged(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    place = rng.randrange(len(text) + 1)
    match rng.randrange(7):
        case 0:
            return text[:place] + text[place + rng.randint(1, 10) :]
        case 1:
            return text[:place] + rng.choice(JUNK) + text[place:]
        case 2:
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
        case 3:
            lines[at] = re.sub(r"=.*", "= " + rng.choice(JUNK).replace("\\", r"\\"), lines[at])
        case 4:
            lines[at] = re.sub(r"^(\w+)", lambda found: found[1][::-1], lines[at])
        case 5:
            lines[at] = lines[at].replace('"', "", 1)
        case _:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def test_four_hundred_damaged_files_give_one_line_with_the_place_each(invoke: Invoke, here: Path) -> None:
    wrong = 0
    for number, text in enumerate(mutants(400, seed=20260101)):
        path = Path(f"w{number}.toml")
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        try:
            resolve(str(path))
        except (_core.ConfigError, Usage):
            wrong += 1
        else:
            continue  # the damage was to a comment, or to a value that still makes sense
        ended = invoke("run", str(path), "null:1MiB")
        assert ended.status == 2, text
        assert ended.out == ""
        assert re.match(rf"spindle: {re.escape(str(path))}:\d+: \S", ended.complaint), (ended.complaint, text)
    assert wrong >= 200


def complaint(text: str, options: list[tuple[str, str]]) -> str | None:
    """The error of a workload; None: it has none."""
    try:
        _core.Workload.parse(text, "w.toml", "w", options)
    except _core.ConfigError as error:
        return str(error)
    return None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200))
def test_any_text_gives_a_workload_or_one_line(text: str) -> None:
    line = complaint(text, [])
    assert line is None or re.fullmatch(r"w\.toml:\d+: .+", line)


@settings(max_examples=150, deadline=None)
@given(key=st.sampled_from([key.name for key in keys() if key.option]), value=st.text(max_size=40))
def test_any_value_of_an_option_gives_a_workload_or_one_line(key: str, value: str) -> None:
    line = complaint("", [(key, value)])
    assert line is None or (line.startswith(f"`{key}=`: ") and "\n" not in line)


def test_bytes_that_are_not_text_are_reported(invoke: Invoke, here: Path) -> None:
    (here / "w.toml").write_bytes(b"seconds = 1\n# \xff\xfe\n")
    ended = invoke("run", "w.toml", "null:1MiB")
    assert ended.status == 2
    assert "w.toml: not UTF-8 text at byte 14" in ended.complaint


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"#" * (2 << 20)), "larger than 1 MiB"),
    ],
    ids=["missing", "directory", "huge"],
)
def test_a_file_that_is_not_a_workload_is_one_line(
    make: Callable[[Path], object], says: str, invoke: Invoke, here: Path
) -> None:
    make(here / "w.toml")
    ended = invoke("run", "w.toml", "null:1MiB")
    assert ended.status == 2
    assert says in ended.complaint
